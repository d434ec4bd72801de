//! Sets of ports and of addresses, for intersections and complements. A rule has no operators for
//! sets, so the import computes the resulting list.

use ipnet::{IpNet, Ipv4Subnets, Ipv6Subnets};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A set of numbers, as ascending ranges from first to last without overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RangeSet(Vec<(u128, u128)>);

impl RangeSet {
    fn of(mut ranges: Vec<(u128, u128)>) -> Self {
        ranges.sort_unstable();
        let mut joined: Vec<(u128, u128)> = Vec::new();
        for (first, last) in ranges {
            match joined.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => joined.push((first, last)),
            }
        }
        Self(joined)
    }

    fn complement(&self, most: u128) -> Self {
        let mut gaps = Vec::new();
        let mut next = Some(0);
        for &(first, last) in &self.0 {
            if let Some(start) = next.filter(|&start| start < first) {
                gaps.push((start, first - 1));
            }
            next = last.checked_add(1);
        }
        gaps.extend(next.filter(|&start| start <= most).map(|start| (start, most)));
        Self(gaps)
    }

    fn intersection(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        let common = pairs.map(|(a, b)| (a.0.max(b.0), a.1.min(b.1)));
        Self::of(common.filter(|(first, last)| first <= last).collect())
    }
}

/// A set of ports or networks that a rule can state as a list, for example `443`, `8000-8999` or
/// `192.0.2.0/24`.
pub trait RangeTexts: Sized {
    fn read(texts: &[String]) -> Option<Self>;
    fn texts(&self) -> Vec<String>;
    #[must_use]
    fn intersection(&self, other: &Self) -> Self;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSet(RangeSet);

impl RangeTexts for PortSet {
    fn read(texts: &[String]) -> Option<Self> {
        let range = |text: &String| {
            let (first, last) = text.split_once('-').unwrap_or((text, text));
            Some((u128::from(first.parse::<u16>().ok()?), last.parse::<u16>().ok()?.into()))
        };
        texts.iter().map(range).collect::<Option<_>>().map(|ranges| Self(RangeSet::of(ranges)))
    }

    fn texts(&self) -> Vec<String> {
        let text = |&(first, last): &(u128, u128)| {
            if first == last { first.to_string() } else { format!("{first}-{last}") }
        };
        self.0.0.iter().map(text).collect()
    }

    fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0))
    }
}

/// A set of IPv4 and IPv6 addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressSet {
    v4: RangeSet,
    v6: RangeSet,
}

impl AddressSet {
    /// Returns the networks that cover exactly the addresses from `first` to `last`.
    pub fn range(first: IpAddr, last: IpAddr) -> Option<Vec<String>> {
        let networks: Vec<String> = match (first, last) {
            (IpAddr::V4(first), IpAddr::V4(last)) if first <= last => {
                Ipv4Subnets::new(first, last, 0).map(|network| network.to_string()).collect()
            }
            (IpAddr::V6(first), IpAddr::V6(last)) if first <= last => {
                Ipv6Subnets::new(first, last, 0).map(|network| network.to_string()).collect()
            }
            _ => return None,
        };
        Some(networks)
    }

    /// Returns the set of all addresses that are not in this set.
    #[must_use]
    pub fn complement(&self) -> Self {
        Self { v4: self.v4.complement(u32::MAX.into()), v6: self.v6.complement(u128::MAX) }
    }
}

impl RangeTexts for AddressSet {
    fn read(texts: &[String]) -> Option<Self> {
        let (mut v4, mut v6) = (Vec::new(), Vec::new());
        for text in texts {
            let address = text.parse::<IpAddr>().map(IpNet::from);
            match address.or_else(|_| text.parse::<IpNet>()).ok()? {
                IpNet::V4(net) => {
                    v4.push((net.network().to_bits().into(), net.broadcast().to_bits().into()));
                }
                IpNet::V6(net) => v6.push((net.network().to_bits(), net.broadcast().to_bits())),
            }
        }
        Some(Self { v4: RangeSet::of(v4), v6: RangeSet::of(v6) })
    }

    fn texts(&self) -> Vec<String> {
        let as_v4 = |bits: u128| Ipv4Addr::from_bits(u32::try_from(bits).unwrap_or(u32::MAX));
        let v4 = self.v4.0.iter().map(|&(a, b)| (IpAddr::V4(as_v4(a)), IpAddr::V4(as_v4(b))));
        let as_v6 = |bits: u128| IpAddr::V6(Ipv6Addr::from_bits(bits));
        let v6 = self.v6.0.iter().map(|&(a, b)| (as_v6(a), as_v6(b)));
        v4.chain(v6).filter_map(|(first, last)| Self::range(first, last)).flatten().collect()
    }

    fn intersection(&self, other: &Self) -> Self {
        Self { v4: self.v4.intersection(&other.v4), v6: self.v6.intersection(&other.v6) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn ports_are_joined_cut_and_complemented() {
        let set = PortSet::read(&texts(&["443", "80", "81-90", "1025-65535"])).expect("ports");
        assert_eq!(set.texts(), ["80-90", "443", "1025-65535"]);
        let other = PortSet::read(&texts(&["85-500"])).expect("ports");
        assert_eq!(set.intersection(&other).texts(), ["85-90", "443"]);
        assert_eq!(PortSet::read(&texts(&["http"])), None);
    }

    #[test]
    fn addresses_keep_their_families() {
        let set = AddressSet::read(&texts(&["128.0.0.0/1", "::1", "10.0.0.1"])).expect("networks");
        assert_eq!(set.texts(), ["10.0.0.1/32", "128.0.0.0/1", "::1/128"]);
        let rest = set.complement();
        assert_eq!(rest.intersection(&set).texts(), Vec::<String>::new());
        assert_eq!(rest.complement(), set);
        let upper = AddressSet::read(&texts(&["128.0.0.0/1", "8000::/1"])).expect("networks");
        assert_eq!(upper.complement().texts(), ["0.0.0.0/1", "::/1"]);
        let range = ["10.0.0.1", "10.0.0.2"].map(|text| text.parse().expect("an address"));
        let networks = AddressSet::range(range[0], range[1]);
        assert_eq!(networks, Some(texts(&["10.0.0.1/32", "10.0.0.2/32"])));
    }
}
