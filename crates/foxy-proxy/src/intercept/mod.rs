//! Interception: for hosts that the operator lists, the proxy ends the TLS inside a CONNECT itself,
//! with certificates of its own authority, so that responses can be cached. Other hosts' tunnels
//! stay opaque.
//!
//! `hosts` and `constraints` say which hosts, `authority` signs, `certificates` keeps the signed
//! certificates, and `inside` checks requests. Nothing here reads files.

mod authority;
mod certificates;
mod constraints;
mod hosts;
mod inside;
mod leaves;

pub use authority::{
    Authority, AuthorityError, AuthorityFacts, MadeAuthority, MadeCertificate, NewAuthority, make,
};
pub use certificates::Certificates;
pub use constraints::Constraints;
pub use hosts::{HostName, HostPattern, HostPatternError};
pub(crate) use inside::Inside;

use foxy_base::WallTime;
use rustls::ServerConfig;
use std::sync::Arc;

/// Hosts whose TLS ends here, and their certificates. Clones share them.
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
    /// Intercepts these hosts as far as the authority may vouch for them.
    ///
    /// # Errors
    /// [`AuthorityError::Signing`], when the system gives no randomness for a key.
    pub fn new(authority: Authority, hosts: Vec<HostPattern>) -> Result<Self, AuthorityError> {
        Ok(Self {
            shared: Arc::new(InterceptCore { certificates: Certificates::new(authority)?, hosts }),
        })
    }

    /// Whether a CONNECT to this host is intercepted `now`.
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
