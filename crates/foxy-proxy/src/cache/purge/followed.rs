//! Remembers how much of the fleet's purge log this node has applied. From this, a node decides
//! whether it may keep a copy of another node's response.
//!
//! A node may copy a response only if the other node had applied all purges that this node has
//! applied. Otherwise the copy could contain content that this node has already purged. Purges that
//! this node applies later affect the copy like any other stored response.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A position in the purge log of a fleet. It stands for all entries up to this position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// Random number of the log. If the service that keeps the log loses entries, it begins a new
    /// log with a new number.
    pub chain: u64,
    /// Position in the log of the last entry.
    pub position: u64,
}

impl LogPlace {
    /// Returns true if both positions are in the same log, and `other` is not later than `self`.
    const fn includes(self, other: Self) -> bool {
        self.chain == other.chain && self.position >= other.position
    }

    /// Parses the text that `Display` writes.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (chain, position) = text.split_once('-')?;
        Some(Self { chain: u64::from_str_radix(chain, 16).ok()?, position: position.parse().ok()? })
    }
}

impl fmt::Display for LogPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{}", self.chain, self.position)
    }
}

#[derive(Clone, Copy, Debug)]
struct LogProgress {
    /// Entries after this position have had no effect on this node. Entries before it may have had
    /// some.
    begun: LogPlace,
    /// All entries up to this position have their full effect on this node.
    done: LogPlace,
}

/// The position up to which this node has applied the fleet's purge log. A node without
/// `fleet.engine` (the service with this log) has no position.
#[derive(Debug, Default)]
pub struct FollowedLog(RwLock<Option<LogProgress>>);

impl FollowedLog {
    fn get(&self) -> Option<LogProgress> {
        *self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, followed: LogProgress) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(followed);
    }

    /// Notes that this node begins to apply the entries up to `place`. The caller must call this
    /// function before the first of these purges can affect a response.
    pub fn begin(&self, place: LogPlace) {
        let done = self.get().map(|followed| followed.done).unwrap_or_default();
        self.set(LogProgress { begun: place, done });
    }

    /// Notes that this node has applied the entries up to `place`.
    pub fn finish(&self, place: LogPlace) {
        self.set(LogProgress { begun: place, done: place });
    }

    /// Returns the log position that this node sends along with a response to another node. The
    /// look-up of the response must begin after this call.
    pub(crate) fn done(&self) -> Option<LogPlace> {
        self.get().map(|followed| followed.done)
    }

    /// Returns true if this node may keep a copy of another node's response. `told` is the log
    /// position that the other node had reached before its look-up. The caller must have set the
    /// stamp (last purge number) of the copy before this call, so that later purges affect the
    /// copy.
    pub(crate) fn may_copy(&self, told: Option<LogPlace>) -> bool {
        match (self.get(), told) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(followed), Some(told)) => told.includes(followed.begun),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(chain: u64, position: u64) -> LogPlace {
        LogPlace { chain, position }
    }

    #[test]
    fn a_node_copies_only_from_nodes_that_have_applied_its_purges() {
        let log = FollowedLog::default();
        assert!(log.may_copy(None) && log.done().is_none(), "no engine");
        log.finish(at(1, 5));
        assert!(!log.may_copy(None), "the other node follows no log");
        assert!(!log.may_copy(Some(at(1, 4))) && log.may_copy(Some(at(1, 5))));
        log.begin(at(1, 7));
        assert_eq!(log.done(), Some(at(1, 5)));
        assert!(!log.may_copy(Some(at(1, 6))) && log.may_copy(Some(at(1, 8))));
        log.begin(at(2, 3));
        assert!(!log.may_copy(Some(at(1, 9))) && log.may_copy(Some(at(2, 3))), "a new chain");
    }

    #[test]
    fn a_place_is_read_as_it_is_written() {
        for place in [at(0, 0), at(u64::MAX, 7), at(9, u64::MAX)] {
            assert_eq!(LogPlace::read(&place.to_string()), Some(place));
        }
        for text in ["", "1", "1-", "-1", "x-1", "1-x", "10000000000000000-1"] {
            assert_eq!(LogPlace::read(text), None, "{text}");
        }
    }
}
