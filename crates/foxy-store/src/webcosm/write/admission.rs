//! Decides about a put: refuse it, let it wait for a tombstone, or buffer the record for one of the
//! two logs. A tombstone is a mark that removes older records.

use crate::contract::{Answer, Key, RefusedReason, Ticket};
use crate::layout::PAGE;
use crate::record::HEADER;
use crate::settings::{RECORD_BODY_LIMIT, StoreSettings};
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, LogName};
use crate::webcosm::format::summary::pages_for;
use crate::webcosm::index::{MAX_RECORD_PAGES, Tag};
use crate::webcosm::phase::Phase;
use crate::webcosm::tombstones::{Change, Put, Tombstones};
use crate::webcosm::write::Writer;
use crate::webcosm::write::write_buffer::BufferedRecord;
use crate::worth::Distance;

impl Writer {
    /// Stores a record. Returns `Ok(None)` if a durable tombstone (mark of a removal) for the
    /// record's older versions must come first. The answer then follows later.
    pub fn put(
        &mut self,
        cx: &Context,
        tombstones: &mut Tombstones,
        ticket: Ticket,
        key: Key,
        put: Put,
    ) -> Result<Option<Answer>, RefusedReason> {
        if !cx.phase().serves() {
            return Err(cx.unable().1);
        }
        if !is_storable(&put, &cx.settings, &cx.geometry) {
            return Err(RefusedReason::TooLarge);
        }
        if self.is_crowded(cx) || !self.has_memory_for(cx, tombstones, put.record.len()) {
            return Err(RefusedReason::Busy);
        }
        let tag = cx.tag(key);
        let replaces_in_memory = self.is_buffered(key) && !tombstones.awaits(tag);
        if !replaces_in_memory && self.may_have_older(cx, tombstones, key, tag) {
            tombstones.enqueue(Change { ticket, key, tag, put: Some(put) })?;
            return Ok(None);
        }
        self.accept(cx, key, tag, put);
        Ok(Some(Answer::Stored))
    }

    /// Removes a record. If an older record may be on disk, the answer waits until a tombstone
    /// (mark of a removal) is durable.
    pub fn remove(
        &mut self,
        cx: &mut Context,
        tombstones: &mut Tombstones,
        ticket: Ticket,
        key: Key,
    ) {
        if !cx.phase().serves() {
            return cx.reply(ticket, Answer::Refused(cx.unable().1));
        }
        let tag = cx.tag(key);
        if !tombstones.awaits(tag) {
            self.unbuffer(cx, key);
        }
        if !self.may_have_older(cx, tombstones, key, tag) {
            return cx.reply(ticket, Answer::Removed);
        }
        if let Err(reason) = tombstones.enqueue(Change { ticket, key, tag, put: None }) {
            cx.reply(ticket, Answer::Refused(reason));
        }
    }

    /// Returns whether a get could return an older record of this key, now or after a crash.
    fn may_have_older(&self, cx: &Context, tombstones: &Tombstones, key: Key, tag: Tag) -> bool {
        let is_known = cx.index.get(tag).is_some() || self.in_flight.get(key).is_some();
        cx.phase() == Phase::Rebuilding || tombstones.awaits(tag) || is_known
    }

    /// Returns whether `length` more bytes of records may wait in memory. If no record is waiting,
    /// a record of any length may wait.
    fn has_memory_for(&self, cx: &Context, tombstones: &Tombstones, length: usize) -> bool {
        let buffered: usize = self.logs.iter().map(|log| log.buffer.bytes()).sum();
        let waiting = buffered + self.in_flight.bytes() + tombstones.waiting_bytes();
        let limit = cx.settings.waiting_bytes.max(2 * cx.settings.page_buffer);
        waiting == 0 || waiting + length <= limit
    }

    /// Buffers a record for one of the two logs, or defers it (keeps it only in memory). Until the
    /// main log has been full for the first time, all records go to the main log. The caller must
    /// make sure that a get finds no older record of the key, even after a crash.
    pub fn accept(&mut self, cx: &Context, key: Key, tag: Tag, put: Put) {
        let Put { record, object_bytes } = put;
        self.unbuffer(cx, key);
        let distance =
            Distance::between((record.len() + HEADER) as u64, self.mean_record_bytes(cx));
        let is_proven = self.ghost.take(tag);
        let was_full = self.logs[0].next >= self.logs[0].segments();
        let length = record.len();
        let is_new_and_large = was_full && distance.is_large() && !is_proven;
        let must_prove = is_new_and_large
            && (fits_probation(&cx.geometry, object_bytes)
                || !self.large_objects.take(length, object_bytes));
        self.large_objects.earn(length);
        let log = if must_prove { LogName::Probation } else { LogName::Main };
        let is_deferred = was_full
            && !is_proven
            && cx.phase() == Phase::Serving
            && self.deferred.as_mut().is_some_and(|deferred| {
                deferred.wants(distance, length, cx.file.bytes_written(), cx.now)
            });
        let record = BufferedRecord { key, record, uses: distance.first_uses() };
        cx.index.buffer(tag);
        if is_deferred {
            self.defer(cx, record);
        } else {
            self.log_mut(log).buffer.insert(record, cx.now);
        }
    }

