//! Reads the file that the setting `users-file` names. Replaces, adds or removes the line of a user
//! in it. Such a line has the user's name and the hash of a password or token.

use crate::failure::{Failure, unwritten};
use crate::secret_file;
use crate::settings::Settings;
use foxy_proxy::core::users::UserBook;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

/// Reads the users of the settings. Returns `None` if the settings name no file.
pub fn of(settings: &Settings) -> Result<Option<UserBook>, Failure> {
    settings.access.users_file.as_deref().map(read).transpose()
}

pub fn read(path: &Path) -> Result<UserBook, Failure> {
    book(path, &content(path)?)
}

fn content(path: &Path) -> Result<String, Failure> {
    let refuse = |why: String| unusable(path, why);
    let bytes = secret_file::read(path).map_err(|error| refuse(format!("the file {error}")))?;
    String::from_utf8(bytes).map_err(|_| refuse("the file is not UTF-8".into()))
}

fn book(path: &Path, content: &str) -> Result<UserBook, Failure> {
    UserBook::read(content)
        .map_err(|(line, reason)| unusable(path, format!("line {line} {reason}")))
}

fn unusable(path: &Path, why: String) -> Failure {
    Failure::Unusable(format!("{} (users-file): {why}", path.display()))
}

/// Replaces the line of the user `name`, or removes it if `line` is `None`. A new user's line
/// creates a missing file. Returns whether the file had the user before.
pub fn replace(path: &Path, name: &str, line: Option<&str>) -> Result<bool, Failure> {
    let failed = |path: &Path, error: &io::Error| {
        let why = unwritten(error, "name a file that this user may write");
        Failure::Unusable(format!("{}: {why}", path.display()))
    };
    let path = match std::fs::canonicalize(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        result => result.map_err(|error| failed(path, &error))?,
    };
    // The new file, which will replace the old file, is also a lock. While it exists, a second
    // command fails.
    let mut new_path = path.clone().into_os_string();
    new_path.push(".new");
    let new_path = PathBuf::from(new_path);
    let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new_path);
    let new = new.as_mut().map_err(|error| failed(&new_path, error))?;
    let result = rewrite(&path, new, name, line).and_then(|had| {
        std::fs::rename(&new_path, &path).map_err(|error| failed(&path, &error))?;
        Ok(had)
    });
    if result.is_err() {
        let _the_first_failure_counts = std::fs::remove_file(&new_path);
    }
    result
}

/// Writes the new content to `new`, with the owner and mode of the old file.
fn rewrite(path: &Path, new: &mut File, name: &str, line: Option<&str>) -> Result<bool, Failure> {
    let failed = |error: io::Error| Failure::Failed(format!("{}: {error}", path.display()));
    let old = match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && line.is_some() => String::new(),
        Err(error) => return Err(unusable(path, error.to_string())),
        Ok(metadata) => {
            let old = content(path)?;
            book(path, &old)?;
            fchown(&*new, Some(metadata.uid()), Some(metadata.gid())).map_err(failed)?;
            new.set_permissions(PermissionsExt::from_mode(metadata.mode() & 0o7777))
                .map_err(failed)?;
            old
        }
    };
    let (content, had) = edited(&old, name, line);
    new.write_all(content.as_bytes()).and_then(|()| new.sync_all()).map_err(failed)?;
    Ok(had)
}

/// Returns the content with `line` in place of the user's line, and whether the user had a line. A
/// new user's line comes last.
fn edited(content: &str, name: &str, line: Option<&str>) -> (String, bool) {
    let is_of_user =
        |line: &str| line.trim().split_once(':').is_some_and(|(listed, _)| listed == name);
    let had = content.lines().any(is_of_user);
    let replaced = content.lines().filter_map(|old| if is_of_user(old) { line } else { Some(old) });
    let lines = replaced.chain(line.filter(|_| !had));
    (lines.map(|line| format!("{line}\n")).collect(), had)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_line_of_the_user_changes() {
        let content = "# staff\nann:1\n\nben:2";
        for (name, line, expected) in [
            ("ann", Some("ann:3"), ("# staff\nann:3\n\nben:2\n", true)),
            ("cat", Some("cat:3"), ("# staff\nann:1\n\nben:2\ncat:3\n", false)),
            ("ann", None, ("# staff\n\nben:2\n", true)),
            ("an", None, ("# staff\nann:1\n\nben:2\n", false)),
        ] {
            let (text, had) = edited(content, name, line);
            assert_eq!((&*text, had), expected, "{name} {line:?}");
        }
    }

    #[test]
    fn the_file_keeps_its_mode_and_a_mistake_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("users");
        let (_, line) = foxy_proxy::core::users::token_line("ann").expect("a line");
        assert!(replace(&path, "ann", None).is_err(), "no file");
        assert!(matches!(replace(&path, "ann", Some(&line)), Ok(false)));
        let mode = || path.metadata().expect("a file").mode() & 0o777;
        assert_eq!(mode(), 0o600);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o640)).expect("changed");
        assert!(matches!(replace(&path, "ann", Some(&line)), Ok(true)));
        assert_eq!(mode(), 0o640);
        std::fs::write(&path, "ann").expect("written");
        let refused = replace(&path, "ann", None).expect_err("no colon").to_string();
        assert!(refused.contains("(users-file): line 1 has no colon"), "{refused}");
        assert_eq!(folder.path().read_dir().expect("a folder").count(), 1);
    }
}
