//! Writes records to the two logs, and keeps each record in memory until its write has ended.

mod admission;
mod bad_slots;
mod batch;
mod deferred;
mod ghost;
mod in_flight;
pub(crate) mod log;
mod pack;
mod seal;
mod write_budget;
pub(crate) mod write_buffer;

use crate::contract::{Key, Record};
use crate::settings::StoreSettings;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::Tombstone;
use crate::webcosm::index::Tag;
use admission::LargeObjects;
use bad_slots::BadSlots;
use deferred::Deferred;
use foxy_base::Instant;
use ghost::Ghost;
use in_flight::InFlight;
use log::Log;

pub(crate) use seal::summary_of;

/// The two logs, and the records that are not on disk yet.
pub struct Writer {
    logs: [Log; 2],
    in_flight: InFlight,
    deferred: Option<Deferred>,
    /// Remembers records that were recently discarded from the probation log (the log for large new
    /// records) or dropped while deferred.
    ghost: Ghost,
    large_objects: LargeObjects,
    bad_slots: BadSlots,
}

impl Writer {
    pub fn new(settings: &StoreSettings, geometry: &Geometry) -> Self {
        Self {
            logs: LogName::ALL.map(|log| Log::new(log, geometry)),
            in_flight: InFlight::default(),
            deferred: settings.write_budget.map(Deferred::new),
            ghost: Ghost::new(geometry),
            large_objects: LargeObjects::new(geometry),
            bad_slots: BadSlots::default(),
        }
    }

    /// Resets both logs to empty logs of the given layout.
    pub fn begin_anew(&mut self, geometry: &Geometry) {
        self.logs = LogName::ALL.map(|log| Log::new(log, geometry));
        self.ghost = Ghost::new(geometry);
        self.large_objects = LargeObjects::new(geometry);
    }

    /// Adapts both logs to the file layout of another store size. The segments in the logs stay.
    pub fn divide(&mut self, geometry: &Geometry) {
        self.logs.iter_mut().for_each(|log| log.divide(geometry));
        self.ghost = Ghost::new(geometry);
        self.large_objects = LargeObjects::new(geometry);
    }

    pub const fn logs(&self) -> &[Log; 2] {
        &self.logs
    }

    pub const fn log(&self, name: LogName) -> &Log {
        &self.logs[name as usize]
    }

    pub const fn log_mut(&mut self, name: LogName) -> &mut Log {
        &mut self.logs[name as usize]
    }

    /// Returns, for each log, the first position to which the next record can be written.
    pub fn next_positions(&self) -> [Position; 2] {
        self.logs.each_ref().map(|log| match &log.open {
            Some(open) => Position::new(open.segment, open.page),
            None => Position::new(log.segment(log.next), 0),
        })
    }

    /// Returns, for each log, the number of the oldest segment that remains after all `leaving`
    /// segments are discarded.
    pub fn next_tails(&self) -> [Sequence; 2] {
        self.logs.each_ref().map(Log::next_tail)
    }

    /// Returns, for each log, the number of the oldest segment that is not discarded.
    pub fn kept_from(&self) -> [Sequence; 2] {
        self.logs.each_ref().map(Log::kept_from)
    }

    /// Creates the first entry of a journal block. For each log, it states the number of the oldest
    /// segment (`tails`), and the first segment whose summary may not be durable.
    pub fn mark(&self, tails: [Sequence; 2]) -> Tombstone {
        let ends = self.logs.each_ref().map(|log| log.seals.durable_end);
        Tombstone::mark([(tails[0], ends[0]), (tails[1], ends[1])])
    }

    /// Notes that the journal durably states `tails` as the oldest segments of the logs. The
    /// records of all earlier segments can now leave the index.
    pub fn give_up_to(&mut self, tails: [Sequence; 2]) {
        for (log, tail) in self.logs.iter_mut().zip(tails) {
            log.given_up = tail;
        }
    }

    /// Returns the mean disk space of a record in this store, in bytes.
    pub fn mean_record_bytes(&self, cx: &Context) -> u64 {
        self.used_bytes(&cx.geometry) / cx.index.len().max(1)
    }

