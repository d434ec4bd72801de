//! W-TinyLFU (Einziger, Friedman and Manes, ACM ToS 2017), with limits in bytes. New entries enter
//! the window, an LRU list with a hundredth of the space. The other space belongs to a segmented
//! LRU: a protected and a probation list. An entry that is hit in probation becomes protected. The
//! protected list has at most four fifths of this space.
//!
//! An entry that leaves the window is a candidate for the segmented LRU. The sketch estimates how
//! often the candidate and the next victim of the segmented LRU were used. If the candidate has
//! more uses, the victim is evicted, otherwise the candidate. If the cache has space until the next
//! insertion, the candidate stays without a comparison. So an owner that evicts in batches compares
//! fewer candidates.

use super::{Policy, PolicySettings, slot_of};
use crate::lru::{Links, Lru};
use foxy_base::random::split_mix;

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Segment {
    #[default]
    Window,
    Candidate,
    Probation,
    Protected,
}

#[derive(Clone, Default)]
struct LfuSlot {
    key_hash: u64,
    size: u64,
    segment: Segment,
}

#[derive(Default)]
struct Queue {
    order: Lru,
    bytes: u64,
}

pub(super) struct WTinyLfu {
    links: Vec<Links>,
    slots: Vec<LfuSlot>,
    queues: [Queue; 4],
    window_target: u64,
    protected_target: u64,
    sketch: Sketch,
    entries: usize,
}

impl WTinyLfu {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let window_target = settings.capacity / 100;
        Self {
            links: Vec::new(),
            slots: Vec::new(),
            queues: Default::default(),
            window_target,
            protected_target: (settings.capacity - window_target) / 5 * 4,
            sketch: Sketch::default(),
            entries: 0,
        }
    }

    fn coldest(&self, segment: Segment) -> Option<u32> {
        self.queues[segment as usize].order.coldest()
    }

    fn bytes(&self, segment: Segment) -> u64 {
        self.queues[segment as usize].bytes
    }

    fn push(&mut self, entry: u32, segment: Segment) {
        let slot = &mut self.slots[entry as usize];
        slot.segment = segment;
        let queue = &mut self.queues[segment as usize];
        queue.bytes += slot.size;
        queue.order.push(&mut self.links, entry);
    }

    fn unlink(&mut self, entry: u32) {
        let slot = &self.slots[entry as usize];
        let queue = &mut self.queues[slot.segment as usize];
        queue.bytes -= slot.size;
        queue.order.remove(&mut self.links, entry);
    }

    fn shift(&mut self, entry: u32, to: Segment) {
        self.unlink(entry);
        self.push(entry, to);
    }

    /// Moves the least recently used entries of segment `from` to segment `to` while `from` has
    /// more than `target` bytes.
    fn overflow(&mut self, from: Segment, target: u64, to: Segment) {
        while self.bytes(from) > target
            && let Some(entry) = self.coldest(from)
        {
            self.shift(entry, to);
        }
    }

    fn frequency(&self, entry: u32) -> u8 {
        self.sketch.frequency(self.slots[entry as usize].key_hash)
    }
}

impl Policy for WTinyLfu {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        while let Some(candidate) = self.coldest(Segment::Candidate) {
            self.shift(candidate, Segment::Probation);
        }
        self.entries += 1;
        self.sketch.fit(self.entries);
        self.sketch.add(key_hash);
        slot_of(&mut self.links, entry);
        *slot_of(&mut self.slots, entry) = LfuSlot { key_hash, size, segment: Segment::Window };
        self.push(entry, Segment::Window);
        self.overflow(Segment::Window, self.window_target, Segment::Candidate);
    }

    fn touch(&mut self, entry: u32) {
        let LfuSlot { key_hash, segment, .. } = self.slots[entry as usize];
        self.sketch.add(key_hash);
        let to = if segment == Segment::Window { Segment::Window } else { Segment::Protected };
        self.shift(entry, to);
        self.overflow(Segment::Protected, self.protected_target, Segment::Probation);
    }

    fn victim(&mut self) -> Option<u32> {
        let incumbent =
            self.coldest(Segment::Probation).or_else(|| self.coldest(Segment::Protected));
        match (self.coldest(Segment::Candidate), incumbent) {
            (Some(candidate), Some(incumbent)) => {
                let admitted = self.frequency(candidate) > self.frequency(incumbent);
                Some(if admitted { incumbent } else { candidate })
            }
            (candidate, incumbent) => {
                candidate.or(incumbent).or_else(|| self.coldest(Segment::Window))
            }
        }
    }

    fn remove(&mut self, entry: u32) {
        self.unlink(entry);
        self.entries -= 1;
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        let segments =
            [Segment::Candidate, Segment::Probation, Segment::Protected, Segment::Window];
        let (links, queues) = (&mut self.links, &self.queues);
        segments
            .iter()
            .flat_map(|&segment| queues[segment as usize].order.coldest_first(links))
            .collect()
    }

    fn memory(&self) -> usize {
        self.links.capacity() * size_of::<Links>()
            + self.slots.capacity() * size_of::<LfuSlot>()
            + self.sketch.memory()
    }
}