    /// Adds a record to the deferred records, which the store keeps only in memory. If the memory
    /// for them is full, drops the oldest deferred records.
    fn defer(&mut self, cx: &Context, record: BufferedRecord) {
        let Some(deferred) = &mut self.deferred else { return };
        for dropped in deferred.insert(record, cx.now) {
            let tag = cx.tag(dropped);
            self.ghost.add(tag);
            cx.index.unbuffer(tag);
            cx.statistics().held_dropped.add(1);
        }
    }

    /// Moves a deferred record to the write buffer of the main log, because a get requested it. The
    /// record stays deferred if the buffer is full, or if another record with its tag (shortened
    /// key) may exist. Returns whether the record was moved.
    pub fn prove(&mut self, cx: &Context, tombstones: &Tombstones, key: Key, tag: Tag) -> bool {
        let Some(length) = self.deferred.as_ref().and_then(|deferred| deferred.length(key)) else {
            return false;
        };
        if self.is_crowded(cx)
            || !self.has_memory_for(cx, tombstones, length)
            || self.may_have_older(cx, tombstones, key, tag)
        {
            return false;
        }
        let Some(record) = self.deferred.as_mut().and_then(|deferred| deferred.take(key)) else {
            return false;
        };
        self.log_mut(LogName::Main).buffer.insert(record, cx.now);
        cx.statistics().held_written.add(1);
        true
    }
}

fn is_storable(put: &Put, settings: &StoreSettings, geometry: &Geometry) -> bool {
    let bytes = put.object_bytes.max(put.record.len() as u64);
    let pages = (HEADER + put.record.len()).div_ceil(PAGE);
    let alone = geometry.segment_pages - pages_for(1, 1);
    put.record.is_within_limits()
        && bytes <= settings.object_limit.min(geometry.largest_object())
        && pages <= alone.min(MAX_RECORD_PAGES - 1) as usize
}

/// For this number of bytes of arriving records, one byte of new large objects may go to the main
/// log.
const BYTES_PER_LARGE: usize = 8;

/// Limits the bytes of new objects that go to the main log because probation is too small for all
/// their parts. Without the limit, such objects would displace most records with uses.
#[derive(Debug)]
pub struct LargeObjects {
    /// Number of bytes that may go to the main log now. Objects whose parts are still arriving can
    /// make the number negative.
    allowed: i64,
    /// Highest value of `allowed`: the bytes that the main log holds.
    most: i64,
}

impl LargeObjects {
    pub fn new(geometry: &Geometry) -> Self {
        let most = signed(geometry.object_room(LogName::Main));
        Self { allowed: most, most }
    }

    /// Raises `allowed`, because a record of `length` bytes arrived.
    fn earn(&mut self, length: usize) {
        let earned = signed((length / BYTES_PER_LARGE) as u64);
        self.allowed = (self.allowed + earned).min(self.most);
    }

    /// Returns whether a part of `length` bytes may go to the main log. After the first part of an
    /// object, the limit allows all other parts too.
    fn take(&mut self, length: usize, object_bytes: u64) -> bool {
        let is_allowed = self.allowed > -signed(object_bytes);
        if is_allowed {
            self.allowed -= signed(length as u64);
        }
        is_allowed
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Returns whether all parts of an object fit in half of the probation log. The parts of a larger
/// object would push each other out of this log.
fn fits_probation(geometry: &Geometry, object_bytes: u64) -> bool {
    let room = geometry.object_room(LogName::Probation) / 2;
    object_bytes <= room.max(RECORD_BODY_LIMIT as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_objects_pass_probation_whole_and_then_only_as_other_records_arrive() {
        const MIB: usize = 1 << 20;
        let mut large = LargeObjects { allowed: 10 * MIB as i64, most: 10 * MIB as i64 };
        let mut parts = |count: usize, object: u64| {
            (0..count).filter(|_| large.take(MIB, object * MIB as u64)).count()
        };
        assert_eq!((parts(8, 8), parts(8, 8)), (8, 8), "two whole objects");
        assert_eq!(parts(4, 4), 0, "the second object used more than the rest");
        large.earn(8 * 7 * MIB);
        assert!(large.take(MIB, 4 * MIB as u64));
        large.earn(usize::MAX);
        assert_eq!(large.allowed, large.most);
    }
}
