//! Addresses at which foxy listens, as users write them.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Longest path of a Unix socket in bytes (unix(7)).
const MAX_PATH_BYTES: usize = 107;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    Socket(SocketAddr),
    /// All addresses of the machine, IPv6 and IPv4. Without IPv6, all IPv4 addresses. The number is
    /// the port.
    All(u16),
    /// Both loopback addresses. Without IPv6, the IPv4 loopback address. The number is the port.
    Localhost(u16),
    /// A Unix socket at this path.
    Unix(PathBuf),
}

impl ListenAddress {
    /// Returns the TCP addresses. If the machine has no IPv6, foxy ignores the IPv6 address.
    pub fn sockets(&self) -> Vec<SocketAddr> {
        match *self {
            Self::Socket(address) => vec![address],
            Self::All(port) => vec![(Ipv6Addr::UNSPECIFIED, port).into()],
            Self::Localhost(port) => {
                vec![(Ipv4Addr::LOCALHOST, port).into(), (Ipv6Addr::LOCALHOST, port).into()]
            }
            Self::Unix(_) => Vec::new(),
        }
    }

    /// Returns true if two listeners could not listen at these addresses at the same time.
    pub fn overlaps(&self, other: &Self) -> bool {
        if let (Self::Unix(path), Self::Unix(other)) = (self, other) {
            return path == other;
        }
        let overlap = |a: SocketAddr, b: SocketAddr| {
            let (mine, others) = (a.ip().to_canonical(), b.ip().to_canonical());
            let covers = |a: SocketAddr, b: SocketAddr| {
                a.ip().is_unspecified() && (a.is_ipv6() || b.is_ipv4())
            };
            a.port() != 0
                && a.port() == b.port()
                && (mine == others || covers(a, b) || covers(b, a))
        };
        self.sockets().iter().any(|&a| other.sockets().iter().any(|&b| overlap(a, b)))
    }

    /// Returns true if other machines may be able to connect: some TCP address is not loopback.
    pub fn is_exposed(&self) -> bool {
        self.sockets().iter().any(|address| !address.ip().to_canonical().is_loopback())
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return match PathBuf::from(path) {
                path if !path.is_absolute() => Err(format!(
                    "{text:?} is not an absolute path; write for example \
                         unix:/run/foxy/proxy.sock"
                )),
                path if path.as_os_str().len() > MAX_PATH_BYTES => Err(format!(
                    "{text:?} is too long; the path of a Unix socket has at most \
                     {MAX_PATH_BYTES} bytes"
                )),
                path => Ok(Self::Unix(path)),
            };
        }
        let port = |digits: &str| digits.parse().ok();
        let all = port(text.strip_prefix(':').unwrap_or(text)).map(Self::All);
        let localhost = text.strip_prefix("localhost:").and_then(port).map(Self::Localhost);
        all.or(localhost).or_else(|| text.parse().ok().map(Self::Socket)).ok_or_else(|| {
            format!(
                "{text:?} is not an address to listen on; write 127.0.0.1:3128, [::1]:3128, \
                 localhost:3128, :3128 for all addresses, or unix:/run/foxy/proxy.sock"
            )
        })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Socket(address) => write!(f, "{address}"),
            Self::All(port) => write!(f, ":{port}"),
            Self::Localhost(port) => write!(f, "localhost:{port}"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> ListenAddress {
        text.parse().unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn every_form_is_read_and_shown() {
        for (text, shown, exposed) in [
            ("127.0.0.1:3128", "127.0.0.1:3128", false),
            ("[::ffff:127.0.0.1]:3128", "[::ffff:127.0.0.1]:3128", false),
            ("[::]:0", "[::]:0", true),
            ("192.0.2.1:80", "192.0.2.1:80", true),
            (":3128", ":3128", true),
            ("3128", ":3128", true),
            ("localhost:3128", "localhost:3128", false),
            ("unix:/run/f.sock", "unix:/run/f.sock", false),
        ] {
            let address = read(text);
            assert_eq!((&*address.to_string(), address.is_exposed()), (shown, exposed), "{text}");
        }
        for text in ["", "here", "localhost", "a.test:80", ":65536", "unix:", "unix:f", "127.0.0.1"]
        {
            let refused = text.parse::<ListenAddress>().expect_err(text);
            assert!(refused.contains("; write "), "{refused}");
        }
        let long = format!("unix:/{}", "a".repeat(MAX_PATH_BYTES));
        assert!(long.parse::<ListenAddress>().expect_err("long").contains("at most 107 bytes"));
    }

    #[test]
    fn overlapping_addresses_are_found() {
        for (first, second, expected) in [
            ("127.0.0.1:1", "127.0.0.1:1", true),
            ("127.0.0.1:1", "127.0.0.1:2", false),
            ("127.0.0.1:0", "127.0.0.1:0", false),
            (":1", "127.0.0.1:1", true),
            (":1", "0.0.0.0:1", true),
            ("0.0.0.0:1", "[::1]:1", false),
            ("localhost:1", "[::1]:1", true),
            ("unix:/a", "unix:/a", true),
            ("unix:/a", "unix:/b", false),
            ("unix:/a", ":1", false),
        ] {
            let (first, second) = (read(first), read(second));
            assert_eq!(first.overlaps(&second), expected, "{first} {second}");
            assert_eq!(second.overlaps(&first), expected, "{second} {first}");
        }
    }
}
