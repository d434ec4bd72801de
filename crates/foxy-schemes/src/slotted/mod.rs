//! The storage schemes that keep many records in one file (STREAM, BUDDY, coss and others). They
//! come from the WebCoSM paper (paper 001 in docs/figures.md), from Squid and from Squid-M. A file
//! consists of slots of 512 bytes, and the index is in memory. A [`Plan`] defines each scheme: its
//! layout (which slots a record takes), and the order of writes and reads. This module contains the
//! state and passes each event to the module that handles it. `fill`, `hits`, `open` and `close`
//! contain the operations.
//!
//! These schemes keep records only over a clean stop. Closing writes the index with the store's
//! generation, a number in the superblock. An opening raises the generation on disk before it
//! serves. If foxy then crashes, the index on disk has an older generation. So the next opening
//! starts with an empty store. A new secret for checksums makes all old records invalid. So a get
//! never returns wrong content, although no sync happens while the store serves. Only the scheme
//! `stream-packetizer` can recover after a crash.

mod close;
mod entries;
mod files;
mod fill;
mod gather;
mod hits;
mod image;
mod layout;
mod locality;
mod open;
pub(crate) mod plan;
mod prefetch;
mod view;
mod work;

#[cfg(test)]
mod tests;

pub use locality::BufferChoice;
pub(crate) use plan::Plan;

use crate::SchemeSettings;
use close::Closing;
use entries::{Entries, EntryId};
use files::Files;
use foxy_base::Instant;
use foxy_device::{FileId, IoDone, IoId};
use foxy_store::contract::{
    AbsentReason, Answer, Outbox, RefusedReason, Scheme, StoreRequest, Ticket,
};
use foxy_store::layout::{PAGE, SLOT};
use foxy_store::map::LayoutView;
use foxy_store::observe::Observer;
use foxy_store::record::Secret;
use foxy_store::status::{OpenStoreError, StoreStatus, Unable};
use foxy_store::superblock::Superblock;
use gather::{Batch, Gather};
use hits::Hits;
use layout::{Layout, Ring};
use locality::Locality;
use open::Opening;
use plan::WriteOrder;
use prefetch::Prefetch;
use std::collections::{BTreeSet, HashMap, VecDeque};
use work::Job;

/// The control file. It contains the superblocks and the index of a closed store.
const CONTROL: FileId = FileId(0);
/// Number of superblock pages at the start of the control file. The index follows them.
const SUPERBLOCKS: usize = 2;
/// The space for the index of a closed store is 1/`INDEX_SHARE` of the store's size.
const INDEX_SHARE: u64 = 32;
/// Number of slots (512 bytes each) in a page that the packetizer writes. A page has 8 KiB, as on
/// the machine of the WebCoSM paper (paper 001 in docs/figures.md).
const PAGE_SLOTS: u32 = 16;
/// Size of a locality buffer in bytes.
const SITE_BUFFER: usize = 64 << 10;

#[derive(Debug)]
enum SlottedPhase {
    New,
    Opening(Opening),
    Serving,
    Closing { ticket: Ticket, step: Closing },
    Closed,
    Unusable(OpenStoreError),
}

#[derive(Debug)]
struct Unplaced {
    id: EntryId,
    bytes: usize,
}

/// The file and the slot (512 bytes) at which a record starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RecordStart {
    file: u64,
    first: u32,
    id: EntryId,
}

impl RecordStart {
    /// Returns a value that is not greater than the [`RecordStart`] of any record that starts at
    /// this slot (512 bytes) or later.
    const fn before(file: u64, first: u32) -> Self {
        Self { file, first, id: 0 }
    }
}

