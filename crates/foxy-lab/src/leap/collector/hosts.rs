//! Computes how long each proxy waits for name look-ups (LEAP paper, paper 002 in docs/figures.md,
//! §3.1). The Collector (common parent proxy) looks each host up once. Each proxy then waits once
//! for each host, as long as this look-up took. If a proxy sends another request during its wait,
//! this request waits only until the wait ends.

use super::ProxyId;
use super::failure::Failure;
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

const MOST_HOSTS: usize = 65_536;
const FAILED_FOR: Duration = super::table::lifetime::AT_LEAST;

pub type Resolved = Result<IpAddr, Failure>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostLookup {
    Resolve,
    Wait,
    /// The result of the look-up, and the time until which the asking proxy must wait for the
    /// result.
    Known(Resolved, Instant),
}

#[derive(Debug)]
struct Host {
    found: Option<(Resolved, Duration, Instant)>,
    asked: HashMap<ProxyId, Instant>,
}

#[derive(Debug, Default)]
pub struct Hosts {
    hosts: HashMap<Box<str>, Host>,
    order: VecDeque<Box<str>>,
    most: Option<usize>,
}

impl Hosts {
    pub fn ask(&mut self, name: &str, proxy: ProxyId, now: Instant) -> HostLookup {
        if let Some(host) = self.hosts.get_mut(name) {
            let failed_long_ago =
                matches!(host.found, Some((Err(_), _, at)) if now.since(at) >= FAILED_FOR);
            if failed_long_ago {
                *host = Host { found: None, asked: HashMap::from([(proxy, now)]) };
                return HostLookup::Resolve;
            }
            let asked = *host.asked.entry(proxy).or_insert(now);
            return match host.found {
                None => HostLookup::Wait,
                Some((found, took, _)) => HostLookup::Known(found, asked + took),
            };
        }
        if self.order.len() >= self.most.unwrap_or(MOST_HOSTS)
            && let Some(oldest) = self.order.pop_front()
        {
            self.hosts.remove(&oldest);
        }
        self.order.push_back(name.into());
        self.hosts.insert(name.into(), Host { found: None, asked: HashMap::from([(proxy, now)]) });
        HostLookup::Resolve
    }

    pub fn resolved(&mut self, name: &str, found: Resolved, took: Duration, now: Instant) {
        if let Some(host) = self.hosts.get_mut(name) {
            host.found = Some((found, took, now));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const HERE: Resolved = Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));

    fn at(milliseconds: u64) -> Instant {
        Instant(milliseconds * 1_000_000)
    }

    #[test]
    fn lesson_1_each_proxy_pays_for_a_name_once_and_as_much_as_it_took() {
        let mut hosts = Hosts::default();
        assert_eq!(hosts.ask("a.test", ProxyId(0), at(0)), HostLookup::Resolve);
        hosts.resolved("a.test", HERE, Duration::from_millis(40), at(40));
        for (proxy, now, paid, why) in [
            (0, 40, 40, "paid by resolving"),
            (1, 1000, 1040, "pays all of it"),
            (1, 1030, 1040, "pays the rest"),
            (1, 9000, 1040, "has paid"),
        ] {
            let found = hosts.ask("a.test", ProxyId(proxy), at(now));
            assert_eq!(found, HostLookup::Known(HERE, at(paid)), "{why}");
        }
    }

    #[test]
    fn lesson_1_who_comes_while_a_name_is_resolved_pays_from_then_on() {
        let mut hosts = Hosts::default();
        assert_eq!(hosts.ask("a.test", ProxyId(0), at(0)), HostLookup::Resolve);
        assert_eq!(hosts.ask("a.test", ProxyId(1), at(30)), HostLookup::Wait);
        assert_eq!(hosts.ask("a.test", ProxyId(0), at(35)), HostLookup::Wait);
        hosts.resolved("a.test", HERE, Duration::from_millis(40), at(40));
        assert_eq!(hosts.ask("a.test", ProxyId(0), at(40)), HostLookup::Known(HERE, at(40)));
        assert_eq!(hosts.ask("a.test", ProxyId(1), at(40)), HostLookup::Known(HERE, at(70)));
    }

    #[test]
    fn a_name_without_an_address_costs_each_proxy_the_same_and_is_asked_for_again_later() {
        let mut hosts = Hosts::default();
        hosts.ask("no.test", ProxyId(0), at(0));
        let failed = Err(Failure::NoSuchHost);
        hosts.resolved("no.test", failed, Duration::from_secs(5), at(5000));
        assert_eq!(
            hosts.ask("no.test", ProxyId(1), at(6000)),
            HostLookup::Known(failed, at(11_000))
        );
        assert_eq!(
            hosts.ask("no.test", ProxyId(1), at(184_999)),
            HostLookup::Known(failed, at(11_000))
        );
        assert_eq!(hosts.ask("no.test", ProxyId(1), at(185_000)), HostLookup::Resolve);
    }

    #[test]
    fn names_are_bounded() {
        let mut hosts = Hosts { most: Some(2), ..Hosts::default() };
        for name in ["a", "b", "c"] {
            hosts.ask(name, ProxyId(0), at(0));
        }
        assert_eq!((hosts.hosts.len(), hosts.order.len()), (2, 2));
        assert_eq!(
            hosts.ask("a", ProxyId(0), at(1)),
            HostLookup::Resolve,
            "the oldest was forgotten"
        );
    }
}
