//! Decides at start-up whether foxy may use the stored responses, by the purge lists in the stores'
//! folders.
//!
//! A store that foxy did not use for some time may contain responses that were replaced or purged
//! meanwhile. To recognize such a store, each list records a position: the place of its store among
//! all stores in use. After a failed store is taken out of use, the other lists record another
//! position.

use crate::serve::purge::list::{FoundList, Unsound};
use foxy_proxy::cache::purge::journal::{Journal, Series};
use std::fmt;

/// Random numbers for a new numbering of purges (`era`) and for a new set of stores (`set`).
#[derive(Clone, Copy, Debug)]
pub struct FreshNames {
    pub era: u64,
    pub set: u64,
}

/// Reason why foxy discards all stored responses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgottenReason {
    NoList,
    /// No list is reliable. Contains the reason for the first list.
    Unsound(Unsound),
    /// foxy last used the stores with other stores, in another order, or with another scheme.
    OtherStores,
    /// A failed store was taken out of use and is back with its old content, which may be outdated.
    OutOfUse,
    /// At least half of the stores' lists of purges are missing. The other stores may all have been
    /// out of use, which their own lists do not show.
    NoWitness,
}

impl fmt::Display for ForgottenReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoList => f.write_str("the purge list is missing"),
            Self::Unsound(why) => write!(f, "the purge list is not reliable: {why}"),
            Self::OtherStores => f.write_str(
                "foxy last used another scheme, other stores or another order of the stores",
            ),
            Self::OutOfUse => f.write_str(
                "the disk of a store failed, and foxy then used only the other stores; the failed \
                 store was not emptied",
            ),
            Self::NoWitness => f.write_str(
                "at least half of the purge lists are missing, so foxy cannot know whether this \
                 store was out of use",
            ),
        }
    }
}

/// Hashes of a store's position among all stores, from `foxy_proxy::cache::purge::journal::place`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPlace {
    /// Hash that the store's purge list records while all stores are in use.
    pub complete: u64,
    /// Hash that the store's purge list records while another store is out of use.
    pub reduced: u64,
}

/// A store, and the purge list found in its folder.
#[derive(Debug)]
pub struct ListedStore {
    pub place: SeriesPlace,
    /// Whether the store may contain records from before this start.
    pub may_hold: bool,
    pub found: FoundList,
}

impl ListedStore {
    /// Returns the list of purges if it records that another store was out of use.
    fn reduced(&self) -> Option<&Journal> {
        self.found.sound().filter(|journal| journal.series.place == self.place.reduced)
    }
}

/// The purges that apply after this start.
#[derive(Debug, PartialEq, Eq)]
pub struct Continued {
    /// The purges that apply now, as a journal. The position in this journal is still 0; each
    /// store's list gets its own position.
    pub journal: Journal,
    /// Reason why foxy discards the stored responses and starts a new numbering of purges. `None`
    /// if the old numbering continues.
    pub forgotten: Option<ForgottenReason>,
}

pub fn judge(stores: &[ListedStore], fresh: FreshNames) -> Continued {
    let sound =
        || stores.iter().filter_map(|store| Some((store.place.complete, store.found.sound()?)));
    let anew = |forgotten| {
        let series = Series { era: fresh.era, set: fresh.set, place: 0 };
        Continued {
            journal: Journal { series, latest: 0, rules: Vec::new() },
            forgotten: Some(forgotten),
        }
    };
    let Some((_, first)) = sound().next() else {
        let unsound = stores.iter().find_map(|store| store.found.unsound());
        return anew(unsound.map_or(ForgottenReason::NoList, ForgottenReason::Unsound));
    };
    let Series { era, set, .. } = first.series;
    if sound().all(|(place, journal)| journal.series == Series { era, set, place }) {
        // All found lists say that all stores were in use. A store that was taken out of use has
        // such a list too, because only the lists of the other stores were changed. foxy takes at
        // most half of the stores out of use. So among more than half of the lists, at least one
        // belongs to a store that stayed in use, and would record the change.
        let found = sound().count();
        let may_hold = |store: &ListedStore| store.may_hold && store.found.sound().is_some();
        if found <= stores.len() - found && stores.iter().any(may_hold) {
            return anew(ForgottenReason::NoWitness);
        }
        // A list may be missing because a new store replaced an old store, which the user may add
        // again later. A new set number makes the old store's list outdated.
        let set = if found == stores.len() { set } else { fresh.set };
        return continued(sound().map(|(_, journal)| journal), Series { era, set, place: 0 });
    }
    let mut reduced = stores.iter().filter_map(ListedStore::reduced);
    let Some(Series { era, set, .. }) = reduced.next().map(|journal| journal.series) else {
        return anew(ForgottenReason::OtherStores);
    };
    let is_one_set = reduced.all(|journal| (journal.series.era, journal.series.set) == (era, set));
    if !is_one_set || stores.iter().any(|store| store.may_hold && store.reduced().is_none()) {
        return anew(ForgottenReason::OutOfUse);
    }
    let series = Series { era, set: fresh.set, place: 0 };
    continued(stores.iter().filter_map(ListedStore::reduced), series)
}

