//! Recovery after a crash. The scan checks every slot (512 bytes) of the record area for the header
//! of a record. The newest record of a key is live, unless a tombstone in the journal covers it.
//! All other records are leftovers: invalid but still on disk. An unreadable slot or a damaged
//! header is doubtful, because it may hide a record of any key. Until all doubtful pages are
//! overwritten, every put needs a tombstone.

use super::StreamPacketizer;
use super::pending::{LaneName, Pending};
use super::sequences::After;
use crate::checkpoint::Listed;
use crate::index::{Entry, EntryId, EntryState};
use crate::pages::Run;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoError};
use foxy_store::contract::{Key, Outbox};
use foxy_store::layout::{SLOT, SLOTS_PER_PAGE};
use foxy_store::one_file::io_sequence::IoStep;
use foxy_store::record::{Header, RecordError, SLOTS_LIMIT};

/// Progress of the scan of the record area.
#[derive(Debug, Default)]
pub struct Scan {
    next: u32,
    end: u32,
    in_flight: u32,
    /// Halves of runs (adjacent pages) whose read failed. The scan reads each half again, to find
    /// the unreadable page.
    again: Vec<Run>,
    confirmed: Vec<bool>,
    /// Pages with records that may exist only in the system's cache.
    unsettled: Vec<Run>,
}

const PAGES_AT_ONCE: u32 = 256;

/// Number of reads in flight. With two reads, the disk stays busy while headers are decoded.
const DEPTH: u32 = 2;

impl Scan {
    /// Starts a scan of the first `pages` pages of the record area.
    pub fn begin(&mut self, pages: u32) {
        *self = Self { end: pages, ..Self::default() };
    }

    fn unsettle(&mut self, run: Run, count: u32) {
        let end = run.end().min(count);
        match self.unsettled.last_mut() {
            Some(last)
                if last.first <= run.first
                    && run.first <= last.end()
                    && end - last.first <= PAGES_AT_ONCE =>
            {
                last.pages = last.pages.max(end - last.first);
            }
            _ => self.unsettled.push(Run { first: run.first, pages: end - run.first }),
        }
    }

    fn take(&mut self) -> Option<Run> {
        if let Some(run) = self.again.pop() {
            return Some(run);
        }
        let pages = (self.end - self.next).min(PAGES_AT_ONCE);
        let run = Run { first: self.next, pages };
        self.next += pages;
        (pages > 0).then_some(run)
    }
}

impl StreamPacketizer {
    pub(super) fn continue_scan(&mut self, now: Instant, out: &mut Outbox) {
        while self.scan.in_flight < DEPTH
            && let Some(run) = self.scan.take()
        {
            self.scan.in_flight += 1;
            let offset = self.layout.data_offset(run.first);
            self.file.read(offset, run.bytes(), Pending::Scan(run), out);
        }
        if self.scan.in_flight == 0 {
            self.settle_next(now, out);
        }
    }

    pub(super) fn scanned(
        &mut self,
        run: Run,
        result: Result<IoBuffer, IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        self.scan.in_flight -= 1;
        match result.ok().filter(|buffer| buffer.len() == run.bytes()) {
            Some(buffer) => {
                let first_slot = run.first * SLOTS_PER_PAGE;
                for (slot, bytes) in (first_slot..).zip(buffer.as_ref().chunks_exact(SLOT)) {
                    self.look_at(slot, bytes);
                }
            }
            None if run.pages > 1 => {
                let half = run.pages / 2;
                self.scan.again.push(Run { first: run.first, pages: half });
                self.scan.again.push(Run { first: run.first + half, pages: run.pages - half });
            }
            None => {
                self.index.insert(Entry::doubt(run.first * SLOTS_PER_PAGE));
            }
        }
        self.continue_scan(now, out);
    }

    fn look_at(&mut self, slot: u32, bytes: &[u8]) {
        match Header::decode(bytes, self.file.secret()) {
            Ok(header) => {
                let id = self.adopt(header.key, header.sequence, slot, header.slots(), true);
                self.confirm(id);
                if header.sequence > self.durable {
                    self.scan.unsettle(self.index.get(id).pages(), self.pages.count());
                }
            }
            Err(RecordError::HeaderDamaged) => {
                self.index.insert(Entry::doubt(slot));
            }
            Err(_) => {}
        }
    }

