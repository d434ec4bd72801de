//! How far this node has applied the purge log of its fleet. With this, a node decides whether it
//! may keep a copy of another node's response.
//!
//! A node may copy a response only if the other node had applied all purges that this node has. If
//! not, the copy could contain content that this node has already purged. Purges that this node
//! applies later affect the copy like any other stored response.

use std::fmt;
use std::sync::{PoisonError, RwLock};

/// A place in the purge log of a fleet: all entries up to here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogPlace {
    /// Random number of the chain of entries. If the engine loses entries, a new chain begins.
    pub chain: u64,
    /// Position of the last entry.
    pub position: u64,
}

impl LogPlace {
    /// Returns true if this place has all entries of `other`.
    const fn includes(self, other: Self) -> bool {
        self.chain == other.chain && self.position >= other.position
    }

    /// Reads what `Display` writes.
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
    /// Entries after this place have had no effect on this node.
    begun: LogPlace,
    /// All entries up to this place have their full effect on this node.
    done: LogPlace,
}

/// How far this node has applied the purge log. A node without `fleet.engine` follows no log.
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

    /// Returns the place to tell another node with a response whose look-up begins now.
    pub(crate) fn done(&self) -> Option<LogPlace> {
        self.get().map(|followed| followed.done)
    }

    /// Returns true if this node may keep a copy of a response. `told` is the place that the
    /// other node had reached before its look-up. The caller must have the stamp of the copy
    /// already: purges after the stamp affect the copy.
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
