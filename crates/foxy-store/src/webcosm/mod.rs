//! webcosm: a log of segments in one preallocated file, written in large pieces and given up in the
//! order of writing. This file holds the state and its legal transitions; the files beside it hold
//! what happens in each.
//!
//! Why a get never lies: whatever is read must carry the stamp of its place in the log, its key and
//! its checksum. Before a record takes the place of one that may lie on disk, the journal says
//! durably that what the index knows under its tag from before that place is forgotten. Until a
//! segment's old records are gone from disk the index does not forget them for any other reason, so
//! it is known when that is needed; for a new key it costs no sync.

pub mod check;
mod finish;
mod format;
mod index;
mod io;
mod reads;
mod reclaim;
mod recovery;
mod tombstones;
mod write;

#[cfg(test)]
mod tests;

pub use format::geometry::MOST_BYTES;

use crate::contract::{Key, Lookup, Outbox, Scheme, StoreRequest, Ticket};
use crate::observe::Observer;
use crate::one_file::io_sequence::{IoSequence, SyncFailures};
use crate::one_file::lifecycle::Lifecycle;
use crate::one_file::opening::{FirstSync, MediumWish};
use crate::one_file::store_file::{Completion, StoreFile};
use crate::settings::StoreSettings;
use format::geometry::{Geometry, LogName, Position, Segment};
use format::location::Written;
use foxy_base::Instant;
use foxy_device::IoDone;
use index::Tag;
use index::shared::SharedIndex;
use io::Pending;
use reclaim::Reclaim;
use reclaim::copy::Copies;
use reclaim::ghost::Ghost;
use reclaim::uses::Uses;
use recovery::bad_slots::BadSlots;
use recovery::head::HeadFinding;
use recovery::phase::Phase;
use recovery::rebuild::Rebuild;
use std::sync::Arc;
use tombstones::Forgetting;
use tombstones::io_sequence::After;
use write::deferred::Held;
use write::in_flight::Flying;
use write::log::Log;

/// The store's file within its device.
pub const FILE_NAME: &str = "webcosm.foxy";

/// Bytes of the largest object that a store begun with `size` bytes can hold.
#[must_use]
pub fn largest_object(size: u64) -> u64 {
    Geometry::of(size).largest_object()
}

/// The default engine.
pub struct Webcosm {
    settings: StoreSettings,
    observer: Observer,
    life: Lifecycle<Phase>,
    file: StoreFile<Pending>,
    geometry: Geometry,
    index: SharedIndex,
    bad_slots: BadSlots,
    logs: [Log; 2],
    ghost: Ghost,
    held: Option<Held>,
    flying: Flying,
    copies: Copies,
    reclaim: Reclaim,
    forgetting: Forgetting,
    sequence: IoSequence<After, Segment>,
    sync_failures: SyncFailures,
    /// After a failure nothing that nobody waits for is tried again before this.
    retry_at: Instant,
    finding: HeadFinding,
    rebuild: Rebuild,
    reads_in_flight: usize,
    uses: Uses,
    closing: Option<Ticket>,
    close_step: finish::CloseStep,
}

impl Webcosm {
    /// An engine that opens nothing until [`Scheme::start`].
    #[must_use]
    pub fn boxed(settings: &StoreSettings, observer: Observer) -> Box<dyn Scheme + Send> {
        observer.statistics.size_bytes.set(settings.size);
        Box::new(Self::new(settings, observer))
    }

    fn new(settings: &StoreSettings, observer: Observer) -> Self {
        let geometry = Geometry::of(settings.size);
        Self {
            settings: settings.clone(),
            life: Lifecycle::new(&observer),
            file: StoreFile::new(
                FILE_NAME,
                settings,
                &observer,
                FirstSync::Later,
                MediumWish::FileOrBlockDevice,
            ),
            observer,
            geometry,
            index: SharedIndex::new(geometry),
            bad_slots: BadSlots::default(),
            logs: LogName::ALL.map(|log| Log::new(log, &geometry)),
            ghost: Ghost::new(&geometry),
            held: settings.write_budget.map(Held::new),
            flying: Flying::default(),
            copies: Copies::default(),
            reclaim: Reclaim::default(),
            forgetting: Forgetting::default(),
            sequence: IoSequence::default(),
            sync_failures: SyncFailures::default(),
            retry_at: Instant::ZERO,
            finding: HeadFinding::default(),
            rebuild: Rebuild::default(),
            reads_in_flight: 0,
            uses: Uses::default(),
            closing: None,
            close_step: finish::CloseStep::default(),
        }
    }

