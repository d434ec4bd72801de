//! Decides which origins the Collector (common parent proxy) may contact: only local and private
//! origins, or all origins at a limited rate.

use super::failure::Failure;
use super::hosts::Resolved;
use super::reasons::Refusal;
use foxy_base::Instant;
use foxy_http::Method;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The origins that the Collector (common parent proxy) may contact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reach {
    /// Only loopback and private addresses and the name `localhost`. The Collector (common parent
    /// proxy) performs no name look-up.
    Offline,
    /// The Collector connects to every origin.
    Live {
        /// Whether methods other than GET are allowed.
        any_method: bool,
        /// The largest number of requests per second to all origins together.
        rate: f64,
    },
}

impl Reach {
    /// Returns an error if the Collector (common parent proxy) may not forward this method.
    pub fn allows(self, method: &Method) -> Result<(), Refusal> {
        match self {
            Self::Live { any_method: false, .. } if *method != Method::Get => {
                Err(Refusal::MethodNotAllowed)
            }
            Self::Live { .. } | Self::Offline => Ok(()),
        }
    }

    /// Whether the Collector (common parent proxy) may contact this address.
    pub fn covers(self, address: IpAddr) -> bool {
        self != Self::Offline || is_near(address)
    }

    /// Returns the address of a host, or a refusal, if this needs no name look-up. Returns `None`
    /// if the name must be looked up.
    pub fn literal(self, host: &str) -> Option<Resolved> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let address = match bare.parse() {
            Ok(address) => address,
            Err(_) if bare == "localhost" => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Err(_) => return (self == Self::Offline).then_some(Err(Failure::NotAllowed)),
        };
        Some(if self.covers(address) { Ok(address) } else { Err(Failure::NotAllowed) })
    }
}

/// Whether an address is a loopback address or belongs to a private network (RFC 1918, RFC 4193).
pub fn is_near(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Pacer {
    next: Instant,
}

impl Pacer {
    /// Returns how long the next request must wait under the rate limit. Returns `RateLimited` if
    /// the wait would exceed `LONGEST_WAIT`.
    pub fn turn(&mut self, reach: Reach, now: Instant) -> Result<Duration, Refusal> {
        let Reach::Live { rate, .. } = reach else { return Ok(Duration::ZERO) };
        let turn = self.next.max(now);
        let wait = turn.since(now);
        if wait > LONGEST_WAIT {
            return Err(Refusal::RateLimited);
        }
        self.next = turn + Duration::from_secs_f64(1.0 / rate);
        Ok(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIVE: Reach = Reach::Live { any_method: false, rate: 10.0 };

    #[test]
    fn offline_only_what_is_near_is_asked_and_no_name_is_looked_up() {
        let near = [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.0.2",
            "[::1]",
            "[fd00::1]",
            "localhost",
        ];
        for host in near {
            assert!(matches!(Reach::Offline.literal(host), Some(Ok(_))), "{host}");
        }
        let far = [
            "8.8.8.8",
            "169.254.169.254",
            "172.32.0.1",
            "[2001:db8::1]",
            "[::ffff:8.8.8.8]",
            "a.test",
            "0.0.0.0",
        ];
        for host in far {
            assert_eq!(Reach::Offline.literal(host), Some(Err(Failure::NotAllowed)), "{host}");
        }
        assert_eq!(LIVE.literal("a.test"), None);
        assert!(matches!(LIVE.literal("8.8.8.8"), Some(Ok(_))));
    }

    #[test]
    fn live_origins_are_sent_get_only_unless_told_otherwise() {
        assert_eq!(LIVE.allows(&Method::Post), Err(Refusal::MethodNotAllowed));
        assert_eq!(LIVE.allows(&Method::Get), Ok(()));
        assert_eq!(Reach::Live { any_method: true, rate: 1.0 }.allows(&Method::Post), Ok(()));
        assert_eq!(Reach::Offline.allows(&Method::Post), Ok(()));
    }

    #[test]
    fn live_origins_are_asked_at_the_rate_and_beyond_ten_seconds_of_waiting_not_at_all() {
        let mut pacer = Pacer::default();
        let now = Instant(5_000_000_000);
        for number in 0..=100 {
            assert_eq!(pacer.turn(LIVE, now), Ok(Duration::from_millis(number * 100)));
        }
        assert_eq!(pacer.turn(LIVE, now), Err(Refusal::RateLimited));
        assert_eq!(pacer.turn(Reach::Offline, now), Ok(Duration::ZERO));
        assert_eq!(pacer.turn(LIVE, now + Duration::from_secs(60)), Ok(Duration::ZERO));
    }
}
