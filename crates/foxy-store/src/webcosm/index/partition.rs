//! A partition of the index: a sorted list of 64-bit words, one per record. A large partition is
//! split into several arrays by the first bits of the words, so that an insert moves few words.

use crate::webcosm::index::chunked_array::{ChunkedArray, Pool};

/// If the arrays of a partition have more than this number of words (index entries) on average, the
/// partition doubles the number of its arrays.
const MAX_MEAN_WORDS: usize = 512;
/// If the arrays of a partition have fewer than this number of words (index entries) on average,
/// the partition halves the number of its arrays.
const MIN_MEAN_WORDS: usize = 64;

/// The position of a word in a partition: the number of the array, and the index in this array. A
/// partition has one or several arrays of words.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    array: usize,
    at: usize,
}

/// A partition of the index, a sorted list of words. The highest `KEY_BITS` bits of a word are its
/// key, by which the words are sorted.
#[derive(Clone, Debug)]
pub enum Partition<const KEY_BITS: u32> {
    /// All words (index entries) of the partition are in one array.
    Whole(ChunkedArray),
    /// The words are split into several arrays by their first bits. The number of arrays is a power
    /// of two.
    Split(Box<[ChunkedArray]>),
}

impl<const KEY_BITS: u32> Default for Partition<KEY_BITS> {
    fn default() -> Self {
        Self::Whole(ChunkedArray::default())
    }
}

impl<const KEY_BITS: u32> Partition<KEY_BITS> {
    const fn arrays(&self) -> &[ChunkedArray] {
        match self {
            Self::Whole(words) => std::slice::from_ref(words),
            Self::Split(arrays) => arrays,
        }
    }

    const fn arrays_mut(&mut self) -> &mut [ChunkedArray] {
        match self {
            Self::Whole(words) => std::slice::from_mut(words),
            Self::Split(arrays) => arrays,
        }
    }

    pub fn len(&self) -> usize {
        self.arrays().iter().map(ChunkedArray::len).sum()
    }

    pub fn words<'a>(&'a self, pool: &'a Pool) -> impl Iterator<Item = u64> + 'a {
        self.arrays().iter().flat_map(|words| (0..words.len()).map(|at| words.get(pool, at)))
    }

    /// Returns the place of a key in the partition, and the word with this key, if any.
    pub fn seek(&self, pool: &Pool, key: u64) -> (Place, Option<u64>) {
        let arrays = self.arrays();
        let bits = KEY_BITS - arrays.len().ilog2();
        let (array, rest) = ((key >> bits) as usize, key & ((1 << bits) - 1));
        let words = &arrays[array];
        // Keys are parts of hashes, which spread evenly. So the value of a key predicts its index
        // in the sorted array.
        let guess = (rest * words.len() as u64) >> bits;
        let at = words.seek(pool, guess as usize, |word| Self::key(word) < key);
        let word = (at < words.len()).then(|| words.get(pool, at));
        (Place { array, at }, word.filter(|&word| Self::key(word) == key))
    }

    const fn key(word: u64) -> u64 {
        word >> (u64::BITS - KEY_BITS)
    }

    /// Replaces the word (index entry) at a place. The new word must have the same key.
    pub fn set(&self, pool: &mut Pool, place: Place, word: u64) {
        self.arrays()[place.array].set(pool, place.at, word);
    }

    /// Adds a word (an index entry) at the place that [`Partition::seek`] returned for its key.
    pub fn insert(&mut self, pool: &mut Pool, place: Place, word: u64) {
        let arrays = self.arrays_mut();
        arrays[place.array].insert(pool, place.at, word);
        let (array, count) = (arrays[place.array].len(), arrays.len());
        if array > MAX_MEAN_WORDS && self.len() > MAX_MEAN_WORDS * count && count < 1 << KEY_BITS {
            self.rearrange(pool, 2 * count);
        }
    }

    pub fn remove(&mut self, pool: &mut Pool, place: Place) {
        self.arrays_mut()[place.array].remove(pool, place.at);
        self.join_if_few(pool);
    }

