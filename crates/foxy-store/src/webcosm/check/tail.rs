//! Finds the newest segments of a log for the check. The journal names the first segment whose
//! summary may not be durable. The search starts there.

use super::report::JournalReport;
use super::walk::Walk;
use crate::layout::PAGE;
use crate::webcosm::format::geometry::{LogName, Position, Segment};
use crate::webcosm::format::incarnation::{begun_in, first_of_incarnation, number};
use crate::webcosm::format::summary::{self, Summary, Trailer};
use foxy_device::IoError;
use std::collections::BTreeSet;

/// The end of a log: the segments that are newer than the durable segments.
pub struct Tail {
    pub next: u32,
    /// Numbers of segments without content that are older than the segment `next`.
    pub gaps: BTreeSet<u32>,
    /// Segments without a summary (list of records), each with the opening of the store
    /// (incarnation) that wrote it.
    pub unsealed: Vec<(u32, u64)>,
}

/// A summary of a segment: the opening of the store (incarnation) that wrote it, the trailer (last
/// page), and the content.
pub type Sealed = (u64, Trailer, Summary);

impl Walk<'_> {
    /// Reads the summary of a segment. Returns `None` if the summary is invalid.
    pub(super) fn summary_of(&mut self, segment: Segment) -> Result<Option<Sealed>, IoError> {
        let (slot, pages) = (self.geometry.slot(segment), self.geometry.segment_pages);
        let last = Position::new(segment, pages - 1);
        let page = self.reader.exactly(self.geometry.offset(slot, pages - 1), PAGE)?;
        let incarnation = number(&page, 8).and_then(|stamp| last.incarnation_in(stamp));
        let Some(incarnation) =
            incarnation.filter(|&incarnation| incarnation <= self.superblock.opens)
        else {
            return Ok(None);
        };
        let Some(trailer) = summary::trailer(&page, last, incarnation, &self.secret, pages) else {
            return Ok(None);
        };
        let first = pages - trailer.pages();
        let bytes = self
            .reader
            .exactly(self.geometry.offset(slot, first), trailer.pages() as usize * PAGE)?;
        self.verified_bytes += bytes.len() as u64;
        Ok(summary::decode(&bytes, trailer, last, incarnation, &self.secret)
            .map(|summary| (incarnation, trailer, summary)))
    }

    fn fits(&self, segment: Segment, incarnation: u64) -> bool {
        let begun = segment.sequence >= first_of_incarnation(&self.superblock, segment.log);
        if begun {
            incarnation == self.superblock.opens
        } else {
            incarnation < self.superblock.opens
        }
    }

    /// Searches for the newest segments of a log. The search starts at the first segment whose
    /// summary may not be durable. After a crash, empty segments can lie between written segments,
    /// but at most as many as the store syncs together. So the search ends after a longer series of
    /// empty segments.
    pub(super) fn tail(&mut self, log: LogName, journal: &JournalReport) -> Tail {
        let (oldest, first) = (journal.tails[log as usize], journal.durable_ends[log as usize]);
        let segments = self.geometry.segments_from(Segment { log, sequence: oldest });
        let most_gaps = (segments / 64).clamp(1, 8) as usize + 1;
        let mut tail = Tail { next: first, gaps: BTreeSet::new(), unsealed: Vec::new() };
        let mut gaps = Vec::new();
        for sequence in first..oldest.saturating_add(segments) {
            if gaps.len() > most_gaps {
                break;
            }
            let segment = Segment { log, sequence };
            let sealed = self.summary_of(segment).ok().flatten();
            if !sealed.is_some_and(|(incarnation, ..)| self.fits(segment, incarnation)) {
                let slot = self.geometry.slot(segment);
                let page = self.reader.exactly(self.geometry.offset(slot, 0), PAGE);
                let begun = page.ok().and_then(|page| begun_in(&page, segment, &self.secret));
                let Some(incarnation) =
                    begun.filter(|&incarnation| self.fits(segment, incarnation))
                else {
                    gaps.push(sequence);
                    continue;
                };
                tail.unsealed.push((sequence, incarnation));
            }
            tail.next = sequence + 1;
            tail.gaps.extend(gaps.drain(..));
        }
        let begun =
            first_of_incarnation(&self.superblock, log).min(oldest.saturating_add(segments));
        tail.gaps.extend(tail.next..begun);
        tail.next = tail.next.max(begun);
        tail
    }
}
