//! The two ends of a client's connection. Connections to origins can name the client to the origin,
//! or use the client's address as their own.

use crate::core::places::ClientBlock;
use std::net::{IpAddr, SocketAddr};

/// The addresses of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientEnds {
    /// The client's address.
    pub client: SocketAddr,
    /// The address to which the client connected, if it matters.
    pub reached: Option<SocketAddr>,
}

impl ClientEnds {
    pub(crate) fn block(self) -> ClientBlock {
        self.client.ip().into()
    }

    /// Returns the client alone, without its port. Connections that differ only in ports are equal
    /// then.
    pub(crate) fn without_ports(self) -> Self {
        Self { client: SocketAddr::new(self.client.ip(), 0), reached: None }
    }
}

impl From<IpAddr> for ClientEnds {
    fn from(client: IpAddr) -> Self {
        Self { client: SocketAddr::new(client, 0), reached: None }
    }
}
