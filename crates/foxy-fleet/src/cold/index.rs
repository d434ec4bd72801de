//! The places of all records in the cold tier. A record is this process's own if the process has
//! uploaded it, and has not removed it since. Other records may be older than a response that some
//! process has served, so the proxy validates them.
//!
//! Removals in the manifests spare reads of outdated records. Each offer and each removal has a
//! position in one order. A removal applies to all earlier copies of its record, on every node. The
//! order is a clock that follows the clocks in the manifests of other nodes.

use crate::cold::manifest::{Manifest, SegmentEntry};
use crate::cold::segment::SegmentRecord;
use foxy_base::WallTime;
use foxy_proxy::cache::cold::{Key, KeyMap};
use std::collections::HashMap;

/// Largest number of records whose places are known. Further records are not offered or found.
const MAX_RECORDS: usize = 4 << 20;
/// Largest number of removals. Above, the oldest half becomes a floor: no earlier record is used.
const MAX_REMOVALS: usize = 128 << 10;
/// Largest number of records that wait for their segment.
const MAX_PENDING: usize = 256 << 10;

/// A segment of any node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentId {
    pub era: u64,
    pub id: u64,
}

/// The place of a record in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordPlace {
    pub segment: SegmentId,
    pub offset: u32,
    pub length: u32,
    /// Whether this process uploaded the record.
    pub is_own: bool,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    order: u64,
    segment: u32,
    offset: u32,
    length: u32,
    is_own: bool,
}

#[derive(Clone, Copy, Debug)]
struct Removal {
    order: u64,
    /// Whether this node's manifest lists the removal.
    is_own: bool,
}

/// The reason why the cold tier does not take a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The cold tier has the record.
    Known,
    /// Too many records are known or wait for their segment, or the manifests are not read yet.
    Full,
}

#[derive(Debug, Default)]
pub struct ColdIndex {
    clock: u64,
    floor: u64,
    /// Whether the manifests were read since the start. Before, no record is found or offered.
    is_loaded: bool,
    known: KeyMap<Known>,
    pending: KeyMap<u64>,
    removals: KeyMap<Removal>,
    /// All segments ever seen. [`Known`] contains positions in this list.
    segments: Vec<SegmentId>,
    numbers: HashMap<SegmentId, u32>,
    /// The segments of this node.
    own: Vec<SegmentEntry>,
}

impl ColdIndex {
    fn next(&mut self, now: WallTime) -> u64 {
        self.clock = now.0.max(self.clock + 1);
        self.clock
    }

    /// Notes that a record waits for its segment. Returns its position in the order.
    pub fn offer(&mut self, key: Key, now: WallTime) -> Result<u64, Refused> {
        if self.known.contains_key(&key) || self.pending.contains_key(&key) {
            return Err(Refused::Known);
        }
        if !self.is_loaded || self.known.len() >= MAX_RECORDS || self.pending.len() >= MAX_PENDING {
            return Err(Refused::Full);
        }
        let order = self.next(now);
        self.pending.insert(key, order);
        Ok(order)
    }

    /// Forgets an offered record that no segment received.
    pub fn withdraw(&mut self, key: Key, order: u64) {
        if self.pending.get(&key) == Some(&order) {
            self.pending.remove(&key);
        }
    }

    /// Removes a record, because a newer response replaces it or the response was removed. Returns
    /// true if the next manifest must contain the removal.
    pub fn remove(&mut self, key: Key, now: WallTime) -> bool {
        let was_there = self.known.remove(&key).is_some() | self.pending.remove(&key).is_some();
        if was_there {
            let order = self.next(now);
            self.removals.insert(key, Removal { order, is_own: true });
            self.bound_removals();
        }
        was_there
    }

    fn bound_removals(&mut self) {
        if self.removals.len() <= MAX_REMOVALS {
            return;
        }
        let mut orders: Vec<u64> = self.removals.values().map(|removal| removal.order).collect();
        let middle = orders.len() / 2;
        let (_, floor, _) = orders.select_nth_unstable(middle);
        self.raise_floor(*floor);
    }

    fn raise_floor(&mut self, floor: u64) {
        if floor > self.floor {
            self.floor = floor;
            self.known.retain(|_, known| known.order > floor);
            self.removals.retain(|_, removal| removal.order > floor);
        }
    }

