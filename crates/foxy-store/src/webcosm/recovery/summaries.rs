//! Reads the summaries of segments, which list their records. The first read covers the last pages
//! of a segment, which usually contain the whole summary. A longer summary needs a second read.

use crate::layout::PAGE;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{Geometry, Position, Segment};
use crate::webcosm::format::incarnation::{fits, number};
use crate::webcosm::format::summary::{self, Summary, Trailer};
use crate::webcosm::pending::{LongSummary, Pending, SummaryPurpose};
use foxy_device::{IoBuffer, IoError};

/// Number of pages at the end of a segment that the first read covers.
const END_PAGES: u32 = 8;

/// A summary (list of records), and the number of the opening of the store (incarnation) that wrote
/// it. `None` if there is no valid summary.
pub type FoundSummary = Option<(u64, Summary)>;

/// Returns the byte offset and the length in bytes of the last pages of a segment, which are read
/// first.
pub fn end_of(geometry: &Geometry, segment: Segment) -> (u64, usize) {
    last_pages(geometry, segment, END_PAGES.min(geometry.segment_pages))
}

fn last_pages(geometry: &Geometry, segment: Segment, pages: u32) -> (u64, usize) {
    let first = geometry.segment_pages - pages;
    (geometry.offset(geometry.slot(segment), first), pages as usize * PAGE)
}

fn last_position(cx: &Context, segment: Segment) -> Position {
    Position::new(segment, cx.geometry.segment_pages - 1)
}

/// Returns the number of the opening of the store (incarnation) in the last page of a segment.
/// Returns `None` if this incarnation cannot have written the segment.
pub fn incarnation_at_end(cx: &Context, bytes: &[u8], segment: Segment) -> Option<u64> {
    let stamp = number(&bytes[bytes.len().checked_sub(PAGE)?..], 8)?;
    let incarnation = last_position(cx, segment).incarnation_in(stamp)?;
    fits(cx.file.superblock(), segment, incarnation).then_some(incarnation)
}

/// Returns the trailer (last page) of a segment's summary. Also returns the whole summary if the
/// given pages contain all of it.
pub fn judge_end(
    cx: &Context,
    bytes: &[u8],
    segment: Segment,
    incarnation: u64,
) -> Option<(Trailer, Option<Summary>)> {
    let last = last_position(cx, segment);
    let page = bytes.len().checked_sub(PAGE).map(|start| &bytes[start..])?;
    let trailer =
        summary::trailer(page, last, incarnation, cx.secret(), cx.geometry.segment_pages)?;
    let length = trailer.pages() as usize * PAGE;
    let Some(start) = bytes.len().checked_sub(length) else { return Some((trailer, None)) };
    summary::decode(&bytes[start..], trailer, last, incarnation, cx.secret())
        .map(|summary| (trailer, Some(summary)))
}

/// Starts to read the summary of a segment.
pub fn read(cx: &mut Context, purpose: SummaryPurpose, segment: Segment) {
    let (offset, length) = end_of(&cx.geometry, segment);
    cx.read(offset, length, Pending::SummaryEnd(purpose, segment));
}

/// Processes the last pages of a segment. Returns `None` if more pages of the summary (list of
/// records) must still be read.
pub fn end_read(
    cx: &mut Context,
    purpose: SummaryPurpose,
    segment: Segment,
    result: Result<IoBuffer, IoError>,
) -> Option<FoundSummary> {
    let found = result.ok().and_then(|buffer| {
        let bytes = buffer.as_ref();
        let incarnation = match purpose {
            SummaryPurpose::Rebuild => incarnation_at_end(cx, bytes, segment)?,
            SummaryPurpose::Reclaim => cx.index.slot(cx.geometry.slot(segment)).incarnation,
        };
        Some((incarnation, judge_end(cx, bytes, segment, incarnation)?))
    });
    if let Some((incarnation, (trailer, None))) = found {
        let (offset, length) = last_pages(&cx.geometry, segment, trailer.pages());
        let long = LongSummary { segment, incarnation, trailer };
        cx.read(offset, length, Pending::LongSummary(purpose, long));
        return None;
    }
    Some(possible(cx, found.and_then(|(incarnation, (_, summary))| Some((incarnation, summary?)))))
}

pub fn long_read(
    cx: &Context,
    LongSummary { segment, incarnation, trailer }: LongSummary,
    result: Result<IoBuffer, IoError>,
) -> FoundSummary {
    let last = last_position(cx, segment);
    let summary = result.ok().and_then(|buffer| {
        summary::decode(buffer.as_ref(), trailer, last, incarnation, cx.secret())
    });
    possible(cx, summary.map(|summary| (incarnation, summary)))
}

/// Drops a summary that contains tags (shortened keys) which no key can have. A correct checksum
/// proves nothing against forgery, because the secret of the checksums is in the same file.
fn possible(cx: &Context, found: FoundSummary) -> FoundSummary {
    found.filter(|(_, summary)| summary.records.iter().all(|listed| cx.index.can_have(listed.tag)))
}