/// The state of a slotted storage scheme. [`crate::SchemeName::make`] creates it.
pub(crate) struct Slotted {
    plan: Plan,
    settings: SchemeSettings,
    observer: Observer,
    phase: SlottedPhase,
    superblock: Superblock,
    secret: Secret,
    entries: Entries,
    layout: Box<dyn Layout>,
    /// Start positions of records. Prefetching uses them to find the next record on disk. Some
    /// layouts use them to find the records in a range that they overwrite.
    starts: BTreeSet<RecordStart>,
    gather: Gather,
    /// Writes that wait until a batch of reads ends or earlier writes finish.
    held: VecDeque<Batch>,
    /// Number of bytes in all writes in flight.
    writing: usize,
    locality: Option<Locality>,
    hits: Hits,
    prefetch: Prefetch,
    files: Files,
    sequence: u64,
    /// Number of bytes of puts in memory: collected, in flight, or waiting for space.
    waiting: usize,
    /// Records that wait for space until an abandoned (empty) file is removed.
    unplaced: Vec<Unplaced>,
    jobs: HashMap<IoId, Job>,
    next_io: u64,
}

fn slots_of(size: u64) -> u32 {
    let control = (SUPERBLOCKS * PAGE) as u64 + index_bytes(size);
    u32::try_from(size.saturating_sub(control) / SLOT as u64).unwrap_or(u32::MAX)
}

/// Returns the maximum number of slots (512 bytes each) that coss collects for one write: half of
/// `waiting_bytes`.
fn most_gathered(settings: &SchemeSettings) -> u32 {
    u32::try_from(settings.store.waiting_bytes / 2 / SLOT).unwrap_or(u32::MAX).max(1)
}

/// Returns the space in bytes for the index of a closed store, a whole number of pages.
fn index_bytes(size: u64) -> u64 {
    (size / INDEX_SHARE).next_multiple_of(PAGE as u64)
}

/// Returns the number of locality buffers. The number in the settings is reduced if the buffers
/// would take more than a quarter of the store's size.
pub fn locality_buffers(settings: &SchemeSettings) -> usize {
    let room = slots_of(settings.store.size) as usize * SLOT / (4 * SITE_BUFFER);
    usize::from(settings.locality_buffers).min(room).max(1)
}

impl Slotted {
    pub(crate) fn new(plan: Plan, settings: &SchemeSettings, observer: Observer) -> Self {
        let slots = slots_of(settings.store.size);
        let granule = match plan.writes {
            WriteOrder::Arrival => 0,
            WriteOrder::Pages | WriteOrder::Sites => PAGE_SLOTS,
            WriteOrder::Stripes => Ring::stripe_of(slots).min(most_gathered(settings)),
        };
        let locality = (plan.writes == WriteOrder::Sites).then(|| {
            let buffers = locality_buffers(settings);
            Locality::new(buffers, SITE_BUFFER, settings.locality_choice, settings.store.seed)
        });
        Self {
            plan,
            settings: settings.clone(),
            observer,
            phase: SlottedPhase::New,
            superblock: Superblock::default(),
            secret: Secret::new(0),
            entries: Entries::new(settings.store.seed),
            layout: plan.layout.make(slots, settings.buddy_threshold),
            starts: BTreeSet::new(),
            gather: Gather::new(granule),
            held: VecDeque::new(),
            writing: 0,
            locality,
            hits: Hits::new(plan.reads, settings),
            prefetch: Prefetch::new(if plan.writes == WriteOrder::Sites {
                settings.prefetch
            } else {
                0
            }),
            files: Files::default(),
            sequence: 0,
            waiting: 0,
            unplaced: Vec::new(),
            jobs: HashMap::new(),
            next_io: 0,
        }
    }

    /// Returns the reasons with which a store that does not serve refuses gets and puts. Returns
    /// `None` while the store serves.
    fn unable(&self) -> Option<(AbsentReason, RefusedReason)> {
        match self.phase {
            SlottedPhase::Serving => None,
            SlottedPhase::New | SlottedPhase::Opening(_) => Some(Unable::Recovering.reasons()),
            SlottedPhase::Unusable(error) => Some(Unable::Failed(error).reasons()),
            SlottedPhase::Closing { .. } | SlottedPhase::Closed => Some(Unable::Closed.reasons()),
        }
    }

