//! Name constraints of a certificate authority (RFC 5280 §4.2.1.10). This module reads them from a
//! certificate, writes them for `rcgen`, and applies them to hosts. It ignores all constraints
//! except constraints on DNS names and IP addresses.

use foxy_base::{Cidr, HostName, HostPattern};
use rcgen::CidrSubnet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use x509_parser::extensions::{GeneralName, GeneralSubtree, NameConstraints};

/// Permitted and excluded hosts of a certificate authority.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Constraints {
    permitted: Vec<HostPattern>,
    excluded: Vec<HostPattern>,
}

const EVERY_ADDRESS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];

impl Constraints {
    /// Permits only `hosts`. In RFC 5280, a kind of name without a constraint is permitted
    /// entirely. So if `hosts` contains no DNS name, all DNS names are excluded. Likewise, without
    /// an IPv4 block all IPv4 addresses are excluded, and without an IPv6 block all IPv6 addresses.
    pub fn only(hosts: &[HostPattern]) -> Self {
        let mut excluded = Vec::new();
        if !hosts.iter().any(is_name) {
            excluded.push(HostPattern::Within("".into()));
        }
        for every in EVERY_ADDRESS {
            let family = |host: &HostPattern| matches!(host, HostPattern::Addresses(block) if block.network().is_ipv4() == every.is_ipv4());
            if !hosts.iter().any(family) {
                excluded.push(HostPattern::Addresses(Cidr::new(every, 0)));
            }
        }
        Self { permitted: hosts.to_vec(), excluded }
    }

    /// Reads constraints from a certificate. Returns `None` if a constraint on DNS names or
    /// addresses cannot be parsed.
    pub(super) fn read(found: &NameConstraints<'_>) -> Option<Self> {
        let subtrees = |subtrees: &Option<Vec<GeneralSubtree<'_>>>| {
            subtrees.iter().flatten().filter_map(subtree).collect::<Option<Vec<_>>>()
        };
        Some(Self {
            permitted: subtrees(&found.permitted_subtrees)?,
            excluded: subtrees(&found.excluded_subtrees)?,
        })
    }

    pub(super) fn to_write(&self) -> rcgen::NameConstraints {
        let all = |patterns: &[HostPattern]| patterns.iter().map(written).collect();
        rcgen::NameConstraints {
            permitted_subtrees: all(&self.permitted),
            excluded_subtrees: all(&self.excluded),
        }
    }

    /// Returns the permitted hosts. The list is empty if the certificate permits all hosts that are
    /// not excluded.
    pub fn permitted(&self) -> &[HostPattern] {
        &self.permitted
    }

    /// Whether the authority may sign for `host`.
    pub fn permit(&self, host: HostName<'_>) -> bool {
        let same_kind =
            |pattern: &&HostPattern| is_name(pattern) == matches!(host, HostName::Name(_));
        let mut permitted = self.permitted.iter().filter(same_kind).peekable();
        (permitted.peek().is_none() || permitted.any(|pattern| pattern.matches(host)))
            && !self.excluded.iter().any(|pattern| pattern.matches(host))
    }

    /// Whether the authority may sign for every host that `pattern` matches.
    pub fn permit_all(&self, pattern: &HostPattern) -> bool {
        let same_kind = |other: &&HostPattern| is_name(other) == is_name(pattern);
        let mut permitted = self.permitted.iter().filter(same_kind).peekable();
        let overlaps = |other: &HostPattern| other.covers(pattern) || pattern.covers(other);
        (permitted.peek().is_none() || permitted.any(|other| other.covers(pattern)))
            && !self.excluded.iter().any(overlaps)
    }
}

fn is_name(pattern: &HostPattern) -> bool {
    !matches!(pattern, HostPattern::Addresses(_))
}

