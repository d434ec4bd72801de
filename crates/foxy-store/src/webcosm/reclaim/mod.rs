//! Discards the oldest segments of a log to free disk space, in this order:
//!
//! - Records in use are copied to a new segment.
//! - The journal durably states that the segments are discarded.
//! - The records of the segments leave the index.
//! - New segments can use the slots (places in the file).

pub(crate) mod copies;
pub(crate) mod uses;

use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Segment, kept_clean};
use crate::webcosm::format::summary::{Listed, Summary};
use crate::webcosm::pending::SummaryPurpose;
use crate::webcosm::phase::Phase;
use crate::webcosm::recovery::rebuild::Rebuild;
use crate::webcosm::recovery::summaries;
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use crate::webcosm::write::log::LeavingRecords;
use copies::{Candidate, Copies};

/// Largest number of records that one step examines or removes. The limit keeps a step below a few
/// milliseconds, so that requests do not wait longer.
const RECORDS_AT_ONCE: usize = 512;

/// A segment that will be discarded, and whose records are being examined. Records worth copying
/// are added to `candidates`.
#[derive(Debug)]
struct Weighing {
    segment: Segment,
    records: Vec<Listed>,
    /// Number of records of the segment examined so far.
    done: usize,
    candidates: Vec<Candidate>,
}

/// Prepares old segments for discarding, one after the other. Examines the records of the segment,
/// and copies those worth keeping.
#[derive(Debug, Default)]
pub struct Reclaimer {
    /// The segment whose summary (list of records) is being read.
    reading: Option<Segment>,
    weighing: Option<Weighing>,
    copying: Option<(Segment, LeavingRecords)>,
    pub copies: Copies,
}

impl Reclaimer {
    /// Starts to discard a segment if its log has too few clean (free) segments. Also continues
    /// earlier work.
    pub fn pump(
        &mut self,
        cx: &mut Context,
        writer: &mut Writer,
        tombstones: &mut Tombstones,
        rebuild: &Rebuild,
    ) {
        if self.copying.is_some() {
            self.copies.pump(cx);
            if self.copies.is_idle()
                && let Some((segment, leaving)) = self.copying.take()
            {
                writer.log_mut(segment.log).leaving.push_back(leaving);
            }
        }
        for log in LogName::ALL {
            while writer.log(log).next_tail() < rebuild.doubted_end(log) && self.is_idle() {
                writer.log_mut(log).leaving.push_back(LeavingRecords::Nothing);
            }
            if self.is_idle() && wants_clean(cx, writer, log) {
                self.begin(cx, writer, tombstones, log);
            }
        }
    }

    /// Returns the segment whose records are being examined or copied before it is discarded.
    pub fn current(&self) -> Option<Segment> {
        let weighed = self.weighing.as_ref().map(|weighing| weighing.segment);
        self.reading.or(weighed).or(self.copying.as_ref().map(|(segment, _)| *segment))
    }

    fn is_idle(&self) -> bool {
        self.current().is_none()
    }

    fn begin(
        &mut self,
        cx: &mut Context,
        writer: &mut Writer,
        tombstones: &mut Tombstones,
        name: LogName,
    ) {
        let log = writer.log(name);
        let candidate = log.segment(log.next_tail());
        let has_ended = candidate.sequence < log.seals.end;
        let is_open = log.open.as_ref().is_some_and(|open| open.segment == candidate);
        if writer.writes_to(candidate) {
            return;
        }
        if writer.unskip(candidate) {
            return writer.log_mut(name).leaving.push_back(LeavingRecords::Nothing);
        }
        if has_ended {
            self.reading = Some(candidate);
            summaries::read(cx, SummaryPurpose::Reclaim, candidate);
        } else if is_open {
            writer.seal(cx, tombstones, name);
        }
    }

    /// Processes the summary of a segment that will be discarded. `None` means that the summary is
    /// unreadable.
    pub fn summary_read(
        &mut self,
        cx: &Context,
        writer: &mut Writer,
        tombstones: &Tombstones,
        segment: Segment,
        summary: Option<Summary>,
    ) {
        self.reading = None;
        let Some(Summary { records, .. }) = summary else {
            return writer.log_mut(segment.log).leaving.push_back(LeavingRecords::Unknown(0));
        };
        let done = if cx.phase() == Phase::Serving { 0 } else { records.len() };
        self.weighing = Some(Weighing { segment, records, done, candidates: Vec::new() });
        self.weigh(cx, writer, tombstones, 0);
    }

