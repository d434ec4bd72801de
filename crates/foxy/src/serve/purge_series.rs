//! Which series of purges goes on, by what the lists in the stores' folders say. Nothing is read or
//! written here.
//!
//! What was stored is believed as long as every store that holds some of it has been in use
//! whenever it was: else a response that was replaced or invalidated meanwhile could come back. So
//! a list says beside which stores it lay, and in which place. Those of stores that went on without
//! another, which was taken out of use, have places of their own.

use super::purge_list::{FoundList, Unsound};
use foxy_proxy::cache::purge::journal::{Journal, Series};
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
    /// They were used without one that was out of use, and it may hold what was replaced meanwhile.
    OutOfUse,
    /// Half of the lists or more are missing, and the others' stores may all have been out of use.
    NoWitness,
}

impl fmt::Display for Forgotten {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList => f.write_str("the list of purges is not there"),
            Self::Unsound(why) => write!(f, "the list of purges cannot be relied on: {why}"),
            Self::OtherStores => f.write_str(
                "the stores were used with another scheme, with other stores or in another order since",
            ),
            Self::OutOfUse => f.write_str(
                "the disk of a store failed and the others were used without it since; it was not emptied",
            ),
            Self::NoWitness => f.write_str(
                "half of the lists of purges or more are missing, so that nothing says whether the stores were used without this one",
            ),
        }
    }
}

/// What a store is among the others, as `foxy_proxy::cache::purge::journal::place` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPlace {
    /// With all of them in use.
    pub whole: u64,
    /// With another one out of use.
    pub bereft: u64,
}

/// What is beside a store.
#[derive(Debug)]
pub struct Seen {
    /// Its place now.
    pub place: SeriesPlace,
    /// Whether it may hold what was stored before.
    pub holds: bool,
    /// Its list.
    pub found: FoundList,
}

