//! Listening sockets. Each worker opens a TCP socket of its own for each address in the settings.
//! It also has a copy of each socket that the caller opened. A connection of a Unix socket becomes
//! a `TcpStream` value, because the system calls for both are the same.

use crate::core::addresses::transparency::make_transparent;
use crate::core::tls::ClientTls;
use crate::settings::ProxySettings;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use tokio::net::TcpStream;

/// Number of connections that may wait at one socket until the proxy accepts them.
const ACCEPT_BACKLOG: i32 = 4096;

/// The address that the proxy assigns to every client of a Unix socket. No TCP client has port 0.
const UNIX_CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 0);

/// Returns true if the client came through a Unix socket.
pub(crate) fn is_unix(client: SocketAddr) -> bool {
    client == UNIX_CLIENT.into()
}

/// An open listening socket.
#[derive(Debug)]
pub enum ListenSocket {
    /// A socket for TCP connections.
    Tcp(TcpListener),
    /// A socket for connections of the same machine, with a path as its address.
    Unix(UnixListener),
}

/// The kind of clients that connect to a listening socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListenerKind {
    /// The clients connect to the proxy's own address without TLS.
    Plain,
    /// The clients connect to the proxy's own address, and use TLS on this connection.
    Tls,
    /// The clients do not know the proxy: rules of the kernel direct their connections to it.
    Transparent,
    /// The clients are other nodes of the fleet.
    Nodes,
}

/// Listening sockets of one address that the caller opened before the proxy started. Each worker
/// accepts from at least one socket, and each socket has at least one worker.
#[derive(Debug)]
pub struct SharedListener {
    /// Sockets on which the workers accept clients.
    pub sockets: Vec<ListenSocket>,
    /// The kind of clients that connect to these sockets.
    pub kind: ListenerKind,
    /// True if the service manager (systemd) opened the sockets. The proxy does not use this flag.
    pub is_given: bool,
}

impl SharedListener {
    /// Duplicates the sockets.
    ///
    /// # Errors
    /// The process has no free file descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        let sockets =
            self.sockets.iter().map(ListenSocket::try_clone).collect::<io::Result<_>>()?;
        Ok(Self { sockets, ..*self })
    }
}

impl ListenSocket {
    /// Lets a TCP socket accept connections to addresses of other machines.
    ///
    /// # Errors
    /// The process lacks the capability CAP_NET_ADMIN, or the socket is a Unix socket.
    pub fn make_transparent(&self) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                make_transparent(&SockRef::from(listener), listener.local_addr()?.ip())
            }
            Self::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Duplicates the socket.
    ///
    /// # Errors
    /// The process has no free file descriptor.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }
}

/// A listening socket that is registered with an async runtime.
#[derive(Debug)]
pub enum Acceptor {
    /// Accepts TCP connections.
    Tcp(tokio::net::TcpListener),
    /// Accepts connections of a Unix socket.
    Unix(tokio::net::UnixListener),
}

impl Acceptor {
    /// Registers a socket with the current runtime.
    ///
    /// # Errors
    /// The system refuses a system call.
    pub fn new(socket: ListenSocket) -> io::Result<Self> {
        match socket {
            ListenSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::TcpListener::from_std(listener).map(Self::Tcp)
            }
            ListenSocket::Unix(listener) => {
                listener.set_nonblocking(true)?;
                tokio::net::UnixListener::from_std(listener).map(Self::Unix)
            }
        }
    }

    /// Waits for a connection. Returns the connection and the address of its client. A client of a
    /// Unix socket has the loopback address and port 0.
    ///
    /// # Errors
    /// The connection has ended already, or the system has no file descriptors left.
    pub async fn accept(&self) -> io::Result<(TcpStream, SocketAddr)> {
        match self {
            Self::Tcp(listener) => listener.accept().await,
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                let descriptor = OwnedFd::from(stream.into_std()?);
                let stream = TcpStream::from_std(std::net::TcpStream::from(descriptor))?;
                Ok((stream, UNIX_CLIENT.into()))
            }
        }
    }
}

/// A listening socket of one worker, with its TLS settings if its clients use TLS.
pub(crate) struct WorkerListener {
    pub(crate) socket: ListenSocket,
    pub(crate) kind: ListenerKind,
    pub(crate) tls: Option<ClientTls>,
}

/// The listening sockets of each worker, and the addresses on which the proxy listens.
pub(crate) struct Bound {
    pub(crate) workers: Vec<Vec<WorkerListener>>,
    /// The addresses in the settings: without TLS, with TLS, transparent, and for nodes.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The TCP addresses of the sockets that the caller opened.
    pub(crate) shared: Vec<SocketAddr>,
    /// Copies of all sockets, grouped by address, for another process that takes over.
    pub(crate) sockets: Vec<SharedListener>,
    /// True if rules of the kernel replace the destination of transparent connections.
    is_redirected: bool,
}

