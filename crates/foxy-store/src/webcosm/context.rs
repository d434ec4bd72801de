//! The state that all modules of the webcosm storage scheme share: the settings, the file and its
//! layout, the index, and the phase of the store.

use crate::contract::{AbsentReason, Answer, Key, Outbox, RefusedReason, Ticket};
use crate::layout::Region;
use crate::observe::Observer;
use crate::one_file::lifecycle::Lifecycle;
use crate::one_file::opening::{FirstSync, MediumWish};
use crate::one_file::store_file::StoreFile;
use crate::one_file::superblock::Superblock;
use crate::record::Secret;
use crate::settings::StoreSettings;
use crate::statistics::StoreStatistics;
use crate::status::OpenStoreError;
use crate::webcosm::format::geometry::{Geometry, Segment};
use crate::webcosm::format::location::SlotContent;
use crate::webcosm::index::Tag;
use crate::webcosm::index::shared::{Readable, SharedIndex};
use crate::webcosm::pending::Pending;
use crate::webcosm::phase::Phase;
use foxy_base::Instant;
use foxy_device::{IoBuffer, IoId, IoOp};

/// Name of the store's file in the store's directory.
pub const FILE_NAME: &str = "webcosm.foxy";

/// The state that all modules of the scheme share.
pub struct Context {
    pub settings: StoreSettings,
    pub observer: Observer,
    pub file: StoreFile<Pending>,
    pub geometry: Geometry,
    pub index: SharedIndex,
    pub reads_in_flight: usize,
    /// The time of the current event.
    pub now: Instant,
    /// Disk operations to start and answers to send, collected during the current event.
    pub out: Outbox,
    life: Lifecycle<Phase>,
}

impl Context {
    pub fn new(settings: &StoreSettings, observer: Observer) -> Self {
        let geometry = Geometry::of(settings.size);
        Self {
            settings: settings.clone(),
            file: StoreFile::new(
                FILE_NAME,
                settings,
                &observer,
                FirstSync::Later,
                MediumWish::FileOrBlockDevice,
            ),
            geometry,
            index: SharedIndex::new(geometry),
            reads_in_flight: 0,
            now: Instant::ZERO,
            out: Outbox::default(),
            life: Lifecycle::new(&observer),
            observer,
        }
    }

    pub const fn phase(&self) -> Phase {
        self.life.phase()
    }

    /// Changes to the phase `next`. Lookups on other threads use the index only in the phase
    /// `Serving`.
    pub fn enter(&mut self, next: Phase) {
        let (secret, file) = (*self.secret(), self.file.id());
        let readable = Readable { salt: self.file.superblock().salt, secret, file };
        self.index.set_complete((next == Phase::Serving).then_some(readable));
        self.life.enter(next);
    }

    /// Returns why the store does not serve requests in this phase: the reason for a get, and the
    /// reason for a put or removal.
    pub fn unable(&self) -> (AbsentReason, RefusedReason) {
        self.life.unable()
    }

    /// Marks the store as unusable because of this error. Later requests are refused.
    pub fn give_up(&mut self, error: OpenStoreError) {
        self.life.fail(error);
    }

    /// Marks the store as unusable, answers the `get` requests in flight and closes the file.
    pub fn fail(&mut self, error: OpenStoreError) {
        self.give_up(error);
        self.abandon_reads(self.unable().0);
        self.file.close(&mut self.out);
    }

    /// Answers all `get` requests in flight with `reason`. The results of their disk reads are
    /// ignored when they arrive.
    pub fn abandon_reads(&mut self, reason: AbsentReason) {
        for pending in self.file.take(|pending| matches!(pending, Pending::Read(_))) {
            if let Pending::Read(read) = pending {
                self.out.reply(read.ticket, Answer::Absent(reason));
            }
        }
        self.reads_in_flight = 0;
    }

    pub fn reply(&mut self, ticket: Ticket, answer: Answer) {
        self.out.reply(ticket, answer);
    }

    pub fn submit(&mut self, op: IoOp, pending: Pending) {
        self.file.submit(op, pending, &mut self.out);
    }

    pub fn read(&mut self, offset: u64, length: usize, pending: Pending) {
        self.file.read(offset, length, pending, &mut self.out);
    }

    pub fn write(&mut self, offset: u64, buffer: IoBuffer, pending: Pending) -> IoId {
        self.file.write(offset, buffer, pending, &mut self.out)
    }

    pub fn sync(&mut self, pending: Pending) {
        self.file.sync(pending, &mut self.out);
    }

    pub fn statistics(&self) -> &StoreStatistics {
        &self.observer.statistics
    }

    pub const fn secret(&self) -> &Secret {
        self.file.secret()
    }

    /// Returns the incarnation: the number of this opening of the store. All pages that the store
    /// writes now contain this number.
    pub const fn incarnation(&self) -> u64 {
        self.file.superblock().opens
    }

    pub fn tag(&self, key: Key) -> Tag {
        self.index.tag(key.hash(self.file.superblock().salt))
    }

    /// Returns the half of the journal that the superblock names as the active half.
    pub const fn journal_half(&self, superblock: &Superblock) -> Region {
        self.geometry.journal[superblock.journal_half as usize]
    }

    /// Notes in the index that the slot of `segment` now contains this segment. `incarnation` is
    /// the number of the opening of the store that started the segment.
    pub fn occupy_slot(&self, segment: Segment, incarnation: u64) {
        let content = SlotContent { sequence: segment.sequence, incarnation };
        self.index.set_slot(self.geometry.slot(segment), content);
    }
}
