//! The index: where each record lies, eight bytes a record. It knows no keys, only 22 more bits of their hash than say the
//! partition, so it is a hint that every read verifies; of two records that it cannot tell apart it knows the newer.
//! A partition is a sorted array, so there is no load factor and nothing that can overflow.

use super::geometry::PLACE_BITS;
use crate::worth::MOST_USES;

/// Bits of a tag that tell the records of one partition apart.
pub const FINGERPRINT_BITS: u32 = 22;

/// A key as the index knows it: the partition's bits, then the fingerprint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

const CLASS_BITS: u32 = 6;
const USE_BITS: u32 = 2;

/// Page counts up to this are remembered exactly, larger ones in steps of [`CLASS_STEP`].
const EXACT_CLASSES: u32 = 32;
const CLASS_STEP: u32 = 8;

/// How a record is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// In a page with others, which is searched for its key.
    Packed,
    /// On its own, over that many pages or somewhat fewer.
    Pages(u32),
}

impl Extent {
    /// Pages to read.
    #[must_use]
    pub const fn pages(self) -> u32 {
        match self {
            Self::Packed => 1,
            Self::Pages(pages) => pages,
        }
    }

    /// The six bits that stand for it.
    #[must_use]
    pub const fn class(self) -> u8 {
        match self {
            Self::Packed => 0,
            Self::Pages(pages) if pages <= EXACT_CLASSES => pages as u8,
            Self::Pages(pages) => (EXACT_CLASSES + (pages - EXACT_CLASSES).div_ceil(CLASS_STEP)) as u8,
        }
    }

    /// What six bits stand for.
    #[must_use]
    pub const fn of_class(class: u8) -> Self {
        match class as u32 {
            0 => Self::Packed,
            class if class <= EXACT_CLASSES => Self::Pages(class),
            class => Self::Pages(EXACT_CLASSES + (class - EXACT_CLASSES) * CLASS_STEP),
        }
    }
}

/// The most pages a record may take.
pub const MOST_PAGES: u32 = EXACT_CLASSES + ((1 << CLASS_BITS) - 1 - EXACT_CLASSES) * CLASS_STEP;

/// What the index knows of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The granule at which it begins; of a packed one, its page.
    pub place: u64,
    /// How it is stored.
    pub extent: Extent,
    /// Gets since it was written, up to [`MOST_USES`].
    pub uses: u8,
}

impl Known {
    fn pack(self, fingerprint: u64) -> u64 {
        let rest = self.place << (CLASS_BITS + USE_BITS) | u64::from(self.extent.class()) << USE_BITS;
        fingerprint << (64 - FINGERPRINT_BITS) | rest | u64::from(self.uses)
    }

    fn unpack(word: u64) -> Self {
        Self {
            place: (word >> (CLASS_BITS + USE_BITS)) & ((1 << PLACE_BITS) - 1),
            extent: Extent::of_class((word >> USE_BITS) as u8 & ((1 << CLASS_BITS) - 1)),
            uses: word as u8 & MOST_USES,
        }
    }
}

/// The index.
#[derive(Debug)]
pub struct Index {
    partitions: Vec<Vec<u64>>,
    bits: u32,
    len: u64,
    capacity: u64,
}

