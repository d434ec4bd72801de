//! The default engine's cache behaviour, object by object: logs of segments, two bits of use,
//! reclaim of whole segments, copying forward. It holds no content, does no IO and knows no time;
//! the rules are the store's own ([`foxy_store::worth`]), the layout is only what it charges. An
//! object of several parts is one object here.

mod ghost;

use super::cache::Counts;
use foxy_store::worth::{Distance, MAX_USES};
use ghost::Ghost;
use std::collections::VecDeque;

/// Bytes of the largest segment; a small cache has segments of a [`SEGMENTS`]th of it.
const LARGEST_SEGMENT: u64 = 16 << 20;
/// The least number of segments that a cache has.
const SEGMENTS: u64 = 256;
/// Segments that hold nothing: those that are being filled or kept free.
const SPARE: u64 = 3;
/// The probation log may hold one byte in so many.
const PROBATION: u64 = 5;
/// Of so many objects on disk, the ghost has an entry for one.
const GHOST: u64 = 8;

/// What decides where a record is written and whether it is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// One log; what was used since it was written or copied is copied forward, whatever its size.
    Reinsertion,
    /// A main and a probation log, credit and toll by size.
    Worth {
        /// Bytes of the capacity that are memory, in which heavy newcomers wait to be asked for
        /// again; with none, all are written at once.
        stage: u64,
    },
}

/// What went by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentCounts {
    /// Hits and misses.
    pub counts: Counts,
    /// Bytes of records written because they were missed.
    pub admitted: u64,
    /// Bytes of records copied forward.
    pub copied: u64,
}

/// Bytes of disk that an object takes. Below a page it is packed with others: 24 bytes of head and
/// a twentieth for pages that are not full; above, it takes whole granules of 512 bytes. Each has
/// 16 bytes in its segment's footer and, when large, 16 in the checkpoints.
pub fn charged(size: u64) -> u64 {
    let packed = size.saturating_add(24);
    if packed < 4096 {
        packed + packed / 20 + 16
    } else {
        size.div_ceil(512).saturating_mul(512).saturating_add(32)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SegmentPlace {
    Absent,
    Staged,
    Written,
}

#[derive(Clone, Copy)]
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

/// The cache.
pub struct SegmentCache {
    rule: Rule,
    capacity: u64,
    segment: u64,
    entries: Vec<Entry>,
    main: Log,
    probation: Log,
    /// Objects in the logs.
    resident: u64,
    /// What may still be copied, in quarters of bytes; below zero after a large copy.
    budget: i128,
    stage: VecDeque<u32>,
    staged: u64,
    ghost: Ghost,
    was_full: bool,
    done: SegmentCounts,
}

impl SegmentCache {
    /// An empty cache of `capacity` bytes, memory of the stage included, for URLs numbered below
    /// `urls`.
    pub fn new(rule: Rule, capacity: u64, urls: u32) -> Self {
        let stage = if let Rule::Worth { stage } = rule { stage } else { 0 };
        let segment = (capacity / SEGMENTS).clamp(1, LARGEST_SEGMENT);
        Self {
            rule,
            capacity: capacity.saturating_sub(stage).saturating_sub(SPARE * segment),
            segment,
            entries: vec![
                Entry { place: SegmentPlace::Absent, uses: 0, charged: 0 };
                urls as usize
            ],
            main: Log::default(),
            probation: Log::default(),
            resident: 0,
            budget: 0,
            stage: VecDeque::new(),
            staged: 0,
            ghost: Ghost::default(),
            was_full: false,
            done: SegmentCounts::default(),
        }
    }

    /// Looks up a URL whose object has `size` bytes, and takes it in if it was not there. A repeat
    /// is a hit even if its size has changed.
    ///
    /// # Panics
    /// If `url` is not below the number of URLs.
    pub fn get(&mut self, url: u32, size: u64) {
        let entry = &mut self.entries[url as usize];
        let is_hit = entry.place != SegmentPlace::Absent;
        self.done.counts.add(size, is_hit);
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

    /// What went by so far.
    pub const fn counts(&self) -> SegmentCounts {
        self.done
    }

    fn used(&self) -> u64 {
        self.main.bytes + self.probation.bytes
    }

    fn distance(&self, charged: u64) -> Distance {
        Distance::between(charged, self.used() / self.resident.max(1))
    }

    fn put(&mut self, url: u32, charged: u64) {
        let Rule::Worth { stage } = self.rule else { return self.write(url, true, 0) };
        let distance = self.distance(charged);
        let is_known = self.ghost.take(url);
        if distance.is_heavy() && !is_known && charged <= stage / 2 {
            self.entries[url as usize].place = SegmentPlace::Staged;
            self.stage.push_back(url);
            self.staged += charged;
            self.shrink_stage(stage);
        } else {
            self.write(url, is_known || !distance.is_large(), distance.first_uses());
        }
    }

    /// What has to leave memory is written if it was asked for again, and while there is room for
    /// everything.
    fn shrink_stage(&mut self, limit: u64) {
        while self.staged > limit {
            let url = self.stage.pop_front().expect("something takes the memory");
            let Entry { uses, charged, .. } = self.entries[url as usize];
            self.staged -= charged;
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
        self.done.admitted += entry.charged;
        self.resident += 1;
        let log = if to_main { &mut self.main } else { &mut self.probation };
        log.append(url, entry.charged, self.segment);
        while self.used() > self.capacity && self.reclaim() {
            self.was_full = true;
        }
    }

    /// Frees the oldest segment of one log; says whether there was any.
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
                    self.done.copied += charged;
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

#[cfg(test)]
mod tests;
