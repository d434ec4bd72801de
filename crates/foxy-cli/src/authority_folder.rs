//! Stores a certificate authority in a folder. The folder contains the files `ca.pem` and `ca.key`,
//! and only the folder's owner may read them.

use crate::failure::{Failure, unwritten};
use foxy_authority::{Authority, AuthorityError, AuthorityFacts, MadeAuthority};
use foxy_base::WallTime;
use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Returns the path of the authority's certificate in `folder`.
pub fn certificate(folder: &Path) -> PathBuf {
    folder.join("ca.pem")
}

/// Returns the path of the authority's private key in `folder`.
pub fn key(folder: &Path) -> PathBuf {
    folder.join("ca.key")
}

/// Writes a new authority into `folder`. Creates the folder if it is missing.
///
/// # Errors
/// Returns an error if other users may enter the folder, or if the folder cannot be written. Also
/// returns an error if the folder contains an authority and `replace` is false.
pub fn write(folder: &Path, made: &MadeAuthority, replace: bool) -> Result<(), Failure> {
    let cannot = |path: &Path, error: &std::io::Error| {
        let why = unwritten(error, "with --dir, name a folder that this user may write to");
        Failure::Unusable(format!("{}: {why}", path.display()))
    };
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(|error| cannot(folder, &error))?;
    let mode = folder.metadata().map_err(|error| cannot(folder, &error))?.permissions().mode();
    if mode & 0o077 != 0 {
        let text = format!(
            "{}: other users may enter this folder (mode {:o}), but it will contain a private key; run `chmod 700` on the folder, or name another folder with --dir",
            folder.display(),
            mode & 0o777
        );
        return Err(Failure::Unusable(text));
    }
    let (certificate, key) = (certificate(folder), key(folder));
    for path in [&key, &certificate] {
        match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(cannot(path, &error)),
            Ok(_) if replace => std::fs::remove_file(path).map_err(|error| cannot(path, &error))?,
            Ok(_) => return Err(Failure::Unusable(taken(folder))),
        }
    }
    let write = |path: &Path, mode: u32, text: &str| {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    write(&key, 0o600, &made.key).map_err(|error| cannot(&key, &error))?;
    write(&certificate, 0o644, &made.certificate).map_err(|error| cannot(&certificate, &error))
}

fn taken(folder: &Path) -> String {
    let there = match facts(folder) {
        Ok(facts) => format!("a certificate authority ({})", facts.subject),
        Err(_) => "a key or a certificate".into(),
    };
    format!(
        "{} already contains {there}; `foxy ca show` shows the authority, --force replaces it (clients must then trust the new authority), and --dir names another folder",
        folder.display()
    )
}

/// Reads the authority's certificate in `folder`.
///
/// # Errors
/// Returns an error if the certificate is missing or invalid.
pub fn facts(folder: &Path) -> Result<AuthorityFacts, Failure> {
    let path = certificate(folder);
    let unusable = |what: String| {
        let path = path.display();
        Failure::Unusable(format!(
            "{path}: {what}; make a certificate authority with `foxy ca init`"
        ))
    };
    let pem = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
    AuthorityFacts::read(&pem).map_err(|error| unusable(error.to_string()))
}

/// Opens the authority in `folder`, so that foxy can sign certificates with it. `setting` is the
/// name of the setting that contains the folder's path; error messages mention this setting.
///
/// # Errors
/// Returns an error if a file is missing or invalid, or if other users may read or replace the key.
pub fn open(folder: &Path, setting: &str, now: WallTime) -> Result<Authority, Failure> {
    let (certificate, key) = (certificate(folder), key(folder));
    let unusable = |path: &Path, what: &dyn std::fmt::Display, right: &str| {
        Failure::Unusable(format!("{} ({setting}): {what}; {right}", path.display()))
    };
    let make = "name a folder that `foxy ca init` made";
    let pem = std::fs::read(&certificate).map_err(|error| unusable(&certificate, &error, make))?;
    let place = folder.metadata().map_err(|error| unusable(folder, &error, make))?;
    let mode = place.permissions().mode();
    if mode & 0o022 != 0 {
        let what = format!("other users may create files in this folder (mode {:o})", mode & 0o777);
        return Err(unusable(
            folder,
            &what,
            "run `chmod 700` on the folder, and check that `ca.pem` and `ca.key` are yours",
        ));
    }
    if is_anothers(&place) {
        return Err(unusable(folder, &"the folder belongs to another user", make));
    }
    let mut file = File::open(&key).map_err(|error| unusable(&key, &error, make))?;
    let metadata = file.metadata().map_err(|error| unusable(&key, &error, make))?;
    let mode = metadata.permissions().mode();
    if mode & 0o077 != 0 {
        let what = format!("other users may read this private key (mode {:o})", mode & 0o777);
        let right = "run `chmod 600` on the key; if another user may have read it, make a new \
                     authority with `foxy ca init --force`";
        return Err(unusable(&key, &what, right));
    }
    if is_anothers(&metadata) {
        return Err(unusable(&key, &"the key belongs to another user", make));
    }
    let mut text = String::new();
    file.read_to_string(&mut text).map_err(|error| unusable(&key, &error, make))?;
    Authority::read(&pem, &text, now).map_err(|error| match error {
        AuthorityError::NoKey | AuthorityError::WrongKey => unusable(&key, &error, make),
        AuthorityError::Expired => unusable(
            &certificate,
            &error,
            "make a new authority with `foxy ca init --force`, and let clients trust it",
        ),
        _ => unusable(&certificate, &error, make),
    })
}

