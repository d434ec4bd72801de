//! Reads a whole store for the check: superblocks, journal, then each log from the newest segment
//! to the oldest. If several records have the same tag (shortened key), only the first record found
//! is live, because it replaced the older records.

use super::finding::{Finding, Findings, Level, Reason};
use super::reader::Reader;
use super::report::{ClassCount, JournalReport, RecordReport, Report, SegmentReport, SegmentState};
use super::scan::Scan;
use super::{CheckScope, TakeRecord};
use crate::layout::PAGE;
use crate::map::Survey;
use crate::one_file::superblock::{CopyState, Superblock};
use crate::record::Secret;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment};
use crate::webcosm::format::summary::{Summary, Tombstone};
use crate::webcosm::index::{Index, Tag};
use foxy_device::IoError;
use std::collections::{BTreeSet, HashMap};

/// The progress of a check.
pub struct Walk<'a> {
    pub(super) superblock: Superblock,
    pub(super) secret: Secret,
    pub(super) geometry: Geometry,
    pub(super) reader: Reader<'a>,
    pub(super) scope: CheckScope,
    pub(super) take: &'a mut TakeRecord<'a>,
    pub(super) findings: Findings,
    pub(super) verified_bytes: u64,
    pub(super) index: Index,
    pub(super) tombstones: HashMap<Tag, Tombstone>,
    pub(super) classes: [ClassCount; 64],
    pub(super) listed: Vec<RecordReport>,
    void: BTreeSet<Segment>,
    segments: Vec<SegmentReport>,
}

/// A segment that the check has read.
pub struct VisitedSegment {
    pub segment: Segment,
    pub incarnation: u64,
    /// Number of pages in the segment before its summary (list of records). These pages contain the
    /// records.
    pub content_pages: u32,
    /// The summary of the segment. If there is none, the summary that an opening would write.
    pub summary: Summary,
    /// Whether the segment is so new that it may not be durable. Damage in such a segment is normal
    /// after a crash.
    pub in_tail: bool,
}

impl<'a> Walk<'a> {
    pub fn new(
        superblock: Superblock,
        scope: CheckScope,
        reader: Reader<'a>,
        take: &'a mut TakeRecord<'a>,
    ) -> Self {
        let geometry = Geometry::in_file(&superblock);
        let segments = (0..geometry.slots()).map(|slot| blank(&geometry, slot)).collect();
        Self {
            superblock,
            secret: superblock.secret(),
            geometry,
            reader,
            scope,
            take,
            findings: Findings::default(),
            verified_bytes: 0,
            index: Index::new(geometry.partition_bits),
            tombstones: HashMap::new(),
            classes: [ClassCount::default(); 64],
            listed: Vec::new(),
            void: BTreeSet::new(),
            segments,
        }
    }

    /// Adds a finding (damaged or unexpected bytes) that affects no live record.
    pub(super) fn find(&mut self, at: u64, length: usize, reason: Reason, level: Level) {
        let slot =
            at.checked_sub(self.geometry.start).map(|byte| byte / self.geometry.segment_bytes());
        let slot = slot.and_then(|slot| u32::try_from(slot).ok());
        self.findings.add(Finding { at, length: length as u64, slot, reason, level, misses: 0 });
    }

    /// Applies a tombstone (mark of a removal). From now on, records of its tag (shortened key) in
    /// older positions count as removed.
    pub(super) fn forget(&mut self, tombstone: Tombstone) {
        match tombstone.void_segment() {
            Some(segment) => drop(self.void.insert(segment)),
            None => self.tombstones.entry(tombstone.tag).or_insert(tombstone).join(tombstone),
        }
    }

    pub(super) fn log(&mut self, log: LogName, journal: &JournalReport) {
        let tail = self.tail(log, journal);
        let mut doubted = false;
        // The journal may contain wrong numbers, but a log never has more segments than slots
        // (places for segments).
        let oldest =
            tail.next.saturating_sub(self.geometry.segments(log)).max(journal.tails[log as usize]);
        for sequence in (oldest..tail.next).rev() {
            let segment = Segment { log, sequence };
            let slot = self.geometry.slot(segment);
            let in_tail = sequence >= journal.durable_ends[log as usize];
            let unsealed = tail
                .unsealed
                .iter()
                .find(|(other, _)| *other == sequence)
                .map(|(_, incarnation)| *incarnation);
            let state = if doubted {
                SegmentState::GivenUp
            } else if tail.gaps.contains(&sequence) || self.void.contains(&segment) {
                SegmentState::Void
            } else if let Some(incarnation) = unsealed {
                self.unsealed(segment, incarnation)
            } else {
                self.sealed(segment, in_tail)
            };
            doubted |= state == SegmentState::Lost;
            let report = &mut self.segments[slot as usize];
            (report.sequence, report.state) = (Some(sequence), state);
        }
    }

