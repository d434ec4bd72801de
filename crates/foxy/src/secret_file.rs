//! Reads files that contain a secret: the token of the admin server, private keys, and users.
//! Refuses a file that every user can read, or that other users can change or replace.

use crate::failure::Failure;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Bit of a file's mode: users other than the owner and outside of the file's group may read.
const OTHERS_READ: u32 = 0o004;
/// Bits of a file's mode: the group or all other users may write.
const OTHERS_OR_GROUP_WRITE: u32 = 0o022;
/// Bit of a file's mode: users other than the owner and outside of the file's group may write.
const OTHERS_WRITE: u32 = 0o002;
/// The sticky bit of a folder's mode. In a folder with this bit, only a file's owner, the folder's
/// owner and root may remove or rename the file.
const STICKY: u32 = 0o1000;

/// Reason why foxy refuses a secret file.
#[derive(Debug)]
pub enum SecretError {
    Unreadable(io::Error),
    Public {
        mode: u32,
        path: PathBuf,
    },
    Changeable {
        mode: u32,
        path: PathBuf,
    },
    /// Every user can replace the file, because the folder has the permissions `mode`.
    Replaceable {
        mode: u32,
        folder: PathBuf,
    },
}

impl fmt::Display for SecretError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(error) => write!(f, "cannot be read: {error}"),
            Self::Public { mode, path } => write!(
                f,
                "may be read by every user of this machine (mode {mode:o}); run `chmod 600 {}`, \
                 and replace the secret if another user may have read it",
                path.display()
            ),
            Self::Changeable { mode, path } => write!(
                f,
                "may be changed by other users (mode {mode:o}); run `chmod 600 {}`, and check \
                 that the content is unchanged",
                path.display()
            ),
            Self::Replaceable { mode, folder } => write!(
                f,
                "is in a folder that every user may write to (mode {mode:o}); run `chmod o-w \
                 {}`, or move the file",
                folder.display()
            ),
        }
    }
}

/// Reads the file of a setting, which has one line, with `parse`. The error for an unusable line
/// shows the right `form`, and never the line.
pub fn read_line<T>(
    path: &Path,
    setting: &str,
    form: &str,
    parse: impl FnOnce(&[u8]) -> Option<T>,
) -> Result<T, Failure> {
    let refuse =
        |reason: String| Failure::Unusable(format!("{} ({setting}): {reason}", path.display()));
    let content = read(path).map_err(|error| refuse(format!("the file {error}")))?;
    parse(content.trim_ascii_end()).ok_or_else(|| refuse(format!("write one line with {form}")))
}

/// Reads a secret. Checks the file after opening it, so the checks apply to the target of a
/// symbolic link.
pub fn read(path: &Path) -> Result<Vec<u8>, SecretError> {
    let mut file = File::open(path).map_err(SecretError::Unreadable)?;
    let metadata = file.metadata().map_err(SecretError::Unreadable)?;
    let mode = metadata.permissions().mode() & 0o7777;
    // A pipe is not checked: only the process at its other end writes to it, and nothing remains on
    // disk.
    if metadata.is_file() {
        if mode & OTHERS_READ != 0 {
            return Err(SecretError::Public { mode, path: path.to_owned() });
        }
        if mode & OTHERS_OR_GROUP_WRITE != 0 {
            return Err(SecretError::Changeable { mode, path: path.to_owned() });
        }
        refuse_if_replaceable(path, metadata.uid())?;
    }
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(SecretError::Unreadable)?;
    Ok(content)
}

/// Refuses a file in a folder that every user may write to. The exception is a file of root or
/// foxy's user in a sticky folder such as `/tmp`: there no other user can replace it.
fn refuse_if_replaceable(path: &Path, owner: u32) -> Result<(), SecretError> {
    let place = std::fs::canonicalize(path).map_err(SecretError::Unreadable)?;
    let Some(folder) = place.parent() else { return Ok(()) };
    let mode = folder.metadata().map_err(SecretError::Unreadable)?.permissions().mode() & 0o7777;
    let is_kept = mode & STICKY != 0 && [0, rustix::process::geteuid().as_raw()].contains(&owner);
    if mode & OTHERS_WRITE != 0 && !is_kept {
        return Err(SecretError::Replaceable { mode, folder: folder.to_owned() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};

    /// Tries to read a secret from a file with mode `file` in a folder with mode `folder`. The
    /// error is the text for the user.
    fn of(file: u32, folder: u32) -> Result<Vec<u8>, String> {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("secret");
        std::fs::write(&path, "x").expect("written");
        set_permissions(&path, Permissions::from_mode(file)).expect("changed");
        set_permissions(place.path(), Permissions::from_mode(folder)).expect("changed");
        read(&path).map_err(|error| error.to_string())
    }

    #[test]
    fn a_secret_that_only_owner_and_group_may_read_is_read() {
        for (file, folder) in [(0o600, 0o700), (0o640, 0o755), (0o400, 0o770), (0o600, 0o1777)] {
            assert_eq!(of(file, folder).as_deref(), Ok(&b"x"[..]), "{file:o} in {folder:o}");
        }
    }

    #[test]
    fn a_file_open_to_other_users_is_refused_with_its_mode() {
        let cases = [
            (0o644, 0o700, "read by every user of this machine (mode 644); run `chmod 600 "),
            (0o604, 0o700, "(mode 604)"),
            (0o660, 0o700, "changed by other users (mode 660); run `chmod 600 "),
            (0o602, 0o700, "(mode 602)"),
            (0o600, 0o777, "a folder that every user may write to (mode 777); run `chmod o-w "),
        ];
        for (file, folder, part) in cases {
            let refused = of(file, folder).expect_err("refused");
            assert!(refused.contains(part), "{file:o} in {folder:o}: {refused}");
        }
    }

    #[test]
    fn a_link_is_judged_by_what_it_leads_to() {
        let place = tempfile::tempdir().expect("a folder");
        let (secret, link) = (place.path().join("secret"), place.path().join("link"));
        std::fs::write(&secret, "x").expect("written");
        std::os::unix::fs::symlink(&secret, &link).expect("linked");
        set_permissions(&secret, Permissions::from_mode(0o644)).expect("changed");
        assert!(matches!(read(&link), Err(SecretError::Public { .. })));
        set_permissions(&secret, Permissions::from_mode(0o600)).expect("changed");
        assert!(read(&link).is_ok());
    }
}
