//! Decides which hosts the proxy reaches without a parent proxy. The operator's list has the syntax
//! that programs use for `no_proxy`.

use foxy_authority::Cidr;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// An entry of the operator's list: hosts that the proxy reaches without a parent proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProxy {
    hosts: BypassedHosts,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum BypassedHosts {
    All,
    /// A block of addresses. It covers only URLs that contain an address, because the parent
    /// resolves names.
    Network(Cidr),
    /// A name and all names below it.
    Name(String),
}

/// The entry is neither a host name, nor an address, nor a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadNoProxy(String);

impl fmt::Display for BadNoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?} is not a host; write a name such as example.com, an address, a network such as \
             10.0.0.0/8, or *",
            self.0
        )
    }
}

impl std::error::Error for BadNoProxy {}

impl NoProxy {
    /// Returns true if the proxy must reach this host and port without a parent.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        self.port.is_none_or(|only| only == port)
            && match &self.hosts {
                BypassedHosts::All => true,
                BypassedHosts::Network(network) => {
                    address(host).is_some_and(|address| network.contains(address))
                }
                BypassedHosts::Name(name) => is_within(host, name),
            }
    }
}

/// Reads the host of a URL as an address. Returns `None` if the host is a name.
fn address(host: &str) -> Option<IpAddr> {
    let inner = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let address = match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().ok()?.into(),
        None => host.parse::<IpAddr>().ok()?,
    };
    Some(address.to_canonical())
}

fn is_within(host: &str, name: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let Some(start) = host.len().checked_sub(name.len()) else { return false };
    let (before, end) = (host.as_bytes().get(..start), host.as_bytes().get(start..));
    end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes()))
        && before.is_some_and(|before| before.is_empty() || before.ends_with(b"."))
}

impl FromStr for NoProxy {
    type Err = BadNoProxy;

    /// Reads an entry: `*`, a name, an address or a network, with an optional port. A name also
    /// covers all names below it. A dot before the name changes nothing.
    fn from_str(text: &str) -> Result<Self, BadNoProxy> {
        let bad = || BadNoProxy(text.to_owned());
        let (host, port) = split_port(text.trim()).ok_or_else(bad)?;
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let hosts = if host == "*" {
            BypassedHosts::All
        } else if let Ok(network) = bare.parse() {
            BypassedHosts::Network(network)
        } else {
            BypassedHosts::Name(name(host).ok_or_else(bad)?)
        };
        Ok(Self { hosts, port })
    }
}

/// Separates the port from the host. An IPv6 address with a port needs brackets.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    match text.rsplit_once(':') {
        Some((host, digits)) if !host.contains(':') || host.ends_with(']') => {
            let port = digits.parse().ok().filter(|&port| port != 0)?;
            Some((host, Some(port)))
        }
        _ => Some((text, None)),
    }
}

fn name(text: &str) -> Option<String> {
    let name = text.strip_prefix("*.").or_else(|| text.strip_prefix('.')).unwrap_or(text);
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_sound = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
    let has_labels = name.split('.').all(|label| !label.is_empty());
    let ends_in_number = name.rsplit('.').next().is_some_and(is_number);
    (has_labels && !ends_in_number && name.bytes().all(is_sound)).then(|| name.to_ascii_lowercase())
}

impl fmt::Display for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.hosts, self.port) {
            (BypassedHosts::All, _) => f.write_str("*")?,
            (BypassedHosts::Name(name), _) => f.write_str(name)?,
            (BypassedHosts::Network(network), None) => write!(f, "{network}")?,
            (BypassedHosts::Network(network), Some(_)) => write!(f, "[{network}]")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_covered_as_other_programs_do() {
        let cases = [
            ("*", "a.test", 80, true),
            ("a.test", "a.test", 80, true),
            ("a.test", "A.TEST.", 80, true),
            ("a.test", "b.a.test", 80, true),
            (".a.test", "b.a.test", 80, true),
            (".a.test", "a.test", 80, true),
            ("*.a.test", "b.a.test", 80, true),
            ("a.test", "ba.test", 80, false),
            ("b.a.test", "a.test", 80, false),
            ("a.test:8080", "a.test", 8080, true),
            ("a.test:8080", "a.test", 80, false),
            ("*:8080", "b.test", 8080, true),
            ("10.0.0.0/8", "10.1.2.3", 80, true),
            ("10.0.0.0/8", "11.1.2.3", 80, false),
            ("10.0.0.0/8", "[::ffff:10.1.2.3]", 80, true),
            ("10.0.0.0/8", "ten.test", 80, false),
            ("10.1.2.3", "10.1.2.3", 80, true),
            ("10.1.2.3:81", "10.1.2.3", 80, false),
            ("2001:db8::1", "[2001:db8::1]", 80, true),
            ("[2001:db8::1]", "[2001:db8::1]", 80, true),
            ("[2001:db8::1]:81", "[2001:db8::1]", 81, true),
            ("2001:db8::/32", "[2001:db8:1::]", 80, true),
            ("a.test", "10.1.2.3", 80, false),
        ];
        for (rule, host, port, expected) in cases {
            let rule: NoProxy = rule.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(rule.covers(host, port), expected, "{rule} {host}:{port}");
            assert_eq!(rule.to_string().parse(), Ok(rule));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", ".", "a b", "a..b", "10.0.0.0/33", "a.test:0", "a.test:x", "192.168.1"] {
            assert!(text.parse::<NoProxy>().is_err(), "{text}");
        }
    }
}
