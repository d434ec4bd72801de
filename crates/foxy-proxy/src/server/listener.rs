//! Listening sockets. Each worker opens a TCP socket of its own for each address in the settings.
//! It also has a copy of each socket that the caller opened. A connection of a Unix socket becomes
//! a `TcpStream` value, because the system calls for both are the same.

use crate::core::tls::ClientTls;
use crate::settings::ProxySettings;
use socket2::{Domain, Protocol, Socket, Type};
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

/// Listening sockets of one address that the caller opened before the proxy started. Each worker
/// accepts from at least one socket, and each socket has at least one worker.
#[derive(Debug)]
pub struct SharedListener {
    /// The sockets.
    pub sockets: Vec<ListenSocket>,
    /// True if clients of this socket must use TLS.
    pub is_tls: bool,
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
    pub(crate) tls: Option<ClientTls>,
}

/// The listening sockets of each worker, and the addresses on which the proxy listens.
pub(crate) struct Bound {
    pub(crate) workers: Vec<Vec<WorkerListener>>,
    /// The addresses in the settings. Addresses without TLS come first.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The TCP addresses of the sockets that the caller opened.
    pub(crate) shared: Vec<SocketAddr>,
    /// Copies of all sockets, grouped by address, for another process that takes over.
    pub(crate) sockets: Vec<SharedListener>,
}

impl Bound {
    /// Opens a socket per worker for each address in the settings.
    pub(crate) fn open(settings: &ProxySettings) -> Result<Self, (SocketAddr, io::Error)> {
        let workers = (0..settings.workers.max(1)).map(|_| Vec::new()).collect();
        let (addresses, shared, sockets) = (Vec::new(), Vec::new(), Vec::new());
        let mut bound = Self { workers, addresses, shared, sockets };
        for &wanted in &settings.listen {
            bound.bind(wanted, None).map_err(|error| (wanted, error))?;
        }
        if let Some(tls) = &settings.client_tls {
            for &wanted in &settings.listen_tls {
                bound.bind(wanted, Some(tls)).map_err(|error| (wanted, error))?;
            }
        }
        Ok(bound)
    }

    fn bind(&mut self, wanted: SocketAddr, tls: Option<&ClientTls>) -> io::Result<()> {
        // The workers' sockets share one port, also with sockets of other programs. So this first
        // socket binds without sharing, and fails if another program already uses the port.
        let free = TcpListener::bind(wanted)?;
        let mut address = free.local_addr()?;
        drop(free);
        let mut sockets = Vec::new();
        for worker in &mut self.workers {
            let listener = listen(address)?;
            address = listener.local_addr()?;
            let socket = ListenSocket::Tcp(listener);
            sockets.push(socket.try_clone()?);
            worker.push(WorkerListener { socket, tls: tls.cloned() });
        }
        let is_tls = tls.is_some();
        self.sockets.push(SharedListener { sockets, is_tls, is_given: false });
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
            self.workers[turn % workers].push(WorkerListener { socket, tls: tls.cloned() });
        }
        self.sockets.push(shared);
        Ok(())
    }
}

/// Opens a listening socket for one worker. The socket shares the address with the sockets of the
/// other workers (SO_REUSEPORT).
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}
