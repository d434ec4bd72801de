//! When a request came or a fetch began, as the cache counts it, and what was written for a URL
//! while it was looked up or fetched. Whether a late response may still be written follows from
//! this alone.

use crate::cache::purge::Stamp;
use crate::cache::stored::Stored;
use foxy_store::{Key, KeyMap};
use std::sync::Arc;

/// When a request came or a fetch began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Epoch {
    /// Its place among all that happened to the URLs of its group.
    pub(crate) order: u64,
    /// Its place among the purges.
    pub(crate) begun: Stamp,
}

impl Epoch {
    /// Whether it came after `other`, for the same URL.
    pub(crate) const fn is_after(self, other: Self) -> bool {
        self.order > other.order
    }
}

/// Writes that are remembered for one URL. When there are more, no fetch that began before a
/// forgotten write may write.
const REMEMBERED: usize = 16;

/// What a write is to, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) key: Key,
    pub(crate) place: EpochScope,
    /// When the fetch began.
    pub(crate) order: u64,
    /// When the look-up before it began.
    pub(crate) looked: u64,
    /// What it brings.
    pub(crate) brings: Brings,
}

/// Where a response of a URL is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EpochScope {
    /// Under the URL itself: for every request.
    Whole,
    /// Under the URL's part: for every request for a range.
    Part,
    /// Under a variant's key that the list in force leads to.
    Variant,
    /// The same, with a new list under the URL itself.
    NewList,
}

impl Turn {
    /// The same for the list under the URL itself.
    pub(crate) const fn of_list(self, base: Key) -> Self {
        Self { key: base, place: EpochScope::Whole, ..self }
    }
}

/// What a write brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Brings {
    /// What an origin sent.
    Fetched,
    /// What the look-up found, confirmed or under another key.
    Found,
    /// The same, when other writes may have come between the look-up and the watch.
    FoundEarlier,
}

/// What a write left under its key.
#[derive(Clone, Debug)]
pub(crate) enum Left {
    /// No response: what was there is forgotten, or is about to be replaced.
    Nothing,
    /// A list of variants.
    List,
    /// A response; its body is not kept here.
    Response(Arc<Stored>),
}

/// Whether a write may be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    /// It may.
    Write,
    /// It may. The whole that is under the URL is older and of something else: it must go.
    WriteWithoutWhole,
    /// What is newer is in its place already.
    Outdated,
    /// The same, and what is under its key may be older than both: it must go.
    OutdatedAndGone,
    /// No request would find it: an older fetch replaced the list that leads to it, or a newer
    /// fetch wrote another variant under the list in force. That list may lead to an older
    /// response, so the list must go.
    Astray,
}

/// A write that is remembered.
#[derive(Clone, Debug)]
struct Written {
    key: Key,
    place: EpochScope,
    /// When its fetch began.
    order: u64,
    /// When it was written.
    at: u64,
    left: Left,
}

impl Written {
    /// Whether requests for what `turn` writes may get this instead.
    fn concerns(&self, turn: &Turn) -> bool {
        turn.place != EpochScope::Variant || self.key == turn.key || self.place == EpochScope::Whole
    }

    /// Whether it is the URL's whole and the other its part, or the other way round, and both are
    /// of one representation that is fresh for as long.
    fn is_other_part_of(&self, turn: &Turn, response: Option<&Stored>) -> bool {
        let both = [EpochScope::Whole, EpochScope::Part];
        let (Left::Response(left), Some(response)) = (&self.left, response) else { return false };
        self.place != turn.place
            && both.contains(&self.place)
            && both.contains(&turn.place)
            && left.is_of_one_with(response)
    }
}

/// A URL that is being looked up or fetched.
#[derive(Debug, Default)]
struct Watched {
    watches: usize,
    /// When the URL was last invalidated.
    invalidated: u64,
    /// When the last write was done that is no longer remembered.
    forgotten: u64,
    written: Vec<Written>,
}

impl Watched {
    fn judge(&self, turn: &Turn, response: Option<&Stored>) -> Judged {
        let began = if turn.brings == Brings::Fetched { turn.order } else { turn.looked };
        if self.invalidated > began {
            return Judged::Outdated;
        }
        if self.forgotten > began {
            return Judged::OutdatedAndGone;
        }
        let mut judged = Judged::Write;
        for other in self.written.iter().filter(|other| other.concerns(turn)) {
            if other.is_other_part_of(turn, response) {
                continue;
            }
            if other.order > turn.order {
                match outdated_by(other, turn) {
                    Judged::Astray => judged = Judged::Astray,
                    outdated => return outdated,
                }
                continue;
            }
            if other.at < turn.looked || other.order == turn.order {
                continue;
            }
            // It was written since the look-up, by a fetch that began earlier.
            match (turn.place, other.place) {
                (EpochScope::Variant, EpochScope::Whole) => judged = Judged::Astray,
                (EpochScope::Part, EpochScope::Whole)
                    if judged == Judged::Write && matches!(other.left, Left::Response(_)) =>
                {
                    judged = Judged::WriteWithoutWhole;
                }
                _ if turn.brings != Brings::Fetched => return Judged::Outdated,
                _ => {}
            }
        }
        judged
    }