    fn show(&self) {
        let statistics = &self.observer.statistics;
        statistics.records.set(u64::from(self.entries.live()));
        statistics.live_bytes.set(self.entries.live_bytes());
        statistics.capacity_bytes.set(self.layout.capacity() * SLOT as u64);
        let starts = self.starts.len() * size_of::<RecordStart>();
        let memory = self.entries.memory() + self.layout.memory() + starts + self.prefetch.memory();
        statistics.index_bytes.set(memory as u64);
    }

    /// Drops a record, so that no get finds it. The space of the record becomes free once no write
    /// in flight contains the record.
    fn drop_live(&mut self, id: EntryId, out: &mut Outbox) {
        if let Some(locality) = &mut self.locality
            && self.entries.get(id).pieces.is_empty()
        {
            locality.forget(id, self.entries.get(id).slots());
        }
        self.forget_prefetched(id);
        self.entries.unlist(id);
        self.release_if_free(id, out);
    }

    fn release_if_free(&mut self, id: EntryId, out: &mut Outbox) {
        let entry = self.entries.get(id);
        if entry.live || entry.writes > 0 {
            return;
        }
        if let Some(piece) = entry.pieces.first() {
            self.starts.remove(&RecordStart { file: piece.file, first: piece.first, id });
        }
        let pieces = self.entries.vacate(id);
        self.layout.free(&pieces);
        self.remove_abandoned(out);
    }
}

impl Scheme for Slotted {
    fn start(&mut self, _now: Instant, out: &mut Outbox) {
        self.observer.status.set(StoreStatus::Opening);
        self.begin_opening(out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        let ticket = request.ticket();
        match (request, self.unable()) {
            (StoreRequest::Close { .. }, _) => self.close(ticket, now, out),
            (StoreRequest::Get { .. }, Some((absent, _))) => {
                out.reply(ticket, Answer::Absent(absent))
            }
            (_, Some((_, refused))) => out.reply(ticket, Answer::Refused(refused)),
            (StoreRequest::Get { key, .. }, None) => self.get(ticket, key, now, out),
            (StoreRequest::Put { key, record, hint, .. }, None) => {
                let put = self.put(key, record, hint, now, out);
                out.reply(ticket, put.map_or_else(Answer::Refused, |()| Answer::Stored));
            }
            (StoreRequest::Remove { key, .. }, None) => {
                if let Some(id) = self.entries.find(key) {
                    self.drop_live(id, out);
                }
                out.reply(ticket, Answer::Removed);
            }
        }
        self.show();
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        let Some(job) = self.jobs.remove(&done.id) else { return };
        if done.result.is_err()
            && !matches!(job, Job::Open | Job::Remove(_) | Job::RemoveStale | Job::Close(_))
        {
            self.observer.statistics.device_errors.add(1);
        }
        if !matches!(self.phase, SlottedPhase::Closed | SlottedPhase::Unusable(_)) {
            self.dispatch(job, done, now, out);
            self.write_held(out);
            self.start_due_batch(now, out);
            self.progress_close(now, out);
            self.show();
        }
    }

    fn deadline(&self) -> Option<Instant> {
        if !matches!(self.phase, SlottedPhase::Serving) {
            return None;
        }
        let flush =
            |since: Option<Instant>| since.map(|since| since + self.settings.store.flush_after);
        let sites = self.locality.as_ref().and_then(Locality::waiting_since);
        let waits = [flush(self.gather.waiting_since()), flush(sites), self.hits.deadline()];
        waits.into_iter().flatten().min()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if matches!(self.phase, SlottedPhase::Serving) {
            self.flush_old(now, out);
            self.write_held(out);
            self.start_due_batch(now, out);
        }
        self.show();
    }

    fn free_runs(&self) -> Vec<(u32, u32)> {
        self.layout.free_runs()
    }

    fn layout(&self) -> Option<&dyn LayoutView> {
        Some(self)
    }
}
