//! Reads the operator's TLS files: certificates for clients, trusted authorities for origins, and
//! the certificate authority with which foxy intercepts TLS.

use crate::authority_folder;
use crate::failure::Failure;
use crate::secret_file::{self, SecretError};
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::{CivilTime, HostPattern, WallTime};
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use foxy_proxy::intercept::{Authority, Interception};
use foxy_proxy::upstream::{Authorities, OriginTls};
use std::cell::RefCell;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// foxy warns at start-up if the intercepting certificate authority expires within this time.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 86_400);

/// The certificates that foxy presents to clients. On SIGHUP, and when the files change, foxy reads
/// them again.
#[derive(Debug)]
pub struct ReloadableTls {
    files: Vec<KeyPairFiles>,
    seen: RefCell<SeenVersions>,
    pub tls: ClientTls,
}

/// The versions of all files: inode number and time of the last change. `None` for a missing file.
type Versions = Vec<Option<(u64, SystemTime)>>;

/// File versions when foxy last read the files (`read`), and at the last check for changes
/// (`last`).
#[derive(Debug)]
struct SeenVersions {
    read: Versions,
    last: Versions,
}

impl SeenVersions {
    /// Returns true if the files differ from the read versions, but not from the last check. A
    /// renewal writes several files, and foxy must not read them before all are written.
    fn have_settled(&mut self, now: Versions) -> bool {
        let has_settled = now == self.last && now != self.read;
        if has_settled {
            self.read.clone_from(&now);
        }
        self.last = now;
        has_settled
    }
}

#[derive(Debug)]
struct KeyPairFiles {
    certificate: PathBuf,
    key: PathBuf,
}

impl ReloadableTls {
    /// Reads certificates and their private keys. The key at each position belongs to the
    /// certificate at this position. The error names the first invalid file, and tells the user how
    /// to correct it.
    pub fn read(certificates: &[PathBuf], keys: &[PathBuf]) -> Result<Self, String> {
        let pairs = certificates.iter().cloned().zip(keys.iter().cloned());
        let files: Vec<_> =
            pairs.map(|(certificate, key)| KeyPairFiles { certificate, key }).collect();
        let now = versions(&files);
        let tls = ClientTls::new(read_certificates(&files)?);
        let seen = RefCell::new(SeenVersions { read: now.clone(), last: now });
        Ok(Self { files, seen, tls })
    }

    /// Reads all files again if they have changed and settled. Returns `None` if there is nothing
    /// to read.
    pub fn renew(&self) -> Option<Result<(), String>> {
        let now = versions(&self.files);
        self.seen.borrow_mut().have_settled(now).then(|| self.reload())
    }

    /// Reads all files again. If a file is invalid, the old certificates remain in use.
    pub fn reload(&self) -> Result<(), String> {
        self.tls.replace(read_certificates(&self.files)?);
        Ok(())
    }
}

fn versions(files: &[KeyPairFiles]) -> Versions {
    let version = |path: &PathBuf| {
        let facts = std::fs::metadata(path).ok()?;
        Some((facts.ino(), facts.modified().ok()?))
    };
    files.iter().flat_map(|pair| [&pair.certificate, &pair.key]).map(version).collect()
}

fn read_certificates(files: &[KeyPairFiles]) -> Result<ClientCertificates, String> {
    let mut certificates = ClientCertificates::default();
    for KeyPairFiles { certificate, key } in files {
        let (chain, secret) = (read_chain(certificate)?, read_key(key)?);
        certificates.add(&chain, &secret).map_err(|error| {
            let (certificate, key) = (certificate.display(), key.display());
            format!(
                "{certificate} (tls-certificate) with {key} (tls-key): {error}; give a \
                 certificate in PEM and the key made for it"
            )
        })?;
    }
    Ok(certificates)
}

