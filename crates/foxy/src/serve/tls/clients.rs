//! Reads the operator's files for TLS with clients, and reads them again when they change.

use super::seen::{SeenVersions, Versions, versions};
use crate::secret_file::{self, SecretError};
use crate::serve::acme::{self, AcmeFolder};
use crate::settings::Settings;
use foxy_proxy::core::client_certificates::{CertificateNeed, ClientAuthorities};
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// TLS settings for clients. On SIGHUP, and when the files change, foxy reads the files again.
#[derive(Debug)]
pub struct ReloadableTls {
    files: TlsFiles,
    seen: RefCell<SeenVersions>,
    pub tls: ClientTls,
}

#[derive(Debug)]
struct TlsFiles {
    pairs: Vec<KeyPairFiles>,
    authorities: Vec<PathBuf>,
    /// Lists of revoked certificates.
    revoked: Vec<PathBuf>,
    /// The folder of certificates from an ACME authority.
    issued: Option<AcmeFolder>,
    need: CertificateNeed,
}

#[derive(Debug)]
struct KeyPairFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl TlsFiles {
    fn of(settings: &Settings) -> Self {
        let network = &settings.network;
        let keys = network.tls_key.iter().cloned();
        let pairs = network.tls_certificate.iter().cloned().zip(keys);
        let need = match network.client_certificates {
            "optional" => CertificateNeed::Optional,
            _ => CertificateNeed::Required,
        };
        Self {
            pairs: pairs.map(|(certificate, key)| KeyPairFiles { certificate, key }).collect(),
            authorities: network.client_ca.clone(),
            revoked: network.client_crl.clone(),
            issued: acme::folder(settings),
            need,
        }
    }

    fn versions(&self) -> Versions {
        let pairs = self.pairs.iter().flat_map(|pair| [&pair.certificate, &pair.key]);
        let issued = self.issued();
        let clients = self.authorities.iter().chain(&self.revoked);
        versions(pairs.chain(clients).chain(&issued).map(PathBuf::as_path))
    }

    fn issued(&self) -> Vec<PathBuf> {
        self.issued.as_ref().map(AcmeFolder::certificates).unwrap_or_default()
    }

    fn certificates(&self) -> Result<ClientCertificates, String> {
        let mut certificates = ClientCertificates::default();
        for KeyPairFiles { certificate, key } in &self.pairs {
            let (chain, secret) = (read_public(certificate, "tls-certificate")?, read_key(key)?);
            certificates.add(&chain, &secret).map_err(|error| {
                let (certificate, key) = (certificate.display(), key.display());
                format!(
                    "{certificate} (tls-certificate) with {key} (tls-key): {error}; give a \
                     certificate in PEM and the key made for it"
                )
            })?;
        }
        for path in self.issued() {
            // A file that cannot be read is skipped: the module `acme` then gets another
            // certificate and replaces the file.
            let Ok(content) = secret_file::read(&path) else { continue };
            let _unusable = certificates.add(&content, &content);
        }
        Ok(certificates)
    }

    fn client_authorities(&self) -> Result<Option<ClientAuthorities>, String> {
        if self.authorities.is_empty() {
            return Ok(None);
        }
        let files = read_all(&self.authorities, "client-ca")?;
        let read = ClientAuthorities::read(files.iter().map(Vec::as_slice), self.need);
        let authorities = read.map_err(|(number, error)| {
            let path = self.authorities[number].display();
            format!("{path} (client-ca): {error}; name a file of certificate authorities in PEM")
        })?;
        if self.revoked.is_empty() {
            return Ok(Some(authorities));
        }
        let files = read_all(&self.revoked, "client-crl")?;
        let read = authorities.without_revoked(files.iter().map(Vec::as_slice));
        read.map(Some).map_err(|(number, error)| {
            let path = self.revoked[number].display();
            format!("{path} (client-crl): {error}; name a file of CRLs in PEM")
        })
    }
}

impl ReloadableTls {
    /// Reads certificates, their private keys, the authorities of clients, and lists of revoked
    /// certificates. The error names the first invalid file, and tells the user how to correct it.
    pub fn read(settings: &Settings) -> Result<Self, String> {
        Self::read_files(TlsFiles::of(settings))
    }

    fn read_files(files: TlsFiles) -> Result<Self, String> {
        let now = files.versions();
        let tls = ClientTls::new(files.certificates()?);
        tls.ask_clients(files.client_authorities()?);
        let seen = RefCell::new(SeenVersions::new(now));
        Ok(Self { files, seen, tls })
    }