    /// Removes all words for which `keep` returns false. Keeps the order of the other words.
    pub fn retain(&mut self, pool: &mut Pool, keep: impl Fn(u64) -> bool) {
        for words in self.arrays_mut() {
            words.retain(pool, &keep);
        }
        self.join_if_few(pool);
    }

    fn join_if_few(&mut self, pool: &mut Pool) {
        let count = self.arrays().len();
        if count > 1 && self.len() < MIN_MEAN_WORDS * count {
            self.rearrange(pool, count / 2);
        }
    }

    /// Splits the words (index entries) into `count` arrays. `count` is a power of two.
    fn rearrange(&mut self, pool: &mut Pool, count: usize) {
        let mut arrays = vec![ChunkedArray::default(); count];
        for words in self.arrays_mut() {
            for at in 0..words.len() {
                let word = words.get(pool, at);
                let array = &mut arrays[(Self::key(word) >> (KEY_BITS - count.ilog2())) as usize];
                array.insert(pool, array.len(), word);
            }
            words.clear(pool);
        }
        let was = self.list();
        *self = match count {
            1 => Self::Whole(arrays.remove(0)),
            _ => Self::Split(arrays.into_boxed_slice()),
        };
        pool.count_list(was, self.list());
    }

    const fn list(&self) -> usize {
        match self {
            Self::Whole(_) => 0,
            Self::Split(arrays) => size_of_val::<[ChunkedArray]>(arrays),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;
    use std::collections::BTreeMap;

    const KEY_BITS: u32 = 22;

    fn agree(partition: &Partition<KEY_BITS>, pool: &Pool, plain: &BTreeMap<u64, u64>) {
        assert_eq!(partition.len(), plain.len());
        assert!(partition.words(pool).eq(plain.values().copied()));
        let arrays = partition.arrays().len();
        assert!(plain.len() <= MAX_MEAN_WORDS * arrays, "{} words in {arrays}", plain.len());
        assert!(
            arrays == 1 || plain.len() >= MIN_MEAN_WORDS * arrays,
            "{} words in {arrays}",
            plain.len()
        );
    }

    #[test]
    fn a_partition_has_as_many_arrays_as_its_words_need_while_they_come_and_go() {
        let mut random = Random::new(3);
        let (mut pool, mut partition, mut plain) =
            (Pool::default(), Partition::<KEY_BITS>::default(), BTreeMap::new());
        for step in 0..20_000_u64 {
            let (key, low) = (random.below(1 << KEY_BITS), step);
            let word = key << (u64::BITS - KEY_BITS) | low;
            match partition.seek(&pool, key) {
                (place, Some(_)) => partition.set(&mut pool, place, word),
                (place, None) => partition.insert(&mut pool, place, word),
            }
            plain.insert(key, word);
        }
        agree(&partition, &pool, &plain);
        assert_eq!(
            partition.arrays().len(),
            64,
            "of 20,000 words at most 512 in each, in the mean"
        );
        partition.retain(&mut pool, |word| word % 4 == 0);
        plain.retain(|_, word| *word % 4 == 0);
        agree(&partition, &pool, &plain);
        while let Some((key, _)) = plain.pop_last() {
            let (place, word) = partition.seek(&pool, key);
            assert!(word.is_some());
            partition.remove(&mut pool, place);
            agree(&partition, &pool, &plain);
        }
        assert_eq!(partition.arrays().len(), 1);
    }

    #[test]
    fn keys_that_share_their_first_bits_are_found_in_one_long_array() {
        let (mut pool, mut partition) = (Pool::default(), Partition::<KEY_BITS>::default());
        for key in 0..2_000 {
            let (place, word) = partition.seek(&pool, key);
            assert_eq!(word, None);
            partition.insert(&mut pool, place, key << (u64::BITS - KEY_BITS));
        }
        assert!(partition.words(&pool).eq((0..2_000).map(|key| key << (u64::BITS - KEY_BITS))));
    }
}
