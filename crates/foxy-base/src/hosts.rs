//! Lists of hosts in settings and certificates: parses their entries, and matches hosts against
//! them. Makes no DNS queries.

use crate::cidr::Cidr;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// Longest DNS name in bytes. [`LABEL`] is the longest label in bytes (RFC 1035 §2.3.4).
const NAME: usize = 253;
const LABEL: usize = 63;

/// A host in a URL or a `Host` field: a DNS name or an IP address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostName<'a> {
    /// A DNS name without the final dot.
    Name(&'a str),
    /// An IP address.
    Address(IpAddr),
}

impl<'a> HostName<'a> {
    /// Parses a host. An IPv6 address must be in brackets. Returns `None` if the text is neither a
    /// DNS name nor an address.
    pub fn parse(host: &'a str) -> Option<Self> {
        if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            return inner.parse::<Ipv6Addr>().ok().map(|address| Self::Address(address.into()));
        }
        if let Ok(address) = host.parse() {
            return Some(Self::Address(address));
        }
        let name = host.strip_suffix('.').unwrap_or(host);
        is_name(name).then_some(Self::Name(name))
    }
}

/// Whether a certificate can contain the name. Labels consist of letters, digits, `-` and `_`. The
/// last label must not be a number.
fn is_name(name: &str) -> bool {
    let is_label = |label: &str| {
        let bytes = label.bytes();
        (1..=LABEL).contains(&label.len())
            && bytes.clone().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    let last = name.rsplit('.').next().unwrap_or("");
    name.len() <= NAME
        && name.split('.').all(is_label)
        && !last.bytes().all(|byte| byte.is_ascii_digit())
}

/// An entry in a list of hosts. DNS names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostPattern {
    /// `example.org`: matches this name and all names below it, as name constraints do (RFC 5280
    /// §4.2.1.10).
    Within(Box<str>),
    /// `*.example.org` or `.example.org`: matches only names below this name.
    Below(Box<str>),
    /// `192.0.2.1` or `192.0.2.0/24`: matches these addresses.
    Addresses(Cidr),
}

/// Error for a text that is not an entry of a host list. Contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPatternError(String);

impl fmt::Display for HostPatternError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:?} is not a host; write a host such as example.org (also matches all names below \
             it), *.example.org (matches only names below it) or 192.0.2.0/24",
            self.0
        )
    }
}

impl std::error::Error for HostPatternError {}

impl FromStr for HostPattern {
    type Err = HostPatternError;

    fn from_str(text: &str) -> Result<Self, HostPatternError> {
        if let Ok(block) = text.parse() {
            return Ok(Self::Addresses(block));
        }
        let below = text.strip_prefix("*.").or_else(|| text.strip_prefix('.'));
        match HostName::parse(below.unwrap_or(text)) {
            Some(HostName::Name(name)) => {
                let name = name.to_ascii_lowercase().into();
                Ok(if below.is_some() { Self::Below(name) } else { Self::Within(name) })
            }
            Some(HostName::Address(address)) if below.is_none() => {
                Ok(Self::Addresses(Cidr::new(address, u8::MAX)))
            }
            _ => Err(HostPatternError(text.into())),
        }
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Within(name) => formatter.write_str(name),
            Self::Below(name) => write!(formatter, "*.{name}"),
            Self::Addresses(block) => block.fmt(formatter),
        }
    }
}

impl HostPattern {
    /// Whether the entry matches `host`.
    pub fn matches(&self, host: HostName<'_>) -> bool {
        match (self, host) {
            (Self::Within(base), HostName::Name(name)) => is_within(name, base),
            (Self::Below(base), HostName::Name(name)) => {
                name.len() > base.len() + 1 && is_within(name, base)
            }
            (Self::Addresses(block), HostName::Address(address)) => block.contains(address),
            _ => false,
        }
    }

    /// Whether the entry matches every host that `other` matches.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Within(base), Self::Within(name) | Self::Below(name))
            | (Self::Below(base), Self::Below(name)) => is_within(name, base),
            (Self::Below(_), Self::Within(name)) => self.matches(HostName::Name(name)),
            (Self::Addresses(block), Self::Addresses(other)) => {
                block.contains(other.network()) && block.prefix() <= other.prefix()
            }
            _ => false,
        }
    }
}

/// Whether `name` equals `base` or is below `base`. Ignores the case of letters.
fn is_within(name: &str, base: &str) -> bool {
    let (name, base) = (name.as_bytes(), base.as_bytes());
    let Some(start) = name.len().checked_sub(base.len()) else { return false };
    name[start..].eq_ignore_ascii_case(base)
        && (start == 0 || base.is_empty() || name[start - 1] == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_name_means_itself_and_what_is_below_and_a_star_only_what_is_below() {
        let cases = [
            ("example.org", "example.org", true),
            ("example.org", "A.Example.ORG", true),
            ("Example.org", "example.org.", true),
            ("example.org", "notexample.org", false),
            ("example.org", "org", false),
            ("*.example.org", "example.org", false),
            (".example.org", "a.b.example.org", true),
            ("*.example.org", "xexample.org", false),
            ("192.0.2.0/24", "192.0.2.9", true),
            ("192.0.2.0/24", "192.0.3.9", false),
            ("[2001:db8::1]", "[2001:db8::1]", true),
            ("example.org", "192.0.2.9", false),
        ];
        for (text, host, expected) in cases {
            let host = HostName::parse(host).expect("a host");
            assert_eq!(pattern(text).matches(host), expected, "{text} {host:?}");
        }
    }

    #[test]
    fn an_entry_covers_what_means_no_more() {
        let cases = [
            ("example.org", "*.example.org", true),
            ("example.org", "a.example.org", true),
            ("*.example.org", "example.org", false),
            ("*.example.org", "a.example.org", true),
            ("*.example.org", "*.example.org", true),
            ("a.example.org", "example.org", false),
            ("10.0.0.0/8", "10.1.0.0/16", true),
            ("10.1.0.0/16", "10.0.0.0/8", false),
            ("example.org", "10.0.0.0/8", false),
        ];
        for (one, other, expected) in cases {
            assert_eq!(pattern(one).covers(&pattern(other)), expected, "{one} {other}");
        }
    }

    #[test]
    fn what_is_no_host_is_refused_with_what_would_be_right() {
        let long = format!("{}.org", "a".repeat(64));
        for text in [
            "",
            "*",
            ".",
            "a..b",
            "a b",
            "https://a.test",
            "a.test:443",
            "*.192.0.2.1",
            "1.2.3",
            &long,
        ] {
            let error = text.parse::<HostPattern>().expect_err(text);
            assert!(error.to_string().contains("write a host such as example.org"), "{error}");
        }
    }

    #[test]
    fn entries_are_shown_as_they_can_be_read() {
        for text in ["example.org", "*.example.org", "192.0.2.0/24", "2001:db8::/32"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }
}
