//! Rebuilds the index from the summaries of segments (lists of their records) while requests are
//! served. Each log is read from its newest segment to its oldest. If several records have the same
//! tag (shortened key), the first record found is valid, because it replaced the older records. If
//! a summary is lost, its segment and all older segments of the log are discarded. The lost summary
//! may have contained tombstones (marks of removal) for their records.

use crate::layout::PAGE;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::{Listed, Summary, Tombstone};
use crate::webcosm::index::{Extent, IndexEntry, Tag};
use crate::webcosm::pending::SummaryPurpose;
use crate::webcosm::phase::Phase;
use crate::webcosm::recovery::summaries::{self, FoundSummary};
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Largest number of summaries (lists of records) of a log that are read at the same time.
const MAX_READS: usize = 16;

/// Number of attempts to read a summary (list of records). After the last failed attempt, the
/// summary counts as lost.
const MAX_TRIES: u32 = 3;

/// Largest number of records that are added to the index between two requests. Adding them takes
/// about a millisecond.
pub const RECORDS_AT_ONCE: usize = 4096;

/// The progress of rebuilding the index in one log.
#[derive(Debug, Default)]
struct Progress {
    /// The rebuild requests summaries (lists of records) from the disk, the newest segment first.
    /// It has requested those of all segments with this number or a higher number.
    asked: Sequence,
    /// The index contains the records of all segments from this number on.
    known: Sequence,
    reading: usize,
    summaries: BTreeMap<Sequence, Option<Summary>>,
    tries: BTreeMap<Sequence, u32>,
    doubted_end: Sequence,
}

/// The content of a segment that has no summary.
#[derive(Debug)]
pub struct Unsealed {
    pub incarnation: u64,
    pub records: Vec<Listed>,
}

/// The progress of rebuilding the index from the summaries (lists of records) of both logs.
#[derive(Debug, Default)]
pub struct Rebuild {
    is_running: bool,
    logs: [Progress; 2],
    tombstones: HashMap<Tag, Tombstone>,
    void: BTreeSet<Segment>,
    retired: BTreeSet<Segment>,
    pub unsealed: BTreeMap<Segment, Unsealed>,
}

impl Rebuild {
    pub fn begin(&mut self, writer: &Writer, tombstones: &Tombstones) {
        let unsealed = std::mem::take(&mut self.unsealed);
        *self = Self { is_running: true, unsealed, ..Self::default() };
        for (progress, log) in self.logs.iter_mut().zip(writer.logs()) {
            (progress.asked, progress.known) = (log.next, log.next);
        }
        tombstones.needed().into_iter().for_each(|tombstone| self.forget(tombstone));
    }

    /// Returns the end of the discarded segments of a log. These are the newest segment whose
    /// summary is lost, and all older segments, because a lost tombstone may mark their records as
    /// removed. Their numbers are smaller than the result.
    pub const fn doubted_end(&self, log: LogName) -> Sequence {
        self.logs[log as usize].doubted_end
    }

    /// Applies a tombstone: from now on, the rebuild adds no record to the index that the tombstone
    /// marks as removed.
    pub fn forget(&mut self, tombstone: Tombstone) {
        if let Some(segment) = tombstone.void_segment() {
            self.void.insert(segment);
            if tombstone.is_retired() {
                self.retired.insert(segment);
            }
        } else if self.is_running {
            self.tombstones.entry(tombstone.tag).or_insert(tombstone).join(tombstone);
        }
    }

    /// Requests summaries and adds up to `budget` records to the index. Returns true only once:
    /// when the index is complete and the store starts to serve normally.
    pub fn pump(&mut self, cx: &mut Context, writer: &mut Writer, mut budget: usize) -> bool {
        let mut is_known = true;
        for log in LogName::ALL {
            is_known &= self.pump_log(cx, writer, log, &mut budget);
        }
        let is_complete = is_known && cx.phase() == Phase::Rebuilding;
        if is_complete {
            let Self { retired, .. } = std::mem::take(self);
            retired.into_iter().for_each(|segment| writer.retire(&cx.geometry, segment));
            cx.statistics().recovered.add(cx.index.len());
            cx.enter(Phase::Serving);
        }
        is_complete
    }

    /// Returns the number of the oldest segment of a log whose records belong in the index.
    fn wanted_from(&self, writer: &Writer, log: LogName) -> Sequence {
        writer.log(log).kept_from().max(self.doubted_end(log))
    }

    /// Returns whether a summary (list of records) was read whose records can now be added to the
    /// index.
    pub fn is_due(&self, cx: &Context, writer: &Writer) -> bool {
        cx.phase().rebuilds()
            && LogName::ALL.iter().any(|&log| {
                let Progress { known, summaries, .. } = &self.logs[log as usize];
                *known > self.wanted_from(writer, log) && summaries.contains_key(&(known - 1))
            })
    }