/// Parses one entry of the constraints. Returns `None` for a kind of name that foxy ignores, and
/// `Some(None)` for an entry that cannot be parsed.
#[expect(clippy::option_option, reason = "not for us, and not readable, are two things")]
fn subtree(subtree: &GeneralSubtree<'_>) -> Option<Option<HostPattern>> {
    match &subtree.base {
        GeneralName::DNSName("") => Some(Some(HostPattern::Within("".into()))),
        GeneralName::DNSName(name) => Some(name.parse().ok().filter(is_name)),
        GeneralName::IPAddress(bytes) => Some(block(bytes).map(HostPattern::Addresses)),
        GeneralName::Invalid(..) => Some(None),
        _ => None,
    }
}

/// Parses an IP address followed by its mask, as in a certificate. Returns `None` if the mask is
/// not a run of one bits followed by zero bits.
fn block(bytes: &[u8]) -> Option<Cidr> {
    let (address, mask) = bytes.split_at(bytes.len() / 2);
    let (address, bits, ones): (IpAddr, u128, u32) = match bytes.len() {
        8 => {
            let mask = u32::from_be_bytes(mask.try_into().ok()?);
            (<[u8; 4]>::try_from(address).ok()?.into(), u128::from(mask) << 96, mask.count_ones())
        }
        32 => {
            let mask = u128::from_be_bytes(mask.try_into().ok()?);
            (<[u8; 16]>::try_from(address).ok()?.into(), mask, mask.count_ones())
        }
        _ => return None,
    };
    (bits.leading_ones() == ones).then(|| Cidr::new(address, ones as u8))
}

fn written(pattern: &HostPattern) -> rcgen::GeneralSubtree {
    match pattern {
        HostPattern::Within(name) => rcgen::GeneralSubtree::DnsName(name.to_string()),
        HostPattern::Below(name) => rcgen::GeneralSubtree::DnsName(format!(".{name}")),
        HostPattern::Addresses(block) => rcgen::GeneralSubtree::IpAddress(
            CidrSubnet::from_addr_prefix(block.network(), block.prefix()),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(texts: &[&str]) -> Vec<HostPattern> {
        texts.iter().map(|text| text.parse().expect("a host")).collect()
    }

    fn permits(constraints: &Constraints, host: &str) -> bool {
        constraints.permit(HostName::parse(host).expect("a host"))
    }

    #[test]
    fn a_kind_of_name_that_is_not_listed_is_excluded() {
        let check = |listed: &[&str], host: &str, expected: bool| {
            assert_eq!(
                permits(&Constraints::only(&patterns(listed)), host),
                expected,
                "{listed:?} {host}"
            );
        };
        check(&["a.test"], "a.test", true);
        check(&["a.test"], "b.a.test", true);
        check(&["a.test"], "b.test", false);
        check(&["a.test"], "192.0.2.1", false);
        check(&["a.test"], "[::1]", false);
        check(&["192.0.2.0/24"], "192.0.2.1", true);
        check(&["192.0.2.0/24"], "192.0.3.1", false);
        check(&["192.0.2.0/24"], "[::1]", false);
        check(&["192.0.2.0/24"], "a.test", false);
        assert!(permits(&Constraints::default(), "a.test"));
    }

    #[test]
    fn a_list_is_permitted_only_as_a_whole() {
        let constraints = Constraints::only(&patterns(&["a.test", "10.0.0.0/8"]));
        for (pattern, expected) in [
            ("a.test", true),
            ("*.a.test", true),
            ("test", false),
            ("10.1.0.0/16", true),
            ("::/0", false),
        ] {
            assert_eq!(constraints.permit_all(&patterns(&[pattern])[0]), expected, "{pattern}");
        }
        let excluding = Constraints { permitted: Vec::new(), excluded: patterns(&["b.a.test"]) };
        assert!(!excluding.permit_all(&patterns(&["a.test"])[0]));
        assert!(excluding.permit_all(&patterns(&["c.a.test"])[0]));
    }

    #[test]
    fn a_mask_that_is_no_prefix_is_not_read() {
        assert_eq!(block(&[10, 0, 0, 0, 255, 0, 0, 0]), "10.0.0.0/8".parse().ok());
        assert_eq!(block(&[10, 0, 0, 0, 255, 0, 255, 0]), None);
        assert_eq!(block(&[10, 0]), None);
    }
}
