//! Giving up the oldest segments: what is in use is carried over, then the journal says durably that they are gone, then
//! the index forgets what was in them. Only after that their slots are written to.

use super::Webcosm;
use super::geometry::{LogName, Segment, Sequence};
use super::index::Tag;
use super::log::Log;
use super::state::Phase;
use super::summaries::Purpose;
use super::summary::Summary;
use crate::contract::Outbox;

/// What is known of a segment's records.
#[derive(Debug)]
pub enum Gone {
    /// These, where they were.
    Listed(Vec<(Tag, u64)>),
    /// Nothing: the whole index must be looked through.
    Unknown,
    /// That there are none in the index.
    Nothing,
}

/// The segment on its way out.
#[derive(Debug, Default)]
pub struct Reclaim {
    reading: bool,
    copying: Option<(LogName, Gone)>,
}

impl Webcosm {
    /// Whether the index may not grow any more.
    pub(super) fn is_crowded(&self) -> bool {
        self.records() >= u64::from(self.settings.record_limit)
    }

    /// Begins to give up a segment when clean ones become few, and takes it on.
    pub(super) fn pump_reclaim(&mut self, out: &mut Outbox) {
        if self.reclaim.copying.is_some() {
            self.pump_copies(out);
            if self.copies.is_idle()
                && let Some((log, gone)) = self.reclaim.copying.take()
            {
                self.log_mut(log).ready.push_back(gone);
            }
        }
        for log in LogName::ALL {
            while self.log_mut(log).next_tail() < self.rebuild.doubted_end(log) && !self.is_reclaiming() {
                self.log_mut(log).ready.push_back(Gone::Nothing);
            }
            if !self.is_reclaiming() && self.wants_clean(log) {
                self.begin_reclaim(log, out);
            }
        }
    }

    const fn log_mut(&mut self, log: LogName) -> &mut Log {
        &mut self.logs[log as usize]
    }

    const fn is_reclaiming(&self) -> bool {
        self.reclaim.reading || self.reclaim.copying.is_some()
    }

    /// Whether clean segments are few, or the index is full and this log is the longer one.
    fn wants_clean(&self, name: LogName) -> bool {
        let log = &self.logs[name as usize];
        let ahead = match log.segments() {
            0..4 => u32::from(log.open.is_none()),
            4..16 => 1,
            _ => 1 + log.together(),
        };
        let longest = self.logs.iter().map(|log| log.next - log.tail).max();
        let crowded = self.is_crowded() && log.ready.is_empty() && longest == Some(log.next - log.tail);
        log.clean() < ahead || crowded
    }

    fn begin_reclaim(&mut self, name: LogName, out: &mut Outbox) {
        let log = &self.logs[name as usize];
        let candidate = log.segment(log.next_tail());
        if self.flying.writes_to(candidate) {
            return;
        }
        if self.bad_slots.unskip(candidate) {
            return self.log_mut(name).ready.push_back(Gone::Nothing);
        }
        if candidate.sequence < log.seals.end {
            self.reclaim.reading = true;
            self.read_summary(Purpose::Reclaim, candidate, out);
        } else if log.open.as_ref().is_some_and(|open| open.segment == candidate) {
            self.seal(name, out);
        }
    }

    pub(super) fn reclaim_records(&mut self, segment: Segment, summary: Option<Summary>) {
        self.reclaim.reading = false;
        let Some(Summary { records, .. }) = summary else {
            return self.log_mut(segment.log).ready.push_back(Gone::Unknown);
        };
        let slot = self.geometry.slot(segment);
        if self.phase == Phase::Serving {
            self.begin_copies(slot, &records);
        }
        let places =
            records.iter().map(|listed| (listed.tag, self.geometry.place(slot, u64::from(listed.step) * 64)));
        self.reclaim.copying = Some((segment.log, Gone::Listed(places.collect())));
    }

    /// The journal says durably that a log's segments before `tail` are gone.
    pub(super) fn give_up_to(&mut self, name: LogName, tail: Sequence) {
        let before = self.index.len();
        while self.logs[name as usize].tail < tail {
            let log = self.log_mut(name);
            let (gone, segment) = (log.ready.pop_front(), log.segment(log.tail));
            log.tail += 1;
            let slot = self.geometry.slot(segment);
            match gone.expect("the journal was told of as many") {
                Gone::Listed(records) => self.forget_places(name, records),
                Gone::Unknown => {
                    let places = self.geometry.place(slot, 0)..self.geometry.place(slot + 1, 0);
                    self.index.remove_range(&places);
                }
                Gone::Nothing => {}
            }
        }
        self.observer.statistics.evicted.add(before - self.index.len());
    }

    fn forget_places(&mut self, log: LogName, records: Vec<(Tag, u64)>) {
        for (tag, place) in records {
            if self.index.remove_at(tag, place) && log == LogName::Probation {
                self.ghost.add(tag);
            }
        }
    }
}
