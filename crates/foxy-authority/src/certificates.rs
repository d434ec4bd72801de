//! Signs an authority's certificates for hosts on first use, and stores them in memory. All host
//! certificates share one key, which is created at start-up and never saved. TLS interception and
//! the lab use this module.

use crate::authority::{Authority, AuthorityError, MadeCertificate};
use crate::provider;
use foxy_base::{HostName, WallTime};
use rcgen::KeyPair;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::Ticketer;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{NoServerSessionStorage, ProducesTickets};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Largest number of stored certificates. Beyond this number, a new certificate replaces the
/// certificate that expires first.
const MAX_KEPT: usize = 1024;

/// A stored certificate is reused only if it stays valid for at least this long.
const MIN_VALIDITY_LEFT: Duration = Duration::from_secs(86_400);

/// ALPN protocols that foxy offers to an intercepted client (RFC 7301), in order of preference.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// A certificate authority and the host certificates that it has signed.
pub struct Certificates {
    authority: Authority,
    key: KeyPair,
    ticketer: Option<Arc<dyn ProducesTickets>>,
    kept: Mutex<HashMap<Box<str>, Leaf>>,
}

struct Leaf {
    config: Arc<ServerConfig>,
    until: WallTime,
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Certificates")
            .field("authority", &self.authority)
            .finish_non_exhaustive()
    }
}

impl Certificates {
    /// Creates the key that all host certificates share. Certificates are signed on first use.
    ///
    /// # Errors
    ///
    /// [`AuthorityError::Signing`] if the system provides no random bytes for a key.
    pub fn new(authority: Authority) -> Result<Self, AuthorityError> {
        let key =
            KeyPair::generate().map_err(|error| AuthorityError::Signing(error.to_string()))?;
        Ok(Self { authority, key, ticketer: Ticketer::new().ok(), kept: Mutex::default() })
    }

    /// Whether the authority may sign for `host` at the time `now`.
    pub fn vouch_for(&self, host: HostName<'_>, now: WallTime) -> bool {
        self.authority.vouches_for(host, now)
    }

    /// Returns the TLS settings for clients that connect to `host`. They offer HTTP/2 and HTTP/1.1.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] if the authority may not sign for the host, or signing fails.
    pub fn server(&self, host: &str, now: WallTime) -> Result<Arc<ServerConfig>, AuthorityError> {
        let name = self.permitted(host, now)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // A host certificate never outlives the authority. So if the authority expires within a
        // day, a stored certificate that expires at the same time is still reused.
        let enough = (now.seconds() + MIN_VALIDITY_LEFT.as_secs())
            .min(self.authority.facts().not_after.seconds());
        if let Some(leaf) = kept.get(host).filter(|leaf| leaf.until.seconds() >= enough) {
            return Ok(Arc::clone(&leaf.config));
        }
        let (certificate, until) = self.authority.sign(name, &self.key, now)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let certified = CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider());
        let certified = certified.map_err(|error| AuthorityError::Signing(error.to_string()))?;
        let config = Arc::new(self.config(certified));
        if kept.len() >= MAX_KEPT
            && let Some(first) =
                kept.iter().min_by_key(|(_, leaf)| leaf.until).map(|(name, _)| name.clone())
        {
            kept.remove(&first);
        }
        kept.insert(host.into(), Leaf { config: Arc::clone(&config), until });
        Ok(config)
    }

    /// Signs a certificate for `host`, and returns it with the shared key, so that another program
    /// can serve `host`.
    ///
    /// # Errors
    ///
    /// [`AuthorityError`] if the authority may not sign for the host, or signing fails.
    pub fn files(&self, host: &str, now: WallTime) -> Result<MadeCertificate, AuthorityError> {
        let (certificate, _) = self.authority.sign(self.permitted(host, now)?, &self.key, now)?;
        Ok(MadeCertificate { certificate: certificate.pem(), key: self.key.serialize_pem() })
    }

    fn permitted<'a>(&self, host: &'a str, now: WallTime) -> Result<HostName<'a>, AuthorityError> {
        let name = HostName::parse(host).filter(|name| self.vouch_for(*name, now));
        name.ok_or(AuthorityError::NotPermitted)
    }

    fn config(&self, certified: CertifiedKey) -> ServerConfig {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).to_vec();
        config.session_storage = Arc::new(NoServerSessionStorage {});
        if let Some(ticketer) = &self.ticketer {
            config.ticketer = Arc::clone(ticketer);
        }
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::{LEAF_VALIDITY, NewAuthority, make};

    const NOW: WallTime = WallTime::from_seconds(1_800_000_000);

    fn certificates(host: &str, days: u64) -> Certificates {
        let hosts = [host.parse().expect("a host")];
        let validity = Duration::from_secs(days * 86_400);
        let made =
            make(&NewAuthority { name: "a", hosts: &hosts, now: NOW, validity }).expect("made");
        let authority =
            Authority::read(made.certificate.as_bytes(), &made.key, NOW).expect("usable");
        Certificates::new(authority).expect("a key")
    }

    #[test]
    fn hosts_that_the_authority_may_not_vouch_for_get_no_certificate() {
        let certificates = certificates("a.test", 1);
        let refused = |host, now| certificates.server(host, now).err();
        assert_eq!(refused("b.a.test", NOW), None);
        for host in ["b.test", "127.0.0.1", "a test"] {
            assert_eq!(refused(host, NOW), Some(AuthorityError::NotPermitted), "{host}");
        }
        let later = WallTime::from_seconds(NOW.seconds() + 86_400);
        assert_eq!(refused("a.test", later), Some(AuthorityError::NotPermitted));
    }

    #[test]
    fn a_certificate_is_made_once_for_each_name_until_its_last_day() {
        let certificates = certificates("test", 365);
        let config = |name: &str, seconds: u64| {
            let now = WallTime::from_seconds(NOW.seconds() + seconds);
            certificates.server(name, now).expect("signed")
        };
        let first = config("a.test", 0);
        assert!(Arc::ptr_eq(&first, &config("a.test", 1000)));
        assert!(!Arc::ptr_eq(&first, &config("b.test", 1000)));
        let nearly_over = LEAF_VALIDITY - MIN_VALIDITY_LEFT + Duration::from_secs(1);
        assert!(!Arc::ptr_eq(&first, &config("a.test", nearly_over.as_secs())));
    }

    #[test]
    fn the_table_is_bounded() {
        let certificates = certificates("test", 365);
        for number in 0..MAX_KEPT + 3 {
            certificates.server(&format!("n{number}.test"), NOW).expect("signed");
        }
        assert_eq!(certificates.kept.lock().expect("not poisoned").len(), MAX_KEPT);
    }
}