impl Index {
    /// An empty index of two to the power of `bits` partitions.
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self { partitions: vec![Vec::new(); 1 << bits], bits, len: 0, capacity: 0 }
    }

    /// The tag of a key with that hash.
    #[must_use]
    pub const fn tag(&self, hash: u64) -> Tag {
        Tag(hash >> (64 - self.bits - FINGERPRINT_BITS))
    }

    /// Records it knows.
    #[must_use]
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Bytes of memory it takes.
    #[must_use]
    pub const fn memory(&self) -> u64 {
        self.capacity * 8 + self.partitions.len() as u64 * size_of::<Vec<u64>>() as u64
    }

    fn seek(&self, tag: Tag) -> (usize, Result<usize, usize>) {
        let partition = (tag.0 >> FINGERPRINT_BITS) as usize;
        let fingerprint = tag.0 & ((1 << FINGERPRINT_BITS) - 1);
        let found = self.partitions[partition]
            .binary_search_by_key(&fingerprint, |word| word >> (64 - FINGERPRINT_BITS));
        (partition, found)
    }

    /// What is known of a tag.
    #[must_use]
    pub fn get(&self, tag: Tag) -> Option<Known> {
        let (partition, found) = self.seek(tag);
        found.ok().map(|place| Known::unpack(self.partitions[partition][place]))
    }

    /// Counts a get.
    pub fn touch(&mut self, tag: Tag) {
        let (partition, found) = self.seek(tag);
        if let Ok(place) = found {
            let word = &mut self.partitions[partition][place];
            *word += u64::from(*word as u8 & MOST_USES != MOST_USES);
        }
    }

    /// Learns of a record; what it knew under that tag is forgotten.
    pub fn insert(&mut self, tag: Tag, known: Known) {
        let (partition, found) = self.seek(tag);
        let word = known.pack(tag.0 & ((1 << FINGERPRINT_BITS) - 1));
        let words = &mut self.partitions[partition];
        match found {
            Ok(place) => words[place] = word,
            Err(place) => {
                if words.len() == words.capacity() {
                    self.capacity -= words.capacity() as u64;
                    words.reserve_exact(words.len() / 16 + 4);
                    self.capacity += words.capacity() as u64;
                }
                words.insert(place, word);
                self.len += 1;
            }
        }
    }

    /// Forgets a tag if it stands for the record at that place.
    pub fn remove_at(&mut self, tag: Tag, place: u64) -> bool {
        let (partition, found) = self.seek(tag);
        let Ok(at) = found else { return false };
        if Known::unpack(self.partitions[partition][at]).place != place {
            return false;
        }
        self.partitions[partition].remove(at);
        self.len -= 1;
        self.shrink(partition);
        true
    }

    /// Forgets every record that begins in a range of places. It looks at all entries.
    pub fn remove_range(&mut self, places: &std::ops::Range<u64>) -> u64 {
        let before = self.len;
        for partition in 0..self.partitions.len() {
            let words = &mut self.partitions[partition];
            let count = words.len();
            words.retain(|&word| !places.contains(&Known::unpack(word).place));
            self.len -= (count - words.len()) as u64;
            self.shrink(partition);
        }
        before - self.len
    }

    fn shrink(&mut self, partition: usize) {
        let words = &mut self.partitions[partition];
        let wanted = words.len() + words.len() / 16 + 4;
        if words.capacity() > wanted + words.len() / 4 + 16 {
            self.capacity -= words.capacity() as u64;
            words.shrink_to(wanted);
            self.capacity += words.capacity() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;
    use std::collections::BTreeMap;

    fn known(place: u64, pages: u32) -> Known {
        Known { place, extent: Extent::Pages(pages), uses: 0 }
    }

    #[test]
    fn it_agrees_with_a_plain_map_and_stays_within_ten_bytes_a_record() {
        let mut random = Random::new(1);
        let (mut index, mut map) = (Index::new(4), BTreeMap::new());
        for step in 0..60_000 {
            let tag = index.tag(random.next_u64());
            index.insert(tag, known(step, 1 + (step % 30) as u32));
            map.insert(tag, step);
            if step % 3 == 0 {
                let (&tag, &place) = map.iter().next().expect("something is in");
                assert!(!index.remove_at(tag, place + 1), "another record of the tag is left alone");
                assert!(index.remove_at(tag, place));
                map.remove(&tag);
            }
        }
        assert_eq!(index.len(), map.len() as u64);
        for (&tag, &place) in &map {
            assert_eq!(index.get(tag), Some(known(place, 1 + (place % 30) as u32)));
        }
        assert!(index.memory() < 10 * index.len(), "{} bytes for {}", index.memory(), index.len());
        let gone = map.values().filter(|&&place| place < 40_000).count() as u64;
        assert_eq!(index.remove_range(&(0..40_000)), gone);
        assert_eq!(index.len(), map.len() as u64 - gone);
    }

    #[test]
    fn uses_are_counted_up_to_their_limit() {
        let mut index = Index::new(2);
        let tag = index.tag(77 << 40);
        index.touch(tag);
        assert_eq!(index.get(tag), None);
        index.insert(tag, known(5, 3));
        for expected in [1, 2, 3, 3] {
            index.touch(tag);
            assert_eq!(index.get(tag).map(|known| known.uses), Some(expected));
        }
        assert_eq!(index.get(tag).map(|known| (known.place, known.extent)), Some((5, Extent::Pages(3))));
    }

    #[test]
    fn a_class_never_stands_for_fewer_pages_than_it_was_made_from() {
        for pages in 1..=MOST_PAGES {
            let read = Extent::of_class(Extent::Pages(pages).class()).pages();
            assert!((pages..pages + CLASS_STEP).contains(&read), "{pages} {read}");
        }
        assert_eq!(Extent::of_class(Extent::Packed.class()), Extent::Packed);
    }
}
