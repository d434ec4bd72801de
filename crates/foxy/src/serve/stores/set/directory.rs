//! The directory of a set of stores: remembers which store may have a key, and which changes of a
//! key are in progress. The directory has limited memory. For a forgotten key, the caller must ask
//! every store.

use foxy_store::Key;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of parts of the directory (map from keys to stores). Each part has its own lock.
const PARTS: usize = 64;
/// Number of entries in a row. Bytes of the key select its row. If the row is full, a new key
/// replaces the oldest entry.
const WAYS: usize = 8;
/// Size of an entry in bytes. Bytes 0 to 15 are the key. Byte 16 is the store's number plus 1. If
/// byte 16 is 0, the entry is empty.
const ENTRY_BYTES: usize = 17;
const MAX_WAITING_CHANGES: usize = 32;

/// Number of times that the directory (map from keys to stores) had noted a new store for a key,
/// before a lookup began. If this number has grown since, the result of the lookup may be outdated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch(u64);

/// Whether a change of a key (a put or a removal) may start.
pub enum Turn<Change> {
    /// The change may start now. The caller must call [`Directory::end`] after it.
    Now(Change),
    /// The change waits in a queue behind earlier changes of the same key.
    Later,
    /// The change is refused, because too many changes of the key wait already.
    Never(Change),
}

pub struct Directory<Change> {
    parts: Vec<Mutex<Part<Change>>>,
}

struct Part<Change> {
    entries: Vec<[u8; ENTRY_BYTES]>,
    oldest: usize,
    placed: u64,
    under_way: HashMap<Key, VecDeque<Change>>,
}

impl<Change> Directory<Change> {
    /// Creates a directory (map from keys to stores) with space for about `keys` keys.
    pub fn new(keys: usize) -> Self {
        let entries = (keys / PARTS).next_multiple_of(WAYS).max(WAYS);
        let part = || Part {
            entries: vec![[0; ENTRY_BYTES]; entries],
            oldest: 0,
            placed: 0,
            under_way: HashMap::new(),
        };
        Self { parts: (0..PARTS).map(|_| Mutex::new(part())).collect() }
    }

    fn part(&self, key: Key) -> MutexGuard<'_, Part<Change>> {
        self.parts[usize::from(key.0[0]) % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the only store that may have the key. Returns `None` if the directory (map from keys
    /// to stores) does not know it.
    pub fn find(&self, key: Key) -> Option<usize> {
        self.part(key).find(key)
    }

    pub fn epoch(&self, key: Key) -> Epoch {
        Epoch(self.part(key).placed)
    }

    /// Records that a lookup found the key in `store`. `epoch` is from the beginning of the lookup.
    /// Does nothing if a key of the same part was placed since, because the lookup may be outdated.
    pub fn learn(&self, key: Key, store: usize, epoch: Epoch) {
        let mut part = self.part(key);
        if Epoch(part.placed) == epoch {
            part.set(key, store);
        }
    }

    /// Starts a change of `key`, or queues it behind earlier changes of this key.
    pub fn begin(&self, key: Key, change: Change) -> Turn<Change> {
        let mut part = self.part(key);
        match part.under_way.get_mut(&key) {
            None => {
                part.under_way.insert(key, VecDeque::new());
                Turn::Now(change)
            }
            Some(waiting) if waiting.len() < MAX_WAITING_CHANGES => {
                waiting.push_back(change);
                Turn::Later
            }
            Some(_) => Turn::Never(change),
        }
    }

    /// Records that only `store` may have the key from now on. The change in progress has removed
    /// the key from all other stores.
    pub fn place(&self, key: Key, store: usize) {
        let mut part = self.part(key);
        part.placed += 1;
        part.set(key, store);
    }

    /// Ends the change in progress. Returns the next change of this key, which is then in progress.
    pub fn end(&self, key: Key) -> Option<Change> {
        let mut part = self.part(key);
        let next = part.under_way.get_mut(&key).and_then(VecDeque::pop_front);
        if next.is_none() {
            part.under_way.remove(&key);
        }
        next
    }
}

impl<Change> Part<Change> {
    fn ways(&mut self, key: Key) -> &mut [[u8; ENTRY_BYTES]] {
        let [_, a, b, c, d, ..] = key.0;
        let sets = self.entries.len() / WAYS;
        let first = u32::from_le_bytes([a, b, c, d]) as usize % sets * WAYS;
        &mut self.entries[first..first + WAYS]
    }

    fn find(&mut self, key: Key) -> Option<usize> {
        let entry = self.ways(key).iter().find(|entry| entry[..16] == key.0)?;
        usize::from(entry[16]).checked_sub(1)
    }

    fn set(&mut self, key: Key, store: usize) {
        let number = u8::try_from(store + 1).expect("the settings allow fewer stores");
        self.oldest = (self.oldest + 1) % WAYS;
        let oldest = self.oldest;
        let ways = self.ways(key);
        let known = ways.iter().position(|entry| entry[..16] == key.0);
        let empty = || ways.iter().position(|entry| entry[16] == 0);
        let entry = &mut ways[known.or_else(empty).unwrap_or(oldest)];
        entry[..16].copy_from_slice(&key.0);
        entry[16] = number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        Key([0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    }

    #[test]
    fn a_full_directory_forgets_the_oldest_key() {
        let directory = Directory::<()>::new(0);
        assert_eq!(directory.find(key(0)), None);
        for number in 0..10 {
            directory.place(key(number), 3);
        }
        let known: Vec<_> =
            (0..10).filter(|number| directory.find(key(*number)) == Some(3)).collect();
        assert_eq!(known.len(), WAYS);
        assert!(known.contains(&9));
        directory.place(key(9), 254);
        assert_eq!(directory.find(key(9)), Some(254));
        directory.place(key(9), 0);
        assert_eq!(directory.find(key(9)), Some(0));
    }

    #[test]
    fn an_outdated_answer_is_not_learnt() {
        let directory = Directory::<()>::new(64);
        let before = directory.epoch(key(5));
        directory.place(key(5), 0);
        directory.learn(key(5), 1, before);
        assert_eq!(directory.find(key(5)), Some(0));
        directory.learn(key(6), 1, directory.epoch(key(6)));
        assert_eq!(directory.find(key(6)), Some(1));
    }

    #[test]
    fn changes_of_one_key_take_turns_up_to_a_bound() {
        let directory = Directory::new(64);
        assert!(matches!(directory.begin(key(5), 0), Turn::Now(0)));
        for number in 1..=MAX_WAITING_CHANGES {
            assert!(matches!(directory.begin(key(5), number), Turn::Later));
        }
        assert!(matches!(directory.begin(key(5), 99), Turn::Never(99)));
        assert!(matches!(directory.begin(key(6), 7), Turn::Now(7)));
        for number in 1..=MAX_WAITING_CHANGES {
            assert_eq!(directory.end(key(5)), Some(number));
        }
        assert_eq!(directory.end(key(5)), None);
        assert!(matches!(directory.begin(key(5), 1), Turn::Now(1)));
    }
}