impl Bound {
    /// Opens a socket per worker for each address in the settings.
    pub(crate) fn open(settings: &ProxySettings) -> Result<Self, (SocketAddr, io::Error)> {
        use ListenerKind::{Nodes, Plain, Tls, Transparent};
        let workers = (0..settings.workers.max(1)).map(|_| Vec::new()).collect();
        let (addresses, shared, sockets) = (Vec::new(), Vec::new(), Vec::new());
        let is_redirected = settings.is_redirected;
        let mut bound = Self { workers, addresses, shared, sockets, is_redirected };
        for &wanted in &settings.listen {
            bound.bind(wanted, Plain, None).map_err(|error| (wanted, error))?;
        }
        if let Some(tls) = &settings.client_tls {
            for &wanted in &settings.listen_tls {
                bound.bind(wanted, Tls, Some(tls)).map_err(|error| (wanted, error))?;
            }
        }
        for &wanted in &settings.listen_transparent {
            bound.bind(wanted, Transparent, None).map_err(|error| (wanted, error))?;
        }
        if let Some(tls) = &settings.node_tls {
            for &wanted in &settings.listen_nodes {
                bound.bind(wanted, Nodes, Some(tls)).map_err(|error| (wanted, error))?;
            }
        }
        Ok(bound)
    }

    fn bind(
        &mut self,
        wanted: SocketAddr,
        kind: ListenerKind,
        tls: Option<&ClientTls>,
    ) -> io::Result<()> {
        // A socket that shares its port (SO_REUSEPORT) would also share it with sockets of other
        // programs. So the first socket binds without sharing, and fails if another program already
        // uses the port.
        self.spread(TcpListener::bind(wanted)?, kind, tls)
    }

    /// Gives `first` to the first worker, and opens sockets with the same address for the other
    /// workers. A client may be connected to `first` already, so this socket stays open.
    fn spread(
        &mut self,
        first: TcpListener,
        kind: ListenerKind,
        tls: Option<&ClientTls>,
    ) -> io::Result<()> {
        let is_transparent = kind == ListenerKind::Transparent && !self.is_redirected;
        let address = first.local_addr()?;
        share_port(&first, is_transparent)?;
        let mut first = Some(first);
        let mut sockets = Vec::new();
        for worker in &mut self.workers {
            let listener = first.take().map_or_else(|| listen(address, is_transparent), Ok)?;
            let socket = ListenSocket::Tcp(listener);
            sockets.push(socket.try_clone()?);
            worker.push(WorkerListener { socket, kind, tls: tls.cloned() });
        }
        self.sockets.push(SharedListener { sockets, kind, is_given: false });
        self.addresses.push(address);
        Ok(())
    }

    /// Gives each worker copies of sockets that the caller opened.
    pub(crate) fn share(
        &mut self,
        shared: SharedListener,
        tls: Option<&ClientTls>,
    ) -> io::Result<()> {
        let (sockets, workers) = (&shared.sockets, self.workers.len());
        if let Some(ListenSocket::Tcp(listener)) = sockets.first() {
            self.shared.push(listener.local_addr()?);
        }
        let turns = if sockets.is_empty() { 0 } else { sockets.len().max(workers) };
        for turn in 0..turns {
            let socket = sockets[turn % sockets.len()].try_clone()?;
            let (kind, tls) = (shared.kind, tls.cloned());
            self.workers[turn % workers].push(WorkerListener { socket, kind, tls });
        }
        self.sockets.push(shared);
        Ok(())
    }
}

/// Lets further sockets of this process listen at the address of a listening socket.
fn share_port(listener: &TcpListener, is_transparent: bool) -> io::Result<()> {
    let socket = SockRef::from(listener);
    if is_transparent {
        make_transparent(&socket, listener.local_addr()?.ip())?;
    }
    socket.set_reuse_port(true)?;
    socket.listen(ACCEPT_BACKLOG)
}

/// Opens a listening socket for one worker. The socket shares the address with the sockets of the
/// other workers (SO_REUSEPORT).
fn listen(address: SocketAddr, is_transparent: bool) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if is_transparent {
        make_transparent(&SockRef::from(&socket), address.ip())?;
    }
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpStream;

    #[test]
    fn a_client_that_connects_before_all_workers_listen_keeps_its_connection() {
        let settings = ProxySettings { listen: vec![], workers: 2, ..ProxySettings::default() };
        let mut bound = Bound::open(&settings).expect("opened");
        let first = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let client = TcpStream::connect(first.local_addr().expect("bound")).expect("connected");
        bound.spread(first, ListenerKind::Plain, None).expect("each worker listens");
        assert_eq!(bound.workers.iter().map(Vec::len).sum::<usize>(), 2);
        client.set_nonblocking(true).expect("set");
        let error = client.peek(&mut [0]).expect_err("nothing was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error}");
    }
}
