//! Opens connections to origins. The dialer takes the addresses that the destination policy allows,
//! and tries them by Happy Eyeballs (RFC 8305, without its sorting by history). Then it does the
//! TLS handshake. It does not speak HTTP, and keeps no connection.

use crate::core::addresses::client_ends::ClientEnds;
use crate::core::addresses::proxy_header;
use crate::core::addresses::transparency::connect_from;
use crate::core::places::ClientBlock;
use crate::core::transport::Transport;
use crate::upstream::address::destination::{ChosenBy, DestinationPolicy, DestinationRefusal};
use crate::upstream::address::resolve::{Host, Lookups, read_host};
use crate::upstream::dialled::{DialedProtocol, Dialled};
use crate::upstream::error::{ConnectError, ResolveError, TlsError};
use crate::upstream::origins::group::{GroupMember, GroupSettings};
use crate::upstream::settings::OriginSource;
use crate::upstream::tls::OriginTls;
use foxy_http::Scheme;
use foxy_rules::operator::{Upstream, Ways};
use futures_util::stream::{FuturesUnordered, StreamExt};
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

/// If the first address has not answered after this time, the dialer also tries the next address
/// (RFC 8305 §5).
const STAGGER: Duration = Duration::from_millis(250);

/// Largest number of addresses that the dialer tries for one name.
const MAX_ADDRESSES: usize = 16;

/// A destination: scheme, host and port, and who chose it. Two origins are equal only if all fields
/// are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// `http` or `https`.
    pub scheme: Scheme,
    /// A host name in lower case, or an address. An IPv6 address may have brackets.
    pub host: Rc<str>,
    /// The TCP port.
    pub port: u16,
    /// Tells whether a client or the operator chose the origin. Origins of clients and of the
    /// operator never share connections, because most rules of the destination policy apply only to
    /// clients.
    pub chosen: ChosenBy,
    /// The operator's origin (a group of servers) to which this server belongs. `None` in a forward
    /// proxy.
    pub(crate) member: Option<GroupMember>,
    /// The ways to the origin (directly or through parent proxies) that a rule of the operator
    /// permits. `None` if no rule decided.
    pub(crate) ways: Option<Arc<Ways>>,
}

impl Origin {
    /// Creates an origin. Changes the host to lower case.
    pub fn new(scheme: Scheme, host: &str, port: u16, chosen: ChosenBy) -> Self {
        let host = host.to_ascii_lowercase().into();
        Self { scheme, host, port, chosen, member: None, ways: None }
    }

    /// Sets the ways to the origin (directly or through parent proxies) that a rule of the operator
    /// permits.
    #[must_use]
    pub(crate) fn by(self, upstream: Option<&Upstream>) -> Self {
        match upstream {
            Some(Upstream::Ways(ways)) => Self { ways: Some(Arc::clone(ways)), ..self },
            Some(Upstream::Origin(_)) | None => self,
        }
    }

    /// Returns the settings that the operator gave to the origin of this server, if there are any.
    pub(crate) fn group(&self) -> Option<&GroupSettings> {
        self.member.as_ref().map(|member| &member.group.settings)
    }
}

pub(crate) struct Dialer {
    lookups: Lookups,
    policy: Rc<DestinationPolicy>,
    tls: OriginTls,
    timeout: Duration,
    source: OriginSource,
    is_own: fn(IpAddr) -> io::Result<bool>,
}

impl Dialer {
    pub(crate) fn new(
        lookups: Lookups,
        policy: Rc<DestinationPolicy>,
        tls: OriginTls,
        (timeout, source): (Duration, OriginSource),
    ) -> Self {
        Self { lookups, policy, tls, timeout, source, is_own }
    }

    pub(crate) fn policy(&self) -> &DestinationPolicy {
        &self.policy
    }

    /// Opens a new connection to `origin`. The time limit covers TCP and TLS together. Without TLS,
    /// the connection uses the HTTP version `offered`.
    pub(crate) async fn dial(
        &self,
        origin: &Origin,
        offered: DialedProtocol,
        asks: Option<ClientBlock>,
        client: Option<ClientEnds>,
    ) -> Result<Dialled, ConnectError> {
        let (stream, deadline) = self.dial_tcp(origin, asks, client).await?;
        let mut stream = Transport::Plain(stream);
        self.send_header(origin, client, &mut stream, deadline).await?;
        self.secure(origin, stream, offered, deadline).await
    }

