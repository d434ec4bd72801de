//! Simulates a store with segmented logs: it appends objects to segments, frees whole segments, and
//! copies used objects into a new segment. Two bits count the uses of an object. The rules come
//! from [`foxy_store::worth`]. Some numbers come from an earlier version of the storage scheme
//! webcosm: the bytes charged for an object, the share of the probation log, and the limit on
//! copies. They must not change, because recorded results of `foxy store bench misses` depend on
//! them. In the simulation, an object has only one part.

use super::cache::Counts;
use foxy_store::worth::{Distance, MAX_USES};
use std::collections::{HashMap, VecDeque};

/// The size of a segment in bytes in a large cache. In a small cache, a segment has 1/[`SEGMENTS`]
/// of the capacity.
const LARGEST_SEGMENT: u64 = 16 << 20;
const SEGMENTS: u64 = 256;
/// Number of segments that are open for writing or kept free. The usable capacity is smaller by
/// these segments.
const SPARE: u64 = 3;
/// The probation log, which takes large objects until a second request, may use 1/`PROBATION` of
/// the capacity.
const PROBATION: u64 = 5;
/// The ghost is a list of recently evicted URLs. It remembers one URL for every `GHOST` stored
/// objects. A new request for such a URL shows that its eviction was a mistake.
const GHOST: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One log. When the store frees a segment, it copies into a new segment each record that was
    /// used since it was last written.
    Reinsertion,
    /// A main log and a probation log (for large objects until their second request), as in the
    /// default engine. The size of an object decides with how many uses (counted requests) it
    /// starts, and how many uses it needs for a copy.
    Worth {
        /// The bytes of the capacity that are a write buffer in memory. Large new objects wait
        /// there for a second request. With 0, the store writes all new objects at once.
        buffer: u64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissTally {
    pub counts: Counts,
    /// The bytes that the store wrote because of misses. In a simulation with segments, these are
    /// the bytes of new records. In a run of the real engine, these are all written bytes except
    /// copies.
    pub admitted: u64,
    /// The bytes that the store copied when it freed segments. Zero for caches without segments.
    pub copied: u64,
}

impl MissTally {
    pub const fn misses(&self) -> u64 {
        self.counts.gets - self.counts.hits
    }

    pub const fn missed_bytes(&self) -> u64 {
        self.counts.bytes - self.counts.hit_bytes
    }
}

/// Returns the bytes of disk that an object of `size` bytes takes. Objects below a page share
/// pages. Each takes 24 more bytes for its head, and 5 % for space that stays free in pages. Larger
/// objects take whole units of 512 bytes. Each object takes 16 bytes in the footer of its segment.
/// A large object takes 16 more bytes in the checkpoints.
pub fn charged(size: u64) -> u64 {
    let packed = size.saturating_add(24);
    if packed < 4096 {
        packed + packed / 20 + 16
    } else {
        size.div_ceil(512).saturating_mul(512).saturating_add(32)
    }
}

#[derive(Clone, Copy, Default, PartialEq)]
enum SegmentPlace {
    #[default]
    Absent,
    Buffered,
    Written,
}

#[derive(Clone, Copy, Default)]
struct Entry {
    place: SegmentPlace,
    uses: u8,
    charged: u64,
}

#[derive(Default)]
struct Segment {
    urls: Vec<u32>,
    bytes: u64,
}

#[derive(Default)]
struct Log {
    open: Segment,
    sealed: VecDeque<Segment>,
    bytes: u64,
}

impl Log {
    fn append(&mut self, url: u32, bytes: u64, segment: u64) {
        self.open.urls.push(url);
        self.open.bytes += bytes;
        self.bytes += bytes;
        if self.open.bytes >= segment {
            self.sealed.push_back(std::mem::take(&mut self.open));
        }
    }
}

pub struct SegmentCache {
    rule: Rule,
    capacity: u64,
    segment: u64,
    entries: Vec<Entry>,
    main: Log,
    probation: Log,
    resident: u64,
    /// The bytes that the store may still copy, in quarters of a byte. Each freed byte adds three
    /// quarters. Negative after a large copy.
    budget: i128,
    buffer: VecDeque<u32>,
    buffered: u64,
    ghost: Ghost,
    was_full: bool,
    tally: MissTally,
}

impl SegmentCache {
    /// Creates an empty cache of `capacity` bytes, including the write buffer. URLs are numbers
    /// below `urls`.
    pub fn new(rule: Rule, capacity: u64, urls: u32) -> Self {
        let buffer = if let Rule::Worth { buffer } = rule { buffer } else { 0 };
        let segment = (capacity / SEGMENTS).clamp(1, LARGEST_SEGMENT);
        Self {
            rule,
            capacity: capacity.saturating_sub(buffer).saturating_sub(SPARE * segment),
            segment,
            entries: vec![Entry::default(); urls as usize],
            main: Log::default(),
            probation: Log::default(),
            resident: 0,
            budget: 0,
            buffer: VecDeque::new(),
            buffered: 0,
            ghost: Ghost::default(),
            was_full: false,
            tally: MissTally::default(),
        }
    }

    /// Looks up a URL whose object has `size` bytes. Stores the object on a miss, unless it is
    /// larger than half of the cache. A repeated look-up is a hit even if the object's size has
    /// changed.
    pub fn get(&mut self, url: u32, size: u64) {
        let entry = &mut self.entries[url as usize];
        let is_hit = entry.place != SegmentPlace::Absent;
        self.tally.counts.add(size, is_hit);
        if is_hit {
            entry.uses = (entry.uses + 1).min(MAX_USES);
            return;
        }
        let charged = charged(size);
        if charged <= self.capacity / 2 {
            *entry = Entry { place: SegmentPlace::Absent, uses: 0, charged };
            self.put(url, charged);
        }
    }

    pub const fn tally(&self) -> MissTally {
        self.tally
    }

    fn used(&self) -> u64 {
        self.main.bytes + self.probation.bytes
    }

    fn distance(&self, charged: u64) -> Distance {
        Distance::between(charged, self.used() / self.resident.max(1))
    }

    fn put(&mut self, url: u32, charged: u64) {
        let Rule::Worth { buffer } = self.rule else { return self.write(url, true, 0) };
        let distance = self.distance(charged);
        let is_known = self.ghost.take(url);
        if distance.is_heavy() && !is_known && charged <= buffer / 2 {
            self.entries[url as usize].place = SegmentPlace::Buffered;
            self.buffer.push_back(url);
            self.buffered += charged;
            self.shrink_buffer(buffer);
        } else {
            self.write(url, is_known || !distance.is_large(), distance.first_uses());
        }
    }

    /// Takes the oldest objects out of the write buffer until it has at most `limit` bytes. Writes
    /// an object if it was requested again or if the logs were never full. Drops the other objects.
    fn shrink_buffer(&mut self, limit: u64) {
        while self.buffered > limit {
            let url = self.buffer.pop_front().expect("something takes the memory");
            let Entry { uses, charged, .. } = self.entries[url as usize];
            self.buffered -= charged;
            if uses > 0 || !self.was_full {
                self.write(url, uses > 0, 0);
            } else {
                self.entries[url as usize].place = SegmentPlace::Absent;
                self.remember(url);
            }
        }
    }

    fn write(&mut self, url: u32, to_main: bool, uses: u8) {
        let entry = &mut self.entries[url as usize];
        (entry.place, entry.uses) = (SegmentPlace::Written, uses);
        self.tally.admitted += entry.charged;
        self.resident += 1;
        let log = if to_main { &mut self.main } else { &mut self.probation };
        log.append(url, entry.charged, self.segment);
        while self.used() > self.capacity && self.reclaim() {
            self.was_full = true;
        }
    }

    /// Frees the oldest complete segment of the probation log (for large objects until their second
    /// request) or of the main log. Returns false if neither log has such a segment.
    fn reclaim(&mut self) -> bool {
        let is_over = self.probation.bytes > self.capacity / PROBATION;
        let from_probation =
            !self.probation.sealed.is_empty() && (is_over || self.main.sealed.is_empty());
        let mean = self.used() / self.resident.max(1);
        let log = if from_probation { &mut self.probation } else { &mut self.main };
        let Some(freed) = log.sealed.pop_front() else { return false };
        log.bytes -= freed.bytes;
        self.budget = (self.budget + 3 * i128::from(freed.bytes)).min(8 * i128::from(self.segment));
        for url in freed.urls {
            let Entry { uses, charged, .. } = self.entries[url as usize];
            match self.uses_after_copy(Distance::between(charged, mean), uses) {
                Some(uses) if self.budget > 0 => {
                    self.budget -= 4 * i128::from(charged);
                    self.tally.copied += charged;
                    self.entries[url as usize].uses = uses;
                    self.main.append(url, charged, self.segment);
                }
                _ => self.evict(url, from_probation),
            }
        }
        true
    }

    fn uses_after_copy(&self, distance: Distance, uses: u8) -> Option<u8> {
        match self.rule {
            Rule::Reinsertion => uses.checked_sub(1),
            Rule::Worth { .. } => distance.uses_after_copy(uses),
        }
    }

    fn evict(&mut self, url: u32, is_remembered: bool) {
        self.entries[url as usize].place = SegmentPlace::Absent;
        self.resident -= 1;
        if is_remembered {
            self.remember(url);
        }
    }

    fn remember(&mut self, url: u32) {
        let entries = usize::try_from(self.resident / GHOST).unwrap_or(usize::MAX);
        self.ghost.push(url, entries);
    }
}

/// The URLs that the store recently evicted from the probation log (for large objects until their
/// second request) or dropped from the write buffer, oldest first.
#[derive(Default)]
struct Ghost {
    /// URLs with the numbers of their entries, oldest first. An outdated entry stays until it is
    /// the oldest.
    queue: VecDeque<(u32, u64)>,
    numbers: HashMap<u32, u64>,
    next: u64,
}

impl Ghost {
    /// Adds a URL. Removes the oldest entries until at most `entries` remain.
    fn push(&mut self, url: u32, entries: usize) {
        self.numbers.insert(url, self.next);
        self.queue.push_back((url, self.next));
        self.next += 1;
        while self.queue.len() > entries {
            let Some((oldest, number)) = self.queue.pop_front() else { return };
            if self.numbers.get(&oldest) == Some(&number) {
                self.numbers.remove(&oldest);
            }
        }
    }

    /// Removes a URL. Returns whether the list contained it.
    fn take(&mut self, url: u32) -> bool {
        self.numbers.remove(&url).is_some()
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
