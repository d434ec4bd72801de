//! The storage scheme STREAM-PACKETIZER of the WebCoSM paper (paper 001 in docs/figures.md),
//! extended with recovery after a crash. The store is one preallocated file with records in
//! 512-byte slots. A page buffer collects records. One write puts the buffer into the next free run
//! of pages. After the end of the file, the search continues at the start. This module contains the
//! state and passes each event to the module that handles it.
//!
//! A get never returns wrong content, not even after a crash. A put of a key with older records on
//! disk first waits for a tombstone. This durable entry of the forget journal makes the older
//! records invalid. Then the scheme buffers and writes the new record. The index keeps invalid
//! records until they are durably overwritten. So the index tells whether a key has an older record
//! on disk. A put of a new key needs no sync.

mod forget;
mod lifecycle;
mod load;
pub mod open;
mod pending;
mod phase;
mod scan;
mod sequences;
mod snapshot;
mod view;
mod window;

#[cfg(test)]
mod tests;

use crate::SchemeSettings;
use crate::index::{EntryId, Index};
use crate::pages::Pages;
use forget::Forgetting;
use foxy_base::Instant;
use foxy_device::IoDone;
use foxy_store::contract::{Outbox, Record, Scheme, StoreRequest, Ticket};
use foxy_store::layout::{Layout, SLOT, SLOTS_PER_PAGE};
use foxy_store::map::LayoutView;
use foxy_store::observe::Observer;
use foxy_store::one_file::io_sequence::{IoSequence, SyncFailures};
use foxy_store::one_file::lifecycle::Lifecycle;
use foxy_store::one_file::opening::{FirstSync, MediumWish};
use foxy_store::one_file::store_file::{Completion, StoreFile};
use load::Loading;
use pending::Pending;
use phase::Phase;
use scan::Scan;
use sequences::After;
use snapshot::Snapshot;
use std::collections::HashMap;
use window::{Window, WindowWrite};

/// Name of the store's file in the store's folder.
pub const FILE_NAME: &str = "stream-packetizer.foxy";

/// The state of the storage scheme. [`crate::SchemeName::make`] creates it.
pub(crate) struct StreamPacketizer {
    settings: SchemeSettings,
    observer: Observer,
    lifecycle: Lifecycle<Phase>,
    file: StoreFile<Pending>,
    layout: Layout,
    index: Index,
    pages: Pages,
    sequence: u64,
    /// Every record up to this sequence number is durable or will never be written.
    durable: u64,
    sync_failures: SyncFailures,
    lanes: [IoSequence<After>; 2],
    overwritten: Vec<EntryId>,
    window: Option<Window>,
    writes: Vec<WindowWrite>,
    buffered: HashMap<EntryId, Record>,
    waiting: usize,
    reads_in_flight: usize,
    evicting: bool,
    forgetting: Forgetting,
    loading: Loading,
    scan: Scan,
    snapshot: Option<Snapshot>,
    checkpoint_number: u64,
    next_checkpoint: Instant,
    changed: bool,
    closing: Option<Ticket>,
    close_synced: bool,
    complete_checkpoint_tried: bool,
}

impl StreamPacketizer {
    pub(crate) fn new(settings: &SchemeSettings, observer: Observer) -> Self {
        let layout = Layout::of(settings.store.size);
        Self {
            settings: settings.clone(),
            lifecycle: Lifecycle::new(&observer),
            file: StoreFile::new(
                FILE_NAME,
                &settings.store,
                &observer,
                FirstSync::Now,
                MediumWish::File,
            ),
            observer,
            layout,
            index: Index::new(settings.store.seed, settings.make_policy()),
            pages: Pages::new(layout.data.pages),
            sequence: 0,
            durable: 0,
            sync_failures: SyncFailures::default(),
            lanes: Default::default(),
            overwritten: Vec::new(),
            window: None,
            writes: Vec::new(),
            buffered: HashMap::new(),
            waiting: 0,
            reads_in_flight: 0,
            evicting: false,
            forgetting: Forgetting::default(),
            loading: Loading::default(),
            scan: Scan::default(),
            snapshot: None,
            checkpoint_number: 0,
            next_checkpoint: Instant::ZERO,
            changed: false,
            closing: None,
            close_synced: false,
            complete_checkpoint_tried: false,
        }
    }

    /// Returns whether the disk may contain records that the index does not know, because their
    /// headers are damaged or unreadable.
    fn has_doubts(&self) -> bool {
        self.index.doubtful() > 0
    }

    fn capacity_slots(&self) -> u64 {
        u64::from(self.pages.count() - self.pages.retired()) * u64::from(SLOTS_PER_PAGE)
    }

    fn next_sequence(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }

    fn show(&self) {
        let statistics = &self.observer.statistics;
        statistics.records.set(u64::from(self.index.live()));
        statistics.live_bytes.set(self.index.live_slots() * SLOT as u64);
        statistics.capacity_bytes.set(self.capacity_slots() * SLOT as u64);
        statistics.index_bytes.set(self.index.memory() as u64 + u64::from(self.pages.count()));
        statistics.retired_pages.set(u64::from(self.pages.retired()));
    }

    /// Starts the operations that were waiting and have become possible after an event.
    fn after_event(&mut self, now: Instant, out: &mut Outbox) {
        self.pump_forgets(out);
        self.sweep(out);
        if self.lifecycle.phase() == Phase::Closing {
            self.progress_close(now, out);
        }
        self.show();
    }
}

impl Scheme for StreamPacketizer {
    fn start(&mut self, _now: Instant, out: &mut Outbox) {
        self.lifecycle.enter(Phase::Opening);
        self.file.open(out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        match request {
            StoreRequest::Get { ticket, key } => self.get(ticket, key, out),
            StoreRequest::Put { ticket, key, record, hint } => {
                let put = self.put(ticket, key, record, hint, now, out);
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
        if self.lifecycle.phase() != Phase::Serving {
            return None;
        }
        let flush =
            self.window.as_ref().map(|window| window.opened + self.settings.store.flush_after);
        let checkpoint = (self.changed && self.snapshot.is_none()).then_some(self.next_checkpoint);
        flush.into_iter().chain(checkpoint).min()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        if self.lifecycle.phase() == Phase::Serving {
            if self
                .window
                .as_ref()
                .is_some_and(|window| window.opened + self.settings.store.flush_after <= now)
            {
                self.flush(out);
            }
            if self.changed && self.snapshot.is_none() && self.next_checkpoint <= now {
                self.begin_checkpoint(now, out);
            }
        }
        self.after_event(now, out);
    }

    fn layout(&self) -> Option<&dyn LayoutView> {
        Some(self)
    }
}