    /// Sends the PROXY header on a new connection, if the operator's settings for this origin
    /// demand the header.
    pub(crate) async fn send_header(
        &self,
        origin: &Origin,
        client: Option<ClientEnds>,
        stream: &mut Transport,
        deadline: Instant,
    ) -> Result<(), ConnectError> {
        let version = origin.group().and_then(|group| group.proxy_header);
        let Some(version) = version else { return Ok(()) };
        let header = proxy_header::header(version, client);
        let send = async {
            stream.write_all(&header).await?;
            stream.flush().await
        };
        let sent = timeout_at(deadline, send).await;
        sent.map_err(|_| ConnectError::TimedOut)?.map_err(|error| ConnectError::from(&error))
    }

    /// Does the TLS handshake on a connection to an `https` origin. Returns a connection to any
    /// other origin unchanged.
    pub(crate) async fn secure(
        &self,
        origin: &Origin,
        stream: Transport,
        offered: DialedProtocol,
        deadline: Instant,
    ) -> Result<Dialled, ConnectError> {
        match origin.scheme {
            Scheme::Http => Ok(Dialled { stream, spoken: offered }),
            Scheme::Https => {
                let group = origin.group();
                let tls = group.and_then(|group| group.tls.as_ref()).unwrap_or(&self.tls);
                let name = group.and_then(|group| group.server_name.as_deref());
                let name = name.unwrap_or(&origin.host);
                let handshake = timeout_at(deadline, tls.connect(name, stream, offered));
                Ok(handshake.await.unwrap_or(Err(TlsError::TimedOut))?)
            }
        }
    }

    /// Checks whether a parent proxy may receive a request for `origin`. The parent resolves names
    /// itself, so the destination policy can check only addresses in URLs.
    pub(crate) fn check_unresolved(&self, origin: &Origin) -> Result<(), ConnectError> {
        match read_host(&origin.host) {
            _ if origin.port == 0 => Err(DestinationRefusal::PortZero.into()),
            Host::Address(ip) => {
                let address = SocketAddr::new(ip, origin.port);
                self.may_dial(address, origin.chosen)?.map_err(ConnectError::Forbidden)
            }
            Host::Impossible => Err(ResolveError::NoSuchHost.into()),
            Host::Name(_) => Ok(()),
        }
    }

    /// Opens a new TCP connection to `origin`, with Nagle's algorithm off. The name look-up is for
    /// the client `asks`. Uses the address of `client` as the source address, if the operator wants
    /// this. Also returns the deadline for the TLS handshake.
    pub(crate) async fn dial_tcp(
        &self,
        origin: &Origin,
        asks: Option<ClientBlock>,
        client: Option<ClientEnds>,
    ) -> Result<(TcpStream, Instant), ConnectError> {
        let mut addresses = self.addresses(origin, asks).await?;
        let source = self.source_for(client, &mut addresses);
        let deadline = Instant::now() + self.connect_timeout(origin);
        let connected = timeout_at(deadline, race(&addresses, source)).await;
        let stream = connected.unwrap_or(Err(ConnectError::TimedOut))?;
        let (local, peer) = stream
            .local_addr()
            .and_then(|local| Ok((local, stream.peer_addr()?)))
            .map_err(|error| ConnectError::from(&error))?;
        self.policy.check_connection(local, peer, origin.chosen)?;
        stream.set_nodelay(true).map_err(|error| ConnectError::from(&error))?;
        Ok((stream, deadline))
    }

    /// Returns the source address for a connection on behalf of a client, and removes the addresses
    /// of the other family. Returns `None` if the connection uses an address of this machine
    /// instead. A client's loopback address is never used, because no other machine can answer to
    /// it.
    fn source_for(
        &self,
        client: Option<ClientEnds>,
        addresses: &mut Vec<SocketAddr>,
    ) -> Option<IpAddr> {
        let client = client.filter(|_| self.source == OriginSource::Client)?;
        let source = client.client.ip().to_canonical();
        let fits = |address: &SocketAddr| address.is_ipv4() == source.is_ipv4();
        if source.is_loopback() || !addresses.iter().any(fits) {
            return None;
        }
        addresses.retain(fits);
        Some(source)
    }

