//! Which series of purges goes on, by what the lists in the stores' folders say. Nothing is read or written here.
//!
//! What was stored is believed as long as every store that holds some of it has been in use whenever it was: else a response
//! that was replaced or invalidated meanwhile could come back. So a list says beside which stores it lay, and in which place.

use super::purge_list::{Found, Unsound};
use foxy_proxy::purge::journal::{Journal, Series};
use std::fmt;

/// Names for what begins.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    /// A series of purges.
    pub era: u64,
    /// A set of stores.
    pub set: u64,
}

/// Why nothing that is stored is believed any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// No list is there.
    NoList,
    /// None of those that are there can be relied on; this is what is wrong with the first.
    Unsound(Unsound),
    /// The stores were used with others, in other places or under another scheme since.
    OtherStores,
}

impl fmt::Display for Forgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList => f.write_str("the list of purges is not there"),
            Self::Unsound(why) => write!(f, "the list of purges cannot be relied on: {why}"),
            Self::OtherStores => f.write_str(
                "the stores were used with another scheme, with other stores or in another order since",
            ),
        }
    }
}

/// What goes on.
#[derive(Debug, PartialEq, Eq)]
pub struct Going {
    /// The purges that hold; what is in its place is no store's.
    pub journal: Journal,
    /// Why it is none that was there.
    pub forgotten: Option<Forgotten>,
}

/// Judges what was found beside each store, in the places that they have now.
pub fn judge(found: &[(u64, Found)], fresh: Fresh) -> Going {
    let sound = || found.iter().filter_map(|(place, found)| Some((*place, found.sound()?)));
    let anew = |forgotten| {
        let series = Series { era: fresh.era, set: fresh.set, place: 0 };
        Going { journal: Journal { series, latest: 0, rules: Vec::new() }, forgotten: Some(forgotten) }
    };
    let Some((_, first)) = sound().next() else {
        let unsound = found.iter().find_map(|(_, found)| found.unsound());
        return anew(unsound.map_or(Forgotten::NoList, Forgotten::Unsound));
    };
    let Series { era, set, .. } = first.series;
    if sound().any(|(place, journal)| journal.series != Series { era, set, place }) {
        return anew(Forgotten::OtherStores);
    }
    // A list that is missing may be beside a store that took another's place, which may come back.
    let set = if sound().count() == found.len() { set } else { fresh.set };
    let latest = sound().map(|(_, journal)| journal.latest).max().unwrap_or(0);
    let rules = sound().flat_map(|(_, journal)| journal.rules.iter().copied()).collect();
    let journal = Journal { series: Series { era, set, place: 0 }, latest, rules };
    Going { journal, forgotten: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::purge::journal::Unreliable;

    const FRESH: Fresh = Fresh { era: 90, set: 91 };
    const DAMAGED: Unsound = Unsound::Unreliable(Unreliable::Damaged);

    fn list(era: u64, set: u64, place: u64) -> Found {
        Found::Sound(Journal { series: Series { era, set, place }, latest: place, rules: Vec::new() })
    }

    fn check(found: Vec<Found>, era: u64, set: u64, forgotten: Option<Forgotten>) {
        let found: Vec<_> = (1..).zip(found).collect();
        let going = judge(&found, FRESH);
        let Series { era: has, set: has_set, .. } = going.journal.series;
        assert_eq!((has, has_set, going.forgotten), (era, set, forgotten), "{found:?}");
    }

    #[test]
    fn a_series_goes_on_while_its_stores_stay_together_in_their_places() {
        check(vec![list(5, 6, 1)], 5, 6, None);
        check(vec![list(5, 6, 1), list(5, 6, 2)], 5, 6, None);
        let other = Some(Forgotten::OtherStores);
        check(vec![list(5, 6, 2)], 90, 91, other);
        check(vec![list(5, 6, 2), list(5, 6, 1)], 90, 91, other);
        check(vec![list(5, 6, 1), list(7, 6, 2)], 90, 91, other);
        check(vec![list(5, 6, 1), list(5, 7, 2)], 90, 91, other);
    }

    #[test]
    fn a_list_that_is_missing_or_damaged_makes_another_set_of_the_same_series() {
        check(vec![list(5, 6, 1), Found::Nothing], 5, 91, None);
        check(vec![Found::Unsound(DAMAGED), list(5, 6, 2)], 5, 91, None);
        check(vec![Found::Nothing, Found::Nothing], 90, 91, Some(Forgotten::NoList));
        check(vec![Found::Nothing, Found::Unsound(DAMAGED)], 90, 91, Some(Forgotten::Unsound(DAMAGED)));
    }
}
