//! Reads and makes headers of the PROXY protocol, versions 1 and 2 (haproxy's
//! `proxy-protocol.txt`). With this header, a proxy tells the address of its client before it sends
//! any other byte. `read` reads exactly the header and no byte after it. `accept` decides which
//! peers may send a header.

use crate::core::addresses::client_ends::ClientEnds;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::num::NonZeroU16;
use tokio::io::{AsyncRead, AsyncReadExt};

/// First bytes of a PROXY header of version 2.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";

/// Length in bytes of the longest PROXY header of version 1, a line including CRLF (§2.1).
const MAX_LINE_BYTES: usize = 107;

/// Number of bytes that the addresses and extensions of a PROXY header of version 2 may have.
const MAX_ADDRESS_BYTES: usize = 4096;

/// Commands in a PROXY header of version 2: the proxy connects for itself, or for a client.
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;

/// Address families in a PROXY header of version 2: TCP over IPv4, and TCP over IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;

/// The version of the PROXY protocol header that foxy sends to the servers of an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderVersion {
    /// Version 1: a line of text.
    V1,
    /// Version 2: binary.
    V2,
}

/// Returns the header for a connection on behalf of a client. The header names no client if there
/// is none, or if the client is another node or uses a Unix socket.
pub(crate) fn header(version: HeaderVersion, ends: Option<ClientEnds>) -> Vec<u8> {
    let known = ends.filter(|ends| ends.client.port() != 0);
    let Some((client, reached)) = known.and_then(|ends| Some((ends.client, ends.reached?))) else {
        return match version {
            HeaderVersion::V1 => b"PROXY UNKNOWN\r\n".to_vec(),
            HeaderVersion::V2 => [&SIGNATURE[..], &[LOCAL, 0, 0, 0]].concat(),
        };
    };
    let (from, to) = (client.ip().to_canonical(), reached.ip().to_canonical());
    let (name, family, addresses) = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => ("TCP4", TCP4, [from.octets(), to.octets()].concat()),
        _ => ("TCP6", TCP6, [six(from).octets(), six(to).octets()].concat()),
    };
    let ports = [client.port().to_be_bytes(), reached.port().to_be_bytes()].concat();
    match version {
        HeaderVersion::V1 => {
            let [from, to] =
                if family == TCP4 { [from, to] } else { [from, to].map(|a| six(a).into()) };
            let (port, own_port) = (client.port(), reached.port());
            format!("PROXY {name} {from} {to} {port} {own_port}\r\n").into_bytes()
        }
        HeaderVersion::V2 => {
            let length = u8::try_from(addresses.len() + ports.len()).unwrap_or_default();
            [&SIGNATURE[..], &[PROXY, family, 0, length], &addresses, &ports].concat()
        }
    }
}

/// Converts an IPv4 address to IPv6. Both addresses in a header must be of the same family, so the
/// header writes an IPv4 address beside an IPv6 address as IPv6.
fn six(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

/// The address of the client that a load balancer names in its PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProxiedClient {
    Known(SocketAddr),
    /// The balancer opened the connection for itself, or did not send the client's address.
    Unknown,
}

/// Reads the header from a new connection. Returns `None` if the header is missing or malformed.
/// The caller must then close the connection.
pub(crate) async fn read(stream: &mut (impl AsyncRead + Unpin)) -> Option<ProxiedClient> {
    let mut first = [0; SIGNATURE.len()];
    stream.read_exact(&mut first).await.ok()?;
    if first == SIGNATURE {
        return version_2(stream).await;
    }
    let mut line = first.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() == MAX_LINE_BYTES {
            return None;
        }
        line.push(stream.read_u8().await.ok()?);
    }
    version_1(std::str::from_utf8(&line).ok()?)
}

fn version_1(line: &str) -> Option<ProxiedClient> {
    let words: Vec<&str> = line.strip_suffix("\r\n")?.split(' ').collect();
    match words[..] {
        ["PROXY", "UNKNOWN", ..] => Some(ProxiedClient::Unknown),
        ["PROXY", family, source, _, port, own_port] => {
            own_port.parse::<u16>().ok()?;
            let address: IpAddr = source.parse().ok()?;
            let fits =
                matches!((family, address), ("TCP4", IpAddr::V4(_)) | ("TCP6", IpAddr::V6(_)));
            let port = port.parse::<NonZeroU16>().ok()?.get();
            fits.then_some(ProxiedClient::Known(SocketAddr::new(address, port)))
        }
        _ => None,
    }
}

async fn version_2(stream: &mut (impl AsyncRead + Unpin)) -> Option<ProxiedClient> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).await.ok()?;
    let [command, family, high, low] = head;
    let length = usize::from(u16::from_be_bytes([high, low]));
    if length > MAX_ADDRESS_BYTES {
        return None;
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await.ok()?;
    match (command, family) {
        (LOCAL, _) => Some(ProxiedClient::Unknown),
        (PROXY, TCP4) => {
            let (source, port) = (rest.get(..4)?, rest.get(8..10)?);
            let source = Ipv4Addr::from(<[u8; 4]>::try_from(source).ok()?);
            Some(ProxiedClient::Known(SocketAddr::new(source.into(), port_of(port)?)))
        }
        (PROXY, TCP6) => {
            let (source, port) = (rest.get(..16)?, rest.get(32..34)?);
            let source = Ipv6Addr::from(<[u8; 16]>::try_from(source).ok()?);
            Some(ProxiedClient::Known(SocketAddr::new(source.into(), port_of(port)?)))
        }
        (PROXY, _) => Some(ProxiedClient::Unknown),
        _ => None,
    }
}

