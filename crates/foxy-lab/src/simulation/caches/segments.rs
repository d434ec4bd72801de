//! A model of segmented logs, object by object: two bits of use, reclaim of whole segments, copying
//! forward. The rules are the store's own ([`foxy_store::worth`]). The charges are those of an
//! earlier layout of webcosm and stay as they are: recorded results of `store bench misses` depend
//! on them. An object of several parts is one object here.

use super::cache::Counts;
use foxy_store::worth::{Distance, MAX_USES};
use std::collections::{HashMap, VecDeque};

/// Small caches have segments of a [`SEGMENTS`]th of the capacity.
const LARGEST_SEGMENT: u64 = 16 << 20;
const SEGMENTS: u64 = 256;
/// Segments that are being filled or kept free.
const SPARE: u64 = 3;
/// The probation log has at most one byte in `PROBATION`.
const PROBATION: u64 = 5;
/// The ghost remembers one URL for every `GHOST` stored objects.
const GHOST: u64 = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One log; a record that was used since it was last written is copied forward.
    Reinsertion,
    /// A main and a probation log; credit and toll depend on the size.
    Worth {
        /// Bytes of the capacity that are a write buffer in memory, in which heavy newcomers wait
        /// for a second request. With 0, all newcomers are written at once.
        buffer: u64,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissTally {
    pub counts: Counts,
    /// Bytes of records written for misses, of segments; of the engine, all bytes written but
    /// copies.
    pub admitted: u64,
    /// Bytes copied forward, of segments and the engine.
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

/// Bytes of disk that an object takes. Objects below a page share pages: 24 bytes of head and a
/// twentieth for page loss. Larger objects take whole granules of 512 bytes. Each has 16 bytes in
/// the footer of its segment and, when large, 16 in the checkpoints.
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
    /// Bytes that may still be copied, in quarters; negative after a large copy.
    budget: i128,
    buffer: VecDeque<u32>,
    buffered: u64,
    ghost: Ghost,
    was_full: bool,
    tally: MissTally,
}

impl SegmentCache {
    /// An empty cache of `capacity` bytes, write buffer included, for URLs below `urls`.
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

    /// Looks up a URL whose object has `size` bytes, and stores the object on a miss. A repeat is a
    /// hit even if its size has changed.
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

    /// Writes objects that leave the buffer if they were requested again or the logs were never
    /// full; drops the rest.
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

    /// Frees the oldest segment of one log. Returns false if no segment is sealed.
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

/// URLs that were evicted unused, first in, first out.
#[derive(Default)]
struct Ghost {
    /// URLs with their numbers. An entry that was taken or renewed stays until its turn.
    queue: VecDeque<(u32, u64)>,
    numbers: HashMap<u32, u64>,
    next: u64,
}

impl Ghost {
    /// Remembers a URL, and forgets the oldest beyond `entries`.
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

    /// Forgets a URL. Returns whether the ghost remembered it.
    fn take(&mut self, url: u32) -> bool {
        self.numbers.remove(&url).is_some()
    }
}

#[cfg(test)]
#[path = "segments_tests.rs"]
mod tests;
