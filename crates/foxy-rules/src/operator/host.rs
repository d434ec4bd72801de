//! Conditions on the host of a URL.

use ipnet::IpNet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A condition on the host of a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostCondition {
    /// Every host, written `*`.
    Any,
    /// This name alone, written `=example.org`. In lower case.
    Exactly(String),
    /// This name and all names below it, written `example.org`. In lower case.
    Domain(String),
    /// All names below this name, written `*.example.org`. In lower case.
    Below(String),
    /// Hosts that are addresses in this network, written `192.0.2.0/24` or `192.0.2.1`.
    Network(IpNet),
}

impl HostCondition {
    /// Returns whether the condition holds for a host in normal form (see [`normal_host`]).
    pub(super) fn matches(&self, host: &str, address: Option<IpAddr>) -> bool {
        match self {
            Self::Any => true,
            Self::Exactly(name) => host == name,
            Self::Domain(name) => host == name || is_below(host, name),
            Self::Below(name) => is_below(host, name),
            Self::Network(network) => address.is_some_and(|address| network.contains(&address)),
        }
    }
}

fn is_below(host: &str, name: &str) -> bool {
    host.strip_suffix(name).is_some_and(|rest| rest.ends_with('.') && rest.len() > 1)
}

/// Returns the network without host bits. An IPv4-mapped IPv6 network becomes an IPv4 network,
/// because addresses of clients are converted in the same way.
pub fn canonical_network(network: IpNet) -> IpNet {
    let network = network.trunc();
    match (network.addr().to_canonical(), network.prefix_len().checked_sub(96)) {
        (address @ IpAddr::V4(_), Some(length)) if network.addr().is_ipv6() => {
            IpNet::new(address, length).unwrap_or(network)
        }
        _ => network,
    }
}

/// Returns the host in lower case, without brackets and without dots at the end.
pub(super) fn normal_host(host: &str) -> String {
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.trim_end_matches('.').to_ascii_lowercase()
}

impl FromStr for HostCondition {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "*" {
            return Ok(Self::Any);
        }
        let unbracketed = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
        if let Ok(address) = unbracketed.unwrap_or(text).parse::<IpAddr>() {
            return Ok(Self::Network(address.to_canonical().into()));
        }
        if text.contains('/') {
            let network = text.parse::<IpNet>();
            return network.map(|network| Self::Network(canonical_network(network))).map_err(
                |_| format!("`{text}` is no network; write an address and a length: 192.0.2.0/24"),
            );
        }
        let unmarked = text.strip_prefix("*.").or_else(|| text.strip_prefix('='));
        let name = normal_host(unmarked.unwrap_or(text));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        let has_empty_label = name.split('.').any(str::is_empty);
        if has_empty_label || !name.bytes().all(is_name) {
            return Err(format!(
                "`{text}` is no host; write example.org, =example.org, *.example.org, * or \
                 192.0.2.0/24"
            ));
        }
        Ok(match text.as_bytes()[0] {
            b'*' => Self::Below(name),
            b'=' => Self::Exactly(name),
            _ => Self::Domain(name),
        })
    }
}

impl fmt::Display for HostCondition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Exactly(name) => write!(f, "={name}"),
            Self::Domain(name) => f.write_str(name),
            Self::Below(name) => write!(f, "*.{name}"),
            Self::Network(network) => network.fmt(f),
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
        assert!(matches("192.0.2.9", "192.0.2.9"));
        assert!(!matches("192.0.2.9", "192.0.2.8"));
    }

    #[test]
    fn a_text_that_is_no_host_is_refused() {
        for text in ["", "a..b", "a b", "http://a", "a/b", "*.", "=", "a:80"] {
            assert!(text.parse::<HostCondition>().is_err(), "{text}");
        }
    }
}