    pub fn has(&self, key: Key) -> bool {
        self.is_loaded && self.known.contains_key(&key)
    }

    pub fn find(&self, key: Key) -> Option<RecordPlace> {
        let known = self.known.get(&key).filter(|_| self.is_loaded)?;
        let segment = *self.segments.get(known.segment as usize)?;
        let Known { offset, length, is_own, .. } = *known;
        Some(RecordPlace { segment, offset, length, is_own })
    }

    fn number(&mut self, segment: SegmentId) -> u32 {
        let (numbers, segments) = (&mut self.numbers, &mut self.segments);
        *numbers.entry(segment).or_insert_with(|| {
            segments.push(segment);
            u32::try_from(segments.len() - 1).expect("fewer segments than 2^32")
        })
    }

    /// Adds a segment of this node that the store has now. Records that were removed since their
    /// offer stay removed.
    pub fn uploaded(&mut self, era: u64, entry: SegmentEntry, records: &[SegmentRecord]) {
        let segment = self.number(SegmentId { era, id: entry.id });
        self.own.push(entry);
        for record in records {
            if self.pending.get(&record.key) == Some(&record.order) {
                self.pending.remove(&record.key);
                self.learn(record, segment, true);
            }
        }
    }

    /// Returns true if the index has the records of this segment.
    pub fn has_segment(&self, segment: SegmentId) -> bool {
        self.numbers.contains_key(&segment)
    }

    /// Adds the records of a segment that a manifest lists.
    pub fn load(&mut self, segment: SegmentId, records: &[SegmentRecord]) {
        let number = self.number(segment);
        for record in records {
            let is_removed =
                self.removals.get(&record.key).is_some_and(|it| it.order > record.order);
            let is_pending = self.pending.contains_key(&record.key);
            if !is_removed && !is_pending && self.known.len() < MAX_RECORDS {
                self.learn(record, number, false);
            }
        }
    }

    fn learn(&mut self, record: &SegmentRecord, segment: u32, is_own: bool) {
        let SegmentRecord { key, order, offset, length } = *record;
        let is_newest = self.known.get(&key).is_none_or(|known| known.order < order);
        if is_newest && order > self.floor {
            self.known.insert(key, Known { order, segment, offset, length, is_own });
        }
    }

    /// Applies the removals in a manifest. `is_own` tells whether it is the manifest of this node.
    pub fn apply(&mut self, manifest: &Manifest, is_own: bool) {
        self.clock = self.clock.max(manifest.clock);
        self.raise_floor(manifest.floor);
        for &(key, order) in manifest.removals.iter().filter(|(_, order)| *order > self.floor) {
            if self.known.get(&key).is_some_and(|known| known.order < order) {
                self.known.remove(&key);
            }
            let found = self.removals.entry(key).or_insert(Removal { order, is_own });
            *found = Removal { order: found.order.max(order), is_own: found.is_own || is_own };
        }
        self.bound_removals();
        if is_own {
            let news = manifest.segments.iter().filter(|segment| !self.own.contains(segment));
            let news: Vec<SegmentEntry> = news.copied().collect();
            self.own.extend(news);
        }
    }

    /// Notes that all manifests have been read.
    pub const fn loaded(&mut self) {
        self.is_loaded = true;
    }

    pub const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Forgets a segment that the store no longer has.
    pub fn lose(&mut self, segment: SegmentId, own_era: u64) {
        let Some(&number) = self.numbers.get(&segment) else { return };
        self.known.retain(|_, known| known.segment != number);
        if segment.era == own_era {
            self.own.retain(|entry| entry.id != segment.id);
        }
    }

    /// Returns what the manifest of this node must contain, without purges.
    pub fn manifest(&self, era: u64) -> Manifest {
        let own = self.removals.iter().filter(|(_, removal)| removal.is_own);
        Manifest {
            era,
            clock: self.clock,
            floor: self.floor,
            segments: self.own.clone(),
            removals: own.map(|(key, removal)| (*key, removal.order)).collect(),
            ..Manifest::default()
        }
    }

    /// Returns the numbers of records that can be found, and that wait for their segment.
    pub fn counts(&self) -> (usize, usize) {
        (self.known.len(), self.pending.len())
    }
}

#[cfg(test)]
#[path = "index_tests.rs"]
mod tests;