    /// Examines up to `most` records of the segment that will be discarded. After the last record,
    /// starts to copy the candidates.
    fn weigh(&mut self, cx: &Context, writer: &Writer, tombstones: &Tombstones, most: usize) {
        let Some(mut weighing) = self.weighing.take() else { return };
        let slot = cx.geometry.slot(weighing.segment);
        let mean = writer.mean_record_bytes(cx);
        let place = |listed: &Listed| cx.geometry.place(slot, u64::from(listed.step) * 64);
        let candidate = |listed: &Listed| {
            let entry = cx.index.get(listed.tag).filter(|entry| entry.place == place(listed))?;
            Candidate::new(entry, mean).filter(|_| !tombstones.awaits(listed.tag))
        };
        let end = weighing.records.len().min(weighing.done + most);
        let part = &weighing.records[weighing.done..end];
        weighing.candidates.extend(part.iter().filter_map(candidate));
        weighing.done = end;
        if end < weighing.records.len() {
            self.weighing = Some(weighing);
            return;
        }
        self.copies.begin(cx, weighing.candidates);
        let records = weighing.records.iter().map(|listed| (listed.tag, place(listed))).collect();
        self.copying = Some((weighing.segment, LeavingRecords::Listed(records)));
    }

    /// Returns whether there is reclaiming work left that needs no disk operation.
    pub fn has_more(&self, writer: &Writer) -> bool {
        self.weighing.is_some() || writer.logs().iter().any(|log| log.given_up_segments() > 0)
    }

    /// Does one step of the reclaiming work that needs no disk operation.
    pub fn work(&mut self, cx: &Context, writer: &mut Writer, tombstones: &Tombstones) {
        self.weigh(cx, writer, tombstones, RECORDS_AT_ONCE);
        drop_given_up(cx, writer, RECORDS_AT_ONCE);
    }
}

/// Returns whether a log must discard a segment because it has too few clean (free) segments. If
/// the store has too many records, the log with the most segments must also discard a segment.
fn wants_clean(cx: &Context, writer: &Writer, name: LogName) -> bool {
    let log = writer.log(name);
    let segments = log.segments();
    let ahead = if segments < 4 && log.open.is_some() { 0 } else { kept_clean(segments) };
    let longest = writer.logs().iter().map(|log| log.next - log.tail).max();
    let is_longest = longest == Some(log.next - log.tail);
    log.clean() < ahead || writer.is_crowded(cx) && log.leaving.is_empty() && is_longest
}

/// Removes up to `budget` records of discarded segments from the index. Once all records of a
/// segment have left the index, its slot is free for a new segment.
pub fn drop_given_up(cx: &Context, writer: &mut Writer, mut budget: usize) {
    let before = cx.index.len();
    for name in LogName::ALL {
        while budget > 0 && writer.log(name).given_up_segments() > 0 {
            let log = writer.log_mut(name);
            let (leaving, segment) = (log.leaving.pop_front(), log.segment(log.tail));
            let leaving = leaving.expect("the journal was told of as many");
            match leave(cx, writer, segment, leaving, &mut budget) {
                Some(rest) => writer.log_mut(name).leaving.push_front(rest),
                None => writer.log_mut(name).tail += 1,
            }
        }
    }
    cx.statistics().evicted.add(before - cx.index.len());
}

/// Removes records of a discarded segment from the index, at most `budget`. Returns the records
/// that are still in the index.
fn leave(
    cx: &Context,
    writer: &mut Writer,
    segment: Segment,
    leaving: LeavingRecords,
    budget: &mut usize,
) -> Option<LeavingRecords> {
    match leaving {
        LeavingRecords::Listed(mut records) => {
            let part = records.split_off(records.len().saturating_sub(*budget));
            *budget -= part.len();
            for (tag, place) in part {
                if cx.index.remove_at(tag, place) {
                    writer.evicted(segment.log, tag);
                }
            }
            (!records.is_empty()).then_some(LeavingRecords::Listed(records))
        }
        LeavingRecords::Unknown(from) => {
            let slot = cx.geometry.slot(segment);
            let places = cx.geometry.place(slot, 0)..cx.geometry.place(slot + 1, 0);
            cx.index.remove_range(&places, from, budget).map(LeavingRecords::Unknown)
        }
        LeavingRecords::Nothing => None,
    }
}
