//! The classes that requests fall into for two paths: by whether each of them answered from its
//! cache, and by size. Pure.

use super::Sample;
use crate::named::named;

const SMALL: u64 = 4 << 10;
const LARGE: u64 = 64 << 10;

named! {
    /// A class of requests: at most one of the first four, and one of the last three.
    pub enum Class {
        /// Both paths had hits.
        Hits = "hits",
        /// Both paths had misses.
        Misses = "misses",
        /// Only the first had a hit.
        FirstHits = "first_hits",
        /// Only the second had a hit.
        SecondHits = "second_hits",
        /// Bodies of at most 4 KiB.
        Small = "small",
        /// Bodies of up to 64 KiB.
        Medium = "medium",
        /// Larger bodies.
        Large = "large",
    }
}

impl Class {
    /// Description for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Hits => "hits on both",
            Self::Misses => "misses on both",
            Self::FirstHits => "hits on the first alone",
            Self::SecondHits => "hits on the second alone",
            Self::Small => "up to 4 KiB",
            Self::Medium => "up to 64 KiB",
            Self::Large => "above 64 KiB",
        }
    }

    /// Whether only one path had a hit, which explains a difference.
    pub const fn is_uneven(self) -> bool {
        matches!(self, Self::FirstHits | Self::SecondHits)
    }

    pub(crate) fn holds(self, first: Sample, second: Sample) -> bool {
        let hits = (first.hit, second.hit);
        match self {
            Self::Hits => hits == (Some(true), Some(true)),
            Self::Misses => hits == (Some(false), Some(false)),
            Self::FirstHits => hits == (Some(true), Some(false)),
            Self::SecondHits => hits == (Some(false), Some(true)),
            Self::Small => first.length <= SMALL,
            Self::Medium => first.length > SMALL && first.length <= LARGE,
            Self::Large => first.length > LARGE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_of_one_class_by_hits_where_they_are_known_and_of_one_by_size() {
        let classes = |first, second, length| {
            let sample = |hit| Sample { time: 1, hit, length };
            let held =
                Class::ALL.into_iter().filter(|class| class.holds(sample(first), sample(second)));
            held.map(Class::name).collect::<Vec<_>>()
        };
        assert_eq!(classes(Some(true), Some(true), 4096), ["hits", "small"]);
        assert_eq!(classes(Some(false), Some(false), 4097), ["misses", "medium"]);
        assert_eq!(classes(Some(true), Some(false), 65_536), ["first_hits", "medium"]);
        assert_eq!(classes(Some(false), Some(true), 65_537), ["second_hits", "large"]);
        assert_eq!(classes(None, Some(true), 0), ["small"]);
    }
}
