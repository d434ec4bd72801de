//! Remembers the last entries of the purge log that a member has read. The member compares them
//! with the records of other members. After a rollback, the engine may have given the same
//! positions to other purges, so another member may have applied other entries.

use super::chain::{Broken, Chain};
use super::engine::LogView;
use super::entry::Entry;
use super::lease::MemberRecord;
use std::collections::VecDeque;

/// Largest number of entries that this member remembers. A member that is further behind than this
/// has no lease anyway.
const KEPT: usize = 1024;

/// The positions and hashes of the last entries that a member has read from the purge log. All of
/// them belong to one chain.
#[derive(Debug, Default)]
pub struct History {
    chain: u64,
    entries: VecDeque<(u64, u128)>,
}

impl History {
    /// Creates a history that contains only the last entry that a member has applied.
    pub fn at(chain: &Chain) -> Self {
        Self { chain: chain.number, entries: [(chain.position, chain.hash)].into() }
    }

    /// Adds the entries that an exchange has read, up to the entry `to`. If `to` belongs to a new
    /// chain, forgets the old chain.
    pub fn follow(&mut self, view: &LogView, to: &Chain) {
        if to.number != self.chain {
            *self = Self::at(to);
            return;
        }
        let read = view.entries.iter().filter(|(at, _)| *at < to.position);
        let read = read.map(|(at, bytes)| (*at, Entry::hash(bytes)));
        for (position, hash) in read.chain([(to.position, to.hash)]) {
            if self.entries.back().is_none_or(|(last, _)| position > *last) {
                self.entries.push_back((position, hash));
            }
        }
        let surplus = self.entries.len().saturating_sub(KEPT);
        self.entries.drain(..surplus);
    }

    /// Returns whether the entry at a position has this hash. Returns `None` if the history does
    /// not contain the position.
    fn has(&self, position: u64, hash: u128) -> Option<bool> {
        let found = self.entries.binary_search_by_key(&position, |(at, _)| *at).ok()?;
        Some(self.entries[found].1 == hash)
    }

    /// Returns whether the last entry that another member has applied, according to its record, is
    /// also in this member's history.
    pub fn agrees(&self, record: &MemberRecord) -> bool {
        record.chain == self.chain && self.has(record.position, record.hash) == Some(true)
    }

    /// Compares the purge log with the records of other members. Returns a reason if the log cannot
    /// be the log that another member has applied. `log` is the last entry of the log. The records
    /// must have been read before the log.
    pub fn contradiction(&self, view: &LogView, log: &Chain) -> Option<Broken> {
        view.records.iter().filter(|record| record.chain == log.number).find_map(|record| {
            if record.position > log.position {
                return Some(Broken::LostTail);
            }
            let in_view = view.entries.iter().find(|(at, _)| *at == record.position);
            let is_same = match in_view {
                _ if record.position == log.position => Some(log.hash == record.hash),
                Some((_, bytes)) => Some(Entry::hash(bytes) == record.hash),
                None => self.has(record.position, record.hash),
            };
            (is_same == Some(false)).then_some(Broken::WrongHash)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::purges::entry::{Content, Process};

    fn entry(chain: u64, position: u64) -> (u64, Vec<u8>) {
        let writer = Process { member: "a".into(), run: 1 };
        let content = Content::Purge(Vec::new());
        let entry = Entry { chain, position, writer, counter: 1, previous: 0, content };
        (position, entry.encode())
    }

    fn record(chain: u64, position: u64, hash: u128) -> MemberRecord {
        let process = Process { member: "b".into(), run: 1 };
        let (attests, vouches, wants_lease) = (Some(1), true, true);
        MemberRecord { process, counter: 1, attests, vouches, chain, position, hash, wants_lease }
    }

    #[test]
    fn a_record_of_other_entries_contradicts_the_log() {
        let entries: Vec<_> = (4..=6).map(|position| entry(1, position)).collect();
        let hash = |position: u64| {
            Entry::hash(&entries.iter().find(|(at, _)| *at == position).expect("an entry").1)
        };
        let end = Chain::at(1, 6, hash(6));
        let mut history = History::at(&Chain::at(1, 3, 33));
        let view = |record: MemberRecord| LogView {
            entries: entries.clone(),
            records: vec![record],
            ..LogView::default()
        };
        for follows in [false, true] {
            if follows {
                history.follow(&view(record(1, 6, 0)), &end);
            }
            for (record, expected) in [
                (record(1, 3, 33), None),
                (record(1, 5, hash(5)), None),
                (record(1, 6, hash(6)), None),
                (record(1, 2, 0), None),
                (record(2, 9, 0), None),
                (record(1, 3, 34), Some(Broken::WrongHash)),
                (record(1, 5, 0), Some(Broken::WrongHash)),
                (record(1, 6, 0), Some(Broken::WrongHash)),
                (record(1, 7, 0), Some(Broken::LostTail)),
            ] {
                let text = format!("{record:?}");
                assert_eq!(history.contradiction(&view(record), &end), expected, "{text}");
            }
        }
        assert!(history.agrees(&record(1, 5, hash(5))) && history.agrees(&record(1, 3, 33)));
        for other in [record(1, 5, 0), record(2, 5, hash(5)), record(1, 7, 0), record(1, 2, 0)] {
            assert!(!history.agrees(&other), "{other:?}");
        }
        history.follow(&view(record(1, 6, 0)), &Chain::at(2, 8, 88));
        assert!(history.agrees(&record(2, 8, 88)) && !history.agrees(&record(1, 6, hash(6))));
    }
}