    fn tag(&self, key: Key) -> Tag {
        self.index.tag(key.hash(self.file.superblock().salt))
    }

    /// Where the next record of each log goes, at the earliest.
    fn next_positions(&self) -> [Position; 2] {
        self.logs.each_ref().map(|log| match &log.open {
            Some(open) => Position::new(open.segment, open.page),
            None => Position::new(log.segment(log.next), 0),
        })
    }

    /// The slot of a segment holds it from now on, begun in that life.
    fn take_slot(&self, segment: Segment, life: u64) {
        self.index
            .set_written(self.geometry.slot(segment), Written { sequence: segment.sequence, life });
    }

    /// Bytes that a record takes, on average.
    fn mean(&self) -> u64 {
        self.used_bytes() / self.index.len().max(1)
    }

    /// Bytes of the segments that hold records.
    fn used_bytes(&self) -> u64 {
        let segments: u32 = self.logs.iter().map(|log| log.next - log.tail).sum();
        u64::from(segments) * self.geometry.segment_bytes()
    }

    /// Records that are known or wait.
    fn records(&self) -> u64 {
        self.index.len() + self.logs.iter().map(|log| log.stage.len() as u64).sum::<u64>()
    }

    fn show(&self) {
        let statistics = &self.observer.statistics;
        statistics.records.set(self.records());
        statistics.live_bytes.set(self.used_bytes());
        statistics
            .capacity_bytes
            .set(u64::from(self.geometry.slots()) * self.geometry.segment_bytes());
        statistics.index_bytes.set(self.index.memory() + self.ghost.memory());
        self.show_held();
    }

    /// What every event may have made possible.
    fn after_event(&mut self, now: Instant, out: &mut Outbox) {
        if self.life.phase().learns() {
            self.pump_rebuild(0, now, out);
        }
        if self.life.phase().serves() {
            self.pump_reclaim(out);
        }
        if self.life.phase() == Phase::Closing {
            self.pump_leaving(usize::MAX);
        }
        if self.life.phase().serves() || self.life.phase() == Phase::Closing {
            self.pump_writes(now, out);
            self.pump_forgets(now, out);
            self.pump_uses(now, out);
        }
        if self.life.phase() == Phase::Closing {
            self.progress_close(out);
        }
        self.show();
    }
}

impl Scheme for Webcosm {
    fn start(&mut self, _now: Instant, out: &mut Outbox) {
        self.enter(Phase::Opening);
        self.file.open(out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        match request {
            StoreRequest::Get { ticket, key } => return self.get(ticket, key, now, out),
            StoreRequest::Put { ticket, key, record, hint } => {
                let put = self.put(ticket, key, record, hint, now);
                out.reply_to_put(ticket, put);
            }
            StoreRequest::Remove { ticket, key } => self.remove(ticket, key, out),
            StoreRequest::Close { ticket } => self.close(ticket, out),
        }
        self.after_event(now, out);
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        match self.file.complete(done, out) {
            Some(Completion::Opened(opened)) => self.opened(opened, out),
            Some(Completion::Done(pending, done)) => self.dispatch(pending, done, now, out),
            None => {}
        }
        self.after_event(now, out);
    }

    fn deadline(&self) -> Option<Instant> {
        if self.rebuild_is_due() {
            return Some(Instant::ZERO);
        }
        if !self.life.phase().serves() {
            return None;
        }
        if self.has_more_to_reclaim() {
            return Some(Instant::ZERO);
        }
        let writable = self.logs.iter().filter(|log| log.has_room() && self.flying.has_room());
        let flush = writable
            .filter_map(|log| log.stage.oldest())
            .min()
            .map(|since| since + self.settings.flush_after);
        let retry = (self.wants_commit() && self.sequence.is_idle()).then_some(self.retry_at);
        flush.into_iter().chain(retry).chain(self.uses.deadline()).min()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if self.life.phase().learns() {
            self.pump_rebuild(recovery::rebuild::LEARNED_AT_ONCE, now, out);
        }
        if self.life.phase().serves() {
            self.reclaim_more();
        }
        self.after_event(now, out);
    }

    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        Some(self.index.lookup())
    }
}
