//! Connections to origins: Happy Eyeballs (RFC 8305, without its sorting by history) over the
//! addresses the policy allows, then TLS where it is asked for. It speaks no HTTP and keeps no
//! connection.

use crate::core::client_block::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::address::destination::{ChosenBy, DestinationPolicy, DestinationRefusal};
use crate::upstream::address::own_machine::is_own;
use crate::upstream::address::resolve::Lookups;
use crate::upstream::connect_error::connect_failure;
use crate::upstream::error::{ConnectError, ResolveError, TlsError};
use crate::upstream::tls::OriginTls;
use foxy_http::Scheme;
use futures_util::stream::{FuturesUnordered, StreamExt};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// The head start of one address over the next (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);

/// Addresses tried of one name.
const ADDRESSES: usize = 16;

/// A place that answers requests. Two are the same if all of this is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// What is spoken with it.
    pub scheme: Scheme,
    /// A name or an address, IPv6 with or without brackets. Names are in lower case.
    pub host: Rc<str>,
    /// The port.
    pub port: u16,
    /// Who named it.
    pub chosen: ChosenBy,
}

impl Origin {
    /// An origin; puts the host in lower case.
    pub fn new(scheme: Scheme, host: &str, port: u16, chosen: ChosenBy) -> Self {
        Self { scheme, host: host.to_ascii_lowercase().into(), port, chosen }
    }
}

/// Which HTTP goes over a connection, or may go over one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialedProtocol {
    Http1,
    Http2,
}

/// A new connection, and what is spoken on it.
pub(crate) struct Dialled {
    pub(crate) stream: Transport,
    pub(crate) spoken: DialedProtocol,
}

/// Connects to origins.
pub(crate) struct Dialer {
    lookups: Lookups,
    policy: Rc<DestinationPolicy>,
    tls: OriginTls,
    timeout: Duration,
    is_own: fn(IpAddr) -> io::Result<bool>,
}

impl Dialer {
    pub(crate) fn new(
        lookups: Lookups,
        policy: Rc<DestinationPolicy>,
        tls: OriginTls,
        timeout: Duration,
    ) -> Self {
        Self { lookups, policy, tls, timeout, is_own }
    }

    pub(crate) fn policy(&self) -> &DestinationPolicy {
        &self.policy
    }

    /// A new connection to `origin` that a request can be sent on. TCP and TLS share one time
    /// limit. Without TLS what is offered is what is spoken.
    pub(crate) async fn dial(
        &self,
        origin: &Origin,
        offered: DialedProtocol,
        client: Option<ClientBlock>,
    ) -> Result<Dialled, ConnectError> {
        let (stream, deadline) = self.dial_tcp(origin, client).await?;
        match origin.scheme {
            Scheme::Http => Ok(Dialled { stream: Transport::Plain(stream), spoken: offered }),
            Scheme::Https => {
                let handshake =
                    timeout_at(deadline, self.tls.connect(&origin.host, stream, offered));
                Ok(handshake.await.unwrap_or(Err(TlsError::TimedOut))?)
            }
        }
    }

    /// A new TCP connection to `origin`, without Nagle's delay, and until when it is to be ready
    /// for use.
    pub(crate) async fn dial_tcp(
        &self,
        origin: &Origin,
        client: Option<ClientBlock>,
    ) -> Result<(TcpStream, Instant), ConnectError> {
        let addresses = self.addresses(origin, client).await?;
        let deadline = Instant::now() + self.timeout;
        let stream =
            timeout_at(deadline, race(&addresses)).await.unwrap_or(Err(ConnectError::TimedOut))?;
        let (local, peer) = stream
            .local_addr()
            .and_then(|local| Ok((local, stream.peer_addr()?)))
            .map_err(|error| connect_failure(&error))?;
        self.policy.check_connection(local, peer, origin.chosen)?;
        stream.set_nodelay(true).map_err(|error| connect_failure(&error))?;
        Ok((stream, deadline))
    }

    /// The addresses of `origin` that may be dialled, in the order to try them.
    pub(crate) async fn addresses(
        &self,
        origin: &Origin,
        client: Option<ClientBlock>,
    ) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = self.lookups.find(&origin.host, client).await?;
        self.allowed(&found, origin)
    }

    /// Those of the addresses found that may be dialled.
    fn allowed(&self, found: &[IpAddr], origin: &Origin) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut refusal = None;
        let mut allowed = Vec::with_capacity(found.len().min(ADDRESSES));
        for ip in interleaved(found) {
            let address = SocketAddr::new(ip, origin.port);
            match self.may_dial(address, origin.chosen)? {
                Ok(()) => allowed.push(address),
                Err(reason) => refusal = refusal.or(Some(reason)),
            }
            if allowed.len() == ADDRESSES {
                break;
            }
        }
        match refusal {
            Some(reason) if allowed.is_empty() => Err(ConnectError::Forbidden(reason)),
            None if allowed.is_empty() => Err(ConnectError::Resolve(ResolveError::NoSuchHost)),
            _ => Ok(allowed),
        }
    }

    /// Whether the policy lets an address be dialled; an error where nobody can tell.
    fn may_dial(
        &self,
        address: SocketAddr,
        chosen: ChosenBy,
    ) -> Result<Result<(), DestinationRefusal>, ConnectError> {
        let mut failure = None;
        let is_own = |ip| match (self.is_own)(ip) {
            Ok(own) => own,
            Err(error) => {
                failure = Some(error);
                true
            }
        };
        let checked = self.policy.check_address(address, chosen);
        let checked =
            checked.and_then(|()| self.policy.check_machine(address.ip(), chosen, is_own));
        failure.map_or(Ok(checked), |error| Err(connect_failure(&error)))
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

/// The first connection to succeed; a new address is tried when [`STAGGER`] has passed or one
/// failed. If none succeeds, the first failure.
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
