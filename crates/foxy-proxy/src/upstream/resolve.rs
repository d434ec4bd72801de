//! From host names to addresses: literals at once, names through a resolver, several questions for one name asked
//! once. It judges no address; `destination` does, right before dialling.

use crate::upstream::error::ResolveError;
use futures_util::future::{FutureExt, LocalBoxFuture, Shared, WeakShared};
use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

/// The addresses of a name, in the order to try them within a family.
pub type Addresses = Result<Rc<[IpAddr]>, ResolveError>;

/// Looks up names. The one of DNS is [`crate::upstream::NameResolver`]; tests have their own.
pub trait Resolve {
    /// The addresses of `name`, which is no IP literal. The future does not borrow the resolver.
    fn resolve(&self, name: &str) -> LocalBoxFuture<'static, Addresses>;
}

type Lookup = LocalBoxFuture<'static, Addresses>;

/// What a worker asks for addresses.
pub(crate) struct Lookups {
    resolver: Rc<dyn Resolve>,
    timeout: Duration,
    most: usize,
    in_flight: RefCell<HashMap<Box<str>, WeakShared<Lookup>>>,
}

impl Lookups {
    /// Asks `resolver`, for at most `most` names at a time, each for at most `timeout`.
    pub(crate) fn new(resolver: Rc<dyn Resolve>, timeout: Duration, most: usize) -> Self {
        Self { resolver, timeout, most, in_flight: RefCell::default() }
    }

    /// The addresses of `host`: an address, IPv6 with or without brackets, or a name.
    pub(crate) async fn find(&self, host: &str) -> Addresses {
        match read_host(host) {
            Host::Address(address) => Ok(Rc::from([address])),
            Host::Impossible => Err(ResolveError::NoSuchHost),
            Host::Name(name) => {
                let found = self.join(name)?.await;
                self.in_flight.borrow_mut().retain(|_, lookup| is_pending(lookup));
                found
            }
        }
    }

    /// The lookup of `name` that is under way, or a new one.
    fn join(&self, name: &str) -> Result<Shared<Lookup>, ResolveError> {
        let mut in_flight = self.in_flight.borrow_mut();
        if let Some(lookup) = in_flight.get(name).and_then(WeakShared::upgrade) {
            return Ok(lookup);
        }
        if in_flight.len() >= self.most {
            in_flight.retain(|_, lookup| is_pending(lookup));
            if in_flight.len() >= self.most {
                return Err(ResolveError::TooManyLookups);
            }
        }
        let answer = tokio::time::timeout(self.timeout, self.resolver.resolve(name));
        let lookup =
            answer.map(|answer| answer.unwrap_or(Err(ResolveError::TimedOut))).boxed_local().shared();
        if let Some(weak) = lookup.downgrade() {
            in_flight.insert(name.into(), weak);
        }
        Ok(lookup)
    }
}

/// Whether somebody still waits for a lookup.
fn is_pending(lookup: &WeakShared<Lookup>) -> bool {
    lookup.upgrade().is_some_and(|lookup| lookup.peek().is_none())
}

/// What a host of an authority is.
#[derive(Debug, PartialEq, Eq)]
enum Host<'a> {
    Address(IpAddr),
    Name(&'a str),
    /// It ends in a number, as no DNS name does (WHATWG URL, "ends in a number"), is empty, or is half an address.
    Impossible,
}

fn read_host(host: &str) -> Host<'_> {
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().map_or(Host::Impossible, |address| Host::Address(address.into()));
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

/// Decimal, octal or hexadecimal, as `inet_aton` reads the parts of an address.
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