    /// Adds records of a log to the index, at most `budget` records. Returns whether all records of
    /// the log are in the index, and all segments up to the newest lost summary are durably
    /// discarded.
    fn pump_log(
        &mut self,
        cx: &mut Context,
        writer: &Writer,
        log: LogName,
        budget: &mut usize,
    ) -> bool {
        loop {
            self.ask_for_summaries(cx, writer, log);
            let from = self.wanted_from(writer, log);
            let progress = &mut self.logs[log as usize];
            if progress.known <= from {
                return progress.reading == 0 && writer.log(log).tail >= progress.doubted_end;
            }
            if *budget == 0 {
                return false;
            }
            let sequence = progress.known - 1;
            let Some(mut summary) = progress.summaries.remove(&sequence) else { return false };
            let segment = Segment { log, sequence };
            match &mut summary {
                _ if self.void.contains(&segment) => {}
                Some(summary) => self.learn(cx, segment, summary, budget),
                None => self.logs[log as usize].doubted_end = sequence + 1,
            }
            match summary {
                Some(Summary { ref records, .. }) if !records.is_empty() && *budget == 0 => {
                    self.summary_known(segment, summary);
                }
                _ => self.logs[log as usize].known = sequence,
            }
        }
    }

    fn ask_for_summaries(&mut self, cx: &mut Context, writer: &Writer, log: LogName) {
        let from = self.wanted_from(writer, log);
        loop {
            let progress = &mut self.logs[log as usize];
            let is_enough =
                progress.reading >= MAX_READS || progress.summaries.len() >= 2 * MAX_READS;
            if is_enough || progress.asked <= from {
                return;
            }
            progress.asked -= 1;
            let segment = Segment { log, sequence: progress.asked };
            if self.void.contains(&segment) {
                self.summary_known(segment, Some(Summary::default()));
            } else if let Some(Unsealed { incarnation, records }) = self.unsealed.remove(&segment) {
                cx.occupy_slot(segment, incarnation);
                self.summary_known(segment, Some(Summary { records, ..Summary::default() }));
            } else {
                self.ask_for(cx, segment);
            }
        }
    }

    fn summary_known(&mut self, Segment { log, sequence }: Segment, summary: Option<Summary>) {
        self.logs[log as usize].summaries.insert(sequence, summary);
    }

    fn ask_for(&mut self, cx: &mut Context, segment: Segment) {
        let progress = &mut self.logs[segment.log as usize];
        progress.reading += 1;
        *progress.tries.entry(segment.sequence).or_default() += 1;
        summaries::read(cx, SummaryPurpose::Rebuild, segment);
    }

    pub fn summary_read(
        &mut self,
        cx: &mut Context,
        writer: &Writer,
        segment: Segment,
        found: FoundSummary,
    ) {
        let is_gone = segment.sequence < self.wanted_from(writer, segment.log);
        let progress = &mut self.logs[segment.log as usize];
        progress.reading -= 1;
        let tries = progress.tries.get(&segment.sequence).copied().unwrap_or(MAX_TRIES);
        if found.is_none() && tries < MAX_TRIES && !is_gone {
            return self.ask_for(cx, segment);
        }
        progress.tries.remove(&segment.sequence);
        if let Some((incarnation, _)) = found
            && !is_gone
        {
            cx.occupy_slot(segment, incarnation);
        }
        self.summary_known(segment, found.map(|(_, summary)| summary));
    }

    /// Applies all tombstones in the summary of a segment. Then adds the newest records of the
    /// segment to the index, at most `budget` records.
    fn learn(&mut self, cx: &Context, segment: Segment, summary: &mut Summary, budget: &mut usize) {
        for tombstone in summary.tombstones.drain(..) {
            self.forget(tombstone);
        }
        let slot = cx.geometry.slot(segment);
        let left = summary.records.len().saturating_sub(*budget);
        *budget = budget.saturating_sub(summary.records.len().max(1));
        for listed in summary.records.drain(left..).rev() {
            let byte = u64::from(listed.step) * 64;
            let page = u32::try_from(byte / PAGE as u64).expect("steps are small");
            let position = Position::new(segment, page);
            let tombstone = self.tombstones.get(&listed.tag);
            let is_forgotten = tombstone.is_some_and(|tombstone| tombstone.reaches(position));
            let is_in_segment = page < cx.geometry.segment_pages;
            if !is_forgotten && is_in_segment {
                let place = cx.geometry.place(slot, byte);
                let extent = Extent::of_class(listed.class);
                cx.index.insert_if_absent(listed.tag, IndexEntry { place, extent, uses: 0 });
            }
        }
    }
}
