//! S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, SOSP 2023), with queue lengths in bytes. New entries
//! enter a small queue with a tenth of the space. It evicts entries with at most one hit. Other
//! entries move to the main queue, where each hit raises a two-bit counter. The main queue evicts
//! an entry whose counter is zero. Otherwise it lowers the counter and keeps the entry. A ghost
//! queue stores the hashes of entries that the small queue evicted. If such an entry is requested
//! again, it enters the main queue directly.

use super::{Policy, PolicySettings, slot_of};
use crate::lru::{Links, Lru};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Maximum value of an entry's two-bit counter of hits.
const FREQUENCY_LIMIT: u8 = 3;
/// An entry of the small queue moves to the main queue if the entry has more hits than this number.
const PROMOTED_ABOVE: u8 = 1;

#[derive(Clone, Default)]
struct FifoSlot {
    key_hash: u64,
    size: u64,
    frequency: u8,
    is_main: bool,
}

pub(super) struct S3Fifo {
    links: Vec<Links>,
    slots: Vec<FifoSlot>,
    small: Lru,
    main: Lru,
    small_bytes: u64,
    small_target: u64,
    ghost: Ghost,
    entries: usize,
    /// The last victim, that is, the entry that `victim` returned. If the cache then removes this
    /// entry, and the entry was in the small queue, its hash enters the ghost queue.
    named: Option<u32>,
}

impl S3Fifo {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let small_target = settings.capacity / 10;
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            small: Lru::default(),
            main: Lru::default(),
            small_bytes: 0,
            small_target,
            ghost: Ghost::new(settings.capacity - small_target),
            entries: 0,
            named: None,
        }
    }

    fn push(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        if slot.is_main {
            self.main.push(&mut self.links, entry);
        } else {
            self.small_bytes += slot.size;
            self.small.push(&mut self.links, entry);
        }
    }

    fn unlink(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        if slot.is_main {
            self.main.remove(&mut self.links, entry);
        } else {
            self.small_bytes -= slot.size;
            self.small.remove(&mut self.links, entry);
        }
    }

    /// Returns the oldest entry of the queue that evicts next. This is the small queue if it has at
    /// least its share of bytes, or if the main queue is empty.
    fn oldest(&self) -> Option<u32> {
        let small = self.small.coldest().filter(|_| self.small_bytes >= self.small_target);
        small.or_else(|| self.main.coldest()).or_else(|| self.small.coldest())
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        let is_main = self.ghost.take(key_hash);
        *slot_of(&mut self.slots, entry) = FifoSlot { key_hash, size, frequency: 0, is_main };
        slot_of(&mut self.links, entry);
        self.entries += 1;
        self.push(entry);
    }

    fn touch(&mut self, entry: u32) {
        let frequency = &mut self.slots[entry as usize].frequency;
        *frequency = FREQUENCY_LIMIT.min(*frequency + 1);
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            let oldest = self.oldest()?;
            let FifoSlot { is_main, frequency, .. } = self.slots[oldest as usize];
            if frequency <= if is_main { 0 } else { PROMOTED_ABOVE } {
                self.named = Some(oldest);
                return self.named;
            }
            self.unlink(oldest);
            let slot = &mut self.slots[oldest as usize];
            slot.frequency = if is_main { frequency - 1 } else { 0 };
            slot.is_main = true;
            self.push(oldest);
        }
    }

    fn remove(&mut self, entry: u32) {
        self.unlink(entry);
        self.entries -= 1;
        let slot = &self.slots[entry as usize];
        if self.named == Some(entry) && !slot.is_main {
            self.ghost.push(slot.key_hash, slot.size, self.entries);
        }
        self.named = self.named.filter(|&named| named != entry);
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        let mut all = self.small.coldest_first(&mut self.links);
        all.append(&mut self.main.coldest_first(&mut self.links));
        all
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
            + self.slots.capacity() * size_of::<FifoSlot>()
            + self.ghost.memory()
    }
}

#[derive(Clone, Copy)]
struct Gone {
    key_hash: u64,
    size: u64,
    is_kept: bool,
}

/// The ghost queue: hashes of entries that the small queue evicted. The sizes of these entries sum
/// up to at most the bytes of the main queue. The number of hashes is at most the number of cached
/// entries, so the memory is bounded.
struct Ghost {
    queue: VecDeque<Gone>,
    /// Sequence number of the oldest element of `queue`.
    first: u64,
    /// Key hash and sequence number of each element of `queue`.
    numbers: HashTable<(u64, u64)>,
    bytes: u64,
    limit: u64,
}

impl Ghost {
    fn new(limit: u64) -> Self {
        Self { queue: VecDeque::new(), first: 0, numbers: HashTable::new(), bytes: 0, limit }
    }

    /// Adds the hash of an evicted entry. Drops the oldest hashes while the queue exceeds its byte
    /// limit or has more than `entries` hashes.
    fn push(&mut self, key_hash: u64, size: u64, entries: usize) {
        self.take(key_hash);
        self.bytes += size;
        let number = self.first + self.queue.len() as u64;
        self.numbers.insert_unique(key_hash, (key_hash, number), |&(hash, _)| hash);
        self.queue.push_back(Gone { key_hash, size, is_kept: true });
        while self.bytes > self.limit || self.queue.len() > entries {
            self.pop();
        }
    }

    /// Removes a hash from the ghost queue. Returns whether it was present.
    fn take(&mut self, key_hash: u64) -> bool {
        let Ok(found) = self.numbers.find_entry(key_hash, |&(hash, _)| hash == key_hash) else {
            return false;
        };
        let ((_, number), _) = found.remove();
        let place = usize::try_from(number - self.first).expect("a place in a queue in memory");
        let gone = &mut self.queue[place];
        gone.is_kept = false;
        self.bytes -= gone.size;
        true
    }

    fn pop(&mut self) {
        let Some(&Gone { key_hash, is_kept, .. }) = self.queue.front() else { return };
        if is_kept {
            self.take(key_hash);
        }
        self.queue.pop_front();
        self.first += 1;
    }

    fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<Gone>()
            + self.numbers.capacity() * (size_of::<(u64, u64)>() + 1)
    }
}