const ROWS: usize = 4;
const COUNTER_BITS: usize = 4;
const COUNTER_LIMIT: u8 = 15;
const COUNTERS_PER_WORD: usize = 64 / COUNTER_BITS;
/// A mask that halves all 16 counters of a word. A shift by one bit moves a bit of each counter
/// into its neighbour. The mask clears these bits.
const HALVED: u64 = 0x7777_7777_7777_7777;
/// Number of counters in each row of the sketch per cached entry. Four per entry keep hash
/// collisions rare.
const COUNTERS_PER_ENTRY: usize = 4;
/// Number of counted uses per cached entry after which all counters are halved, so that old uses
/// lose weight.
const SAMPLE_PER_ENTRY: u64 = 10;
const MIN_ENTRIES: usize = 16;

/// A count-min sketch: four rows of four-bit counters. Each use of a key raises one counter per
/// row, which the key's hash selects. The smallest of the four counters estimates the key's recent
/// uses. The sketch grows by doubling each row, which preserves every estimate.
pub(super) struct Sketch {
    rows: [Vec<u64>; ROWS],
    /// Largest number of cached entries since the start.
    entries: usize,
    additions: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        let words = MIN_ENTRIES * COUNTERS_PER_ENTRY / COUNTERS_PER_WORD;
        Self { rows: std::array::from_fn(|_| vec![0; words]), entries: MIN_ENTRIES, additions: 0 }
    }
}

/// Returns the place of a hash's counter in a row: the index of the word and the bit shift within
/// the word.
fn counter(row: usize, words: usize, halves: [u32; ROWS]) -> (usize, usize) {
    let at = halves[row] as usize & (words * COUNTERS_PER_WORD - 1);
    (at / COUNTERS_PER_WORD, at % COUNTERS_PER_WORD * COUNTER_BITS)
}

fn spread(key_hash: u64) -> [u32; ROWS] {
    let (a, b) = (key_hash, split_mix(&mut key_hash.clone()));
    [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]
}

impl Sketch {
    /// Enlarges the sketch so that it has enough counters for this number of cached entries.
    pub(super) fn fit(&mut self, entries: usize) {
        self.entries = self.entries.max(entries);
        while self.rows[0].len() * COUNTERS_PER_WORD < self.entries * COUNTERS_PER_ENTRY {
            for row in &mut self.rows {
                row.extend_from_within(..);
            }
        }
    }

    pub(super) fn add(&mut self, key_hash: u64) {
        let halves = spread(key_hash);
        let mut counted = false;
        for (row, words) in self.rows.iter_mut().enumerate() {
            let (word, shift) = counter(row, words.len(), halves);
            if (words[word] >> shift) as u8 & COUNTER_LIMIT < COUNTER_LIMIT {
                words[word] += 1 << shift;
                counted = true;
            }
        }
        self.additions += u64::from(counted);
        if self.additions >= SAMPLE_PER_ENTRY * self.entries as u64 {
            self.halve();
        }
    }

    /// Returns the estimated number of recent uses, from 0 to 15. Hash collisions can only raise
    /// the estimate.
    pub(super) fn frequency(&self, key_hash: u64) -> u8 {
        let halves = spread(key_hash);
        let counters = self.rows.iter().enumerate().map(|(row, words)| {
            let (word, shift) = counter(row, words.len(), halves);
            (words[word] >> shift) as u8 & COUNTER_LIMIT
        });
        counters.min().unwrap_or(0)
    }

    fn halve(&mut self) {
        self.additions /= 2;
        for word in self.rows.iter_mut().flatten() {
            *word = (*word >> 1) & HALVED;
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.rows.iter().map(|row| row.capacity() * size_of::<u64>()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn a_use_is_never_undercounted_and_seldom_overcounted() {
        let (mut sketch, mut random) = (Sketch::default(), Random::new(3));
        sketch.fit(1000);
        let keys: Vec<_> = (0..1000).map(|_| random.next_u64()).collect();
        let uses: Vec<_> = (0..1000).map(|nth| u8::try_from(nth % 9).expect("small")).collect();
        for (&key, &uses) in keys.iter().zip(&uses) {
            (0..uses).for_each(|_| sketch.add(key));
        }
        let over =
            keys.iter().zip(&uses).filter(|&(&key, &uses)| sketch.frequency(key) > uses).count();
        assert!(keys.iter().zip(&uses).all(|(&key, &uses)| sketch.frequency(key) >= uses));
        assert!(over < 20, "{over} of 1000");
    }

    #[test]
    fn growing_keeps_every_estimate() {
        let (mut sketch, mut random) = (Sketch::default(), Random::new(4));
        let keys: Vec<_> = (0..100).map(|_| random.next_u64()).collect();
        keys.iter().for_each(|&key| sketch.add(key));
        let estimates =
            |sketch: &Sketch| keys.iter().map(|&key| sketch.frequency(key)).collect::<Vec<_>>();
        let before = estimates(&sketch);
        let memory = sketch.memory();
        sketch.fit(1000);
        assert!(sketch.memory() > memory);
        assert_eq!(estimates(&sketch), before);
    }

    #[test]
    fn counters_stop_at_fifteen_and_are_halved_after_ten_additions_an_entry() {
        let (mut sketch, mut random) = (Sketch::default(), Random::new(5));
        let popular = random.next_u64();
        (0..40).for_each(|_| sketch.add(popular));
        assert_eq!(sketch.frequency(popular), 15);
        while sketch.frequency(popular) == 15 {
            assert!(sketch.additions < 160, "never halved");
            sketch.add(random.next_u64());
        }
        assert_eq!((sketch.frequency(popular), sketch.additions), (7, 80));
    }
}
