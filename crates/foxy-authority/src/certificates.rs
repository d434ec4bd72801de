//! The certificates of an authority, for every host that it may vouch for: what interception shows
//! its clients, and the lab those that trust the same authority.

use super::authority::{Authority, AuthorityError, MadeCertificate};
use super::hosts::HostName;
use super::leaves::Leaves;
use foxy_base::WallTime;
use rustls::ServerConfig;
use std::sync::Arc;

/// An authority with a key for its certificates.
#[derive(Debug)]
pub struct Certificates {
    authority: Authority,
    leaves: Leaves,
}

impl Certificates {
    /// Of this authority; none is made yet.
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

    /// How TLS is spoken with a client that means this host, HTTP/2 or HTTP/1.1 within.
    ///
    /// # Errors
    /// [`AuthorityError`]: the authority may not vouch for it, or cannot.
    pub fn server(&self, host: &str, now: WallTime) -> Result<Arc<ServerConfig>, AuthorityError> {
        self.leaves.config(&self.authority, (self.permitted(host, now)?, host), now)
    }

    /// The same for a server that is another program, as the files that it reads.
    ///
    /// # Errors
    /// [`AuthorityError`]: the authority may not vouch for it, or cannot.
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