    fn used_bytes(&self, geometry: &Geometry) -> u64 {
        let segments: u32 = self.logs.iter().map(|log| log.next - log.tail).sum();
        u64::from(segments) * geometry.segment_bytes()
    }

    /// Returns the number of records that are in the index or in a write buffer.
    fn records(&self, cx: &Context) -> u64 {
        cx.index.len() + self.logs.iter().map(|log| log.buffer.len() as u64).sum::<u64>()
    }

    /// Returns whether the store has reached the largest number of records that the settings allow.
    pub fn is_crowded(&self, cx: &Context) -> bool {
        self.records(cx) >= u64::from(cx.settings.record_limit)
    }

    pub fn is_idle(&self) -> bool {
        let has_work = self.logs.iter().any(|log| !log.buffer.is_empty() && log.has_room());
        self.in_flight.is_idle() && !has_work
    }

    /// Returns whether a batch of records is being written to this segment. No other segment may
    /// use the slot until this write has ended.
    pub fn writes_to(&self, segment: Segment) -> bool {
        self.in_flight.writes_to(segment)
    }

    /// Returns a record that is still in memory, because its write has not started or not ended.
    /// Counts one use of a record whose write has not started.
    pub fn get(&mut self, key: Key) -> Option<&Record> {
        let [main, probation] = &mut self.logs;
        let buffered = main.buffer.get(key).or_else(|| probation.buffer.get(key));
        let deferred = self.deferred.as_mut();
        buffered
            .or_else(|| deferred.and_then(|deferred| deferred.get(key)))
            .or_else(|| self.in_flight.get(key))
    }

    /// Returns whether a record waits in memory and its write to disk has not started.
    pub fn is_buffered(&self, key: Key) -> bool {
        self.deferred.as_ref().is_some_and(|deferred| deferred.contains(key))
            || self.logs.iter().any(|log| log.buffer.contains(key))
    }

    /// Drops a record that waits in memory to be written.
    pub fn unbuffer(&mut self, cx: &Context, key: Key) {
        let mut was_buffered = false;
        for log in &mut self.logs {
            was_buffered |= log.buffer.remove(key);
        }
        if let Some(deferred) = &mut self.deferred {
            was_buffered |= deferred.remove(key);
        }
        if was_buffered {
            cx.index.unbuffer(cx.tag(key));
        }
    }

    /// Drops all records of a key that the durable tombstone (mark of a removal) `tombstone`
    /// removes, from memory and from the index.
    pub fn forget(&mut self, cx: &Context, key: Key, tombstone: Tombstone) {
        self.in_flight.forget(key);
        self.unbuffer(cx, key);
        if let Some(entry) = cx.index.get(tombstone.tag)
            && tombstone.reaches(cx.index.location(entry).position)
        {
            cx.index.remove_at(tombstone.tag, entry.place);
        }
    }

    /// Notes that a record left the index because its segment was discarded. If it was in the
    /// probation log, the ghost (table of discarded records) remembers it.
    pub fn evicted(&mut self, log: LogName, tag: Tag) {
        if log == LogName::Probation {
            self.ghost.add(tag);
        }
    }

    /// Returns the time at which the store must write the next buffered records.
    pub fn deadline(&self, cx: &Context) -> Option<Instant> {
        let writable = self.logs.iter().filter(|log| log.has_room() && self.in_flight.has_room());
        let oldest = writable.filter_map(|log| log.buffer.oldest()).min();
        oldest.map(|since| since + cx.settings.flush_after)
    }

    pub fn show(&self, cx: &Context) {
        let (statistics, geometry) = (cx.statistics(), &cx.geometry);
        statistics.records.set(self.records(cx));
        statistics.live_bytes.set(self.used_bytes(geometry));
        statistics.capacity_bytes.set(u64::from(geometry.slots()) * geometry.segment_bytes());
        statistics.index_bytes.set(cx.index.memory() + self.ghost.memory());
        if let Some(deferred) = &self.deferred {
            statistics.held.set(deferred.len() as u64);
            statistics.held_bytes.set(deferred.memory() as u64);
        }
    }
}
