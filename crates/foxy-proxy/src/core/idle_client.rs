//! An idle client connection that can move to another proxy or process.

use std::net::{SocketAddr, TcpStream};

/// A connection without TLS whose client has sent no part of its next request.
#[derive(Debug)]
pub struct IdleClient {
    /// The connection, in the mode without blocking.
    pub stream: TcpStream,
    /// Address of the client. A load balancer may have named the address.
    pub peer: SocketAddr,
    /// The destination that the client of a transparent listener chose.
    pub aimed_at: Option<SocketAddr>,
}

/// Receives the idle client connections of a proxy that another process replaces.
pub type Heir = Box<dyn Fn(IdleClient) + Send + Sync>;
