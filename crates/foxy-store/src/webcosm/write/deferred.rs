//! Records in memory that are not on disk yet. Most wait for a moment to be written with others;
//! newcomers are held back for longer where the store has written more than it should. Those are
//! served from here, written when they are asked for again, and forgotten in the order in which
//! they came; a store that ends, in order or not, loses them.
//!
//! What is held may replace a record on disk like any other: it comes here only when all that is
//! older is forgotten durably.

use crate::contract::{Key, Record};
use crate::settings::{Newcomers, WriteBudget};
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::LogName;
use crate::webcosm::index::Tag;
use crate::webcosm::recovery::phase::Phase;
use crate::webcosm::write::write_budget::Allowance;
use crate::webcosm::write::write_buffer::{Stage, Staged};
use crate::worth::Distance;
use bytes::{Bytes, BytesMut};
use foxy_base::Instant;

/// Bytes of memory that a record is taken to need besides its content.
const OVERHEAD: usize = 320;

/// Of the memory for what is held, one record takes no more than this part, as a divisor.
const PART: usize = 2;

/// What is held back, and when.
#[derive(Debug)]
pub struct Held {
    budget: WriteBudget,
    allowance: Allowance,
    /// Bytes written that the allowance knows of.
    bytes_spent: u64,
    records: Stage,
}

impl Held {
    /// Nothing is held, under that budget.
    #[must_use]
    pub fn new(budget: WriteBudget) -> Self {
        Self {
            budget,
            allowance: Allowance::new(budget.bytes_a_day),
            bytes_spent: 0,
            records: Stage::default(),
        }
    }

    /// Whether a newcomer is held back now, after `bytes_written` bytes since the start.
    fn takes(
        &mut self,
        distance: Distance,
        length: usize,
        bytes_written: u64,
        now: Instant,
    ) -> bool {
        self.allowance.spend(bytes_written - self.bytes_spent);
        self.bytes_spent = bytes_written;
        let proves = match self.budget.newcomers {
            Newcomers::Heavy => distance.is_heavy(),
            Newcomers::All => true,
        };
        proves && length + OVERHEAD <= self.budget.memory / PART && self.allowance.is_spent(now)
    }

    /// Records held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Bytes of memory they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.records.bytes() + self.len() * OVERHEAD
    }
}

/// The same content in memory of its own, so that it keeps no larger piece alive.
fn own(record: &Record) -> Record {
    let mut all = BytesMut::with_capacity(record.len());
    all.extend_from_slice(&record.head);
    all.extend_from_slice(&record.body);
    let mut body: Bytes = all.freeze();
    let head = body.split_to(record.head.len());
    Record { head, body }
}

impl Webcosm {
    /// A record that is still in memory.
    pub(crate) fn waiting(&mut self, key: Key) -> Option<&Record> {
        let [main, probation] = &mut self.logs;
        let staged = main.stage.get(key).or_else(|| probation.stage.get(key));
        let held = self.held.as_mut().map(|held| &mut held.records);
        staged.or_else(|| held.and_then(|held| held.get(key))).or_else(|| self.flying.get(key))
    }

    /// Whether a record is in memory only.
    pub(crate) fn is_staged(&self, key: Key) -> bool {
        let is_held = self.held.as_ref().is_some_and(|held| held.records.contains(key));
        is_held || self.logs.iter().any(|log| log.stage.contains(key))
    }

    /// A record that waits is not to be written.
    pub(crate) fn unstage(&mut self, key: Key) {
        let mut waited = false;
        for log in &mut self.logs {
            waited |= log.stage.remove(key);
        }
        if let Some(held) = &mut self.held {
            waited |= held.records.remove(key);
        }
        if waited {
            self.index.unstage(self.tag(key));
        }
    }

    /// Bytes that wait to be written or for the journal may grow by so many.
    pub(crate) fn may_wait(&self, length: usize) -> bool {
        let staged: usize = self.logs.iter().map(|log| log.stage.bytes()).sum();
        let waiting = staged + self.flying.bytes + self.forgetting.bytes;
        let limit = self.settings.waiting_bytes.max(2 * self.settings.page_buffer);
        waiting == 0 || waiting + length <= limit
    }

    /// Whether a newcomer to a store that was full once is to be asked for again before it is
    /// written.
    pub(crate) fn is_to_be_held(
        &mut self,
        distance: Distance,
        length: usize,
        now: Instant,
    ) -> bool {
        let serving = self.life.phase() == Phase::Serving;
        let bytes_written = self.file.bytes_written();
        serving
            && self
                .held
                .as_mut()
                .is_some_and(|held| held.takes(distance, length, bytes_written, now))
    }

    /// Holds a record back; those that came first make room for it.
    pub(crate) fn hold(&mut self, staged: Staged, now: Instant) {
        let Some(held) = &mut self.held else { return };
        let record = own(&staged.record);
        held.records.insert(Staged { record, ..staged }, now);
        while held.bytes() > held.budget.memory {
            for (Staged { key, .. }, _) in held.records.take(1) {
                let tag = self.index.tag(key.hash(self.file.superblock().salt));
                self.ghost.add(tag);
                self.index.unstage(tag);
                self.observer.statistics.held_dropped.add(1);
            }
        }
    }

    /// A record is asked for: if it is held it has proven itself and waits to be written, where
    /// there is room for it. Says whether it does. It stays where it is while another record is
    /// known under its tag.
    pub(crate) fn prove(&mut self, key: Key, tag: Tag, now: Instant) -> bool {
        let Some(length) = self.held.as_ref().and_then(|held| held.records.length(key)) else {
            return false;
        };
        if self.is_crowded() || !self.may_wait(length) || self.may_have_older(key, tag) {
            return false;
        }
        let Some(staged) = self.held.as_mut().and_then(|held| held.records.take_one(key)) else {
            return false;
        };
        self.logs[LogName::Main as usize].stage.insert(staged, now);
        self.observer.statistics.held_written.add(1);
        true
    }

    pub(crate) fn show_held(&self) {
        let Some(held) = &self.held else { return };
        self.observer.statistics.held.set(held.len() as u64);
        self.observer.statistics.held_bytes.set(held.bytes() as u64);
    }
}
