//! Conditions on the host of a URL.

use foxy_base::{Cidr, HostName, HostPattern};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A condition on the host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCondition {
    /// Every host, written `*`.
    Any,
    /// This name alone, written `=example.org`. In lower case.
    Exactly(Box<str>),
    /// A name and all its subdomains, only the subdomains of a name, or IP addresses.
    Pattern(HostPattern),
}

impl HostCondition {
    /// Returns whether the condition holds for a host in normal form (see [`normal_host`]).
    pub(super) fn matches(&self, host: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(name) => host == &**name,
            Self::Pattern(pattern) => {
                pattern.matches(address.map_or(HostName::Name(host), HostName::Address))
            }
        }
    }
}

/// Returns the host in lower case, without brackets and without dots at the end.
pub(super) fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl FromStr for HostCondition {
    type Err = String;

    /// Reads the forms that [`HostCondition`] names. Refuses `.example.org`, because this form has
    /// different meanings in other programs.
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let unbracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Ok(block) = Cidr::masked(unbracketed.unwrap_or(text)) {
            return Ok(Self::Pattern(HostPattern::Addresses(block)));
        }
        if text.contains("://") {
            return Err(format!("`{text}` is a URL; write its host alone, such as example.org"));
        }
        if text.split_once('/').is_some_and(|(host, _)| host.parse::<IpAddr>().is_err()) {
            return Err(format!("`{text}` is not a host; write the path in `path`"));
        }
        if text.contains('/') {
            return Err(format!(
                "`{text}` is not a network; write an address and a length: 192.0.2.0/24"
            ));
        }
        let (is_exact, name) = text.strip_prefix('=').map_or((false, text), |name| (true, name));
        match name.parse() {
            Ok(HostPattern::Within(name)) if is_exact => Ok(Self::Exactly(name)),
            Ok(pattern) if !is_exact && !text.starts_with('.') => Ok(Self::Pattern(pattern)),
            _ => Err(format!(
                "`{text}` is not a host; write example.org, =example.org, *.example.org, * or \
                 192.0.2.0/24"
            )),
        }
    }
}

impl fmt::Display for HostCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exactly(name) => write!(f, "={name}"),
            Self::Pattern(pattern) => pattern.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(condition: &str, host: &str) -> bool {
        let host = normal_host(host);
        let address = host.parse().ok();
        condition.parse::<HostCondition>().expect(condition).matches(&host, address)
    }

    #[test]
    fn a_domain_contains_the_names_below_it() {
        assert!(matches("example.org", "example.org"));
        assert!(matches("example.org", "A.Example.ORG."));
        assert!(!matches("example.org", "badexample.org"));
        assert!(!matches("*.example.org", "example.org"));
        assert!(matches("*.example.org", "a.b.example.org"));
        assert!(!matches("*.example.org", ".example.org"));
        assert!(matches("*", "anything"));
        assert!(matches("=example.org", "Example.org."));
        assert!(!matches("=example.org", "a.example.org"));
    }

    #[test]
    fn a_network_contains_literal_addresses_alone() {
        assert!(matches("192.0.2.0/24", "192.0.2.7"));
        assert!(matches("2001:db8::/32", "[2001:db8::1]"));
        assert!(!matches("192.0.2.0/24", "a.test"));
        assert!(matches("::ffff:192.0.2.0/120", "192.0.2.7"));
        assert!(matches("192.0.2.7/24", "192.0.2.1"), "bits after the length do not count");
        assert!(matches("192.0.2.9", "192.0.2.9"));
        assert!(!matches("192.0.2.9", "192.0.2.8"));
    }

    #[test]
    fn a_text_that_is_no_host_is_refused() {
        for text in ["", "a..b", "a b", "http://a", "a/b", "*.", "=", "=*.a", ".a", "a:80"] {
            assert!(text.parse::<HostCondition>().is_err(), "{text}");
        }
    }
}