impl Seen {
    /// Its list, where it is of a store that went on without another.
    fn bereft(&self) -> Option<&Journal> {
        self.found.sound().filter(|journal| journal.series.place == self.place.bereft)
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
pub fn judge(stores: &[Seen], fresh: Fresh) -> Going {
    let sound = || stores.iter().filter_map(|seen| Some((seen.place.whole, seen.found.sound()?)));
    let anew = |forgotten| {
        let series = Series { era: fresh.era, set: fresh.set, place: 0 };
        Going {
            journal: Journal { series, latest: 0, rules: Vec::new() },
            forgotten: Some(forgotten),
        }
    };
    let Some((_, first)) = sound().next() else {
        let unsound = stores.iter().find_map(|seen| seen.found.unsound());
        return anew(unsound.map_or(Forgotten::NoList, Forgotten::Unsound));
    };
    let Series { era, set, .. } = first.series;
    if sound().all(|(place, journal)| journal.series == Series { era, set, place }) {
        // A store that was out of use has a list of the time before, and those of the others say
        // that it was. Never are more taken out together than remain, so that where more than half
        // of the lists are there one would say it.
        let found = sound().count();
        let holds = |seen: &Seen| seen.holds && seen.found.sound().is_some();
        if found <= stores.len() - found && stores.iter().any(holds) {
            return anew(Forgotten::NoWitness);
        }
        // A list that is missing may be beside a store that took another's place, which may come
        // back.
        let set = if found == stores.len() { set } else { fresh.set };
        return goes_on(sound().map(|(_, journal)| journal), Series { era, set, place: 0 });
    }
    let mut bereft = stores.iter().filter_map(Seen::bereft);
    let Some(Series { era, set, .. }) = bereft.next().map(|journal| journal.series) else {
        return anew(Forgotten::OtherStores);
    };
    let together = bereft.all(|journal| (journal.series.era, journal.series.set) == (era, set));
    if !together || stores.iter().any(|seen| seen.holds && seen.bereft().is_none()) {
        return anew(Forgotten::OutOfUse);
    }
    goes_on(stores.iter().filter_map(Seen::bereft), Series { era, set: fresh.set, place: 0 })
}

/// The series that these lists have in common, with all their rules.
fn goes_on<'a>(lists: impl Iterator<Item = &'a Journal> + Clone, series: Series) -> Going {
    let latest = lists.clone().map(|journal| journal.latest).max().unwrap_or(0);
    let rules = lists.flat_map(|journal| journal.rules.iter().copied()).collect();
    Going { journal: Journal { series, latest, rules }, forgotten: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::cache::purge::journal::Unreliable;

    const FRESH: Fresh = Fresh { era: 90, set: 91 };
    /// What the number of the place of a store that went on without another has besides.
    const BEREFT: u64 = 100;
    const DAMAGED: Unsound = Unsound::Unreliable(Unreliable::Damaged);

    fn list(era: u64, set: u64, place: u64) -> FoundList {
        FoundList::Sound(Journal {
            series: Series { era, set, place },
            latest: place,
            rules: Vec::new(),
        })
    }

    fn check_stores(
        found: Vec<(FoundList, bool)>,
        era: u64,
        set: u64,
        forgotten: Option<Forgotten>,
    ) {
        let seen = |(number, (found, holds))| Seen {
            place: SeriesPlace { whole: number, bereft: number + BEREFT },
            holds,
            found,
        };
        let stores: Vec<_> = (1..).zip(found).map(seen).collect();
        let going = judge(&stores, FRESH);
        let Series { era: has, set: has_set, .. } = going.journal.series;
        assert_eq!((has, has_set, going.forgotten), (era, set, forgotten), "{stores:?}");
    }

    fn check(found: Vec<FoundList>, era: u64, set: u64, forgotten: Option<Forgotten>) {
        check_stores(found.into_iter().map(|found| (found, true)).collect(), era, set, forgotten);
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
        check(vec![list(5, 6, 1), FoundList::Nothing, list(5, 6, 3)], 5, 91, None);
        check(vec![FoundList::Unsound(DAMAGED), list(5, 6, 2), list(5, 6, 3)], 5, 91, None);
        check_stores(vec![(list(5, 6, 1), false), (FoundList::Nothing, true)], 5, 91, None);
        check(vec![FoundList::Nothing, FoundList::Nothing], 90, 91, Some(Forgotten::NoList));
        check(
            vec![FoundList::Nothing, FoundList::Unsound(DAMAGED)],
            90,
            91,
            Some(Forgotten::Unsound(DAMAGED)),
        );
    }

    #[test]
    fn what_is_stored_is_not_believed_where_half_of_the_lists_are_missing() {
        let forgotten = Some(Forgotten::NoWitness);
        check(vec![list(5, 6, 1), FoundList::Nothing], 90, 91, forgotten);
        check(vec![FoundList::Unsound(DAMAGED), list(5, 6, 2)], 90, 91, forgotten);
        check(
            vec![list(5, 6, 1), list(5, 6, 2), FoundList::Nothing, FoundList::Nothing],
            90,
            91,
            forgotten,
        );
        check_stores(vec![(list(5, 6, 1), true), (FoundList::Nothing, false)], 90, 91, forgotten);
    }

    #[test]
    fn what_a_store_holds_that_was_out_of_use_is_never_believed() {
        let (one, two) = (BEREFT + 1, BEREFT + 2);
        let forgotten = Some(Forgotten::OutOfUse);
        for outdated in
            [list(5, 6, 3), FoundList::Nothing, FoundList::Unsound(DAMAGED), list(7, 8, 3)]
        {
            check(vec![list(5, 7, one), list(5, 7, two), outdated], 90, 91, forgotten);
        }
        check(vec![list(5, 7, one), list(5, 6, 2)], 90, 91, forgotten);
        check(vec![list(5, 7, one), list(5, 8, two), FoundList::Nothing], 90, 91, forgotten);
        check(vec![list(5, 7, two)], 90, 91, Some(Forgotten::OtherStores));
    }

    #[test]
    fn a_series_goes_on_when_the_store_that_was_out_of_use_is_empty() {
        let (one, two) = (BEREFT + 1, BEREFT + 2);
        for emptied in
            [list(5, 6, 3), FoundList::Nothing, FoundList::Unsound(DAMAGED), list(7, 8, 3)]
        {
            let others = [(list(5, 7, one), true), (list(5, 7, two), true)];
            check_stores(others.into_iter().chain([(emptied, false)]).collect(), 5, 91, None);
        }
    }
}
