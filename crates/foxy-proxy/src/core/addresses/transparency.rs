//! Sockets with addresses of other machines (IP_TRANSPARENT of Linux). A transparent listener
//! accepts connections to any address. A transparent connection can have any source address. The
//! process needs the capability CAP_NET_ADMIN.

use socket2::SockRef;
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::net::{TcpSocket, TcpStream};

/// Lets a socket use addresses of other machines. `family` is any address of the socket's family.
///
/// # Errors
/// The process lacks the capability.
pub fn make_transparent(socket: &SockRef<'_>, family: IpAddr) -> io::Result<()> {
    match family {
        IpAddr::V4(_) => socket.set_ip_transparent_v4(true),
        IpAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
}

/// Connects to `address` with the source address `source`, which must be of the same family.
pub(crate) async fn connect_from(source: IpAddr, address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if source.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    make_transparent(&SockRef::from(&socket), source)?;
    socket.bind(SocketAddr::new(source, 0))?;
    socket.connect(address).await
}

/// Returns the destination that the client of an accepted connection chose. `is_rewritten` means
/// that a rule of the kernel has replaced the destination by the proxy's own address (REDIRECT).
/// Without a rule, the destination is the proxy's own address.
pub(crate) fn original_destination(
    stream: &TcpStream,
    is_rewritten: bool,
) -> io::Result<SocketAddr> {
    let socket = SockRef::from(stream);
    let mut destination = stream.local_addr()?;
    destination.set_ip(destination.ip().to_canonical());
    let before = match destination {
        _ if !is_rewritten => return Ok(destination),
        SocketAddr::V4(_) => socket.original_dst_v4(),
        SocketAddr::V6(_) => socket.original_dst_v6(),
    };
    Ok(before.ok().and_then(|before| before.as_socket()).unwrap_or(destination))
}
