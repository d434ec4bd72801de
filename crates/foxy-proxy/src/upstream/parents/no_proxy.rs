//! Decides which hosts the proxy reaches without a parent proxy. The operator's list has the syntax
//! that programs use for `no_proxy`.

use foxy_base::{HostName, HostPattern};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// An entry of the operator's list: hosts that the proxy reaches without a parent proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoProxy {
    /// The hosts. A network matches only URLs that contain an address, because a parent proxy
    /// resolves names. `None` matches every host.
    hosts: Option<HostPattern>,
    port: Option<u16>,
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
    /// Returns true if the proxy must reach this host and port without a parent proxy.
    pub fn covers(&self, host: &str, port: u16) -> bool {
        let is_covered = |pattern: &HostPattern| match HostName::parse(host) {
            Some(HostName::Address(address)) => {
                pattern.matches(HostName::Address(address.to_canonical()))
            }
            Some(name) => pattern.matches(name),
            None => false,
        };
        self.port.is_none_or(|only| only == port) && self.hosts.as_ref().is_none_or(is_covered)
    }

    /// Returns the condition of this entry as JavaScript for a PAC file (`request::auto_config`).
    /// Returns `None` for an IPv6 network.
    pub(crate) fn in_script(&self) -> Option<String> {
        let test = match &self.hosts {
            None => "true".to_owned(),
            Some(HostPattern::Within(name)) => format!("within(\"{name}\")"),
            Some(HostPattern::Below(name)) => format!("within(\"{name}\") && host !== \"{name}\""),
            Some(HostPattern::Addresses(block)) => {
                let IpAddr::V4(first) = block.network() else { return None };
                let first = u32::from(first);
                let last = first | u32::MAX.checked_shr(block.prefix().into()).unwrap_or(0);
                format!("between({first}, {last})")
            }
        };
        Some(match self.port {
            Some(port) => format!("{test} && port === {port}"),
            None => test,
        })
    }
}

impl FromStr for NoProxy {
    type Err = BadNoProxy;

    /// Reads an entry: `*`, a name, an address or a network, with an optional port. A name also
    /// covers all names below it. A dot before the name changes nothing.
    fn from_str(text: &str) -> Result<Self, BadNoProxy> {
        let bad = || BadNoProxy(text.to_owned());
        let (host, port) = split_port(text.trim()).ok_or_else(bad)?;
        if host == "*" {
            return Ok(Self { hosts: None, port });
        }
        let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
        let name = bare.strip_prefix("*.").or_else(|| bare.strip_prefix('.'));
        match name.unwrap_or(bare).parse() {
            Ok(HostPattern::Addresses(_)) if name.is_some() => Err(bad()),
            Ok(HostPattern::Below(_)) | Err(_) => Err(bad()),
            Ok(pattern) => Ok(Self { hosts: Some(pattern), port }),
        }
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

impl fmt::Display for NoProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.hosts, self.port) {
            (None, _) => f.write_str("*")?,
            (Some(HostPattern::Addresses(block)), Some(_)) => write!(f, "[{block}]")?,
            (Some(pattern), _) => pattern.fmt(f)?,
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
        for text in [
            "",
            ".",
            "a b",
            "a..b",
            "10.0.0.0/33",
            "a.test:0",
            "a.test:x",
            "192.168.1",
            "*.10.1.2.3",
        ] {
            assert!(text.parse::<NoProxy>().is_err(), "{text}");
        }
    }
}
