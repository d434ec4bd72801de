//! Reads the operator's TLS files. `clients` reads the files for connections of clients. `seen`
//! notices changed files. This module reads the trusted authorities for origins, and the
//! certificate authority with which foxy intercepts TLS.

mod clients;
pub mod seen;

pub use clients::ReloadableTls;

use crate::authority_folder;
use crate::failure::Failure;
use crate::serve::parents::Sibling;
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_base::{CivilTime, HostPattern, WallTime};
use foxy_proxy::intercept::{Authority, Interception};
use foxy_proxy::upstream::{Authorities, OriginTls};
use std::path::PathBuf;
use std::time::Duration;

/// foxy warns at start-up if the intercepting certificate authority expires within this time.
const EXPIRES_SOON: Duration = Duration::from_secs(14 * 86_400);

/// Returns TLS settings for origins that trust the system's authorities, the certificates in
/// `files`, and the authority of `sibling`, another `foxy run` that shares its store. If the system
/// has no authorities, foxy only warns, because plain HTTP needs none.
pub fn origin_tls(files: &[PathBuf], sibling: Option<&Sibling>) -> Result<OriginTls, Failure> {
    let mut authorities = origin_authorities(files)?;
    if let Some(Sibling { authority, .. }) = sibling
        && let Err(error) = authorities.add_pem(authority.as_bytes())
    {
        return Err(Failure::Failed(format!("the authority of the other `foxy run`: {error}")));
    }
    Ok(OriginTls::trusting(authorities))
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

/// Returns TLS settings for connections to the directory of an ACME authority.
pub fn directory_tls(settings: &Settings) -> Result<OriginTls, Failure> {
    let mut authorities = Authorities::none();
    if settings.acme.directory.is_some() {
        authorities.add(rustls_native_certs::load_native_certs().certs);
        add_authorities(&mut authorities, &settings.acme.ca, "acme.ca")?;
    }
    Ok(OriginTls::trusting(authorities))
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

    #[test]
    fn an_unusable_authority_file_is_named_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing").expect("written");
        for (file, expected) in [(missing, "No such file"), (empty, "holds no certificate")] {
            let Err(Failure::Unusable(text)) = origin_tls(&[file], None) else {
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
