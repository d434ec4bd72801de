//! Handles puts: refusals, eviction, the page buffer and its writes. The code calls the buffer with
//! its reserved pages a window. A get finds a record as soon as the record is in the buffer.

use super::StreamPacketizer;
use super::pending::Pending;
use super::phase::Phase;
use crate::index::{Entry, EntryId, EntryState};
use crate::pages::Run;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError, IoId};
use foxy_store::contract::{Answer, Key, Outbox, PlacementHint, Record, RefusedReason, Ticket};
use foxy_store::layout::{PAGE, SLOT, SLOTS_PER_PAGE};
use foxy_store::record::{self, slots_for};

/// The page buffer, and the free pages that are reserved for its write.
#[derive(Debug)]
pub struct Window {
    run: Run,
    used_slots: u32,
    buffer: IoBuffer,
    records: Vec<EntryId>,
    /// Time at which the page buffer received its first record.
    pub opened: Instant,
}

impl Window {
    pub fn records(&self) -> &[EntryId] {
        &self.records
    }
}

/// A page buffer whose write is in flight.
#[derive(Debug)]
pub struct WindowWrite {
    io: IoId,
    run: Run,
    records: Vec<EntryId>,
    dying: Vec<EntryId>,
}

impl WindowWrite {
    pub fn records(&self) -> &[EntryId] {
        &self.records
    }
}

/// Maximum number of evictions per put below the high watermark, so that a put takes a bounded
/// time.
const MAX_EXTRA_EVICTIONS: u32 = 64;

/// Maximum number of doubtful pages (with damaged or unreadable records) that an opening
/// overwrites. Later puts overwrite the others.
const MAX_OVERWRITTEN_DOUBTS: usize = 256;

/// The largest allowed record has the size of the record area divided by this number.
const RECORD_SHARE: u32 = 4;