/// Reads the port of a client. Returns `None` for port 0, because this code uses port 0 for clients
/// of Unix sockets.
fn port_of(bytes: &[u8]) -> Option<u16> {
    let port = bytes.iter().fold(0, |port, &byte| port << 8 | u16::from(byte));
    NonZeroU16::new(port).map(NonZeroU16::get)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the header at the beginning of `bytes`. Returns the client, and the bytes that
    /// follow.
    async fn said(bytes: &[u8]) -> (Option<ProxiedClient>, Vec<u8>) {
        let mut stream = bytes;
        (read(&mut stream).await, stream.to_vec())
    }

    fn client(text: &str) -> Option<ProxiedClient> {
        Some(ProxiedClient::Known(text.parse().expect("an address")))
    }

    #[tokio::test]
    async fn lines_of_version_1_are_read_to_their_end_and_no_further() {
        let cases: [(&str, Option<ProxiedClient>); 9] = [
            ("PROXY TCP4 192.0.2.1 192.0.2.2 5000 80\r\n", client("192.0.2.1:5000")),
            ("PROXY TCP6 2001:db8::1 2001:db8::2 5000 80\r\n", client("[2001:db8::1]:5000")),
            ("PROXY UNKNOWN\r\n", Some(ProxiedClient::Unknown)),
            ("PROXY UNKNOWN ffff:: ffff:: 1 2\r\n", Some(ProxiedClient::Unknown)),
            ("PROXY TCP4 2001:db8::1 192.0.2.2 5000 80\r\n", None),
            ("PROXY TCP4 192.0.2.1 192.0.2.2 70000 80\r\n", None),
            ("PROXY TCP4 192.0.2.1\r\n", None),
            ("GET / HTTP/1.1\r\n", None),
            ("PROXY", None),
        ];
        for (line, expected) in cases {
            let (found, rest) = said(format!("{line}GET").as_bytes()).await;
            assert_eq!(found, expected, "{line}");
            assert!(found.is_none() || rest == b"GET", "{line}");
        }
        assert_eq!(said(&[b'P'; 4096]).await.0, None, "a line without end");
    }

    #[tokio::test]
    async fn headers_of_version_2_are_read_with_their_extensions() {
        let four = [192, 0, 2, 1, 192, 0, 2, 2, 0x13, 0x88, 0, 80];
        let mut six = [0; 36];
        (six[0], six[1], six[15], six[32], six[33]) = (0x20, 0x01, 1, 0x13, 0x88);
        let extended = [&four[..], &[4, 0, 1, 9]].concat();
        let cases: [(u8, u8, &[u8], Option<ProxiedClient>); 7] = [
            (0x21, 0x11, &four, client("192.0.2.1:5000")),
            (0x21, 0x11, &extended, client("192.0.2.1:5000")),
            (0x21, 0x21, &six, client("[2001::1]:5000")),
            (0x20, 0x00, &[], Some(ProxiedClient::Unknown)),
            (0x21, 0x31, &[1; 216], Some(ProxiedClient::Unknown)),
            (0x21, 0x11, &four[..8], None),
            (0x11, 0x11, &four, None),
        ];
        for (command, family, rest, expected) in cases {
            let length = u16::try_from(rest.len()).expect("short").to_be_bytes();
            let bytes = [&SIGNATURE[..], &[command, family], &length, rest, b"GET"].concat();
            let (found, left) = said(&bytes).await;
            assert_eq!((found, &left[..]), (expected, &b"GET"[..]), "{command:x} {family:x}");
        }
    }

    #[tokio::test]
    async fn own_headers_are_understood() {
        let ends = |client: &str, reached: &str| {
            let read = |text: &str| text.parse().expect("an address");
            Some(ClientEnds { client: read(client), reached: Some(read(reached)) })
        };
        let cases = [
            (ends("192.0.2.1:5000", "192.0.2.2:80"), client("192.0.2.1:5000"), 28),
            (ends("[2001:db8::1]:5000", "[2001:db8::2]:80"), client("[2001:db8::1]:5000"), 52),
            (ends("[2001:db8::1]:5000", "192.0.2.2:80"), client("[2001:db8::1]:5000"), 52),
            (ends("[::ffff:192.0.2.1]:5000", "192.0.2.2:80"), client("192.0.2.1:5000"), 28),
            (ends("127.0.0.1:0", "192.0.2.2:80"), Some(ProxiedClient::Unknown), 16),
            (None, Some(ProxiedClient::Unknown), 16),
        ];
        for (ends, expected, length) in cases {
            for version in [HeaderVersion::V1, HeaderVersion::V2] {
                let bytes = header(version, ends);
                let is_usual = version == HeaderVersion::V1 || bytes.len() == length;
                assert!(is_usual, "{ends:?}: {bytes:?}");
                let (found, rest) = said(&[&bytes[..], b"GET"].concat()).await;
                assert_eq!((found, &rest[..]), (expected, &b"GET"[..]), "{ends:?} {version:?}");
            }
        }
        let line = header(HeaderVersion::V1, ends("192.0.2.1:5000", "192.0.2.2:80"));
        assert_eq!(line, b"PROXY TCP4 192.0.2.1 192.0.2.2 5000 80\r\n");
    }
}