    fn confirm(&mut self, id: EntryId) {
        let place = id as usize;
        if self.scan.confirmed.len() <= place {
            self.scan.confirmed.resize(place + 1, false);
        }
        self.scan.confirmed[place] = true;
    }

    /// Adds an entry of a checkpoint to the index if its position is possible.
    pub(super) fn adopt_listed(&mut self, listed: Listed) {
        let slots = u32::from(listed.slots);
        let end = u64::from(listed.first_slot) + u64::from(slots);
        let within = end <= u64::from(self.pages.count()) * u64::from(SLOTS_PER_PAGE);
        if within && (1..=SLOTS_LIMIT).contains(&slots) {
            self.adopt(listed.key, listed.sequence, listed.first_slot, slots, listed.live);
        }
    }

    /// Adds a record to the index. The record is live if it is the newest of its key, no tombstone
    /// covers it, and no newer record overwrote it. Otherwise it is a leftover.
    fn adopt(
        &mut self,
        key: Key,
        sequence: u64,
        first_slot: u32,
        slots: u32,
        live: bool,
    ) -> EntryId {
        let known = self.index.of_key(key).find(|&id| {
            let entry = self.index.get(id);
            entry.sequence == sequence && entry.first_slot == first_slot
        });
        if let Some(id) = known {
            return id;
        }
        let end = first_slot + slots;
        let whole = end <= self.pages.count() * SLOTS_PER_PAGE
            && !self.pages.is_retired((end - 1) / SLOTS_PER_PAGE);
        let forgotten = self.forgetting.up_to(key).is_some_and(|up_to| sequence <= up_to);
        let mut rivals: Vec<EntryId> = self.index.live_of(key).into_iter().collect();
        rivals.extend(self.index.live_in(first_slot, end));
        let newest = rivals.iter().all(|&id| self.index.get(id).sequence < sequence);
        if live && whole && !forgotten && newest {
            for id in rivals {
                if self.index.get(id).state == EntryState::Live {
                    self.drop_live(id);
                }
            }
            let id =
                self.index.insert(Entry::new(key, sequence, first_slot, slots, EntryState::Live));
            self.pages.occupy(self.index.get(id).pages());
            return id;
        }
        self.index.insert(Entry::new(key, sequence, first_slot, slots, EntryState::Leftover))
    }

    /// Reads the next run of pages with records newer than the last successful sync. The bytes of
    /// this run are then written again and synced. The reason: if an earlier sync failed, such a
    /// record may be readable only from the system's cache. After a crash, the older data on disk
    /// would return.
    fn settle_next(&mut self, now: Instant, out: &mut Outbox) {
        match self.scan.unsettled.pop() {
            Some(run) => {
                let offset = self.layout.data_offset(run.first);
                self.file.read(offset, run.bytes(), Pending::Settle(run), out);
            }
            None => self.scan_done(now, out),
        }
    }

    pub(super) fn settle_read(
        &mut self,
        run: Run,
        result: Result<IoBuffer, IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        match result.ok().filter(|buffer| buffer.len() == run.bytes()) {
            Some(buffer) => {
                let steps =
                    vec![IoStep::Write(self.layout.data_offset(run.first), buffer), IoStep::Sync];
                self.run(LaneName::Checkpoint, steps, After::Settled(run), out);
            }
            None => self.settled(run, Err(IoError::Device), now, out),
        }
    }

    /// Continues after a run of pages was written again. After a failure, its pages are doubtful
    /// (perhaps not durable).
    pub(super) fn settled(
        &mut self,
        run: Run,
        result: Result<(), IoError>,
        now: Instant,
        out: &mut Outbox,
    ) {
        if result.is_err() {
            for page in run.first..run.end() {
                self.index.insert(Entry::doubt(page * SLOTS_PER_PAGE));
            }
        }
        self.settle_next(now, out);
    }

    /// Finishes the scan. Drops records of the checkpoint that the scan did not find.
    fn scan_done(&mut self, now: Instant, out: &mut Outbox) {
        let scan = std::mem::take(&mut self.scan);
        let count = EntryId::try_from(self.index.slab().len()).expect("fewer records than slots");
        for id in 0..count {
            let confirmed = scan.confirmed.get(id as usize).copied().unwrap_or(false);
            if !confirmed && self.index.get(id).state == EntryState::Live {
                self.drop_live(id);
            }
        }
        while self.index.live() > self.settings.store.record_limit {
            self.evict_next();
        }
        self.changed = true;
        self.recovered(now);
        self.overwrite_doubts(out);
    }
}