impl StreamPacketizer {
    /// Handles a put. Returns `Some` if the record is stored. Returns `None` if the put is answered
    /// later, because a tombstone must be durable first.
    pub(super) fn put(
        &mut self,
        ticket: Ticket,
        key: Key,
        record: Record,
        hint: PlacementHint,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<Option<Answer>, RefusedReason> {
        if self.lifecycle.phase() != Phase::Serving {
            return Err(self.lifecycle.unable().1);
        }
        let whole = hint.size.max(record.len() as u64);
        let share = self.pages.count() * SLOTS_PER_PAGE / RECORD_SHARE;
        let admitted = whole <= self.settings.store.object_limit && self.index.admits(whole);
        if !record.is_within_limits() || !admitted || slots_for(record.len()) > share {
            return Err(RefusedReason::TooLarge);
        }
        let limit = self.settings.store.waiting_bytes.max(2 * self.settings.store.page_buffer);
        if self.waiting > 0 && self.waiting + record.len() > limit {
            // Write the buffer now. Otherwise its records would use up the memory for puts, and the
            // store would refuse more puts.
            self.flush(out);
            return Err(RefusedReason::Busy);
        }
        if self.may_have_older(key) {
            self.put_after_forgetting(ticket, key, record)?;
            return Ok(None);
        }
        let sequence = self.next_sequence();
        self.place(key, sequence, record, now, out)?;
        Ok(Some(Answer::Stored))
    }

    /// Puts a record into the page buffer. The caller ensures that a scan after a crash finds no
    /// older record of the key.
    pub(super) fn place(
        &mut self,
        key: Key,
        sequence: u64,
        record: Record,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<(), RefusedReason> {
        let slots = slots_for(record.len());
        self.make_room(slots);
        self.ensure_window(slots, now, out)?;
        let window = self.window.as_mut().expect("ensured");
        let start = window.used_slots as usize * SLOT;
        let place = &mut window.buffer.as_mut()[start..start + slots as usize * SLOT];
        record::encode(place, key, sequence, &record, self.file.secret());
        let first_slot = window.run.first * SLOTS_PER_PAGE + window.used_slots;
        window.used_slots += slots;
        let full = window.used_slots == window.run.pages * SLOTS_PER_PAGE;
        let entry = Entry::new(key, sequence, first_slot, slots, EntryState::Live);
        let id = self.index.insert(entry.in_buffer());
        window.records.push(id);
        self.pages.occupy(self.index.get(id).pages());
        self.waiting += slots as usize * SLOT;
        self.buffered.insert(id, record);
        self.changed = true;
        if full {
            self.flush(out);
        }
        Ok(())
    }

    /// Evicts records until the new record fits below the high watermark. Then evicts up to
    /// [`MAX_EXTRA_EVICTIONS`] more, until the low watermark is reached.
    fn make_room(&mut self, slots: u32) {
        let capacity = self.capacity_slots();
        let high = capacity * u64::from(self.settings.high_watermark) / 100;
        let low = capacity * u64::from(self.settings.low_watermark) / 100;
        let needed = u64::from(slots);
        let over = |scheme: &Self| {
            scheme.index.live_slots() + needed > high
                || scheme.index.live() >= scheme.settings.store.record_limit
        };
        self.evicting |= over(self);
        while over(self) && self.evict_next() {}
        for _ in 0..MAX_EXTRA_EVICTIONS {
            self.evicting &= self.index.live_slots() + needed > low;
            if !self.evicting || !self.evict_next() {
                break;
            }
        }
    }

    pub(super) fn evict_next(&mut self) -> bool {
        let victim = self.index.victim();
        if let Some(id) = victim {
            self.evict(id);
        }
        victim.is_some()
    }

    fn evict(&mut self, id: EntryId) {
        self.drop_live(id);
        self.observer.statistics.evicted.add(1);
    }

    /// Drops a record. The record becomes a leftover (invalid but still on disk), and its space is
    /// free.
    pub(super) fn drop_live(&mut self, id: EntryId) {
        self.pages.release(self.index.get(id).pages());
        self.index.set_state(id, EntryState::Leftover);
    }

    /// Ensures that the page buffer has space for a record. If it has none, writes the buffer, and
    /// starts a new buffer for the next free run of pages.
    fn ensure_window(
        &mut self,
        slots: u32,
        now: Instant,
        out: &mut Outbox,
    ) -> Result<(), RefusedReason> {
        let room = |window: &Window| window.run.pages * SLOTS_PER_PAGE - window.used_slots;
        if self.window.as_ref().is_some_and(|window| room(window) >= slots) {
            return Ok(());
        }
        self.flush(out);
        let least = slots.div_ceil(SLOTS_PER_PAGE);
        let buffer_pages =
            u32::try_from(self.settings.store.page_buffer / PAGE).unwrap_or(u32::MAX);
        let busy: Vec<Run> = self.writes.iter().map(|write| write.run).collect();
        let free = self.pages.next_free(least, buffer_pages.max(least), &busy);
        let run = free
            .or_else(|| self.pages.next_usable(least, &busy))
            .ok_or(if busy.is_empty() { RefusedReason::NoSpace } else { RefusedReason::Busy })?;
        let in_the_way: Vec<_> =
            self.index.live_in(run.first * SLOTS_PER_PAGE, run.end() * SLOTS_PER_PAGE).collect();
        for id in in_the_way {
            self.evict(id);
        }
        let buffer = IoBuffer::zeroed(run.bytes());
        self.window = Some(Window { run, used_slots: 0, buffer, records: Vec::new(), opened: now });
        Ok(())
    }

    /// Writes the page buffer, padded to whole pages.
    pub(super) fn flush(&mut self, out: &mut Outbox) {
        let Some(window) = self.window.take() else { return };
        let Window { mut run, used_slots, mut buffer, records, .. } = window;
        run.pages = used_slots.div_ceil(SLOTS_PER_PAGE);
        buffer.truncate(run.bytes());
        self.pages.move_cursor(run.end());
        self.write_run(run, buffer, records, out);
    }

    /// Overwrites doubtful pages with zeros, so that no unknown record remains on disk.
    pub(super) fn overwrite_doubts(&mut self, out: &mut Outbox) {
        let doubtful = self.index.slab().iter().filter(|entry| entry.doubtful);
        let mut pages: Vec<u32> = doubtful.map(|entry| entry.first_slot / SLOTS_PER_PAGE).collect();
        pages.dedup();
        pages.truncate(MAX_OVERWRITTEN_DOUBTS);
        for first in pages {
            let run = Run { first, pages: 1 };
            let live: Vec<_> =
                self.index.live_in(first * SLOTS_PER_PAGE, run.end() * SLOTS_PER_PAGE).collect();
            for id in live {
                self.evict(id);
            }
            self.write_run(run, IoBuffer::zeroed(PAGE), Vec::new(), out);
        }
    }

    fn write_run(&mut self, run: Run, buffer: IoBuffer, records: Vec<EntryId>, out: &mut Outbox) {
        let range = self.index.beginning_in(run.first * SLOTS_PER_PAGE, run.end() * SLOTS_PER_PAGE);
        let dying: Vec<_> = range
            .filter(|&id| {
                let entry = self.index.get(id);
                entry.state == EntryState::Leftover && !entry.buffered
            })
            .collect();
        for &id in &dying {
            self.index.set_state(id, EntryState::Dying);
        }
        let offset = self.layout.data_offset(run.first);
        let io = self.file.write(offset, buffer, Pending::Window, out);
        self.writes.push(WindowWrite { io, run, records, dying });
    }

    /// Handles the result of a page buffer's write. If the write failed, drops its records. After
    /// an error of the device, its pages are never used again.
    pub(super) fn window_done(&mut self, io: IoId, result: Result<(), IoError>) {
        let Some(place) = self.writes.iter().position(|write| write.io == io) else { return };
        let WindowWrite { run, records, dying, .. } = self.writes.swap_remove(place);
        for &id in &records {
            let entry = *self.index.get(id);
            self.waiting -= usize::from(entry.slots) * SLOT;
            self.buffered.remove(&id);
            self.index.set_buffered(id, false);
            if result.is_err() && entry.state == EntryState::Live {
                self.drop_live(id);
            }
        }
        match result {
            Ok(()) => self.overwritten.extend(dying),
            Err(error) => {
                self.restore_leftovers(dying);
                if error == IoError::Device {
                    self.pages.retire(run);
                }
            }
        }
    }
}
