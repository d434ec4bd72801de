//! Listening sockets. Each worker has its own TCP socket for each address of the settings, and a
//! copy of each socket that the caller opened. Connections of Unix sockets become `TcpStream`
//! values, because the system calls for both are the same.

use crate::core::tls::ClientTls;
use crate::settings::ProxySettings;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use tokio::net::TcpStream;

/// Number of connections per socket that may wait until the proxy accepts them.
const ACCEPT_BACKLOG: i32 = 4096;

/// Address that stands for every client of a Unix socket. No TCP client has port 0.
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

/// A listening socket that the caller opened. All workers accept from it.
#[derive(Debug)]
pub struct SharedListener {
    /// The socket.
    pub socket: ListenSocket,
    /// True if clients of this socket must use TLS.
    pub is_tls: bool,
}

impl ListenSocket {
    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(listener) => Self::Tcp(listener.try_clone()?),
            Self::Unix(listener) => Self::Unix(listener.try_clone()?),
        })
    }
}

/// Accepts connections of a socket in an async runtime.
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

    /// Waits for a connection. Returns it with the address of its client. Clients of Unix sockets
    /// have the loopback address and port 0.
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

/// A listening socket of a worker.
pub(crate) struct WorkerListener {
    pub(crate) socket: ListenSocket,
    pub(crate) tls: Option<ClientTls>,
}

/// The listening sockets of each worker, and the TCP addresses of all sockets.
pub(crate) struct Bound {
    pub(crate) workers: Vec<Vec<WorkerListener>>,
    /// The addresses of the settings, without TLS first.
    pub(crate) addresses: Vec<SocketAddr>,
    /// The addresses of the sockets that the caller opened.
    pub(crate) shared: Vec<SocketAddr>,
}

impl Bound {
    /// Opens the sockets of the settings for each worker.
    pub(crate) fn open(settings: &ProxySettings) -> Result<Self, (SocketAddr, io::Error)> {
        let workers = (0..settings.workers.max(1)).map(|_| Vec::new()).collect();
        let mut bound = Self { workers, addresses: Vec::new(), shared: Vec::new() };
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
        // The workers' sockets share the port with each other. This first socket does not share it,
        // so binding fails if another program uses the port.
        let free = TcpListener::bind(wanted)?;
        let mut address = free.local_addr()?;
        drop(free);
        for worker in &mut self.workers {
            let listener = listen(address)?;
            address = listener.local_addr()?;
            worker.push(WorkerListener { socket: ListenSocket::Tcp(listener), tls: tls.cloned() });
        }
        self.addresses.push(address);
        Ok(())
    }

    /// Gives each worker a copy of `socket`.
    pub(crate) fn share(
        &mut self,
        socket: &ListenSocket,
        tls: Option<&ClientTls>,
    ) -> io::Result<()> {
        if let ListenSocket::Tcp(listener) = socket {
            self.shared.push(listener.local_addr()?);
        }
        for worker in &mut self.workers {
            worker.push(WorkerListener { socket: socket.try_clone()?, tls: tls.cloned() });
        }
        Ok(())
    }
}

/// Opens a listening socket that shares its address with the sockets of the other workers.
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    socket.bind(&address.into())?;
    socket.listen(ACCEPT_BACKLOG)?;
    Ok(socket.into())
}
