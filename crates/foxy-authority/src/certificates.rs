//! The certificates of an authority for hosts, made on first use and kept in a bounded table. All
//! share one key that lives as long as the process. Interception and the lab use them.

use super::authority::{Authority, AuthorityError, MadeCertificate};
use super::hosts::HostName;
use super::leaves::Leaves;
use foxy_base::WallTime;
use rustls::ServerConfig;
use std::sync::Arc;

/// An authority with its certificates for hosts.
#[derive(Debug)]
pub struct Certificates {
    authority: Authority,
    leaves: Leaves,
}

impl Certificates {
    /// Makes the key; certificates follow on first use.
    ///
    /// # Errors
    /// [`AuthorityError::Signing`], when the system gives no randomness for a key.
    pub fn new(authority: Authority) -> Result<Self, AuthorityError> {
        Ok(Self { authority, leaves: Leaves::new()? })
    }

    /// Whether there is one for this host `now`.
    pub fn vouch_for(&self, host: HostName<'_>, now: WallTime) -> bool {
        self.authority.vouches_for(host, now)
    }

    /// TLS settings for clients of `host`, with HTTP/2 or HTTP/1.1 inside.
    ///
    /// # Errors
    /// [`AuthorityError`]: the authority may not vouch for the host, or cannot sign.
    pub fn server(&self, host: &str, now: WallTime) -> Result<Arc<ServerConfig>, AuthorityError> {
        self.leaves.config(&self.authority, (self.permitted(host, now)?, host), now)
    }

    /// Certificate files for another program that serves `host`.
    ///
    /// # Errors
    /// [`AuthorityError`]: the authority may not vouch for the host, or cannot sign.
    pub fn files(&self, host: &str, now: WallTime) -> Result<MadeCertificate, AuthorityError> {
        self.leaves.files(&self.authority, self.permitted(host, now)?, now)
    }

    fn permitted<'a>(&self, host: &'a str, now: WallTime) -> Result<HostName<'a>, AuthorityError> {
        let name = HostName::parse(host).filter(|name| self.vouch_for(*name, now));
        name.ok_or(AuthorityError::NotPermitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewAuthority, make};
    use std::time::Duration;

    #[test]
    fn an_authority_shows_nothing_for_hosts_that_it_may_not_vouch_for_or_when_it_is_over() {
        let now = WallTime::from_seconds(1_800_000_000);
        let hosts = ["a.test".parse().expect("a host")];
        let validity = Duration::from_secs(86_400);
        let made = make(&NewAuthority { name: "a", hosts: &hosts, now, validity }).expect("made");
        let authority =
            Authority::read(made.certificate.as_bytes(), &made.key, now).expect("usable");
        let certificates = Certificates::new(authority).expect("a key");
        let refused = |host, now| certificates.server(host, now).err();
        assert_eq!(refused("b.a.test", now), None);
        for host in ["b.test", "127.0.0.1", "a test"] {
            assert_eq!(refused(host, now), Some(AuthorityError::NotPermitted), "{host}");
        }
        let later = WallTime::from_seconds(now.seconds() + 86_400);
        assert_eq!(refused("a.test", later), Some(AuthorityError::NotPermitted));
    }
}