    fn sealed(&mut self, segment: Segment, in_tail: bool) -> SegmentState {
        let slot = self.geometry.slot(segment);
        let pages = self.geometry.segment_pages;
        let end = self.geometry.offset(slot, pages - 1);
        let (incarnation, trailer, summary) = match self.summary_of(segment) {
            Ok(Some(sealed)) => sealed,
            Ok(None) => {
                self.find(end, PAGE, Reason::SummaryLost, Level::Damage);
                return SegmentState::Lost;
            }
            Err(error) => {
                self.find(end, PAGE, Reason::Unreadable(error), Level::Unread);
                return SegmentState::Lost;
            }
        };
        self.segments[slot as usize].summary_pages = trailer.pages();
        let content_pages = pages - trailer.pages();
        self.visit(&VisitedSegment { segment, incarnation, content_pages, summary, in_tail }, None);
        SegmentState::Sealed
    }

    fn unsealed(&mut self, segment: Segment, incarnation: u64) -> SegmentState {
        let (at, length) = self.whole(segment);
        let bytes = match self.reader.exactly(at, length) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.find(at, length, Reason::Unreadable(error), Level::Unread);
                return SegmentState::Lost;
            }
        };
        let scan = Scan { secret: &self.secret, geometry: &self.geometry, segment, incarnation };
        let records = scan.all(&bytes, &self.index, self.superblock.salt);
        self.find(at, length, Reason::Unsealed, Level::Normal);
        let summary = Summary { records, tombstones: Vec::new() };
        let content_pages = self.geometry.segment_pages;
        self.visit(
            &VisitedSegment { segment, incarnation, content_pages, summary, in_tail: true },
            Some(bytes),
        );
        SegmentState::Unsealed
    }

    /// Returns the byte offset in the file and the length in bytes of a segment.
    fn whole(&self, segment: Segment) -> (u64, usize) {
        let length = usize::try_from(self.geometry.segment_bytes()).expect("segments are small");
        (self.geometry.offset(self.geometry.slot(segment), 0), length)
    }

    /// Processes the records of a segment: counts them, and verifies each record if the caller
    /// asked for it.
    fn visit(&mut self, visited: &VisitedSegment, bytes: Option<Vec<u8>>) {
        visited.summary.tombstones.iter().for_each(|tombstone| self.forget(*tombstone));
        let slot = self.geometry.slot(visited.segment);
        let mut report = self.segments[slot as usize];
        (report.incarnation, report.tombstones) =
            (visited.incarnation, visited.summary.tombstones.len() as u64);
        let judged = self.learn(visited, &mut report);
        self.segments[slot as usize] = report;
        let wanted = self.scope.records || self.scope.listed == Some(slot);
        if !wanted {
            return;
        }
        let (at, length) = (self.whole(visited.segment).0, visited.content_pages as usize * PAGE);
        match bytes.map_or_else(|| self.reader.exactly(at, length), Ok) {
            Ok(bytes) => self.verify(visited, &judged, &bytes),
            Err(error) => self.unreadable(visited, &judged, at, length, error),
        }
    }

    fn unreadable(
        &mut self,
        visited: &VisitedSegment,
        judged: &[super::records::JudgedRecord],
        at: u64,
        length: usize,
        error: IoError,
    ) {
        let misses = judged.iter().filter(|judged| judged.is_live()).count() as u64;
        let slot = Some(self.geometry.slot(visited.segment));
        let reason = Reason::Unreadable(error);
        self.findings.add(Finding {
            at,
            length: length as u64,
            slot,
            reason,
            level: Level::Unread,
            misses,
        });
    }

    /// Returns the map of the live records.
    fn survey(&self) -> Survey {
        let newest = LogName::ALL.map(|log| {
            let of_log = self.segments.iter().filter(|segment| segment.log == log);
            of_log.filter_map(|segment| segment.sequence).max().unwrap_or(0)
        });
        let geometry = &self.geometry;
        let place = |it: &SegmentReport| it.place(newest[it.log as usize], geometry);
        let mut survey = geometry.survey(self.segments.iter().map(place).collect());
        survey.add_all(&self.geometry, &self.index);
        survey
    }

    pub(super) fn into_report(mut self, copies: [CopyState; 2], journal: JournalReport) -> Report {
        let survey = self.survey();
        for (segment, place) in self.segments.iter_mut().zip(&survey.segments) {
            segment.live_bytes = place.live_bytes;
        }
        Report {
            survey,
            copies,
            superblock: self.superblock,
            geometry: self.geometry,
            journal,
            segments: self.segments,
            classes: self.classes,
            listed: self.listed,
            findings: self.findings,
            verified_bytes: self.verified_bytes,
        }
    }
}

fn blank(geometry: &Geometry, slot: u32) -> SegmentReport {
    SegmentReport {
        slot,
        at: geometry.offset(slot, 0),
        log: geometry.log_of(slot),
        sequence: None,
        state: SegmentState::Free,
        incarnation: 0,
        summary_pages: 0,
        records: 0,
        bytes: 0,
        live_records: 0,
        live_bytes: 0,
        tombstones: 0,
    }
}
