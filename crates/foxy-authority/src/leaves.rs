//! Certificates for hosts, made when they are first asked for and kept in a bounded table, all with
//! one key that lives as long as the process.

use super::authority::{Authority, AuthorityError, MadeCertificate};
use super::hosts::HostName;
use crate::provider;
use foxy_base::WallTime;
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

/// Certificates that are kept. The certificate that expires first makes room for another.
const KEPT: usize = 1024;

/// A kept certificate is used while its validity lasts longer than this.
const LEFT: Duration = Duration::from_secs(86_400);

/// ALPN protocols inside the TLS of an intercepted client (RFC 7301), the best first.
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];

pub(super) struct Leaves {
    key: KeyPair,
    ticketer: Option<Arc<dyn ProducesTickets>>,
    kept: Mutex<HashMap<Box<str>, Leaf>>,
}

struct Leaf {
    config: Arc<ServerConfig>,
    until: WallTime,
}

impl fmt::Debug for Leaves {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Leaves").finish_non_exhaustive()
    }
}

impl Leaves {
    pub(super) fn new() -> Result<Self, AuthorityError> {
        let key =
            KeyPair::generate().map_err(|error| AuthorityError::Signing(error.to_string()))?;
        Ok(Self { key, ticketer: Ticketer::new().ok(), kept: Mutex::default() })
    }

    pub(super) fn config(
        &self,
        authority: &Authority,
        (host, text): (HostName<'_>, &str),
        now: WallTime,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Near its end an authority signs nothing that lasts longer.
        let enough = (now.seconds() + LEFT.as_secs()).min(authority.facts().not_after.seconds());
        if let Some(leaf) = kept.get(text).filter(|leaf| leaf.until.seconds() >= enough) {
            return Ok(Arc::clone(&leaf.config));
        }
        let (certificate, until) = authority.sign(host, &self.key, now)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(self.key.serialize_der()));
        let certified = CertifiedKey::from_der(vec![certificate.der().clone()], key, &provider());
        let certified = certified.map_err(|error| AuthorityError::Signing(error.to_string()))?;
        let config = Arc::new(self.server(certified));
        if kept.len() >= KEPT
            && let Some(first) =
                kept.iter().min_by_key(|(_, leaf)| leaf.until).map(|(name, _)| name.clone())
        {
            kept.remove(&first);
        }
        kept.insert(text.into(), Leaf { config: Arc::clone(&config), until });
        Ok(config)
    }

    pub(super) fn files(
        &self,
        authority: &Authority,
        host: HostName<'_>,
        now: WallTime,
    ) -> Result<MadeCertificate, AuthorityError> {
        let (certificate, _) = authority.sign(host, &self.key, now)?;
        Ok(MadeCertificate { certificate: certificate.pem(), key: self.key.serialize_pem() })
    }

    fn server(&self, certified: CertifiedKey) -> ServerConfig {
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
    use super::super::authority::{LEAF_VALIDITY, NewAuthority, make};
    use super::*;

    const NOW: WallTime = WallTime::from_seconds(1_800_000_000);

    fn authority() -> Authority {
        let hosts = ["test".parse().expect("a host")];
        let validity = Duration::from_secs(365 * 86_400);
        let made =
            make(&NewAuthority { name: "a", hosts: &hosts, now: NOW, validity }).expect("made");
        Authority::read(made.certificate.as_bytes(), &made.key, NOW).expect("usable")
    }

    #[test]
    fn a_certificate_is_made_once_for_each_name_until_its_last_day() {
        let (authority, leaves) = (authority(), Leaves::new().expect("a key"));
        let config = |name: &str, seconds: u64| {
            let now = WallTime::from_seconds(NOW.seconds() + seconds);
            leaves.config(&authority, (HostName::Name(name), name), now).expect("signed")
        };
        let first = config("a.test", 0);
        assert!(Arc::ptr_eq(&first, &config("a.test", 1000)));
        assert!(!Arc::ptr_eq(&first, &config("b.test", 1000)));
        let nearly_over = LEAF_VALIDITY - LEFT + Duration::from_secs(1);
        assert!(!Arc::ptr_eq(&first, &config("a.test", nearly_over.as_secs())));
    }

    #[test]
    fn the_table_is_bounded() {
        let (authority, leaves) = (authority(), Leaves::new().expect("a key"));
        for number in 0..KEPT + 3 {
            let name = format!("n{number}.test");
            leaves.config(&authority, (HostName::Name(&name), &name), NOW).expect("signed");
        }
        assert_eq!(leaves.kept.lock().expect("not poisoned").len(), KEPT);
    }
}
