//! *Parents* are other proxies through which this proxy reaches origins. `Parents` chooses a parent
//! for each request, and remembers which parents fail. This module does no IO.

pub(crate) mod connect;
pub(crate) mod health;
pub(crate) mod no_proxy;
pub(crate) mod parent;

use crate::upstream::fail_over::{MAX_CHOICES, Tried};
use crate::upstream::parents::health::{ParentFault, ParentHealth};
use crate::upstream::parents::no_proxy::NoProxy;
use crate::upstream::parents::parent::Parent;
use foxy_base::{Instant, Random};
use foxy_http::Scheme;
use foxy_rules::operator::Ways;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Largest number of parent proxies. Further parents are ignored.
pub const MAX_PARENTS: usize = MAX_CHOICES;

/// How the proxy chooses a parent proxy for a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentChoice {
    /// The first parent proxy in the operator's list that works.
    #[default]
    Order,
    /// Rendezvous hashing of the URL, or of the host of a tunnel, chooses the parent proxy. So each
    /// parent caches its own share of the URLs. If a parent fails, only its URLs move to other
    /// parents.
    Rendezvous,
}

/// The handling of a request for which no parent proxy works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ParentFallback {
    /// The proxy refuses the request.
    #[default]
    Refuse,
    /// The proxy connects to the origin itself.
    Direct,
}

/// The operator's settings for parent proxies.
#[derive(Clone, Debug, Default)]
pub struct ParentSettings {
    /// The parent proxies, at most [`MAX_PARENTS`].
    pub parents: Vec<Parent>,
    /// How the proxy chooses a parent proxy for a request.
    pub choice: ParentChoice,
    /// The handling of a request for which no parent proxy works.
    pub fallback: ParentFallback,
    /// Hosts that the proxy reaches without a parent proxy.
    pub no_proxy: Vec<NoProxy>,
    /// Another proxy of this machine, which shares its cache with this proxy. It receives the
    /// requests that a cache can answer. While it does not work, requests go on as if it did not
    /// exist.
    pub sibling: Option<Parent>,
}

/// The parent proxies of this proxy, with their state. All workers share them.
pub struct Parents {
    settings: ParentSettings,
    /// The name of this proxy, for the Via field of the CONNECT requests that it sends to parent
    /// proxies.
    via: String,
    /// Number of the sibling (a `foxy run` whose cache this proxy shares). The numbers of all
    /// parent proxies are lower.
    sibling: Option<usize>,
    sibling_has_ended: AtomicBool,
    states: Mutex<ParentStates>,
}

struct ParentStates {
    health: Vec<ParentHealth>,
    random: Random,
}

/// The destination of a request that may go through a parent proxy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Aim<'a> {
    /// Scheme of the request. Tunnels count as `https`.
    pub(crate) scheme: Scheme,
    pub(crate) host: &'a str,
    pub(crate) port: u16,
    /// Rendezvous hashing of this text chooses the parent proxy.
    pub(crate) key: &'a [u8],
    /// Whether a cache can answer the request.
    pub(crate) is_cacheable: bool,
    /// The ways to the destination that a rule of the operator permits. `None` if no rule decided.
    pub(crate) ways: Option<&'a Ways>,
}

/// The chosen way to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Chosen {
    /// The proxy connects directly, because the operator wants no parent proxy for this
    /// destination.
    Direct,
    /// The proxy connects directly, because no parent proxy works and the operator permits this.
    Fallback,
    /// The proxy forwards the request through the parent proxy with this number.
    Parent(usize),
    /// The proxy refuses the request: no parent proxy works, and the operator permits no direct
    /// connection.
    Nothing,
}

/// The way to an origin that a request would use now, for an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpectedWay {
    /// The proxy connects directly, because the operator wants no parent proxy for this
    /// destination.
    Direct,
    /// The proxy connects directly, because no parent proxy works and the operator permits this.
    Fallback,
    /// The proxy forwards the request through this parent proxy.
    Parent(Parent),
    /// The proxy refuses the request: no parent proxy works, and the operator permits no direct
    /// connection.
    Nothing,
}

impl Parents {
    /// Creates the parent proxies. `via_name` is this proxy's name in Via. Returns `None` if the
    /// settings list no parents.
    pub fn new(mut settings: ParentSettings, via_name: &str, seed: u64) -> Option<Self> {
        let sibling = settings.sibling.take();
        settings.parents.truncate(MAX_PARENTS - usize::from(sibling.is_some()));
        let number = sibling.is_some().then_some(settings.parents.len());
        settings.parents.extend(sibling);
        let health = vec![ParentHealth::default(); settings.parents.len()];
        (!health.is_empty()).then(|| Self {
            settings,
            via: format!("1.1 {via_name}"),
            sibling: number,
            sibling_has_ended: AtomicBool::new(false),
            states: Mutex::new(ParentStates { health, random: Random::new(seed) }),
        })
    }

    pub(crate) fn parent(&self, number: usize) -> &Parent {
        &self.settings.parents[number]
    }

    pub(crate) fn via(&self) -> &str {
        &self.via
    }

    /// Returns true if the parent proxy with this number is the sibling (a `foxy run` whose cache
    /// this proxy shares).
    pub(crate) fn is_sibling(&self, number: usize) -> bool {
        self.sibling == Some(number)
    }

    /// Stops sending requests to the sibling (a `foxy run` whose cache this proxy shares).
    pub(crate) fn end_sibling(&self) {
        self.sibling_has_ended.store(true, Ordering::Relaxed);
    }

