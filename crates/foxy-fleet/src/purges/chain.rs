//! Checks the *chain* of the purge log, without IO: each entry has the hash of the entry before. If
//! the log does not continue the chain that a member knows, the engine has lost entries.

use super::engine::LogView;
use super::entry::{Content, Entry, Process};
use std::collections::BTreeMap;

/// Largest number of writers whose counters a chain remembers.
const MAX_WRITERS: usize = 256;

/// The reason why a chain is broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broken {
    /// The log ends before an entry that this member knows.
    LostTail,
    /// Entries are missing between the log's first position and its highest position.
    Removed,
    /// An entry does not continue the entry that this member knows: its chain's number or a hash
    /// differs.
    WrongHash,
    /// An entry of a writer is missing, although the hashes match.
    LostOfWriter,
    /// An entry cannot be read.
    Unreadable,
}

impl Broken {
    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::LostTail, Self::Removed, Self::WrongHash, Self::LostOfWriter, Self::Unreadable];

    /// Returns the reason as one word.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LostTail => "lost-tail",
            Self::Removed => "removed",
            Self::WrongHash => "wrong-hash",
            Self::LostOfWriter => "lost-of-writer",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The place up to which a member has followed the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Random number that identifies the chain.
    pub number: u64,
    /// Position of the last entry.
    pub position: u64,
    /// Hash of the last entry.
    pub hash: u128,
    /// For each writer, the counter and the position of its last entry.
    writers: BTreeMap<Process, (u64, u64)>,
}

/// The next step of a member that has read the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The member has followed the whole log.
    UpToDate,
    /// Apply these entries. The member's place is then this place.
    Follow(Vec<Entry>, Chain),
    /// A new chain begins at this place. Demand validation of all stored responses, then continue
    /// after this place.
    Begin(Chain),
    /// The member is new, or entries have left the log before it read them. Demand validation of
    /// all stored responses, then continue after this place, the end of the log.
    Missed(Chain),
    /// The member is new, and the log never had an entry.
    Empty,
    /// The chain is broken, because the engine lost or changed entries.
    Broken(Broken),
}

impl Chain {
    /// Creates the place after an entry of a chain, such as a saved place.
    pub fn at(number: u64, position: u64, hash: u128) -> Self {
        Self { number, position, hash, writers: BTreeMap::new() }
    }

    fn after(entry: &Entry, bytes: &[u8]) -> Self {
        let mut chain = Self::at(entry.chain, entry.position, Entry::hash(bytes));
        chain.note(entry);
        chain
    }

    /// Returns the place at the end of a log. Returns `None` if the log has no readable last entry.
    pub fn end(log: &LogView) -> Option<Self> {
        let bytes = log.last.as_ref()?;
        Some(Self::after(&Entry::decode(bytes)?, bytes))
    }

    /// Returns the number of entries that a process has appended, as far as this chain shows.
    pub fn written_by(&self, process: &Process) -> u64 {
        self.writers.get(process).map_or(0, |(counter, _)| *counter)
    }

    fn note(&mut self, entry: &Entry) {
        self.writers.insert(entry.writer.clone(), (entry.counter, entry.position));
        if self.writers.len() > MAX_WRITERS {
            let oldest = self.writers.iter().min_by_key(|(_, (_, position))| *position);
            let oldest = oldest.map(|(writer, _)| writer.clone());
            oldest.and_then(|writer| self.writers.remove(&writer));
        }
    }

    fn step(&mut self, entry: &Entry, bytes: &[u8]) -> Result<(), Broken> {
        if entry.chain != self.number || entry.previous != self.hash {
            return Err(Broken::WrongHash);
        }
        if entry.position != self.position + 1 {
            return Err(Broken::Removed);
        }
        if self.writers.get(&entry.writer).is_some_and(|(last, _)| entry.counter != last + 1) {
            return Err(Broken::LostOfWriter);
        }
        (self.position, self.hash) = (entry.position, Entry::hash(bytes));
        self.note(entry);
        Ok(())
    }
}

/// Compares the log with the chain that a member has followed so far.
pub fn advise(known: Option<&Chain>, log: &LogView) -> Advice {
    let Some((last_bytes, last)) = log.last.as_ref().map(|bytes| (bytes, Entry::decode(bytes)))
    else {
        return match known {
            _ if log.tail > 0 => Advice::Broken(Broken::Removed),
            Some(_) => Advice::Broken(Broken::LostTail),
            None => Advice::Empty,
        };
    };
    if log.tail < log.first || log.count != log.tail - log.first + 1 {
        return Advice::Broken(Broken::Removed);
    }
    let Some(last) = last else { return Advice::Broken(Broken::Unreadable) };
    let end = Chain::after(&last, last_bytes);
    let is_begin = |entry: &Entry| entry.content == Content::Begin;
    let Some(known) = known else { return Advice::Missed(end) };
    if known.position >= log.tail {
        return match () {
            () if known.position == log.tail && known.hash == end.hash => Advice::UpToDate,
            () if is_begin(&last) && last.chain != known.number => Advice::Begin(end),
            () if known.position > log.tail => Advice::Broken(Broken::LostTail),
            () => Advice::Broken(Broken::WrongHash),
        };
    }
    follow(known, log, end)
}

fn follow(known: &Chain, log: &LogView, end: Chain) -> Advice {
    let mut chain = known.clone();
    let mut followed = Vec::new();
    for (position, bytes) in &log.entries {
        let entry = Entry::decode(bytes).filter(|entry| entry.position == *position);
        let step = match &entry {
            None => Err(Broken::Unreadable),
            Some(entry) if entry.content == Content::Begin && entry.chain != chain.number => {
                if followed.is_empty() {
                    return Advice::Begin(Chain::after(entry, bytes));
                }
                break;
            }
            Some(_) if followed.is_empty() && log.first > known.position + 1 => {
                return Advice::Missed(end);
            }
            Some(entry) => chain.step(entry, bytes),
        };
        match step {
            Ok(()) => followed.extend(entry),
            Err(why) if followed.is_empty() => return Advice::Broken(why),
            Err(_) => break,
        }
    }
    if followed.is_empty() {
        Advice::Broken(Broken::Removed)
    } else {
        Advice::Follow(followed, chain)
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
