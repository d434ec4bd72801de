//! The certificates shown to clients, read from the operator's files: at start-up, and anew on
//! SIGHUP.

use crate::secret_file::{self, SecretError};
use foxy_proxy::core::client_tls::{ClientCertificates, ClientTls};
use std::path::{Path, PathBuf};

/// TLS for clients that can be given other certificates while it is used.
#[derive(Debug)]
pub struct Reloadable {
    files: Vec<(PathBuf, PathBuf)>,
    /// What the proxy uses.
    pub tls: ClientTls,
}

impl Reloadable {
    /// Reads certificates and their keys, in the same order.
    ///
    /// # Errors
    /// The first file that cannot be read or used, and what would be right.
    pub fn read(certificates: &[PathBuf], keys: &[PathBuf]) -> Result<Self, String> {
        let files: Vec<_> = certificates.iter().cloned().zip(keys.iter().cloned()).collect();
        let tls = ClientTls::new(load(&files)?);
        Ok(Self { files, tls })
    }

    /// Reads all files anew. What cannot be used changes nothing.
    ///
    /// # Errors
    /// As [`Reloadable::read`].
    pub fn reload(&self) -> Result<(), String> {
        self.tls.replace(load(&self.files)?);
        Ok(())
    }
}

fn load(files: &[(PathBuf, PathBuf)]) -> Result<ClientCertificates, String> {
    let mut certificates = ClientCertificates::default();
    for (certificate, key) in files {
        let (chain, secret) = (content(certificate)?, secret(key)?);
        certificates.add(&chain, &secret).map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            format!(
                "{certificate} (tls-certificate) with {key} (tls-key): {error}; give a certificate in PEM and the key made for it"
            )
        })?;
    }
    Ok(certificates)
}

fn content(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!(
            "{} (tls-certificate): {error}; name a file in PEM that this user may read",
            path.display()
        )
    })
}

fn secret(path: &Path) -> Result<Vec<u8>, String> {
    secret_file::read(path).map_err(|error| {
        let right = match error {
            SecretError::Unreadable(_) => "; name a file in PEM that this user may read",
            _ => "",
        };
        format!("{} (tls-key): the private key {error}{right}", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_reload_takes_whole_sets_only_and_names_the_file_that_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("a.key"));
        let read =
            || Reloadable::read(std::slice::from_ref(&certificate), std::slice::from_ref(&key));
        assert!(read().expect_err("no file").contains("a.pem (tls-certificate): "));
        let write = || {
            let CertifiedKey { cert, signing_key } =
                generate_simple_self_signed(["a.test".to_owned()]).expect("made");
            std::fs::write(&certificate, cert.pem()).expect("written");
            std::fs::write(&key, signing_key.serialize_pem()).expect("written");
            set_permissions(&key, Permissions::from_mode(0o600)).expect("changed");
        };
        write();
        let reloadable = read().expect("a certificate and its key");
        write();
        assert_eq!(reloadable.reload(), Ok(()));
        std::fs::write(&key, "nothing").expect("written");
        let refused = reloadable.reload().expect_err("no key");
        assert!(refused.contains("a.key (tls-key): no private key can be read"), "{refused}");
        set_permissions(&key, Permissions::from_mode(0o644)).expect("changed");
        let refused = reloadable.reload().expect_err("no secret");
        assert!(
            refused.contains("a.key (tls-key): the private key may be read by every user"),
            "{refused}"
        );
    }
}
