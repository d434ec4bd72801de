//! Chooses the program of an upgrade's new process, which gets all rights of the old process. So a
//! client of the admin server may name only a file that no other user can have written.

use super::NotUpgraded;
use rustix::process::getuid;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Mode bits that let the file's group or other users write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Mode bit of a folder in which users may replace only their own files, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// Returns the path of the program to start. `None` stands for the program of this process.
pub fn choose(named: Option<&str>) -> Result<OsString, NotUpgraded> {
    let Some(named) = named else {
        return Ok(std::env::args_os().next().unwrap_or_else(|| "foxy".into()));
    };
    let cannot = |error| NotUpgraded::CannotStart(named.to_owned(), error);
    let whole = Path::new(named).canonicalize().map_err(cannot)?;
    // Checks and starts the target if `named` is a symbolic link: another user could change the
    // link after this check.
    match untrusted_part(&whole) {
        Some(part) => Err(NotUpgraded::Untrusted(part)),
        None => Ok(whole.into()),
    }
}

/// Returns the first part of the path, from the file upwards, that another user could replace or
/// change.
fn untrusted_part(path: &Path) -> Option<PathBuf> {
    let own = getuid().as_raw();
    let is_trusted = |part: &Path| {
        part.metadata().is_ok_and(|found| is_safe(found.uid(), found.mode(), part == path, own))
    };
    path.ancestors().find(|part| !is_trusted(part)).map(Path::to_owned)
}

fn is_safe(owner: u32, mode: u32, is_file: bool, own: u32) -> bool {
    let is_shared = mode & WRITABLE_BY_OTHERS != 0 && (is_file || mode & STICKY == 0);
    (owner == 0 || owner == own) && !is_shared
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_root_and_foxys_user_can_have_written_the_binary() {
        for (owner, mode, is_file, expected) in [
            (0, 0o755, true, true),
            (1000, 0o700, true, true),
            (1001, 0o755, true, false),
            (1000, 0o775, true, false),
            (1000, 0o757, false, false),
            (0, 0o1777, false, true),
            (0, 0o1777, true, false),
        ] {
            assert_eq!(is_safe(owner, mode, is_file, 1000), expected, "{owner} {mode:o}");
        }
    }
}
