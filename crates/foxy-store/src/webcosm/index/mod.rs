//! The index in memory: the place of each record on disk, in eight bytes per record. The index
//! stores no keys, only tags. A tag is a shortened key: the partition number and 22 more bits of
//! the key's hash. Different keys can have the same tag, so a get must verify the key after each
//! read from disk. If two records have the same tag, the index contains only the newer record.

pub(crate) mod chunked_array;
pub(crate) mod partition;
pub(crate) mod shared;

use crate::webcosm::format::geometry::PLACE_BITS;
use crate::webcosm::index::chunked_array::Pool;
use crate::webcosm::index::partition::Place;
use crate::worth::MAX_USES;

/// Number of hash bits in a tag, in addition to the bits of the partition number.
pub const FINGERPRINT_BITS: u32 = 22;

/// A shortened key: the number of the index partition, then 22 more bits of the key's hash
/// (fingerprint).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

impl Tag {
    /// Returns the tag (shortened key) of a hash, in an index with 2^`bits` partitions.
    pub const fn of(hash: u64, bits: u32) -> Self {
        Self(hash >> (64 - bits - FINGERPRINT_BITS))
    }
}

const CLASS_BITS: u32 = 6;
const USE_BITS: u32 = 2;

/// Index entries store a record's number of pages exactly up to this limit. They round larger
/// numbers up in steps of [`CLASS_STEP`] pages.
const EXACT_CLASSES: u32 = 32;
const CLASS_STEP: u32 = 8;

/// How a record is stored: in a page shared with other small records, or in pages of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The record is small and shares a page with other records. A get searches the page for the
    /// key.
    Packed,
    /// A get reads this many pages for the record. For a large record, up to seven of these pages
    /// are not needed, because the number was rounded up.
    Pages(u32),
}

impl Extent {
    /// Returns the number of pages to read for the record.
    pub const fn pages(self) -> u32 {
        match self {
            Self::Packed => 1,
            Self::Pages(pages) => pages,
        }
    }

    /// Returns the extent as a class: a code of six bits for the number of pages.
    pub const fn class(self) -> u8 {
        match self {
            Self::Packed => 0,
            Self::Pages(pages) if pages <= EXACT_CLASSES => pages as u8,
            Self::Pages(pages) => {
                (EXACT_CLASSES + (pages - EXACT_CLASSES).div_ceil(CLASS_STEP)) as u8
            }
        }
    }

    pub const fn of_class(class: u8) -> Self {
        match class as u32 {
            0 => Self::Packed,
            class if class <= EXACT_CLASSES => Self::Pages(class),
            class => Self::Pages(EXACT_CLASSES + (class - EXACT_CLASSES) * CLASS_STEP),
        }
    }
}

/// Number of pages of the largest possible record.
pub const MAX_RECORD_PAGES: u32 =
    EXACT_CLASSES + ((1 << CLASS_BITS) - 1 - EXACT_CLASSES) * CLASS_STEP;

/// The place, size and use counter of a record on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexEntry {
    /// The number of the granule (unit of disk space) where the record starts. For a small record
    /// in a shared page, the granule where the page starts.
    pub place: u64,
    pub extent: Extent,
    /// Number of `get` requests for the record since it was written, but at most [`MAX_USES`].
    pub uses: u8,
}

impl IndexEntry {
    fn pack(self, tag: Tag) -> u64 {
        let fingerprint = tag.0 & ((1 << FINGERPRINT_BITS) - 1);
        let rest =
            self.place << (CLASS_BITS + USE_BITS) | u64::from(self.extent.class()) << USE_BITS;
        fingerprint << (64 - FINGERPRINT_BITS) | rest | u64::from(self.uses)
    }

    fn unpack(word: u64) -> Self {
        Self {
            place: (word >> (CLASS_BITS + USE_BITS)) & ((1 << PLACE_BITS) - 1),
            extent: Extent::of_class((word >> USE_BITS) as u8 & ((1 << CLASS_BITS) - 1)),
            uses: word as u8 & MAX_USES,
        }
    }
}

type Partition = partition::Partition<FINGERPRINT_BITS>;

/// The index: finds the place of a record on disk from the tag (shortened key).
#[derive(Debug)]
pub struct Index {
    partitions: Vec<Partition>,
    pool: Pool,
    bits: u32,
    len: u64,
}

const fn fingerprint(word: u64) -> u64 {
    word >> (64 - FINGERPRINT_BITS)
}

impl Index {
    /// Creates an empty index with 2^`bits` partitions. A partition contains the records with the
    /// same first `bits` bits of the key's hash.
    pub fn new(bits: u32) -> Self {
        Self {
            partitions: vec![Partition::default(); 1 << bits],
            pool: Pool::default(),
            bits,
            len: 0,
        }
    }

    /// Returns the tag (shortened key) of a key with this hash.
    pub const fn tag(&self, hash: u64) -> Tag {
        Tag::of(hash, self.bits)
    }

    /// Returns whether any key can have this tag (shortened key) in this index. A tag read from
    /// disk may be wrong.
    pub const fn can_have(&self, tag: Tag) -> bool {
        tag.0 >> (self.bits + FINGERPRINT_BITS) == 0
    }

    /// Returns the number of records in the index.
    pub const fn len(&self) -> u64 {
        self.len
    }

    /// Returns the size of the index in bytes of memory.
    pub const fn memory(&self) -> u64 {
        self.pool.memory() + (self.partitions.len() * size_of::<Partition>()) as u64
    }

