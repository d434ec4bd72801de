//! How often hashes were seen lately, about: a count-min sketch of four rows of four-bit counters,
//! halved after every ten additions an entry. It grows with the number of entries by doubling,
//! which keeps every estimate as it was.

use foxy_base::random::split_mix;

const ROWS: usize = 4;
const COUNTER_BITS: usize = 4;
const COUNTER_LIMIT: u8 = 15;
const COUNTERS_PER_WORD: usize = 64 / COUNTER_BITS;
/// All bits of a word but the highest of each counter.
const HALVED: u64 = 0x7777_7777_7777_7777;
/// Counters in a row for each entry, so that few entries share one.
const COUNTERS_PER_ENTRY: usize = 4;
/// Additions for each entry between two halvings.
const SAMPLE_PER_ENTRY: u64 = 10;
const LEAST_ENTRIES: usize = 16;

/// The sketch.
pub(in crate::policy) struct Sketch {
    rows: [Vec<u64>; ROWS],
    /// The most entries it was ever to fit.
    entries: usize,
    additions: u64,
}

impl Default for Sketch {
    fn default() -> Self {
        let words = LEAST_ENTRIES * COUNTERS_PER_ENTRY / COUNTERS_PER_WORD;
        Self { rows: std::array::from_fn(|_| vec![0; words]), entries: LEAST_ENTRIES, additions: 0 }
    }
}

/// Where a row keeps a hash: the word, and the shift of the counter in it.
fn counter(row: usize, words: usize, halves: [u32; ROWS]) -> (usize, usize) {
    let at = halves[row] as usize & (words * COUNTERS_PER_WORD - 1);
    (at / COUNTERS_PER_WORD, at % COUNTERS_PER_WORD * COUNTER_BITS)
}

/// A number for each row.
fn spread(key_hash: u64) -> [u32; ROWS] {
    let (a, b) = (key_hash, split_mix(&mut key_hash.clone()));
    [a as u32, (a >> 32) as u32, b as u32, (b >> 32) as u32]
}

impl Sketch {
    /// Makes sure that it is wide enough for so many entries.
    pub(in crate::policy) fn fit(&mut self, entries: usize) {
        self.entries = self.entries.max(entries);
        while self.rows[0].len() * COUNTERS_PER_WORD < self.entries * COUNTERS_PER_ENTRY {
            for row in &mut self.rows {
                row.extend_from_within(..);
            }
        }
    }

    /// Counts a use.
    pub(in crate::policy) fn add(&mut self, key_hash: u64) {
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

    /// Uses counted, 0 to 15; never less than there were since the counters were last cut.
    pub(in crate::policy) fn frequency(&self, key_hash: u64) -> u8 {
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

    /// Memory taken in bytes.
    pub(in crate::policy) fn memory(&self) -> usize {
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
