//! Whether an address is one that this machine has, asked of the kernel's routes at the moment it
//! matters: interfaces come and go. Nothing is sent.

use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Whether packets to `address` stay on this machine. The kernel sends packets to an address of the
/// machine from that same address; a datagram socket tells which address it would send from.
///
/// # Errors
/// There is no socket to ask with.
pub(crate) fn is_own(address: IpAddr) -> io::Result<bool> {
    // A port is needed to connect, and none is reached.
    const DISCARD: u16 = 9;
    let there = SocketAddr::new(address, DISCARD);
    let socket = Socket::new(Domain::for_address(there), Type::DGRAM, Some(Protocol::UDP))?;
    // Without a route to it, it is not here.
    let Ok(()) = socket.connect(&there.into()) else { return Ok(false) };
    let from = socket.local_addr()?.as_socket();
    Ok(from.is_some_and(|from| from.ip().to_canonical() == address.to_canonical()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loopback_is_the_machines_own_and_a_documentation_address_is_not() {
        for (address, own) in [("127.0.0.1", true), ("192.0.2.1", false), ("2001:db8::1", false)] {
            assert_eq!(
                is_own(address.parse().expect(address)).expect("a socket"),
                own,
                "{address}"
            );
        }
    }
}
