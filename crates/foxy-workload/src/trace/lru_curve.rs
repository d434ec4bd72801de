//! An LRU cache counted in bytes over a trace's URL numbers, and what such caches of several sizes would have hit. A
//! model for sizing and calibration: a repeat is a hit even if its size changed, and an entry keeps the size it was
//! inserted with. The proxy's own stores are elsewhere.

use super::{Get, Trace};

/// Stands for "no entry" in the lists.
const NONE: u32 = u32::MAX;

/// One place of the list, by URL.
#[derive(Clone, Copy, Debug)]
struct Entry {
    newer: u32,
    older: u32,
    size: u64,
    held: bool,
}

/// A cache that evicts what was used longest ago.
#[derive(Clone, Debug)]
pub struct ByteLru {
    entries: Vec<Entry>,
    newest: u32,
    oldest: u32,
    capacity: u64,
    held: u64,
}

impl ByteLru {
    /// An empty cache of `capacity` bytes for URLs numbered below `urls`.
    #[must_use]
    pub fn new(capacity: u64, urls: usize) -> Self {
        let empty = Entry { newer: NONE, older: NONE, size: 0, held: false };
        Self { entries: vec![empty; urls], newest: NONE, oldest: NONE, capacity, held: 0 }
    }

    /// Whether the URL is held; then it is the newest now.
    ///
    /// # Panics
    /// When the URL's number is not below the count given to `new`.
    pub fn hit(&mut self, url: u32) -> bool {
        if !self.entries[url as usize].held {
            return false;
        }
        if self.newest != url {
            self.unlink(url);
            self.link(url);
        }
        true
    }

    /// Puts in a URL that is not held, and hands each one that must go for it to `evicted`. False, and nothing changes,
    /// when it is larger than the whole cache.
    ///
    /// # Panics
    /// As [`ByteLru::hit`], and when the URL is held.
    pub fn insert(&mut self, url: u32, size: u64, mut evicted: impl FnMut(u32)) -> bool {
        assert!(!self.entries[url as usize].held, "URL {url} is held already");
        if size > self.capacity {
            return false;
        }
        while self.held > self.capacity - size {
            let oldest = self.oldest;
            self.unlink(oldest);
            let entry = &mut self.entries[oldest as usize];
            entry.held = false;
            self.held -= entry.size;
            evicted(oldest);
        }
        self.entries[url as usize].size = size;
        self.entries[url as usize].held = true;
        self.held += size;
        self.link(url);
        true
    }

    /// Bytes held.
    #[must_use]
    pub fn held(&self) -> u64 {
        self.held
    }

    fn link(&mut self, url: u32) {
        let entry = &mut self.entries[url as usize];
        (entry.newer, entry.older) = (NONE, self.newest);
        match self.newest {
            NONE => self.oldest = url,
            newest => self.entries[newest as usize].newer = url,
        }
        self.newest = url;
    }

    fn unlink(&mut self, url: u32) {
        let Entry { newer, older, .. } = self.entries[url as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.entries[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.entries[older as usize].newer = newer,
        }
    }
}

/// What a cache of one size would have hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hits {
    /// Its size in bytes.
    pub capacity: u64,
    /// Share of gets.
    pub gets: f64,
    /// Share of bytes.
    pub bytes: f64,
}

/// Runs the trace through an empty cache of `capacity` bytes.
#[must_use]
pub fn hits(trace: &Trace, capacity: u64) -> Hits {
    let mut cache = ByteLru::new(capacity, trace.urls());
    count(trace, capacity, |get| {
        let hit = cache.hit(get.url);
        if !hit {
            cache.insert(get.url, get.size, |_| {});
        }
        hit
    })
}

/// Runs the trace through a cache that never evicts.
#[must_use]
pub fn infinite(trace: &Trace) -> Hits {
    let mut seen = vec![false; trace.urls()];
    count(trace, u64::MAX, |get| std::mem::replace(&mut seen[get.url as usize], true))
}

/// What becomes of gets in memory before a disk, both LRU, as shares of all gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoLevels {
    /// Served from memory.
    pub memory: f64,
    /// Read from the disk.
    pub read: f64,
    /// Written to the disk, or too large for it.
    pub write: f64,
}