    /// Reads all files again if they have changed, and have then stayed the same for a while.
    /// Returns `None` if there is nothing to read.
    pub fn renew(&self) -> Option<Result<(), String>> {
        let now = self.files.versions();
        self.seen.borrow_mut().have_settled(now).then(|| self.reload())
    }

    /// Reads all files again. If a file is invalid, the old content remains in use.
    pub fn reload(&self) -> Result<(), String> {
        let (certificates, authorities) =
            (self.files.certificates()?, self.files.client_authorities()?);
        self.tls.replace(certificates);
        self.tls.ask_clients(authorities);
        Ok(())
    }
}

fn read_all(paths: &[PathBuf], key: &str) -> Result<Vec<Vec<u8>>, String> {
    paths.iter().map(|path| read_public(path, key)).collect()
}

fn read_public(path: &Path, key: &str) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!("{} ({key}): {error}; name a file in PEM that this user may read", path.display())
    })
}

fn read_key(path: &Path) -> Result<Vec<u8>, String> {
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
    use foxy_testkit::certificates::TestAuthority;
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    fn read(
        certificate: &Path,
        key: &Path,
        authorities: &[PathBuf],
        revoked: &[PathBuf],
    ) -> Result<ReloadableTls, String> {
        let pairs = vec![KeyPairFiles { certificate: certificate.into(), key: key.into() }];
        let (authorities, revoked) = (authorities.to_vec(), revoked.to_vec());
        let need = CertificateNeed::Required;
        ReloadableTls::read_files(TlsFiles { pairs, authorities, revoked, issued: None, need })
    }

    #[test]
    fn a_reload_replaces_all_certificates_or_names_the_bad_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("a.key"));
        let read = || read(&certificate, &key, &[], &[]);
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
        assert_eq!(reloadable.renew(), None);
        write();
        assert_eq!(reloadable.renew(), None, "another file may follow");
        assert_eq!(reloadable.renew(), Some(Ok(())));
        assert_eq!(reloadable.renew(), None);
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

    #[test]
    fn authorities_of_clients_are_read_again_and_a_bad_file_is_named() {
        let folder = pair();
        let path = |name: &str| folder.path().join(name);
        std::fs::copy(path("a.pem"), path("one.pem")).expect("written");
        let both = [path("one.pem"), path("two.pem")];
        let read = || read(&path("a.pem"), &path("a.key"), &both, &[]);
        assert!(read().expect_err("no file").contains("two.pem (client-ca): No such file"));
        std::fs::write(path("two.pem"), "nothing").expect("written");
        let refused = read().expect_err("no certificate");
        assert!(refused.contains("two.pem (client-ca): no certificate can be read"), "{refused}");
        std::fs::copy(path("one.pem"), path("two.pem")).expect("written");
        let reloadable = read().expect("authorities");
        std::fs::write(path("two.pem"), "nothing").expect("written");
        assert_eq!(reloadable.renew(), None, "another file may follow");
        let refused = reloadable.renew().expect("changed").expect_err("no certificate");
        assert!(refused.contains("two.pem (client-ca): "), "{refused}");
    }

    #[test]
    fn lists_of_revoked_certificates_are_read_again_and_a_bad_file_is_named() {
        let folder = pair();
        let path = |name: &str| folder.path().join(name);
        let read = || read(&path("a.pem"), &path("a.key"), &[path("a.pem")], &[path("b.crl")]);
        assert!(read().expect_err("no file").contains("b.crl (client-crl): No such file"));
        for content in ["nothing", "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"] {
            std::fs::write(path("b.crl"), content).expect("written");
            let refused = read().expect_err("no list");
            let expected = "b.crl (client-crl): no list of revoked certificates can be read";
            assert!(refused.contains(expected), "{refused}");
        }
        std::fs::write(path("b.crl"), TestAuthority::new().revoke(&[], 2100)).expect("written");
        let reloadable = read().expect("a list");
        std::fs::write(path("b.crl"), "nothing").expect("written");
        assert_eq!(reloadable.renew(), None, "another file may follow");
        assert!(reloadable.renew().expect("changed").is_err());
    }

    /// Makes a folder with `a.pem`, a certificate, and `a.key`, its key.
    fn pair() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["a.test".to_owned()]).expect("made");
        std::fs::write(path("a.pem"), cert.pem()).expect("written");
        std::fs::write(path("a.key"), signing_key.serialize_pem()).expect("written");
        set_permissions(path("a.key"), Permissions::from_mode(0o600)).expect("changed");
        folder
    }
}
