//! The folder of an ACME account: the account's key, and for each name a file with certificate
//! chain and key. Only the user of foxy may read the files.

use crate::secret_file;
use foxy_authority::acme::{Validity, validity};
use foxy_proxy::core::tls::ClientCertificates;
use instant_acme::AccountCredentials;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Name of the file with the account's key.
const ACCOUNT: &str = "account.json";
const EXTENSION: &str = "pem";

/// The folder of an ACME account. Each authority has its own folder, because its accounts and
/// certificates are useless with another authority.
#[derive(Clone, Debug)]
pub struct AcmeFolder(PathBuf);

impl AcmeFolder {
    /// Returns the folder for the authority at the URL `directory`, below the setting's folder.
    pub fn of(folder: &Path, directory: &str) -> Self {
        let rest = directory.split_once("://").map_or(directory, |(_, rest)| rest);
        Self(folder.join(rest.split('/').next().unwrap_or(rest)))
    }

    /// Creates the folder if it is missing.
    pub fn create(&self) -> Result<(), String> {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&self.0);
        created.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: impl std::fmt::Display) -> String {
        format!("{} (acme.folder): {error}", self.0.display())
    }

    pub fn credentials(&self) -> Result<Option<AccountCredentials>, String> {
        let path = self.0.join(ACCOUNT);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = secret_file::read(&path).map_err(|error| self.failed(error))?;
        let credentials = serde_json::from_slice(&bytes);
        credentials.map(Some).map_err(|error| self.failed(format!("{ACCOUNT}: {error}")))
    }

    pub fn keep_credentials(&self, credentials: &AccountCredentials) -> Result<(), String> {
        let text = serde_json::to_string(credentials).map_err(|error| self.failed(error))?;
        self.write(ACCOUNT, &text)
    }

    /// Removes the account's key, because the authority does not know the account.
    pub fn forget_credentials(&self) {
        let _missing = std::fs::remove_file(self.0.join(ACCOUNT));
    }

    /// Stores the certificate chain and the key of a name.
    pub fn keep(&self, name: &str, chain_and_key: &str) -> Result<(), String> {
        self.write(&format!("{name}.{EXTENSION}"), chain_and_key)
    }

    /// Returns the validity of the stored certificate of a name. Returns `None` if no usable
    /// certificate is stored.
    pub fn validity(&self, name: &str) -> Option<Validity> {
        let content = secret_file::read(&self.0.join(format!("{name}.{EXTENSION}"))).ok()?;
        ClientCertificates::default().add(&content, &content).ok()?;
        validity(&content)
    }

    /// Returns the paths of the stored certificates, in order.
    pub fn certificates(&self) -> Vec<PathBuf> {
        let Ok(entries) = self.0.read_dir() else { return Vec::new() };
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut paths: Vec<_> =
            paths.filter(|path| path.extension().is_some_and(|it| it == EXTENSION)).collect();
        paths.sort();
        paths
    }

    /// Replaces a file in one step: writes a new file, and renames it.
    fn write(&self, name: &str, content: &str) -> Result<(), String> {
        let (path, new) = (self.0.join(name), self.0.join(format!("{name}.new")));
        let write = || -> io::Result<()> {
            let _left_over = std::fs::remove_file(&new);
            let mut file =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
            file.write_all(content.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &path)
        };
        write().map_err(|error| self.failed(format!("{name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_the_user_of_foxy_may_read_a_key_and_half_a_file_is_no_certificate() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = AcmeFolder::of(&place.path().join("acme"), "https://ca.test:1400/dir/x");
        folder.create().expect("created");
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["a.test".to_owned()]).expect("made");
        folder.keep("a.test", &(cert.pem() + &signing_key.serialize_pem())).expect("written");
        assert!(folder.validity("a.test").is_some() && folder.validity("b.test").is_none());
        let path = place.path().join("acme/ca.test:1400/a.test.pem");
        assert_eq!(folder.certificates(), std::slice::from_ref(&path));
        let mode = |path: &Path| path.metadata().expect("a file").mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
        folder.keep("a.test", &cert.pem()).expect("written");
        assert!(folder.validity("a.test").is_none(), "the key is missing");
    }
}
