//! A bitmap with one bit for each unit of disk space, for maps of a store. All methods process
//! whole words of 64 bits, because a large store has hundreds of millions of units.

use std::ops::Range;

const WORD: u64 = 64;

#[derive(Clone, Debug, Default)]
pub struct Bits(Vec<u64>);

impl Bits {
    /// Creates a bitmap of `count` bits that are 0.
    pub fn new(count: u64) -> Self {
        Self(vec![0; usize::try_from(count.div_ceil(WORD)).unwrap_or(0)])
    }

    /// Returns the memory of the bitmap in bytes.
    #[cfg(test)]
    pub fn memory(&self) -> usize {
        self.0.len() * 8
    }

    /// Sets the bits of the range to 1. Ignores bits after the end of the bitmap.
    pub fn set(&mut self, range: Range<u64>) {
        for (word, mask) in words(range) {
            if let Some(bits) = self.0.get_mut(word) {
                *bits |= mask;
            }
        }
    }

    /// Returns the number of bits of the range that are 1.
    pub fn count(&self, range: Range<u64>) -> u64 {
        words(range).map(|(word, mask)| u64::from((self.word(word) & mask).count_ones())).sum()
    }

    /// Returns the runs of bits of the range that are 0, from the first to the last.
    pub fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = Range<u64>> + '_ {
        let mut at = range.start;
        std::iter::from_fn(move || {
            let start = self.next(at, range.end, 0);
            let end = self.next(start, range.end, u64::MAX);
            at = end;
            (start < end).then_some(start..end)
        })
    }

    fn word(&self, word: usize) -> u64 {
        self.0.get(word).copied().unwrap_or(0)
    }

    /// Returns the first bit from `at` on that is 0 (if `wanted` is 0) or 1 (if all bits of
    /// `wanted` are 1). Returns `end` if no such bit exists.
    fn next(&self, at: u64, end: u64, wanted: u64) -> u64 {
        for (word, mask) in words(at..end) {
            let found = !(self.word(word) ^ wanted) & mask;
            if found != 0 {
                return word as u64 * WORD + u64::from(found.trailing_zeros());
            }
        }
        end
    }
}

/// Splits a range of bits at the 64-bit words of the bitmap. Returns the index of each word, and a
/// mask of the range's bits in the word.
fn words(range: Range<u64>) -> impl Iterator<Item = (usize, u64)> {
    let Range { start, end } = range;
    let words = if start < end { start / WORD..end.div_ceil(WORD) } else { 0..0 };
    words.map(move |word| {
        let first = word * WORD;
        let low = u64::MAX << start.saturating_sub(first);
        let high = u64::MAX >> (first + WORD).saturating_sub(end);
        (word as usize, low & high)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    #[test]
    fn ranges_of_bits_are_as_in_a_list_of_booleans() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let all = 1 + random.below(300);
            let (mut bits, mut model) = (Bits::new(all), vec![false; all as usize]);
            let mut range = || {
                let start = random.below(all);
                start..start + random.below(all - start + 1)
            };
            for _ in 0..6 {
                let set = range();
                bits.set(set.clone());
                model[set.start as usize..set.end as usize].fill(true);
            }
            let part = range();
            let listed = &model[part.start as usize..part.end as usize];
            let count = listed.iter().filter(|bit| **bit).count() as u64;
            assert_eq!(bits.count(part.clone()), count, "seed {seed}");
            let gaps: Vec<_> = bits.gaps(part.clone()).collect();
            assert!(gaps.windows(2).all(|two| two[0].end < two[1].start), "seed {seed}: {gaps:?}");
            let free: Vec<_> = gaps.into_iter().flatten().collect();
            let expected: Vec<_> = part.filter(|bit| !model[*bit as usize]).collect();
            assert_eq!(free, expected, "seed {seed}");
        }
    }
}
