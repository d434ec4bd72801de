//! Free ports for servers that a test starts later. The system may give a port from its ephemeral
//! range to another listener or connection before the server starts. So the ports of this module
//! lie below this range.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first port that this module may return. Smaller ports often belong to services.
const FIRST: u32 = 10_240;

/// The first port of Linux's default ephemeral range.
const END: u32 = 32_768;

/// Number of ports that this process has returned or tried.
static TRIED: AtomicU32 = AtomicU32::new(0);

/// Returns a loopback address with a free port. No later call in this process returns this port.
pub fn free_address() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, free_ports(1)).into()
}

/// Returns the first of `count` consecutive free ports of the loopback address. No later call in
/// this process returns these ports.
pub fn free_ports(count: u16) -> u16 {
    // Processes that run at the same time begin at different ports.
    let begin = std::process::id().wrapping_mul(7919);
    let last = END - u32::from(count);
    for _ in FIRST..END {
        let tried = TRIED.fetch_add(count.into(), Ordering::Relaxed);
        let first = FIRST + begin.wrapping_add(tried) % (last - FIRST);
        let first = u16::try_from(first).expect("below END");
        if (first..first + count).all(is_free) {
            return first;
        }
    }
    panic!("this machine has no {count} consecutive free ports from {FIRST} to {END}");
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_returned_twice_or_while_a_server_uses_it() {
        let first = free_ports(2);
        let server = TcpListener::bind((Ipv4Addr::LOCALHOST, first + 2));
        let later: Vec<u16> = (0..50).map(|_| free_ports(3)).collect();
        let own = [first, first + 1, first + 2];
        for port in later.iter().flat_map(|&port| port..port + 3) {
            assert!((FIRST..END).contains(&port.into()) && !own[..2].contains(&port), "{port}");
            assert!(server.is_err() || port != own[2], "a server listens at {port}");
        }
    }
}