    /// Returns the time limit for connecting to `origin`, which the operator can set for each
    /// origin.
    pub(crate) fn connect_timeout(&self, origin: &Origin) -> Duration {
        origin.group().and_then(|group| group.connect_timeout).unwrap_or(self.timeout)
    }

    /// Returns the addresses of `origin` that the destination policy allows, in the order in which
    /// the dialer tries them.
    pub(crate) async fn addresses(
        &self,
        origin: &Origin,
        client: Option<ClientBlock>,
    ) -> Result<Vec<SocketAddr>, ConnectError> {
        let found = self.lookups.find(&origin.host, client).await?;
        self.allowed(&found, origin)
    }

    fn allowed(&self, found: &[IpAddr], origin: &Origin) -> Result<Vec<SocketAddr>, ConnectError> {
        let mut refusal = None;
        let mut allowed = Vec::with_capacity(found.len().min(MAX_ADDRESSES));
        for ip in interleaved(found) {
            let address = SocketAddr::new(ip, origin.port);
            match self.may_dial(address, origin.chosen)? {
                Ok(()) => allowed.push(address),
                Err(reason) => refusal = refusal.or(Some(reason)),
            }
            if allowed.len() == MAX_ADDRESSES {
                break;
            }
        }
        match refusal {
            Some(reason) if allowed.is_empty() => Err(ConnectError::Forbidden(reason)),
            None if allowed.is_empty() => Err(ConnectError::Resolve(ResolveError::NoSuchHost)),
            _ => Ok(allowed),
        }
    }

    /// Checks whether the destination policy allows a connection to an address. The inner error is
    /// the policy's refusal. The outer error means that the kernel could not tell whether the
    /// address belongs to this machine.
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
        failure.map_or(Ok(checked), |error| Err(ConnectError::from(&error)))
    }
}

/// Orders addresses so that IPv6 and IPv4 alternate, IPv6 first (RFC 8305 §4).
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

/// Returns the first connection that succeeds. Tries the next address after [`STAGGER`], or as soon
/// as an attempt fails. If every attempt fails, returns the first failure.
async fn race(addresses: &[SocketAddr], source: Option<IpAddr>) -> Result<TcpStream, ConnectError> {
    let mut waiting = addresses.iter();
    let mut attempts = FuturesUnordered::new();
    let mut failure = None;
    loop {
        attempts.extend(waiting.next().map(|&address| connect(address, source)));
        tokio::select! {
            biased;
            Some(attempt) = attempts.next() => match attempt {
                Ok(stream) => return Ok(stream),
                Err(error) => failure = failure.or(Some(ConnectError::from(&error))),
            },
            () = tokio::time::sleep(STAGGER), if waiting.len() > 0 => {}
            else => {}
        }
        if attempts.is_empty() && waiting.len() == 0 {
            return Err(failure.unwrap_or(ConnectError::Failed));
        }
    }
}

async fn connect(address: SocketAddr, source: Option<IpAddr>) -> io::Result<TcpStream> {
    match source {
        Some(source) => connect_from(source, address).await,
        None => TcpStream::connect(address).await,
    }
}

/// Returns true if packets to `address` stay on this machine. To an address of this machine, the
/// kernel sends packets from that same address. A connected UDP socket shows the source address,
/// and sends nothing. Network interfaces may change, so the caller must check immediately before
/// use.
fn is_own(address: IpAddr) -> io::Result<bool> {
    // Connecting a UDP socket needs a port number, but no packet is sent to the port.
    const DISCARD: u16 = 9;
    let there = SocketAddr::new(address, DISCARD);
    let socket = Socket::new(Domain::for_address(there), Type::DGRAM, Some(Protocol::UDP))?;
    // If the kernel has no route to the address, the address does not belong to this machine.
    let Ok(()) = socket.connect(&there.into()) else { return Ok(false) };
    let from = socket.local_addr()?.as_socket();
    Ok(from.is_some_and(|from| from.ip().to_canonical() == address.to_canonical()))
}

#[cfg(test)]
#[path = "dial_tests.rs"]
mod tests;
