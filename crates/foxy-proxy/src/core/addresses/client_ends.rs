//! The two addresses of a client's connection. A connection to an origin can name the client to the
//! origin, or can use the client's address as its source address.

use crate::core::places::ClientBlock;
use std::net::{IpAddr, SocketAddr};

/// The addresses of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ClientEnds {
    /// The client's address.
    pub client: SocketAddr,
    /// The address to which the client connected. `None` if the address has no influence on
    /// connections to origins.
    pub reached: Option<SocketAddr>,
}

impl ClientEnds {
    pub(crate) fn block(self) -> ClientBlock {
        self.client.ip().into()
    }

    /// Returns only the client's address, without its port. So two connections of the same client
    /// compare as equal.
    pub(crate) fn without_ports(self) -> Self {
        Self { client: SocketAddr::new(self.client.ip(), 0), reached: None }
    }
}

impl From<IpAddr> for ClientEnds {
    fn from(client: IpAddr) -> Self {
        Self { client: SocketAddr::new(client, 0), reached: None }
    }
}
