//! Sets of host names, for intersections. A rule has no operators for sets, so the import computes
//! the resulting list.

use super::range_set::RangeTexts;

/// The hosts of a rule's condition `host`, none of which is an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostSet(Vec<String>);

impl RangeTexts for HostSet {
    fn read(texts: &[String]) -> Option<Self> {
        let is_address = |text: &String| {
            text.contains(['/', ':', '[']) || text.parse::<std::net::IpAddr>().is_ok()
        };
        (!texts.iter().any(is_address)).then(|| Self(texts.to_vec()))
    }

    fn texts(&self) -> Vec<String> {
        self.0.clone()
    }

    /// Returns the hosts that both sets have. Two host patterns have a host in common only if one
    /// contains the other.
    fn intersection(&self, other: &Self) -> Self {
        let pairs = self.0.iter().flat_map(|a| other.0.iter().map(move |b| (a, b)));
        let mut common: Vec<String> = Vec::new();
        for (a, b) in pairs {
            let smaller = if contains(a, b) { Some(b) } else { contains(b, a).then_some(a) };
            common.extend(smaller.filter(|text| !common.contains(text)).cloned());
        }
        Self(common)
    }
}

/// Returns whether the pattern `outer` matches every host that `inner` matches.
fn contains(outer: &str, inner: &str) -> bool {
    if outer == "*" || outer == inner {
        return true;
    }
    let (below, name) = match (outer.strip_prefix('='), outer.strip_prefix("*.")) {
        (Some(_), _) => return false,
        (None, Some(name)) => (true, name),
        (None, None) => (false, outer),
    };
    let inner = inner.strip_prefix('=').or_else(|| inner.strip_prefix("*.")).unwrap_or(inner);
    let is_below = inner.strip_suffix(name).is_some_and(|rest| rest.ends_with('.'));
    is_below || (!below && inner == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_of_two_patterns_is_their_intersection() {
        let read = |text: &str| {
            let texts: Vec<String> = text.split(' ').map(str::to_owned).collect();
            HostSet::read(&texts)
        };
        for (a, b, expected) in [
            ("a.test", "x.a.test", "x.a.test"),
            ("a.test", "=a.test", "=a.test"),
            ("a.test", "*.a.test", "*.a.test"),
            ("*.a.test", "=a.test", ""),
            ("*.a.test", "=x.a.test", "=x.a.test"),
            ("*", "b.test =a.test", "b.test =a.test"),
            ("a.test", "xa.test", ""),
            ("=a.test", "=b.test", ""),
        ] {
            let (a, b) = (read(a).expect(a), read(b).expect(b));
            assert_eq!(a.intersection(&b).texts().join(" "), expected, "{a:?} {b:?}");
            assert_eq!(b.intersection(&a).texts().join(" "), expected, "{b:?} {a:?}");
        }
        assert_eq!(read("10.0.0.0/8"), None);
        assert_eq!(read("10.0.0.1"), None);
    }
}