/// Continues a numbering of purges with the purges (rules) of all `lists`.
fn continued<'a>(lists: impl Iterator<Item = &'a Journal> + Clone, series: Series) -> Continued {
    let latest = lists.clone().map(|journal| journal.latest).max().unwrap_or(0);
    let rules = lists.flat_map(|journal| journal.rules.iter().copied()).collect();
    Continued { journal: Journal { series, latest, rules }, forgotten: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::cache::purge::journal::Unreliable;

    const FRESH: FreshNames = FreshNames { era: 90, set: 91 };
    /// In the tests, a store whose position is N has position N + `REDUCED` while another store is
    /// out of use.
    const REDUCED: u64 = 100;
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
        forgotten: Option<ForgottenReason>,
    ) {
        let listed = |(number, (found, may_hold))| ListedStore {
            place: SeriesPlace { complete: number, reduced: number + REDUCED },
            may_hold,
            found,
        };
        let stores: Vec<_> = (1..).zip(found).map(listed).collect();
        let judged = judge(&stores, FRESH);
        let Series { era: has, set: has_set, .. } = judged.journal.series;
        assert_eq!((has, has_set, judged.forgotten), (era, set, forgotten), "{stores:?}");
    }

    fn check(found: Vec<FoundList>, era: u64, set: u64, forgotten: Option<ForgottenReason>) {
        check_stores(found.into_iter().map(|found| (found, true)).collect(), era, set, forgotten);
    }

    #[test]
    fn a_series_continues_while_its_stores_keep_their_places() {
        check(vec![list(5, 6, 1)], 5, 6, None);
        check(vec![list(5, 6, 1), list(5, 6, 2)], 5, 6, None);
        let other = Some(ForgottenReason::OtherStores);
        check(vec![list(5, 6, 2)], 90, 91, other);
        check(vec![list(5, 6, 2), list(5, 6, 1)], 90, 91, other);
        check(vec![list(5, 6, 1), list(7, 6, 2)], 90, 91, other);
        check(vec![list(5, 6, 1), list(5, 7, 2)], 90, 91, other);
    }

    #[test]
    fn a_missing_or_damaged_list_makes_another_set_of_the_same_series() {
        check(vec![list(5, 6, 1), FoundList::Nothing, list(5, 6, 3)], 5, 91, None);
        check(vec![FoundList::Unsound(DAMAGED), list(5, 6, 2), list(5, 6, 3)], 5, 91, None);
        check_stores(vec![(list(5, 6, 1), false), (FoundList::Nothing, true)], 5, 91, None);
        check(vec![FoundList::Nothing, FoundList::Nothing], 90, 91, Some(ForgottenReason::NoList));
        check(
            vec![FoundList::Nothing, FoundList::Unsound(DAMAGED)],
            90,
            91,
            Some(ForgottenReason::Unsound(DAMAGED)),
        );
    }

    #[test]
    fn nothing_is_believed_when_half_of_the_lists_are_missing() {
        let forgotten = Some(ForgottenReason::NoWitness);
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
    fn a_store_that_was_out_of_use_is_never_believed() {
        let (one, two) = (REDUCED + 1, REDUCED + 2);
        let forgotten = Some(ForgottenReason::OutOfUse);
        for outdated in
            [list(5, 6, 3), FoundList::Nothing, FoundList::Unsound(DAMAGED), list(7, 8, 3)]
        {
            check(vec![list(5, 7, one), list(5, 7, two), outdated], 90, 91, forgotten);
        }
        check(vec![list(5, 7, one), list(5, 6, 2)], 90, 91, forgotten);
        check(vec![list(5, 7, one), list(5, 8, two), FoundList::Nothing], 90, 91, forgotten);
        check(vec![list(5, 7, two)], 90, 91, Some(ForgottenReason::OtherStores));
    }

    #[test]
    fn a_series_continues_when_the_store_that_was_out_of_use_is_empty() {
        let (one, two) = (REDUCED + 1, REDUCED + 2);
        for emptied in
            [list(5, 6, 3), FoundList::Nothing, FoundList::Unsound(DAMAGED), list(7, 8, 3)]
        {
            let others = [(list(5, 7, one), true), (list(5, 7, two), true)];
            check_stores(others.into_iter().chain([(emptied, false)]).collect(), 5, 91, None);
        }
    }
}