    /// Returns the number of the sibling (a `foxy run` whose cache this proxy shares), if a request
    /// can go to it.
    fn sibling_for(
        &self,
        health: &[ParentHealth],
        aim: Aim<'_>,
        tried: Tried,
        now: Instant,
    ) -> Option<usize> {
        let number = self.sibling.filter(|_| aim.is_cacheable)?;
        let is_usable = !self.sibling_has_ended.load(Ordering::Relaxed)
            && !tried.contains(number)
            && health[number].rank(now).is_some();
        is_usable.then_some(number)
    }

    /// Returns the parent proxies without the sibling. The sibling is the proxy of another
    /// `foxy run`, which has the store open. This proxy sends it requests that a cache may answer.
    fn all(&self) -> &[Parent] {
        &self.settings.parents[..self.sibling.unwrap_or(self.settings.parents.len())]
    }

    /// Returns true if requests for this destination must not go to a parent proxy. For example, a
    /// loopback address means this machine, and would mean another machine at the parent.
    pub(crate) fn are_bypassed(&self, aim: Aim<'_>) -> bool {
        let serves = |parent: &Parent| parent.serves(aim.scheme);
        let covers = |rule: &NoProxy| rule.covers(aim.host, aim.port);
        is_loopback(aim.host)
            || match aim.ways {
                Some(ways) => !ways.permits_parents(),
                None => !self.all().iter().any(serves) || self.settings.no_proxy.iter().any(covers),
            }
    }

    /// Chooses the way to an origin for a request for which the parent proxies `tried` have failed.
    pub(crate) fn choose(&self, aim: Aim<'_>, tried: Tried, now: Instant) -> Chosen {
        let mut states = self.states();
        if let Some(number) = self.sibling_for(&states.health, aim, tried, now) {
            states.health[number].try_now(now);
            return Chosen::Parent(number);
        }
        if self.are_bypassed(aim) {
            return Chosen::Direct;
        }
        match self.best(&states.health, aim, tried, now) {
            Some(number) => {
                states.health[number].try_now(now);
                Chosen::Parent(number)
            }
            None if self.may_fall_back(aim) => Chosen::Fallback,
            None => Chosen::Nothing,
        }
    }

    /// Returns the way to an origin that a request would use now. Changes nothing.
    pub(crate) fn expected(&self, aim: Aim<'_>, now: Instant) -> ExpectedWay {
        if self.are_bypassed(aim) {
            return ExpectedWay::Direct;
        }
        match self.best(&self.states().health, aim, Tried::default(), now) {
            Some(number) => ExpectedWay::Parent(self.parent(number).clone()),
            None if self.may_fall_back(aim) => ExpectedWay::Fallback,
            None => ExpectedWay::Nothing,
        }
    }

    /// Returns whether the proxy may connect to the origin itself while no parent works.
    fn may_fall_back(&self, aim: Aim<'_>) -> bool {
        aim.ways.map_or(self.settings.fallback == ParentFallback::Direct, |ways| ways.direct)
    }

    fn best(
        &self,
        health: &[ParentHealth],
        aim: Aim<'_>,
        tried: Tried,
        now: Instant,
    ) -> Option<usize> {
        let parents = self.all().iter().enumerate();
        let usable = parents.filter_map(|(number, parent)| {
            let is_permitted =
                aim.ways.is_none_or(|ways| ways.permits(parent.host(), parent.port()));
            let fits = is_permitted && parent.serves(aim.scheme) && !tried.contains(number);
            let rank = health[number].rank(now).filter(|_| fits)?;
            let place = match self.settings.choice {
                ParentChoice::Order => number as u64,
                ParentChoice::Rendezvous => u64::MAX - weight(parent, aim.key),
            };
            Some((rank, place, number))
        });
        usable.min().map(|(_, _, number)| number)
    }

    /// Records a failure of a parent proxy. Returns true if the parent is down now and was not down
    /// before.
    pub(crate) fn fails(&self, number: usize, fault: ParentFault, now: Instant) -> bool {
        let ParentStates { health, random } = &mut *self.states();
        health[number].fails(fault, now, random)
    }

    /// Records that a parent proxy answered a request.
    pub(crate) fn works(&self, number: usize) {
        self.states().health[number].works();
    }

    /// Returns the parent proxies that are down: at a recent attempt, they accepted no connection
    /// or refused the credentials.
    pub fn down(&self, now: Instant) -> Vec<&Parent> {
        let states = self.states();
        let numbered = self.settings.parents.iter().zip(&states.health);
        numbered.filter(|(_, health)| health.is_down(now)).map(|(parent, _)| parent).collect()
    }

    fn states(&self) -> MutexGuard<'_, ParentStates> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Parents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.settings.fmt(f)
    }
}

/// Returns the weight of a parent proxy for a text, by rendezvous hashing. The parent with the
/// largest weight receives the request. All proxies with the same parents compute the same weights.
fn weight(parent: &Parent, key: &[u8]) -> u64 {
    xxh3_64_with_seed(key, xxh3_64_with_seed(parent.authority().as_bytes(), 0))
}

/// Returns true if the host of a URL means this machine (RFC 6761 §6.3, RFC 6890).
fn is_loopback(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().map(IpAddr::from),
        None => host.parse::<IpAddr>(),
    };
    match address {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address.is_unspecified()
        }
        Err(_) => {
            let name = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
            name == "localhost" || name.ends_with(".localhost")
        }
    }
}

#[cfg(test)]
#[path = "choice_tests.rs"]
mod tests;
