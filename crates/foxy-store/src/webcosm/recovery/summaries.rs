//! Reading summaries: the end of a segment first, which mostly has all of its summary, then the
//! whole where it is longer.

use crate::contract::Outbox;
use crate::layout::PAGE;
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{Position, Segment};
use crate::webcosm::format::summary::{self, Summary, Trailer};
use crate::webcosm::io::Pending;
use foxy_device::{IoBuffer, IoError};

/// Pages at a segment's end that are read first; most summaries are not longer.
const END_PAGES: u32 = 8;

/// What a summary is read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Its segment's records are to be known again.
    Rebuild,
    /// Its segment is to be given up.
    Reclaim,
}

/// A summary that is longer than what was read first.
#[derive(Clone, Copy, Debug)]
pub struct LongSummary {
    segment: Segment,
    life: u64,
    trailer: Trailer,
}

impl Webcosm {
    /// Where a segment's summary may be found at once, and its length in bytes.
    pub(crate) fn end_of(&self, segment: Segment) -> (u64, usize) {
        self.last_pages(segment, END_PAGES.min(self.geometry.segment_pages))
    }

    fn last_pages(&self, segment: Segment, pages: u32) -> (u64, usize) {
        let first = self.geometry.segment_pages - pages;
        (self.geometry.offset(self.geometry.slot(segment), first), pages as usize * PAGE)
    }

    /// What the last pages of a segment say: its trailer, and its summary if it is among them.
    pub(crate) fn judge_end(
        &self,
        bytes: &[u8],
        segment: Segment,
        life: u64,
    ) -> Option<(Trailer, Option<Summary>)> {
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        let page = bytes.len().checked_sub(PAGE).map(|start| &bytes[start..])?;
        let trailer =
            summary::trailer(page, last, life, self.file.secret(), self.geometry.segment_pages)?;
        let length = trailer.pages() as usize * PAGE;
        let Some(start) = bytes.len().checked_sub(length) else { return Some((trailer, None)) };
        summary::decode(&bytes[start..], trailer, last, life, self.file.secret())
            .map(|summary| (trailer, Some(summary)))
    }

    /// Begins to read a segment's summary.
    pub(crate) fn read_summary(&mut self, purpose: Purpose, segment: Segment, out: &mut Outbox) {
        let (offset, length) = self.end_of(segment);
        self.file.read(offset, length, Pending::SummaryEnd(purpose, segment), out);
    }

    pub(crate) fn summary_end_read(
        &mut self,
        purpose: Purpose,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let found = result.ok().and_then(|buffer| {
            let life = self.life_for(purpose, buffer.as_ref(), segment)?;
            Some((life, self.judge_end(buffer.as_ref(), segment, life)?))
        });
        if let Some((life, (trailer, None))) = found {
            let (offset, length) = self.last_pages(segment, trailer.pages());
            let whole = LongSummary { segment, life, trailer };
            return self.file.read(offset, length, Pending::LongSummary(purpose, whole), out);
        }
        let found = found.and_then(|(life, (_, summary))| Some((life, summary?)));
        self.summary_read(purpose, segment, found, out);
    }

    /// The life that a segment must have been written in: the one it says while the index is
    /// rebuilt, if it can be that.
    fn life_for(&self, purpose: Purpose, bytes: &[u8], segment: Segment) -> Option<u64> {
        match purpose {
            Purpose::Rebuild => {
                self.life_at_end(bytes, segment).filter(|&life| self.fits(segment, life))
            }
            Purpose::Reclaim => Some(self.index.written(self.geometry.slot(segment)).life),
        }
    }

    pub(crate) fn long_summary_read(
        &mut self,
        purpose: Purpose,
        LongSummary { segment, life, trailer }: LongSummary,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        let summary = result.ok().and_then(|buffer| {
            summary::decode(buffer.as_ref(), trailer, last, life, self.file.secret())
        });
        self.summary_read(purpose, segment, summary.map(|summary| (life, summary)), out);
    }

    fn summary_read(
        &mut self,
        purpose: Purpose,
        segment: Segment,
        found: Option<(u64, Summary)>,
        out: &mut Outbox,
    ) {
        let found = found.filter(|(_, summary)| {
            // A checksum proves where bytes come from, not that they were meant: the secret lies in
            // the same file.
            summary.records.iter().all(|listed| self.index.can_have(listed.tag))
        });
        match purpose {
            Purpose::Rebuild => self.rebuild_summary_read(segment, found, out),
            Purpose::Reclaim => self.reclaim_records(segment, found.map(|(_, summary)| summary)),
        }
    }
}