fn read_chain(path: &Path) -> Result<Vec<u8>, String> {
    std::fs::read(path).map_err(|error| {
        format!(
            "{} (tls-certificate): {error}; name a file in PEM that this user may read",
            path.display()
        )
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

/// Returns TLS settings for origins that trust the system's authorities and the certificates in
/// `files`. If the system has no authorities, foxy only warns, because plain HTTP needs none.
pub fn origin_tls(files: &[PathBuf]) -> Result<OriginTls, Failure> {
    origin_authorities(files).map(OriginTls::trusting)
}

/// Reads the system's certificate authorities, and further authorities in `files`.
pub fn origin_authorities(files: &[PathBuf]) -> Result<Authorities, Failure> {
    let mut authorities = Authorities::none();
    let found = rustls_native_certs::load_native_certs();
    if authorities.add(found.certs) == 0 && files.is_empty() {
        let text = "foxy: the system has no certificate authorities, so foxy trusts no https:// \
                    origin; install them (ca-certificates), name their file in SSL_CERT_FILE, or \
                    give \
                    origin-ca";
        terminal::report(Level::Warning, text);
    }
    add_authorities(&mut authorities, files, "origin-ca")?;
    Ok(authorities)
}

/// Adds the authorities in `files` to the list. `key` is the setting that names the files, for
/// errors.
pub fn add_authorities(
    authorities: &mut Authorities,
    files: &[PathBuf],
    key: &str,
) -> Result<(), Failure> {
    for file in files {
        let refuse = |reason: String| {
            let path = file.display();
            Failure::Unusable(format!(
                "{path} ({key}): {reason}; give a readable file of certificates in PEM"
            ))
        };
        let pem = std::fs::read(file).map_err(|error| refuse(error.to_string()))?;
        authorities.add_pem(&pem).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(())
}

/// Opens the certificate authority of `intercept-ca`. Returns `None` without this setting. Fails if
/// the authority may not sign for a host in `intercept-hosts`.
pub fn open_interception(
    settings: &Settings,
    now: WallTime,
) -> Result<Option<Interception>, Failure> {
    let Some(folder) = &settings.access.intercept_ca else { return Ok(None) };
    let authority = authority_folder::open(folder, "intercept-ca", now)?;
    let end = authority.facts().not_after;
    if end.since(now) < EXPIRES_SOON {
        let path = authority_folder::certificate(folder);
        let text = format!(
            "foxy: {} expires on {}; after that, foxy intercepts nothing; make a new authority \
             with `foxy ca init --force`",
            path.display(),
            CivilTime::of(end)
        );
        terminal::report(Level::Warning, &text);
    }
    interception(authority, &settings.access.intercept_hosts).map(Some)
}

/// Sets up interception of `hosts`. Fails if the authority may not sign for one of the hosts.
pub fn interception(authority: Authority, hosts: &[HostPattern]) -> Result<Interception, Failure> {
    let constraints = &authority.facts().constraints;
    if let Some(host) = hosts.iter().find(|host| !constraints.permit_all(host)) {
        let permitted: Vec<_> = constraints.permitted().iter().map(ToString::to_string).collect();
        let text = format!(
            "{host} (intercept-hosts): the certificate authority may only sign for {}; leave the \
             host out, or make an authority for it with `foxy ca init --allow`",
            permitted.join(", ")
        );
        return Err(Failure::Unusable(text));
    }
    Interception::new(authority, hosts.to_vec())
        .map_err(|error| Failure::Failed(format!("intercept-ca: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::intercept::{NewAuthority, make};
    use rcgen::{CertifiedKey, generate_simple_self_signed};
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_reload_replaces_all_certificates_or_names_the_bad_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (certificate, key) = (folder.path().join("a.pem"), folder.path().join("a.key"));
        let read =
            || ReloadableTls::read(std::slice::from_ref(&certificate), std::slice::from_ref(&key));
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
    fn an_unusable_authority_file_is_named_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing").expect("written");
        for (file, expected) in [(missing, "No such file"), (empty, "holds no certificate")] {
            let Err(Failure::Unusable(text)) = origin_tls(&[file]) else {
                panic!("{expected}: taken")
            };
            assert!(text.contains("(origin-ca): ") && text.contains(expected), "{text}");
        }
    }

    #[test]
    fn a_host_outside_the_authoritys_constraints_is_named() {
        let now = WallTime::from_seconds(1_800_000_000);
        let hosts = |texts: &[&str]| -> Vec<HostPattern> {
            texts.iter().map(|text| text.parse().expect("a host")).collect()
        };
        let allowed = hosts(&["a.test"]);
        let new = NewAuthority { name: "a", hosts: &allowed, now, validity: EXPIRES_SOON };
        let made = make(&new).expect("made");
        let authority =
            || Authority::read(made.certificate.as_bytes(), &made.key, now).expect("usable");
        assert!(interception(authority(), &hosts(&["a.test", "*.b.a.test"])).is_ok());
        let refused = interception(authority(), &hosts(&["a.test", "test"]))
            .expect_err("more than allowed")
            .to_string();
        assert!(
            refused.starts_with("test (intercept-hosts): ")
                && refused.contains("only sign for a.test;"),
            "{refused}"
        );
    }
}