    /// Returns the number of a tag's partition, the place of the tag (shortened key) in the
    /// partition, and its entry, if any.
    fn seek(&self, tag: Tag) -> (usize, Place, Option<IndexEntry>) {
        let partition = (tag.0 >> FINGERPRINT_BITS) as usize;
        let wanted = tag.0 & ((1 << FINGERPRINT_BITS) - 1);
        let (place, word) = self.partitions[partition].seek(&self.pool, wanted);
        (partition, place, word.map(IndexEntry::unpack))
    }

    pub fn get(&self, tag: Tag) -> Option<IndexEntry> {
        self.seek(tag).2
    }

    /// Counts one use (a `get` request) of the record with this tag (shortened key).
    pub fn touch(&mut self, tag: Tag) {
        self.add_uses(tag, 1);
    }

    pub fn add_uses(&mut self, tag: Tag, uses: u8) {
        if !self.can_have(tag) {
            return;
        }
        let (partition, place, found) = self.seek(tag);
        if let Some(entry) = found {
            let word = IndexEntry { uses: (entry.uses + uses).min(MAX_USES), ..entry }.pack(tag);
            self.partitions[partition].set(&mut self.pool, place, word);
        }
    }

    /// Visits all tags (shortened keys) whose records have at least `least` uses, from `tag` on.
    /// Stops when `take` returns false, or after about `most` entries. Returns the tag at which the
    /// next call must continue, or `None` at the end of the index.
    pub fn used_from(
        &self,
        tag: Tag,
        least: u8,
        most: usize,
        mut take: impl FnMut(Tag, u8) -> bool,
    ) -> Option<Tag> {
        let first = (tag.0 >> FINGERPRINT_BITS) as usize;
        let mut looked_at = 0;
        for (partition, words) in self.partitions.iter().enumerate().skip(first) {
            let base = (partition as u64) << FINGERPRINT_BITS;
            if looked_at >= most {
                return Some(Tag(base));
            }
            looked_at += words.len() + 1;
            for word in words.words(&self.pool) {
                let (found, uses) = (Tag(base | fingerprint(word)), word as u8 & MAX_USES);
                if uses >= least && found >= tag && !take(found, uses) {
                    return Some(found);
                }
            }
        }
        None
    }

    /// Returns the number of partitions of the index.
    pub const fn parts(&self) -> usize {
        self.partitions.len()
    }

    /// Returns the number of bits of a partition number.
    pub const fn bits(&self) -> u32 {
        self.bits
    }

    /// Visits the entries of whole partitions from number `from` on. Stops after about `most`
    /// entries. Returns the partition at which the next call must continue, or `None` after the
    /// last.
    pub fn entries(
        &self,
        from: usize,
        most: usize,
        mut take: impl FnMut(Tag, IndexEntry),
    ) -> Option<usize> {
        let mut visited = 0;
        for (partition, words) in self.partitions.iter().enumerate().skip(from) {
            if visited >= most {
                return Some(partition);
            }
            visited += words.len() + 1;
            let base = (partition as u64) << FINGERPRINT_BITS;
            for word in words.words(&self.pool) {
                take(Tag(base | fingerprint(word)), IndexEntry::unpack(word));
            }
        }
        None
    }

    /// Adds the entry of a record. An existing entry of the tag (shortened key) is replaced.
    pub fn insert(&mut self, tag: Tag, entry: IndexEntry) {
        let (partition, place, found) = self.seek(tag);
        if found.is_some() {
            return self.partitions[partition].set(&mut self.pool, place, entry.pack(tag));
        }
        self.insert_at(partition, place, entry.pack(tag));
    }

    /// Adds the entry of a record, unless the tag (shortened key) has an entry.
    pub fn insert_if_absent(&mut self, tag: Tag, entry: IndexEntry) {
        let (partition, place, found) = self.seek(tag);
        if found.is_none() {
            self.insert_at(partition, place, entry.pack(tag));
        }
    }

    fn insert_at(&mut self, partition: usize, place: Place, word: u64) {
        self.partitions[partition].insert(&mut self.pool, place, word);
        self.len += 1;
    }

    /// Removes the entry of a tag (shortened key) if it leads to the record that starts at granule
    /// (unit of disk space) `at`. Returns whether the entry was removed.
    pub fn remove_at(&mut self, tag: Tag, at: u64) -> bool {
        let (partition, place, found) = self.seek(tag);
        let is_that = found.is_some_and(|entry| entry.place == at);
        if is_that {
            self.partitions[partition].remove(&mut self.pool, place);
            self.len -= 1;
        }
        is_that
    }

    /// Removes all records that start in the range `places`, counted in granules (units of disk
    /// space). Looks through the partitions from number `from` on. Each entry that it looks at
    /// reduces `most`; at 0, returns the partition at which the next call must continue.
    pub fn remove_range(
        &mut self,
        places: &std::ops::Range<u64>,
        from: usize,
        most: &mut usize,
    ) -> Option<usize> {
        for partition in from..self.partitions.len() {
            if *most == 0 {
                return Some(partition);
            }
            let words = &mut self.partitions[partition];
            let was = words.len();
            *most = most.saturating_sub(was + 1);
            words.retain(&mut self.pool, |word| !places.contains(&IndexEntry::unpack(word).place));
            self.len -= (was - words.len()) as u64;
        }
        None
    }
}

#[cfg(test)]
mod tests;
