//! The rules by which the engine webcosm keeps records, as a policy: see
//! `docs/decisions/webcosm-admission.md` and `foxy_store::worth`. As in the engine, entries are in
//! the segments of two logs, and leave together with their segment.

mod ghost;
mod log;

use super::{Policy, PolicySettings, slot_of};
use foxy_store::settings::{MINIMUM_SIZE, RECORD_BODY_LIMIT};
use foxy_store::webcosm::{MAX_STORE_BYTES, Shape};
use foxy_store::worth::{Distance, MAX_USES};
use ghost::RecentlyEvicted;
use log::{Log, LogPlace};
use std::cmp::Reverse;

/// The policy may copy 1/`BASE_SHARE` of the bytes of each segment, even without hits.
const BASE_SHARE: i64 = 32;
/// For each byte of a hit, the policy may copy 1/`HIT_BYTES_PER_COPIED` more bytes.
const HIT_BYTES_PER_COPIED: i64 = 4;
/// Records below a page share pages. The engine counts each as this many bytes.
const PAGE: u64 = 4096;
const PACKED_BYTES: u64 = 512;
/// The bytes of a record of a large object, and about the bytes of the object's head.
const PART: u64 = RECORD_BODY_LIMIT as u64;
const HEAD_BYTES: u64 = 1024;
/// The share of an entry that takes all of its size.
const UNIT: u64 = 1024;

const MAIN: usize = 0;
const PROBATION: usize = 1;

/// An entry. Sizes from 4 GiB on count as 4 GiB.
#[derive(Clone, Copy, Default)]
struct WorthSlot {
    size: u32,
    charged: u32,
    /// A part of the key's hash.
    fingerprint: u32,
    /// The place of the entry in a log, or `None` if the entry is not present.
    place: Option<LogPlace>,
    uses: u8,
    log: u8,
}