fn is_anothers(metadata: &Metadata) -> bool {
    ![0, rustix::process::geteuid().as_raw()].contains(&metadata.uid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_authority::{NewAuthority, make};
    use std::fs::Permissions;
    use std::time::Duration;

    const NOW: WallTime = WallTime::from_seconds(1_800_000_000);

    fn made() -> MadeAuthority {
        let hosts = ["a.test".parse().expect("a host")];
        let validity = Duration::from_secs(86_400);
        make(&NewAuthority { name: "a", hosts: &hosts, now: NOW, validity }).expect("made")
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().expect("there").permissions().mode() & 0o777
    }

    #[test]
    fn a_key_is_its_owners_alone_from_the_first_moment() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("deep/ca");
        write(&folder, &made(), false).expect("written");
        assert_eq!(
            (mode(&folder), mode(&key(&folder)), mode(&certificate(&folder))),
            (0o700, 0o600, 0o644)
        );
        assert!(open(&folder, "intercept-ca", NOW).is_ok());
    }

    #[test]
    fn what_is_there_is_replaced_only_when_told_so() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("ca");
        write(&folder, &made(), false).expect("written");
        let before = facts(&folder).expect("a certificate");
        let refused = write(&folder, &made(), false).expect_err("taken").to_string();
        assert!(
            refused.contains("already contains a certificate authority (")
                && refused.contains("--force"),
            "{refused}"
        );
        assert_eq!(facts(&folder).expect("still there"), before);
        write(&folder, &made(), true).expect("replaced");
        assert_ne!(facts(&folder).expect("another"), before);
        assert!(open(&folder, "intercept-ca", NOW).is_ok());
    }

    #[test]
    fn a_folder_that_others_may_enter_gets_no_key() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("changed");
        let refused = write(folder.path(), &made(), false).expect_err("open to others").to_string();
        assert!(refused.contains("(mode 755)") && refused.contains("chmod 700"), "{refused}");
        assert!(!key(folder.path()).exists());
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("ca");
        write(&folder, &made(), false).expect("written");
        for bits in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(key(&folder), Permissions::from_mode(bits)).expect("changed");
            let refused =
                open(&folder, "intercept-ca", NOW).expect_err("open to others").to_string();
            assert!(refused.contains(&format!("(mode {bits:o})")), "{refused}");
        }
    }

    #[test]
    fn a_folder_that_others_may_write_to_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("ca");
        write(&folder, &made(), false).expect("written");
        for bits in [0o720, 0o702, 0o777] {
            std::fs::set_permissions(&folder, Permissions::from_mode(bits)).expect("changed");
            let refused =
                open(&folder, "intercept-ca", NOW).expect_err("open to others").to_string();
            let expected = format!(
                "other users may create files in this folder (mode {bits:o}); run `chmod 700` on the folder"
            );
            assert!(refused.contains(&expected), "{refused}");
        }
    }

    #[test]
    fn what_is_missing_or_does_not_fit_is_named() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("ca");
        assert!(
            open(&folder, "intercept-ca", NOW)
                .expect_err("nothing")
                .to_string()
                .contains("ca.pem (intercept-ca): No such")
        );
        write(&folder, &made(), false).expect("written");
        std::fs::write(certificate(&folder), made().certificate).expect("written");
        let refused =
            open(&folder, "intercept-ca", NOW).expect_err("another's certificate").to_string();
        assert!(
            refused.contains("ca.key (intercept-ca): the key does not belong to the certificate"),
            "{refused}"
        );
        write(&folder, &made(), true).expect("written");
        let later = WallTime::from_seconds(NOW.seconds() + 86_400);
        let refused = open(&folder, "intercept-ca", later).expect_err("too late").to_string();
        assert!(
            refused.contains(
                "ca.pem (intercept-ca): the certificate has expired; make a new authority"
            ),
            "{refused}"
        );
    }
}
