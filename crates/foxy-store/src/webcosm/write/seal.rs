//! Ending segments: the summary, and which summaries are written and durable.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::{self, Fact, Listed, facts_in, pages_for};
use crate::webcosm::io::Pending;
use crate::webcosm::write::OpenSegment;
use foxy_device::{IoBuffer, IoError};
use std::collections::BTreeSet;

/// Which segments have ended. One whose summary could not be written counts too: a fact says that
/// it is void.
#[derive(Debug, Default)]
pub struct Seals {
    /// All segments before this one have ended.
    pub end: Sequence,
    /// The summaries of all segments before this one are durable.
    pub durable_end: Sequence,
    early: BTreeSet<Sequence>,
}

impl Seals {
    /// All segments before `end` have ended, durably.
    #[must_use]
    pub const fn all_before(end: Sequence) -> Self {
        Self { end, durable_end: end, early: BTreeSet::new() }
    }

    /// A segment has ended.
    pub fn add(&mut self, sequence: Sequence) {
        self.early.insert(sequence);
        while self.early.remove(&self.end) {
            self.end += 1;
        }
    }
}

impl Webcosm {
    /// Of each log, up to where summaries and what they list are durable after a sync that begins
    /// now. Not further than before while the journal lacks facts, some of which may say that a
    /// segment is void.
    pub(crate) fn ends_if_synced(&self) -> [Sequence; 2] {
        let lacking = !self.forgetting.unwritten.is_empty();
        LogName::ALL.map(|log| {
            let seals = &self.logs[log as usize].seals;
            let written = self.flying.first(log).map_or(seals.end, |first| first.min(seals.end));
            if lacking { seals.durable_end } else { written.max(seals.durable_end) }
        })
    }

    /// Ends the segment that a log is writing, if any.
    pub(crate) fn seal(&mut self, log: LogName, out: &mut Outbox) {
        let Some(OpenSegment { segment, page, records }) = self.logs[log as usize].open.take()
        else {
            return;
        };
        let room = self.geometry.segment_pages - page - pages_for(records.len(), 0);
        let facts = self.forgetting.seal(segment, facts_in(room));
        let (offset, buffer) =
            self.summary_of(segment, self.file.superblock().opens, &records, &facts);
        self.file.write(offset, buffer, Pending::Summary(segment), out);
    }

    /// A segment's summary, and where it goes.
    pub(crate) fn summary_of(
        &self,
        segment: Segment,
        life: u64,
        records: &[Listed],
        facts: &[Fact],
    ) -> (u64, IoBuffer) {
        let pages = pages_for(records.len(), facts.len());
        let mut buffer = IoBuffer::zeroed(pages as usize * PAGE);
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        summary::encode(buffer.as_mut(), records, facts, last, life, self.file.secret());
        (
            self.geometry.offset(self.geometry.slot(segment), self.geometry.segment_pages - pages),
            buffer,
        )
    }

    /// Without its summary a segment's records are served, but not found again by the next opening.
    pub(crate) fn summary_done(&mut self, segment: Segment, result: Result<(), IoError>) {
        self.judge_slot(segment, result);
        match result {
            Ok(()) => {
                self.trust_slot(segment);
                self.logs[segment.log as usize].seals.add(segment.sequence);
            }
            Err(_) => self.void(segment),
        }
    }

    /// A segment has no summary and will have none.
    pub(crate) fn void(&mut self, segment: Segment) {
        self.forgetting.unseal(segment);
        let fact =
            if self.is_retired(segment) { Fact::retired(segment) } else { Fact::void(segment) };
        self.forgetting.add(fact);
        self.forgetting.unwritten.push(fact);
        self.logs[segment.log as usize].seals.add(segment.sequence);
        self.observer.statistics.retired_pages.add(u64::from(self.geometry.segment_pages));
    }
}