fn short(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl WorthSlot {
    /// Returns the share of its size that this entry takes, in units of `1/UNIT`. In a miniature,
    /// an entry that takes half of its size stands for half as many entries as others do.
    fn share(&self) -> u64 {
        u64::from(self.charged.max(1)) * UNIT / u64::from(self.size.max(1))
    }

    /// Returns the number of records of an object. A large object has several.
    const fn parts(&self) -> u64 {
        (self.size as u64).saturating_sub(HEAD_BYTES) / PART + 1
    }

    /// Returns the bytes of a record, as the engine estimates them from the number of its pages.
    fn extent(&self) -> u64 {
        let size = u64::from(self.size);
        if size < PAGE { PACKED_BYTES } else { (size / PAGE + 1) * PAGE }
    }
}

pub(super) struct Webcosm {
    shape: Shape,
    /// The part of the shape's bytes that the cache has. Below 1 in a miniature.
    scale: f64,
    slots: Vec<WorthSlot>,
    logs: [Log; 2],
    /// The entries of a freed segment that are not evicted yet, with their places.
    leaving: Vec<(u32, LogPlace)>,
    /// Bytes that may still be copied. A large entry can make the number negative.
    budget: i64,
    /// Bytes of hits since a segment was last freed.
    found: i64,
    /// The sum of the records of all entries, in units of `1/UNIT`.
    records: u64,
    ghost: RecentlyEvicted,
    places: LogPlace,
}

impl Webcosm {
    pub(super) fn new(settings: &PolicySettings) -> Self {
        let whole = settings.capacity << settings.halvings;
        let whole = whole.clamp(MINIMUM_SIZE, MAX_STORE_BYTES);
        let shape = Shape::of(whole);
        let scale = settings.capacity as f64 / whole as f64;
        let mut policy = Self {
            shape,
            scale,
            slots: Vec::new(),
            logs: [Log::default(), Log::default()],
            leaving: Vec::new(),
            budget: 0,
            found: 0,
            records: 0,
            ghost: RecentlyEvicted::default(),
            places: LogPlace::MIN,
        };
        policy.measure();
        policy
    }

    /// Gives the logs their sizes.
    fn measure(&mut self) {
        let Self { shape, scale, logs, ghost, .. } = self;
        let record_bytes = ((shape.record_bytes as f64 * *scale) as u64).max(1);
        for (log, kept) in logs.iter_mut().zip(shape.kept) {
            log.resize(record_bytes, (kept * record_bytes as f64) as u64);
        }
        ghost.resize((shape.ghost_places as f64 * *scale * UNIT as f64) as u64);
    }

    fn distance(&self, size: u64) -> Distance {
        let bytes: u64 = self.logs.iter().map(Log::taken).sum();
        let bytes = bytes as f64 * self.shape.segment_bytes as f64 / self.shape.record_bytes as f64;
        let records = self.records.max(UNIT) as f64 / UNIT as f64;
        Distance::between(size, (bytes / records) as u64)
    }

    /// Appends an entry to a log.
    fn append(&mut self, entry: u32, log: usize) {
        self.places = self.places.checked_add(1).unwrap_or(LogPlace::MIN);
        let slot = &mut self.slots[entry as usize];
        (slot.place, slot.log) = (Some(self.places), log as u8);
        let (size, charged) = (u64::from(slot.size), u64::from(slot.charged));
        let (log, last) = (&mut self.logs[log], slot.parts() - 1);
        for number in 0..=last {
            let part = if number < last { PART } else { size - number * PART };
            let (charged, fits) = (charged * part / size.max(1), part as f64 * self.scale);
            log.make_room(fits as u64);
            if number == 0 {
                log.push((entry, self.places));
            }
            log.extend(charged);
        }
    }

    fn is_at(&self, (entry, place): (u32, LogPlace)) -> bool {
        self.slots[entry as usize].place == Some(place)
    }

    /// Frees the oldest segment of a log. Copies its used entries to the main log, those with the
    /// most uses per byte first, as far as the budget allows. The others leave.
    fn free(&mut self, log: usize) {
        let Some((entries, bytes)) = self.logs[log].free() else { return };
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.budget += bytes / BASE_SHARE + self.found / HIT_BYTES_PER_COPIED;
        self.budget = self.budget.min(bytes);
        self.found = 0;
        let present = entries.into_iter().filter(|&at| self.is_at(at)).map(|at| {
            let slot = &self.slots[at.0 as usize];
            let uses = self.distance(slot.extent()).uses_after_copy(slot.uses);
            let value = (u64::from(slot.uses) << 20) / slot.extent();
            (Reverse(uses.map_or(0, |_| value + 1)), at, uses)
        });
        let mut present: Vec<_> = present.collect();
        present.sort_by_key(|&(value, ..)| value);
        for (_, at, uses) in present {
            let slot = &mut self.slots[at.0 as usize];
            match uses {
                Some(uses) if self.budget > 0 => {
                    let extent = slot.extent() * slot.share() / UNIT;
                    self.budget -= i64::try_from(extent).unwrap_or(i64::MAX);
                    slot.uses = uses;
                    self.append(at.0, MAIN);
                }
                _ => self.leaving.push(at),
            }
        }
    }

    /// Returns the next entry that leaves.
    fn next_leaving(&mut self) -> Option<u32> {
        while let Some(&at) = self.leaving.last() {
            if self.is_at(at) {
                return Some(at.0);
            }
            self.leaving.pop();
        }
        None
    }
}

impl Policy for Webcosm {
    fn insert(&mut self, entry: u32, key_hash: u64, size: u64) {
        self.insert_sampled(entry, key_hash, size, size);
    }

    fn insert_sampled(&mut self, entry: u32, key_hash: u64, size: u64, charged: u64) {
        let distance = self.distance(size);
        let is_proven = self.ghost.take(key_hash as u32);
        let main = f64::from(self.shape.segments[MAIN].saturating_sub(1));
        let was_full = self.logs[MAIN].segments_begun() >= main;
        let fits_probation = size <= self.shape.probation_object;
        let must_prove = was_full && distance.is_large() && !is_proven && fits_probation;
        let slot = WorthSlot {
            size: short(size),
            charged: short(charged),
            fingerprint: key_hash as u32,
            uses: distance.first_uses(),
            ..WorthSlot::default()
        };
        self.records += slot.share() * slot.parts();
        *slot_of(&mut self.slots, entry) = slot;
        self.append(entry, if must_prove { PROBATION } else { MAIN });
    }

    fn touch(&mut self, entry: u32) {
        let slot = &mut self.slots[entry as usize];
        slot.uses = MAX_USES.min(slot.uses + 1);
        self.found = self.found.saturating_add(i64::from(slot.charged));
    }

    fn is_full(&mut self) -> bool {
        loop {
            if self.next_leaving().is_some() {
                return true;
            }
            let full = [MAIN, PROBATION].into_iter().find(|&log| self.logs[log].is_over());
            let Some(log) = full else { return false };
            self.free(log);
        }
    }

    fn victim(&mut self) -> Option<u32> {
        loop {
            if let Some(entry) = self.next_leaving() {
                return Some(entry);
            }
            let logs = [MAIN, PROBATION];
            let full = logs.into_iter().find(|&log| self.logs[log].is_over());
            let log = full.or_else(|| logs.into_iter().find(|&log| !self.logs[log].is_empty()))?;
            if self.logs[log].has_only_an_open_segment() {
                self.logs[log].seal();
            }
            self.free(log);
        }
    }

    fn remove(&mut self, entry: u32) {
        let slot = std::mem::take(&mut self.slots[entry as usize]);
        self.records -= slot.share() * slot.parts();
        let named = self.leaving.last().copied();
        if named.is_some_and(|at| at.0 == entry && Some(at.1) == slot.place) {
            self.leaving.pop();
            if usize::from(slot.log) == PROBATION {
                self.ghost.push(slot.fingerprint, slot.share());
            }
        }
    }

    fn coldest_first(&mut self) -> Vec<u32> {
        let all = self.leaving.iter().rev().chain(self.logs[PROBATION].entries());
        let all = all.chain(self.logs[MAIN].entries());
        all.filter(|at| self.is_at(**at)).map(|at| at.0).collect()
    }

    fn thin(&mut self, kept: &dyn Fn(u32) -> Option<(u32, u64)>) -> bool {
        self.scale /= 2.0;
        self.ghost.halve();
        self.measure();
        self.budget /= 2;
        self.found /= 2;
        self.records = 0;
        let old = std::mem::take(&mut self.slots);
        for (entry, slot) in (0..).zip(&old).filter(|(_, slot)| slot.place.is_some()) {
            let Some((new, charged)) = kept(entry) else { continue };
            let slot = WorthSlot { charged: short(charged), ..*slot };
            self.records += slot.share() * slot.parts();
            *slot_of(&mut self.slots, new) = slot;
        }
        let renumbered = |&(entry, place): &(u32, LogPlace)| {
            let is_here = old[entry as usize].place == Some(place);
            kept(entry).filter(|_| is_here).map(|(new, _)| (new, place))
        };
        self.logs.iter_mut().for_each(|log| log.halve(renumbered));
        self.leaving = self.leaving.iter().filter_map(renumbered).collect();
        true
    }

    fn memory(&self) -> usize {
        self.slots.capacity() * size_of::<WorthSlot>()
            + self.leaving.capacity() * size_of::<(u32, LogPlace)>()
            + self.logs.iter().map(Log::memory).sum::<usize>()
            + self.ghost.memory()
    }
}
