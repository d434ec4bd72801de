//! Resolves host names to addresses. IP addresses and known names need no look-up. For other names,
//! asks a resolver. Requests for the same name share a look-up, and the number of look-ups per
//! client is limited. `destination` checks the addresses immediately before the proxy connects.

use crate::core::places::ClientBlock;
use crate::upstream::error::ResolveError;
use futures_util::future::{FutureExt, LocalBoxFuture, Shared, WeakShared};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// The addresses of a name. The dialer tries addresses of the same family (IPv4 or IPv6) in this
/// order.
pub type Addresses = Result<Rc<[IpAddr]>, ResolveError>;

/// Resolves host names to addresses. The proxy uses [`crate::upstream::NameResolver`], which asks
/// DNS servers. Tests have their own resolvers.
pub trait Resolve {
    /// Returns the addresses of `name`, which must not be an IP address. The future does not borrow
    /// the resolver.
    fn resolve(&self, name: &str) -> LocalBoxFuture<'static, Addresses>;

    /// Returns the addresses of `name` if they are known without a query to a DNS server.
    fn known(&self, _name: &str) -> Option<Rc<[IpAddr]>> {
        None
    }
}

/// Function that creates a resolver of host names, on the thread that uses the resolver.
pub type MakeResolver = Arc<dyn Fn() -> Result<Rc<dyn Resolve>, String> + Send + Sync>;

type Lookup = LocalBoxFuture<'static, Addresses>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct LookupLimits {
    /// Time limit for resolving one name.
    pub(crate) timeout: Duration,
    /// Largest number of look-ups at the same time. At this limit, a new look-up cancels the oldest
    /// look-up, which then fails.
    pub(crate) most: usize,
    /// Largest number of look-ups at the same time for one client. Further look-ups fail.
    pub(crate) of_client: usize,
}

/// If no DNS server answers for a name in time, the proxy does not look the name up again for this
/// time (RFC 9520 §3.2).
const SILENCE_TIME: Duration = Duration::from_secs(5);

const MAX_SILENT_NAMES: usize = 1024;

/// The name look-ups of a worker.
pub(crate) struct Lookups {
    resolver: Rc<dyn Resolve>,
    limits: LookupLimits,
    in_flight: RefCell<HashMap<Box<str>, InFlight>>,
    begun: Cell<u64>,
    /// Names for which no DNS server answered in time. Until the time in the value, look-ups of the
    /// name fail at once.
    silent: RefCell<HashMap<Box<str>, Instant>>,
}

/// A look-up in progress. Requests for the same name share its result.
struct InFlight {
    lookup: WeakShared<Lookup>,
    /// Look-ups are numbered in the order of their start, so the oldest look-up has the smallest
    /// number.
    number: u64,
    client: Option<ClientBlock>,
    give_up: Rc<Notify>,
}

impl InFlight {
    /// Returns true if a request is still waiting for the look-up.
    fn is_pending(&self) -> bool {
        self.lookup.upgrade().is_some_and(|lookup| lookup.peek().is_none())
    }
}

impl Lookups {
    pub(crate) fn new(resolver: Rc<dyn Resolve>, limits: LookupLimits) -> Self {
        let (in_flight, begun, silent) = (RefCell::default(), Cell::new(0), RefCell::default());
        Self { resolver, limits, in_flight, begun, silent }
    }

    /// Returns the addresses of `host`, for a request of `client`. `host` is a name or an address.
    /// An IPv6 address may have brackets.
    pub(crate) async fn find(&self, host: &str, client: Option<ClientBlock>) -> Addresses {
        let name = match read_host(host) {
            Host::Address(address) => return Ok(Rc::from([address])),
            Host::Impossible => return Err(ResolveError::NoSuchHost),
            Host::Name(name) => name,
        };
        if let Some(known) = self.resolver.known(name) {
            return Ok(known);
        }
        if self.is_silent(name) {
            return Err(ResolveError::TimedOut);
        }
        let found = self.join(name, client)?.await;
        self.in_flight.borrow_mut().retain(|_, lookup| lookup.is_pending());
        if found == Err(ResolveError::TimedOut) {
            self.remember_silence(name);
        }
        found
    }

    /// Joins a look-up of `name` that is in progress. Otherwise starts a look-up.
    fn join(
        &self,
        name: &str,
        client: Option<ClientBlock>,
    ) -> Result<Shared<Lookup>, ResolveError> {
        let mut in_flight = self.in_flight.borrow_mut();
        if let Some(lookup) = in_flight.get(name).and_then(|known| known.lookup.upgrade()) {
            return Ok(lookup);
        }
        if in_flight.len() >= self.limits.of_client.min(self.limits.most) {
            in_flight.retain(|_, lookup| lookup.is_pending());
        }
        let of_client = |lookup: &&InFlight| client.is_some() && lookup.client == client;
        if in_flight.values().filter(of_client).count() >= self.limits.of_client {
            return Err(ResolveError::TooManyOfClient);
        }
        if in_flight.len() >= self.limits.most {
            let oldest = in_flight.iter().min_by_key(|(_, lookup)| lookup.number);
            let oldest =
                oldest.map(|(name, _)| name.clone()).ok_or(ResolveError::TooManyLookups)?;
            in_flight.remove(&oldest).inspect(|lookup| lookup.give_up.notify_one());
        }
        let give_up = Rc::new(Notify::new());
        let answer = tokio::time::timeout(self.limits.timeout, self.resolver.resolve(name));
        let given_up = Rc::clone(&give_up);
        let lookup = async move {
            tokio::select! {
                biased;
                answer = answer => answer.unwrap_or(Err(ResolveError::TimedOut)),
                () = given_up.notified() => Err(ResolveError::TooManyLookups),
            }
        };
        let lookup = lookup.boxed_local().shared();
        let number = self.begun.get();
        self.begun.set(number + 1);
        if let Some(weak) = lookup.downgrade() {
            in_flight.insert(name.into(), InFlight { lookup: weak, number, client, give_up });
        }
        Ok(lookup)
    }

    fn is_silent(&self, name: &str) -> bool {
        self.silent.borrow().get(name).is_some_and(|until| Instant::now() < *until)
    }

    fn remember_silence(&self, name: &str) {
        let (mut silent, now) = (self.silent.borrow_mut(), Instant::now());
        if silent.len() >= MAX_SILENT_NAMES {
            silent.retain(|_, until| now < *until);
        }
        if silent.len() < MAX_SILENT_NAMES {
            silent.insert(name.into(), now + SILENCE_TIME);
        }
    }
}

/// The host of a URL: an IP address or a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
    /// The host is empty, is an incomplete address, or ends in a number. No DNS name ends in a
    /// number (WHATWG URL, "ends in a number").
    Impossible,
}

pub(crate) fn read_host(host: &str) -> Host<'_> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner
            .parse::<Ipv6Addr>()
            .map_or(Host::Impossible, |address| Host::Address(address.into()));
    }
    if let Ok(address) = host.parse::<IpAddr>() {
        return Host::Address(address);
    }
    let name = host.strip_suffix('.').unwrap_or(host);
    match name.rsplit('.').next() {
        None | Some("") => Host::Impossible,
        Some(last) if is_number(last) || host.contains(['[', ']', ':']) => Host::Impossible,
        Some(_) => Host::Name(host),
    }
}

/// Returns true if a label is a decimal, octal or hexadecimal number in the form that `inet_aton`
/// accepts in an address.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
