//! An idle client connection that can move to another proxy or process.

use std::net::{SocketAddr, TcpStream};

/// A connection without TLS whose client has sent no part of its next request.
#[derive(Debug)]
pub struct IdleClient {
    /// The connection's socket, in non-blocking mode.
    pub stream: TcpStream,
    /// Address of the client. Behind a load balancer, this is the address that the balancer
    /// reported.
    pub peer: SocketAddr,
    /// The destination that the client of a transparent listener chose.
    pub aimed_at: Option<SocketAddr>,
}

/// Receives the idle client connections of a proxy that another foxy process replaces.
pub type Heir = Box<dyn Fn(IdleClient) + Send + Sync>;
