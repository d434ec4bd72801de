//! Checks the *chain* of the purge log, without IO: each entry contains the hash of the previous
//! entry. If the log does not continue the chain that a member knows, the engine (the server with
//! the log) has lost entries.

use super::engine::LogView;
use super::entry::{Content, Entry, Process};
use std::collections::BTreeMap;

/// Largest number of processes (writers of the purge log) whose last entries a chain remembers.
const MAX_WRITERS: usize = 256;

/// The reason why the purge log does not continue the chain of entries that a member knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Broken {
    /// The purge log ends before an entry that this member has read.
    LostTail,
    /// Entries are missing in the middle of the purge log, between its first and its highest
    /// position.
    Removed,
    /// An entry of the purge log does not continue the last entry that this member has read: the
    /// number of its chain or the hash in it differs.
    WrongHash,
    /// An entry of a process is missing, although the hashes of the purge log match.
    LostOfWriter,
    /// An entry of the purge log is damaged, or has an unknown form.
    Unreadable,
}

impl Broken {
    /// All reasons why a chain can be broken.
    pub const ALL: [Self; 5] =
        [Self::LostTail, Self::Removed, Self::WrongHash, Self::LostOfWriter, Self::Unreadable];

    /// Returns the reason as one word, for metrics and status pages.
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

/// The last entry of the purge log that a member has applied, or that the log contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// Random number of the chain to which the entry belongs.
    pub number: u64,
    /// Position of the entry in the purge log.
    pub position: u64,
    /// Hash of the entry's binary form.
    pub hash: u128,
    /// The last entry of each writer, a process that appends entries: the writer's own count of its
    /// entries, and the entry's position.
    writers: BTreeMap<Process, (u64, u64)>,
}

/// The next step of a member that has read the purge log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Advice {
    /// The member has already applied every entry of the purge log.
    UpToDate,
    /// The member must apply these entries. The `Chain` is the last of them.
    Follow(Vec<Entry>, Chain),
    /// A new chain begins at this entry of the purge log. The member must demand validation of all
    /// stored responses, and then continue after this entry.
    Begin(Chain),
    /// The member is new, or entries have left the purge log before the member read them. The
    /// member must demand validation of all stored responses, and then continue after this entry,
    /// the last of the log.
    Missed(Chain),
    /// The member is new, and the purge log never had an entry.
    Empty,
    /// The chain is broken, because the engine lost or changed entries.
    Broken(Broken),
}

impl Chain {
    /// Creates the place of an entry from its saved chain number, position and hash.
    pub fn at(number: u64, position: u64, hash: u128) -> Self {
        Self { number, position, hash, writers: BTreeMap::new() }
    }

    fn after(entry: &Entry, bytes: &[u8]) -> Self {
        let mut chain = Self::at(entry.chain, entry.position, Entry::hash(bytes));
        chain.note(entry);
        chain
    }

    /// Returns the last entry of a purge log. Returns `None` if the log has no entry, or if the
    /// last entry cannot be read.
    pub fn end(log: &LogView) -> Option<Self> {
        let bytes = log.last.as_ref()?;
        Some(Self::after(&Entry::decode(bytes)?, bytes))
    }

    /// Returns the number of entries that a process has appended to the purge log, as far as this
    /// member has read them.
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

/// Compares the purge log with the last entry that a member has applied. Returns the member's next
/// step.
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
