//! The ports that an origin listens on.

use std::io;
use std::net::{SocketAddr, TcpListener};

/// Below the ephemeral ports.
const FIRST_PORTS: std::ops::Range<u16> = 12_000..32_000;

/// Binds `servers` consecutive ports. Port 0 searches for a free range.
pub(super) fn bind(listen: SocketAddr, servers: u32) -> io::Result<Vec<TcpListener>> {
    let bind_from = |first: u16| -> io::Result<Vec<TcpListener>> {
        let bind = |number: u32| {
            let port = u16::try_from(u32::from(first) + number)
                .map_err(|_| io::ErrorKind::AddrNotAvailable)?;
            let listener = TcpListener::bind(SocketAddr::new(listen.ip(), port))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        (0..servers.max(1)).map(bind).collect()
    };
    if servers <= 1 || listen.port() != 0 {
        return bind_from(listen.port());
    }
    let mut first = FIRST_PORTS.start;
    loop {
        match bind_from(first) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                let next = u16::try_from(u32::from(first) + servers).unwrap_or(u16::MAX);
                if !FIRST_PORTS.contains(&next) {
                    return Err(error);
                }
                first = next;
            }
            bound => return bound,
        }
    }
}
