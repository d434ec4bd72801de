//! The rules by which the engine webcosm keeps records, as a policy: see
//! `docs/decisions/webcosm-admission.md` and `foxy_store::worth`. The engine frees whole segments.
//! This policy evicts single entries, but in the same order.

use super::{Policy, PolicySettings, slot_of};
use crate::lru::{Links, Lru};
use foxy_store::worth::{Distance, MAX_USES};
use hashbrown::HashTable;
use std::collections::VecDeque;

/// Probation, the queue of large new entries, has 1/`PROBATION_SHARE` of the space.
const PROBATION_SHARE: u64 = 8;
/// The policy examines entries for eviction. It may keep 1/`BASE_SHARE` of the examined bytes, even
/// without hits.
const BASE_SHARE: u64 = 32;
/// After a hit on an entry of n bytes, the policy may keep n/`HIT_BYTES_PER_KEPT` more bytes.
const HIT_BYTES_PER_KEPT: u64 = 4;
/// The allowance is the number of bytes that the policy may keep instead of evicting them. It grows
/// to at most 1/`ALLOWANCE_SHARE` of the cache's space.
const ALLOWANCE_SHARE: u64 = 256;
/// The ghost (hashes of recently evicted entries) remembers one entry for each 128 KiB of the
/// cache's space.
const GHOST_BYTES: u64 = 128 << 10;
const MIN_GHOST_ENTRIES: u64 = 8;
/// The result of `WorthSlot::share` for an entry that takes its full size in the cache.
const UNIT: u64 = 1024;

#[derive(Clone, Default)]
struct WorthSlot {
    key_hash: u64,
    size: u64,
    charged: u64,
    uses: u8,
    is_main: bool,
}

impl WorthSlot {
    /// Returns which part of its size this entry takes in the cache, in units of `1/UNIT`. An entry
    /// of a miniature (a small simulated cache) may take only a part of its size. Sums and means
    /// then count it as this part of an entry.
    fn share(&self) -> u64 {
        (u128::from(self.charged.max(1)) * u128::from(UNIT) / u128::from(self.size.max(1))) as u64
    }
}

pub(super) struct Webcosm {
    links: Vec<Links>,
    slots: Vec<WorthSlot>,
    main: Lru,
    probation: Lru,
    probation_bytes: u64,
    capacity: u64,
    /// Whether the cache was ever full. Until then, all new entries enter the main queue.
    was_full: bool,
    /// The allowance: number of bytes that may still be kept, counted in quarters of a byte. A
    /// large entry can make the number negative.
    allowance: i128,
    /// The sum of `WorthSlot::share` over all entries.
    shares: u128,
    /// The sum of `WorthSlot::share` times size in bytes over all entries.
    weighted_sizes: u128,
    ghost: RecentlyEvicted,
    /// The entry that `victim` returned last. `None` if this entry was removed.
    named: Option<u32>,
}

impl Webcosm {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let ghost = (settings.capacity / GHOST_BYTES).max(MIN_GHOST_ENTRIES) * UNIT;
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            main: Lru::default(),
            probation: Lru::default(),
            probation_bytes: 0,
            capacity: settings.capacity,
            was_full: false,
            allowance: 0,
            shares: 0,
            weighted_sizes: 0,
            ghost: RecentlyEvicted::new(ghost),
            named: None,
        }
    }

    fn distance(&self, size: u64) -> Distance {
        let mean = self.weighted_sizes / self.shares.max(1);
        Distance::between(size, u64::try_from(mean).unwrap_or(u64::MAX))
    }

    fn push(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        if slot.is_main {
            self.main.push(&mut self.links, entry);
        } else {
            self.probation_bytes += slot.charged;
            self.probation.push(&mut self.links, entry);
        }
    }

    fn unlink(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        if slot.is_main {
            self.main.remove(&mut self.links, entry);
        } else {
            self.probation_bytes -= slot.charged;
            self.probation.remove(&mut self.links, entry);
        }
    }

    /// Returns the oldest entry of probation if probation has more than 1/`PROBATION_SHARE` of the
    /// space. Otherwise returns the oldest entry of the main queue.
    fn oldest(&self) -> Option<u32> {
        let is_over = self.probation_bytes > self.capacity / PROBATION_SHARE;
        let probation = self.probation.coldest();
        probation.filter(|_| is_over).or_else(|| self.main.coldest()).or(probation)
    }

    fn allow(&mut self, quarters: u64) {
        let most = i128::from(4 * (self.capacity / ALLOWANCE_SHARE));
        let more = self.allowance + i128::from(quarters);
        self.allowance = more.min(most.max(self.allowance));
    }
}