    fn note(&mut self, written: Written) {
        self.written.retain(|other| other.key != written.key);
        self.written.push(written);
        if self.written.len() > REMEMBERED {
            self.forgotten = self.written.remove(0).at;
        }
    }
}

/// What a newer write makes of a turn.
fn outdated_by(other: &Written, turn: &Turn) -> Judged {
    match (turn.place, other.place) {
        _ if other.key == turn.key => match other.left {
            Left::Nothing => Judged::OutdatedAndGone,
            Left::List | Left::Response(_) => Judged::Outdated,
        },
        (EpochScope::Part, _) | (EpochScope::Whole, EpochScope::Part) => Judged::OutdatedAndGone,
        // The list in force may lead the same request to a response that is older than both.
        (EpochScope::Whole | EpochScope::NewList, EpochScope::Variant) => Judged::Astray,
        (EpochScope::Whole | EpochScope::Variant | EpochScope::NewList, _) => Judged::Outdated,
    }
}

/// What the keys of a group share.
#[derive(Debug, Default)]
pub(crate) struct Group {
    /// Counts what happens to its URLs.
    moment: u64,
    /// When something was last written or invalidated.
    changed: u64,
    watched: KeyMap<Watched>,
}

impl Group {
    /// The next moment.
    pub(crate) fn next(&mut self) -> u64 {
        self.moment += 1;
        self.moment
    }

    /// Begins to remember what is written for a URL. Whether others watch it already.
    pub(crate) fn watch(&mut self, base: Key) -> bool {
        let watched = self.watched.entry(base).or_default();
        watched.watches += 1;
        watched.watches > 1
    }

    /// Ends a watch; after the last nothing is remembered.
    pub(crate) fn unwatch(&mut self, base: Key) {
        if let Some(watched) = self.watched.get_mut(&base) {
            watched.watches -= 1;
            if watched.watches == 0 {
                self.watched.remove(&base);
            }
        }
    }

    /// Whether nothing of the group was written or invalidated since.
    pub(crate) const fn is_unchanged_since(&self, moment: u64) -> bool {
        self.changed < moment
    }

    /// Whether a URL that is watched was not invalidated since a fetch began.
    pub(crate) fn is_of_now(&self, base: Key, order: u64) -> bool {
        match self.watched.get(&base) {
            Some(watched) => watched.invalidated < order,
            None => self.changed < order,
        }
    }

    /// Whether a request for `key` may join a fetch that began at `order`: nothing that may answer
    /// the request was written by a later fetch. Without a key, no later fetch has written for the
    /// URL at all.
    pub(crate) fn may_join(&self, base: Key, key: Option<Key>, order: u64) -> bool {
        let Some(watched) = self.watched.get(&base) else { return self.changed < order };
        let may_answer = |other: &Written| {
            other.place != EpochScope::Variant || key.is_none_or(|key| other.key == key)
        };
        watched.invalidated < order
            && watched.forgotten < order
            && !watched.written.iter().any(|other| other.order > order && may_answer(other))
    }

    /// Whether a response is under a key that a fetch has written there while the URL was watched.
    pub(crate) fn has_written(&self, base: Key, key: Key) -> bool {
        let is_there = |other: &Written| other.key == key && !matches!(other.left, Left::Nothing);
        self.watched.get(&base).is_some_and(|watched| watched.written.iter().any(is_there))
    }

    /// Judges a write for a URL (RFC 9111 §4: the most recent response is to be used).
    pub(crate) fn judge(&self, base: Key, turn: &Turn, response: Option<&Stored>) -> Judged {
        match self.watched.get(&base) {
            _ if turn.brings == Brings::FoundEarlier => Judged::Outdated,
            Some(watched) => watched.judge(turn, response),
            None => Judged::Outdated,
        }
    }

    /// Notes that something is written for a URL, or forgotten.
    pub(crate) fn note(&mut self, base: Key, turn: &Turn, left: impl FnOnce() -> Left) {
        let at = self.next();
        self.changed = at;
        if let Some(watched) = self.watched.get_mut(&base).filter(|watched| watched.watches > 1) {
            let place =
                if turn.place == EpochScope::NewList { EpochScope::Variant } else { turn.place };
            watched.note(Written { key: turn.key, place, order: turn.order, at, left: left() });
        }
    }

    /// Notes that all of a URL is invalidated.
    pub(crate) fn invalidate(&mut self, base: Key) {
        let at = self.next();
        self.changed = at;
        if let Some(watched) = self.watched.get_mut(&base) {
            watched.invalidated = at;
            watched.written.clear();
        }
    }
}

/// An epoch for tests of what only compares them.
#[cfg(test)]
pub(crate) const fn test_epoch(order: u64) -> Epoch {
    Epoch { order, begun: Stamp { era: 0, moment: 0 } }
}

#[cfg(test)]
#[path = "epoch_tests.rs"]
mod tests;