/// Runs the trace through `memory` bytes and, for what these miss, `disk` bytes (R9). The disk's order is that of the
/// reads and writes that reach it.
#[must_use]
pub fn two_levels(trace: &Trace, memory: u64, disk: u64) -> TwoLevels {
    let (mut upper, mut lower) = (ByteLru::new(memory, trace.urls()), ByteLru::new(disk, trace.urls()));
    let (mut in_memory, mut reads) = (0u64, 0u64);
    for get in &trace.gets {
        if upper.hit(get.url) {
            in_memory += 1;
            continue;
        }
        upper.insert(get.url, get.size, |_| {});
        if lower.hit(get.url) {
            reads += 1;
        } else {
            lower.insert(get.url, get.size, |_| {});
        }
    }
    let all = trace.gets.len() as u64;
    let share = |part| share(part, all);
    TwoLevels { memory: share(in_memory), read: share(reads), write: share(all - in_memory - reads) }
}

fn count(trace: &Trace, capacity: u64, mut is_hit: impl FnMut(&Get) -> bool) -> Hits {
    let (mut gets, mut bytes, mut all) = (0u64, 0u64, 0u64);
    for get in &trace.gets {
        all = all.saturating_add(get.size);
        if is_hit(get) {
            gets += 1;
            bytes = bytes.saturating_add(get.size);
        }
    }
    Hits { capacity, gets: share(gets, trace.gets.len() as u64), bytes: share(bytes, all) }
}

/// A part of a whole; 0 of nothing.
#[expect(clippy::cast_precision_loss, reason = "a share to be shown")]
fn share(part: u64, all: u64) -> f64 {
    if all == 0 { 0.0 } else { part as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::Random;

    fn trace(gets: &[(u32, u64)]) -> Trace {
        let urls = gets.iter().map(|(url, _)| url + 1).max().unwrap_or(0);
        let gets = gets.iter().map(|&(url, size)| Get { time: 0, client: 0, url, size });
        Trace { gets: gets.collect(), sites: vec![0; urls as usize], ..Trace::default() }
    }

    #[test]
    fn a_repeat_of_another_size_is_a_hit_and_keeps_the_old_size() {
        let hits = hits(&trace(&[(0, 60), (0, 90), (1, 40), (0, 10)]), 100);
        assert_eq!((hits.gets, hits.bytes), (0.5, 0.5));
    }

    #[test]
    fn what_is_larger_than_the_cache_evicts_nothing() {
        let hits = hits(&trace(&[(0, 60), (1, 101), (0, 60)]), 100);
        assert!((hits.gets - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn shares_of_nothing_are_nothing() {
        let empty = trace(&[]);
        assert_eq!((hits(&empty, 10).gets, infinite(&empty).bytes), (0.0, 0.0));
        assert_eq!(two_levels(&empty, 1, 1), TwoLevels { memory: 0.0, read: 0.0, write: 0.0 });
    }

    #[test]
    fn memory_takes_its_hits_from_the_disk() {
        let gets = [(0, 10), (1, 10), (1, 10), (0, 10)];
        assert_eq!(two_levels(&trace(&gets), 10, 100), TwoLevels { memory: 0.25, read: 0.25, write: 0.5 });
    }

    #[test]
    fn the_lists_agree_with_a_plain_vector() {
        for seed in 0..20 {
            let mut random = Random::new(seed);
            let (mut cache, mut plain) = (ByteLru::new(1000, 50), Vec::<(u32, u64)>::new());
            for _ in 0..2000 {
                let url = u32::try_from(random.below(50)).expect("small");
                let size = random.below(200);
                let place = plain.iter().position(|&(held, _)| held == url);
                assert_eq!(cache.hit(url), place.is_some(), "seed {seed}");
                let entry = place.map_or((url, size), |place| plain.remove(place));
                let mut evicted = Vec::new();
                if place.is_none() {
                    assert!(cache.insert(url, size, |url| evicted.push(url)));
                    while plain.iter().map(|(_, size)| size).sum::<u64>() + size > 1000 {
                        assert_eq!(evicted.remove(0), plain.remove(0).0, "seed {seed}");
                    }
                }
                assert!(evicted.is_empty(), "seed {seed}");
                plain.push(entry);
                assert_eq!(cache.held(), plain.iter().map(|(_, size)| size).sum::<u64>(), "seed {seed}");
            }
        }
    }
}
