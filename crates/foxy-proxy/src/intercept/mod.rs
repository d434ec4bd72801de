//! Interception: for hosts that the operator lists, the proxy itself decrypts the TLS inside a
//! CONNECT, so that it can cache the responses. Clients receive certificates that the proxy's own
//! certificate authority has signed. Tunnels to other hosts stay encrypted from end to end.
//!
//! The crate `foxy-authority` signs the certificates. `inside` decides which requests belong to an
//! intercepted CONNECT. This module reads no files.

mod inside;

pub use foxy_authority::{
    Authority, AuthorityError, AuthorityFacts, Certificates, Constraints, MadeAuthority,
    MadeCertificate, NewAuthority, make,
};
pub(crate) use inside::Inside;

use foxy_base::{HostName, HostPattern, WallTime};
use rustls::ServerConfig;
use std::sync::Arc;

/// The hosts whose TLS the proxy decrypts, and their certificates. Clones share these values.
#[derive(Clone, Debug)]
pub struct Interception {
    shared: Arc<InterceptCore>,
}

#[derive(Debug)]
struct InterceptCore {
    certificates: Certificates,
    hosts: Vec<HostPattern>,
}

impl Interception {
    /// Creates an interception for these hosts. A host is not intercepted if the authority may not
    /// sign certificates for its name.
    ///
    /// # Errors
    /// [`AuthorityError::Signing`], if the system provides no random numbers for a key.
    pub fn new(authority: Authority, hosts: Vec<HostPattern>) -> Result<Self, AuthorityError> {
        Ok(Self {
            shared: Arc::new(InterceptCore { certificates: Certificates::new(authority)?, hosts }),
        })
    }

    /// Returns true if a CONNECT to this host is intercepted at the time `now`.
    pub fn wants(&self, host: &str, now: WallTime) -> bool {
        let InterceptCore { certificates, hosts } = &*self.shared;
        HostName::parse(host).is_some_and(|host| {
            hosts.iter().any(|pattern| pattern.matches(host)) && certificates.vouch_for(host, now)
        })
    }

    pub(crate) fn config(
        &self,
        host: &str,
        now: WallTime,
    ) -> Result<Arc<ServerConfig>, AuthorityError> {
        self.shared.certificates.server(host, now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn another_program_gets_a_certificate_with_its_key_for_permitted_hosts() {
        let now = WallTime::from_seconds(1_800_000_000);
        let hosts = ["127.0.0.0/8".parse().expect("a block")];
        let validity = Duration::from_secs(86_400);
        let made = make(&NewAuthority { name: "a", hosts: &hosts, now, validity }).expect("made");
        let authority =
            Authority::read(made.certificate.as_bytes(), &made.key, now).expect("usable");
        let certificates = Certificates::new(authority).expect("a key");
        let files = certificates.files("127.0.0.1", now).expect("made");
        let mut shown = crate::core::tls::ClientCertificates::default();
        assert_eq!(shown.add(files.certificate.as_bytes(), files.key.as_bytes()), Ok(()));
        assert_eq!(certificates.files("localhost", now).err(), Some(AuthorityError::NotPermitted));
    }
}
