//! Giving up the oldest segments: what is in use is carried over, then the journal says durably that they are gone, then
//! the index forgets what was in them. Only after that their slots are written to.

use super::Webcosm;
use super::geometry::{LogName, Position, Segment, Sequence};
use super::index::Tag;
use super::io::Pending;
use super::log::Log;
use super::state::Phase;
use super::summary::{self, Summary, Trailer};
use crate::contract::Outbox;
use crate::layout::PAGE;
use foxy_device::{IoBuffer, IoError};

/// Pages at a segment's end that are read first; most summaries are not longer.
const END_PAGES: u32 = 8;

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
    /// Where a segment's summary may be found at once, and its length in bytes.
    pub(super) fn end_of(&self, segment: Segment) -> (u64, usize) {
        let pages = END_PAGES.min(self.geometry.segment_pages);
        (
            self.geometry.offset(self.geometry.slot(segment), self.geometry.segment_pages - pages),
            pages as usize * PAGE,
        )
    }

    /// What the last pages of a segment say: its trailer, and its summary if it is among them.
    pub(super) fn judge_end(
        &self,
        bytes: &[u8],
        segment: Segment,
        life: u64,
    ) -> Option<(Trailer, Option<Summary>)> {
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        let page = bytes.len().checked_sub(PAGE).map(|start| &bytes[start..])?;
        let trailer = summary::trailer(page, last, life, &self.secret, self.geometry.segment_pages)?;
        let length = trailer.pages() as usize * PAGE;
        let Some(start) = bytes.len().checked_sub(length) else { return Some((trailer, None)) };
        summary::decode(&bytes[start..], trailer, last, life, &self.secret)
            .map(|summary| (trailer, Some(summary)))
    }

    /// Submits the read of a whole summary.
    pub(super) fn read_summary(
        &mut self,
        segment: Segment,
        trailer: Trailer,
        what: Pending,
        out: &mut Outbox,
    ) {
        let pages = trailer.pages();
        let offset = self.geometry.offset(self.geometry.slot(segment), self.geometry.segment_pages - pages);
        self.submit_read(offset, pages as usize * PAGE, what, out);
    }

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
        let ahead = match log.segments {
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
        if candidate.sequence < log.seals.end {
            self.reclaim.reading = true;
            let (offset, length) = self.end_of(candidate);
            self.submit_read(offset, length, Pending::ReclaimEnd(candidate), out);
        } else if log.open.as_ref().is_some_and(|open| open.segment == candidate) {
            self.seal(name, out);
        }
    }

    pub(super) fn reclaim_end_read(
        &mut self,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let life = self.slots[self.geometry.slot(segment) as usize].life;
        match result.ok().and_then(|buffer| self.judge_end(buffer.as_ref(), segment, life)) {
            Some((trailer, None)) => {
                self.read_summary(segment, trailer, Pending::ReclaimSummary(segment, life, trailer), out);
            }
            found => self.reclaim_records(segment, found.and_then(|(_, summary)| summary)),
        }
    }

    pub(super) fn reclaim_summary_read(
        &mut self,
        segment: Segment,
        life: u64,
        trailer: Trailer,
        result: Result<IoBuffer, IoError>,
    ) {
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        let summary = result
            .ok()
            .and_then(|buffer| summary::decode(buffer.as_ref(), trailer, last, life, &self.secret));
        self.reclaim_records(segment, summary);
    }

    fn reclaim_records(&mut self, segment: Segment, summary: Option<Summary>) {
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
