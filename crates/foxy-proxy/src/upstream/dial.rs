//! TCP connections to origins: Happy Eyeballs (RFC 8305, without its sorting by history) over the addresses the
//! policy allows. It speaks no HTTP and keeps no connection.

use crate::upstream::destination::{ChosenBy, DestinationPolicy};
use crate::upstream::error::{ConnectError, ResolveError, connect_failure};
use crate::upstream::resolve::Lookups;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The head start of one address over the next (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses tried of one name.
const ADDRESSES: usize = 16;

/// A place that answers requests. Two are the same if all of this is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// A name or an address, IPv6 with or without brackets. Names are in lower case.
    pub host: Rc<str>,
    /// The port.
    pub port: u16,
    /// Who named it.
    pub chosen: ChosenBy,
}

impl Origin {
    /// An origin; puts the host in lower case.
    #[must_use]
    pub fn new(host: &str, port: u16, chosen: ChosenBy) -> Self {
        Self { host: host.to_ascii_lowercase().into(), port, chosen }
    }
}

/// Connects to origins.
pub(crate) struct Dialer {
    lookups: Lookups,
    policy: Rc<DestinationPolicy>,
    timeout: Duration,
}

impl Dialer {
    pub(crate) fn new(lookups: Lookups, policy: Rc<DestinationPolicy>, timeout: Duration) -> Self {
        Self { lookups, policy, timeout }
    }

    pub(crate) fn policy(&self) -> &DestinationPolicy {
        &self.policy
    }

    /// A new connection to `origin`, without Nagle's delay.
    pub(crate) async fn dial(&self, origin: &Origin) -> Result<TcpStream, ConnectError> {
        let found = self.lookups.find(&origin.host).await?;
        let addresses = self.allowed(&found, origin)?;
        let stream = tokio::time::timeout(self.timeout, race(&addresses))
            .await
            .unwrap_or(Err(ConnectError::TimedOut))?;
        let (local, peer) = stream
            .local_addr()
            .and_then(|local| Ok((local, stream.peer_addr()?)))
            .map_err(|error| connect_failure(&error))?;
        self.policy.check_connection(local, peer)?;
        stream.set_nodelay(true).map_err(|error| connect_failure(&error))?;
        Ok(stream)
    }

    /// The addresses that may be dialled, in the order to try them.
    fn allowed(&self, found: &[IpAddr], origin: &Origin) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut refusal = None;
        let mut allowed = Vec::with_capacity(found.len().min(ADDRESSES));
        for ip in interleaved(found) {
            let address = SocketAddr::new(ip, origin.port);
            match self.policy.check_address(address, origin.chosen) {
                Ok(()) => allowed.push(address),
                Err(reason) => refusal = refusal.or(Some(reason)),
            }
        }
        allowed.truncate(ADDRESSES);
        match refusal {
            Some(reason) if allowed.is_empty() => Err(ConnectError::Forbidden(reason)),
            None if allowed.is_empty() => Err(ConnectError::Resolve(ResolveError::NoSuchHost)),
            _ => Ok(allowed),
        }
    }
}

/// Addresses of both families in turn, IPv6 first (RFC 8305 §4).
fn interleaved(found: &[IpAddr]) -> Vec<IpAddr> {
    let mut six = found.iter().filter(|address| address.is_ipv6());
    let mut four = found.iter().filter(|address| address.is_ipv4());
    let mut order = Vec::with_capacity(found.len());
    while order.len() < found.len() {
        order.extend(six.next());
        order.extend(four.next());
    }
    order
}

/// The first connection to succeed; a new address is tried when [`STAGGER`] has passed or one failed.
/// If none succeeds, the first failure.
async fn race(addresses: &[SocketAddr]) -> Result<TcpStream, ConnectError> {
    let mut waiting = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = None;
    loop {
        attempts.extend(waiting.next().map(|&address| TcpStream::connect(address)));
        tokio::select! {
            biased;
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = failure.or(Some(connect_failure(&error))),
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => {}
            else => {}
        }
        if attempts.is_empty() && waiting.len() == 0 {
            return Err(failure.unwrap_or(ConnectError::Failed));
        }
    }
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
