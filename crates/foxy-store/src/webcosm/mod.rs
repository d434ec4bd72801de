//! webcosm, the default storage scheme. It stores records in two logs, whose segments lie in one
//! preallocated file. The scheme writes records in large batches and discards the oldest segments
//! first. This module passes each event to the module that handles it.
//!
//! A get never returns a wrong record, for these reasons:
//!
//! - Each record read from disk must have the expected stamp, key and checksum. Records lie in
//!   pages. The stamp of a page states its place in the log, and during which opening of the store
//!   it was written.
//! - Before a new record replaces a record on disk, the journal stores a tombstone durably. The
//!   tombstone marks all older records with the same tag (shortened key) as removed.
//! - The index lists the records of a segment until the journal durably states that the segment is
//!   discarded. So the index shows whether an older record of a key may exist. Only then does a put
//!   need a tombstone. The put of a new key needs no tombstone and no sync.

pub mod check;
mod close;
mod context;
mod format;
mod index;
mod log_view;
mod pending;
mod phase;
mod reads;
mod reclaim;
mod recovery;
mod tombstones;
mod view;
mod write;

#[cfg(test)]
mod tests;

pub use context::FILE_NAME;
pub use format::geometry::MAX_STORE_BYTES;

use crate::completion::{read, written};
use crate::contract::{Lookup, Outbox, Scheme, StoreRequest};
use crate::observe::Observer;
use crate::one_file::store_file::Completion;
use crate::settings::StoreSettings;
use crate::status::OpenStoreError;
use close::Closing;
use context::Context;
use format::geometry::{Geometry, Segment};
use foxy_base::Instant;
use foxy_device::{IoDone, IoError};
use pending::{Pending, SummaryPurpose};
use phase::Phase;
use reclaim::Reclaimer;
use reclaim::uses::Uses;
use recovery::summaries::{self, FoundSummary};
use recovery::{Parts, StoreRecovery, rebuild};
use std::sync::Arc;
use tombstones::{After, Put, Tombstones};
use write::Writer;
use write::log::Log;

/// Returns the size in bytes of the largest object that fits a new store of `size` bytes.
pub fn largest_object(size: u64) -> u64 {
    Geometry::of(size).largest_object()
}

/// The default storage scheme: a state machine that processes requests and finished disk
/// operations.
pub struct Webcosm {
    cx: Context,
    writer: Writer,
    tombstones: Tombstones,
    recovery: StoreRecovery,
    reclaimer: Reclaimer,
    uses: Uses,
    closing: Option<Closing>,
}

impl Webcosm {
    /// Creates the storage scheme. It opens its file only in [`Scheme::start`].
    pub fn boxed(settings: &StoreSettings, observer: Observer) -> Box<dyn Scheme + Send> {
        observer.statistics.size_bytes.set(settings.size);
        let cx = Context::new(settings, observer);
        Box::new(Self {
            writer: Writer::new(settings, &cx.geometry),
            cx,
            tombstones: Tombstones::default(),
            recovery: StoreRecovery::default(),
            reclaimer: Reclaimer::default(),
            uses: Uses::default(),
            closing: None,
        })
    }

    fn recovery(&mut self) -> (&mut StoreRecovery, Parts<'_>) {
        let Self { cx, writer, tombstones, recovery, .. } = self;
        (recovery, Parts { cx, writer, tombstones })
    }

    /// Passes the result of a finished disk operation to the module that started the operation.
    fn dispatch(&mut self, pending: Pending, done: IoDone) {
        let Self { cx, writer, tombstones, reclaimer, uses, .. } = self;
        match pending {
            Pending::Read(pending) => self.read_done(pending, read(done)),
            Pending::Batch(batch) => writer.batch_done(cx, tombstones, &batch, done),
            Pending::Summary(segment) => {
                writer.summary_done(cx, tombstones, segment, written(&done));
            }
            Pending::Step(step) => {
                let ended = tombstones.step_done(cx, writer, step, written(&done));
                if let Some((after, result)) = ended {
                    self.sequence_done(after, result);
                }
            }
            Pending::Copy(entry, location) => {
                let mean = writer.mean_record_bytes(cx);
                reclaimer.copies.read_done(cx, mean, entry, location, read(done));
            }
            Pending::ReadUses(page) => uses.read_done(cx, page, read(done)),
            Pending::WriteUses => uses.written(cx, written(&done)),
            Pending::SummaryEnd(purpose, segment) => {
                let found = summaries::end_read(cx, purpose, segment, read(done));
                if let Some(found) = found {
                    self.summary_read(purpose, segment, found);
                }
            }
            Pending::LongSummary(purpose, long) => {
                let found = summaries::long_read(cx, long, read(done));
                self.summary_read(purpose, long.segment, found);
            }
            Pending::Journal => {
                let (recovery, mut parts) = self.recovery();
                recovery.journal_read(&mut parts, read(done));
            }
            Pending::LookAtEnd(segment) => {
                let (recovery, mut parts) = self.recovery();
                recovery.looked_at_end(&mut parts, segment, read(done));
            }
            Pending::LookAtStart(segment) => {
                let (recovery, mut parts) = self.recovery();
                recovery.looked_at_start(&mut parts, segment, read(done));
            }
            Pending::LookAtAll(segment) => {
                let (recovery, mut parts) = self.recovery();
                recovery.looked_at_all(&mut parts, segment, read(done));
            }
            Pending::Trim => {}
        }
    }

