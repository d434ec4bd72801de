//! S3-FIFO (Yang, Zhang, Qiu, Yue and Vinayak, SOSP 2023), weighted by bytes: a small queue of a
//! tenth of the space that sifts out what is asked for once, a main queue whose entries come round
//! while their two-bit counter lasts, and a ghost of what the small queue let go, which enters the
//! main queue at its next miss.

mod ghost;

use super::{Policy, PolicySettings, place};
use crate::lru::{Links, Lru as Order};
use ghost::Ghost;

/// The most a counter holds: two bits.
const FREQUENCY_LIMIT: u8 = 3;
/// Hits above which an entry leaves the small queue for the main one.
const PROMOTED_ABOVE: u8 = 1;

#[derive(Clone, Default)]
struct FifoSlot {
    key_hash: u64,
    size: u64,
    frequency: u8,
    is_main: bool,
}

/// The policy.
pub(super) struct S3Fifo {
    links: Vec<Links>,
    slots: Vec<FifoSlot>,
    small: Order,
    main: Order,
    small_bytes: u64,
    small_target: u64,
    ghost: Ghost,
    entries: usize,
    /// The victim named last: only what goes by decision of the small queue is remembered.
    named: Option<u32>,
}

impl S3Fifo {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let small_target = settings.capacity / 10;
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            small: Order::default(),
            main: Order::default(),
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

    /// The oldest of the queue whose turn it is.
    fn oldest(&self) -> Option<u32> {
        let small = self.small.coldest().filter(|_| self.small_bytes >= self.small_target);
        small.or_else(|| self.main.coldest()).or_else(|| self.small.coldest())
    }
}

impl Policy for S3Fifo {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        let is_main = self.ghost.take(key_hash);
        *place(&mut self.slots, entry) = FifoSlot { key_hash, size, frequency: 0, is_main };
        place(&mut self.links, entry);
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