impl Policy for Webcosm {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        self.insert_sampled(entry, key_hash, size, size);
    }

    fn insert_sampled(&mut self, entry: u32, key_hash: u64, size: u64, charged: u64) {
        let distance = self.distance(size);
        let is_proven = self.ghost.take(key_hash);
        let fits_probation = charged <= self.capacity / PROBATION_SHARE / 2;
        let must_prove = self.was_full && distance.is_large() && !is_proven && fits_probation;
        let slot = WorthSlot {
            key_hash,
            size,
            charged,
            uses: distance.first_uses(),
            is_main: !must_prove,
        };
        self.shares += u128::from(slot.share());
        self.weighted_sizes += u128::from(slot.share()) * u128::from(size);
        *slot_of(&mut self.slots, entry) = slot;
        slot_of(&mut self.links, entry);
        self.push(entry);
    }

    fn touch(&mut self, entry: u32) {
        let slot = &mut self.slots[entry as usize];
        slot.uses = MAX_USES.min(slot.uses + 1);
        let quarters = 4 * slot.charged / HIT_BYTES_PER_KEPT;
        self.allow(quarters);
    }

    fn victim(&mut self) -> Option<u32> {
        self.was_full = true;
        loop {
            let oldest = self.oldest()?;
            if self.named == Some(oldest) {
                return self.named;
            }
            let WorthSlot { size, charged, uses, .. } = self.slots[oldest as usize];
            self.allow(4 * charged / BASE_SHARE);
            match self.distance(size).uses_after_copy(uses) {
                Some(uses) if self.allowance > 0 => {
                    self.allowance -= 4 * i128::from(charged);
                    self.unlink(oldest);
                    let slot = &mut self.slots[oldest as usize];
                    (slot.uses, slot.is_main) = (uses, true);
                    self.push(oldest);
                }
                _ => self.named = Some(oldest),
            }
        }
    }

    fn remove(&mut self, entry: u32) {
        self.unlink(entry);
        let slot = &self.slots[entry as usize];
        self.shares -= u128::from(slot.share());
        self.weighted_sizes -= u128::from(slot.share()) * u128::from(slot.size);
        if self.named == Some(entry) {
            self.named = None;
            if !slot.is_main {
                self.ghost.push(slot.key_hash, slot.share());
            }
        }
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        let mut all = self.probation.coldest_first(&mut self.links);
        all.append(&mut self.main.coldest_first(&mut self.links));
        all
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
            + self.slots.capacity() * size_of::<WorthSlot>()
            + self.ghost.memory()
    }
}

/// The ghost: hashes of entries that probation evicted. Each hash has the `WorthSlot::share` of its
/// entry, and the sum of these shares is at most `limit`.
struct RecentlyEvicted {
    /// The hashes with their shares and sequence numbers, oldest first. A hash that `take` removed
    /// stays here until it is the oldest.
    queue: VecDeque<(u64, u64, u64)>,
    /// The hashes that `take` has not removed, each with its sequence number in `queue`.
    known: HashTable<(u64, u64)>,
    shares: u64,
    limit: u64,
    next: u64,
}

impl RecentlyEvicted {
    fn new(limit: u64) -> Self {
        Self { queue: VecDeque::new(), known: HashTable::new(), shares: 0, limit, next: 0 }
    }

    fn push(&mut self, key_hash: u64, share: u64) {
        self.take(key_hash);
        self.known.insert_unique(key_hash, (key_hash, self.next), |known| known.0);
        self.queue.push_back((key_hash, share, self.next));
        self.shares += share;
        self.next += 1;
        while self.shares > self.limit
            && let Some((key_hash, share, number)) = self.queue.pop_front()
        {
            self.shares -= share;
            let same = |known: &(u64, u64)| *known == (key_hash, number);
            if let Ok(found) = self.known.find_entry(key_hash, same) {
                found.remove();
            }
        }
    }

    /// Removes a hash from the ghost. Returns whether the ghost contained it.
    fn take(&mut self, key_hash: u64) -> bool {
        let found = self.known.find_entry(key_hash, |known| known.0 == key_hash);
        found.map(|found| found.remove()).is_ok()
    }

    fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<(u64, u64, u64)>()
            + self.known.capacity() * (size_of::<(u64, u64)>() + 1)
    }
}