    fn summary_read(&mut self, purpose: SummaryPurpose, segment: Segment, found: FoundSummary) {
        let Self { cx, writer, tombstones, recovery, reclaimer, .. } = self;
        match purpose {
            SummaryPurpose::Rebuild => {
                recovery.rebuild.summary_read(cx, writer, segment, found);
            }
            SummaryPurpose::Reclaim => {
                let summary = found.map(|(_, summary)| summary);
                reclaimer.summary_read(cx, writer, tombstones, segment, summary);
            }
        }
    }

    fn sequence_done(&mut self, after: After, result: Result<(), IoError>) {
        let Self { cx, writer, tombstones, recovery, uses, closing, .. } = self;
        match after {
            After::Committed(commit) => match result {
                Ok(()) => {
                    tombstones.committed(cx, writer, &mut recovery.rebuild, commit);
                }
                Err(error) => tombstones.commit_failed(cx, commit, error),
            },
            After::Rotated(rotation) => tombstones.rotated(cx, writer, rotation, result),
            After::Synced if result.is_err() => tombstones.back_off(cx.now),
            After::CloseSynced => closing.iter_mut().for_each(Closing::synced),
            After::Synced | After::CloseMarked => {}
            After::Formatted(superblock) => match result {
                Ok(()) => {
                    recovery::formatted(&mut Parts { cx, writer, tombstones }, superblock);
                    uses.begin(cx);
                }
                Err(error) => cx.give_up(OpenStoreError::Device(error)),
            },
            After::Resealed => {
                recovery.resealed(&mut Parts { cx, writer, tombstones }, result);
            }
            After::Switched(superblock, blocks) => {
                let mut parts = Parts { cx, writer, tombstones };
                recovery.switched(&mut parts, superblock, blocks, result);
            }
        }
    }

    fn pump_rebuild(&mut self, budget: usize) {
        let Self { cx, writer, recovery, uses, .. } = self;
        if cx.phase().rebuilds() && recovery.rebuild.pump(cx, writer, budget) {
            uses.read(cx, 0);
        }
    }

    /// Starts the background work that the event has made possible, such as writing records or
    /// freeing segments.
    fn after_event(&mut self) {
        self.pump_rebuild(0);
        let Self { cx, writer, tombstones, recovery, reclaimer, uses, .. } = self;
        let is_closing = cx.phase() == Phase::Closing;
        if cx.phase().serves() {
            reclaimer.pump(cx, writer, tombstones, &recovery.rebuild);
        }
        if is_closing {
            reclaim::drop_given_up(cx, writer, usize::MAX);
        }
        if cx.phase().serves() || is_closing {
            writer.pump(cx, tombstones, &mut reclaimer.copies);
            tombstones.pump(cx, writer);
            uses.pump(cx);
        }
        if is_closing {
            self.progress_close();
        }
        self.writer.show(&self.cx);
        let copied = self.reclaimer.current();
        let view = |log: &Log| log.view(copied);
        self.cx.index.show_logs(self.writer.logs().each_ref().map(view));
    }

    /// Processes an event. Before that, gives the shared context the current time and the outbox
    /// for operations and answers.
    fn event(&mut self, now: Instant, out: &mut Outbox, handle: impl FnOnce(&mut Self)) {
        self.cx.now = now;
        std::mem::swap(&mut self.cx.out, out);
        handle(self);
        std::mem::swap(&mut self.cx.out, out);
    }

    fn request(&mut self, request: StoreRequest) {
        let Self { cx, writer, tombstones, .. } = self;
        match request {
            StoreRequest::Get { ticket, key } => return self.get(ticket, key),
            StoreRequest::Put { ticket, key, record, hint } => {
                let object_bytes = hint.size.max(record.len() as u64);
                let put = Put { record, object_bytes };
                let answer = writer.put(cx, tombstones, ticket, key, put);
                cx.out.reply_to_put(ticket, answer);
            }
            StoreRequest::Remove { ticket, key } => writer.remove(cx, tombstones, ticket, key),
            StoreRequest::Close { ticket } => self.close(ticket),
        }
        self.after_event();
    }

    fn io_done(&mut self, done: IoDone) {
        match self.cx.file.complete(done, &mut self.cx.out) {
            Some(Completion::Opened(opened)) => {
                let (recovery, mut parts) = self.recovery();
                recovery.opened(&mut parts, opened);
            }
            Some(Completion::Done(pending, done)) => self.dispatch(pending, done),
            None => {}
        }
        self.after_event();
    }

    fn deadline_passed(&mut self) {
        self.pump_rebuild(rebuild::RECORDS_AT_ONCE);
        let Self { cx, writer, tombstones, reclaimer, .. } = self;
        if cx.phase().serves() {
            reclaimer.work(cx, writer, tombstones);
        }
        self.after_event();
    }
}

impl Scheme for Webcosm {
    fn start(&mut self, _now: Instant, out: &mut Outbox) {
        self.cx.enter(Phase::Opening);
        self.cx.file.open(out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        self.event(now, out, |engine| engine.request(request));
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.event(now, out, |engine| engine.io_done(done));
    }

    fn deadline(&self) -> Option<Instant> {
        let Self { cx, writer, tombstones, recovery, reclaimer, uses, .. } = self;
        if recovery.rebuild.is_due(cx, writer) {
            return Some(Instant::ZERO);
        }
        if !cx.phase().serves() {
            return None;
        }
        if reclaimer.has_more(writer) {
            return Some(Instant::ZERO);
        }
        let deadlines = [writer.deadline(cx), tombstones.deadline(cx, writer), uses.deadline()];
        deadlines.into_iter().flatten().min()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        self.event(now, out, Self::deadline_passed);
    }

    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        Some(self.cx.index.lookup())
    }
}
