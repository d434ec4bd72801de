//! Finds the newest segments of each log when a store is opened. The journal states which segments
//! are durable, and the search starts after them. A segment without a summary (list of its records)
//! is read completely. A slot (place for a segment) without a valid segment is a gap.

use crate::layout::PAGE;
use crate::record::{HEADER, Header};
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Position, Segment};
use crate::webcosm::format::incarnation::{begun_in, fits};
use crate::webcosm::format::packed;
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::Extent;
use crate::webcosm::pending::Pending;
use crate::webcosm::recovery::rebuild::Unsealed;
use crate::webcosm::recovery::{Parts, StoreRecovery, summaries};
use foxy_device::{IoBuffer, IoError};

impl StoreRecovery {
    /// Starts to search for the newest segments of a log, at the first segment that the journal
    /// does not state as durable.
    pub fn find_head(&mut self, on: &mut Parts<'_>, log: LogName) {
        self.gaps_in_a_row.clear();
        let log = on.writer.log(log);
        self.look_at(on, log.segment(log.next));
    }

    /// Reads the end of a segment, or ends the search after too many gaps (slots without a valid
    /// segment). After a crash, gaps can lie between written segments, but at most as many as the
    /// store syncs together. So no written segment follows a longer series of gaps.
    fn look_at(&mut self, on: &mut Parts<'_>, segment: Segment) {
        let log = on.writer.log(segment.log);
        let is_far = self.gaps_in_a_row.len() > log.group_size() as usize + 1;
        if is_far || segment.sequence - log.tail >= log.segments() {
            return match segment.log {
                LogName::Main => self.find_head(on, LogName::Probation),
                LogName::Probation => self.heads_found(on),
            };
        }
        let (offset, length) = summaries::end_of(&on.cx.geometry, segment);
        on.cx.read(offset, length, Pending::LookAtEnd(segment));
    }

    pub fn looked_at_end(
        &mut self,
        on: &mut Parts<'_>,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
    ) {
        let is_sealed = result.is_ok_and(|buffer| {
            let incarnation = summaries::incarnation_at_end(on.cx, buffer.as_ref(), segment);
            incarnation.is_some_and(|incarnation| {
                summaries::judge_end(on.cx, buffer.as_ref(), segment, incarnation).is_some()
            })
        });
        if is_sealed {
            return self.found_segment(on, segment);
        }
        read_start(on, segment, PAGE, Pending::LookAtStart(segment));
    }

    pub fn looked_at_start(
        &mut self,
        on: &mut Parts<'_>,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
    ) {
        let begun = result
            .ok()
            .and_then(|buffer| incarnation_at_start(on.cx, buffer.as_ref(), segment))
            .is_some_and(|incarnation| fits(on.cx.file.superblock(), segment, incarnation));
        if !begun {
            return self.found_gap(on, segment);
        }
        let length = usize::try_from(on.cx.geometry.segment_bytes()).expect("segments are small");
        read_start(on, segment, length, Pending::LookAtAll(segment));
    }

    pub fn looked_at_all(
        &mut self,
        on: &mut Parts<'_>,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
    ) {
        let begun = result.ok().and_then(|buffer| {
            Some((incarnation_at_start(on.cx, buffer.as_ref(), segment)?, buffer))
        });
        let Some((incarnation, buffer)) = begun else { return self.found_gap(on, segment) };
        let records = SegmentScan { cx: on.cx, segment, incarnation }.records(buffer.as_ref());
        self.rebuild.unsealed.insert(segment, Unsealed { incarnation, records });
        self.found_segment(on, segment);
    }

    fn found_segment(&mut self, on: &mut Parts<'_>, segment: Segment) {
        on.writer.log_mut(segment.log).next = segment.sequence + 1;
        self.gaps.append(&mut self.gaps_in_a_row);
        self.look_after(on, segment);
    }

    fn found_gap(&mut self, on: &mut Parts<'_>, segment: Segment) {
        self.gaps_in_a_row.insert(segment);
        self.look_after(on, segment);
    }

    fn look_after(&mut self, on: &mut Parts<'_>, Segment { log, sequence }: Segment) {
        self.look_at(on, Segment { log, sequence: sequence + 1 });
    }
}

fn read_start(on: &mut Parts<'_>, segment: Segment, length: usize, pending: Pending) {
    let offset = on.cx.geometry.offset(on.cx.geometry.slot(segment), 0);
    on.cx.read(offset, length, pending);
}

fn incarnation_at_start(cx: &Context, bytes: &[u8], segment: Segment) -> Option<u64> {
    begun_in(bytes.get(..PAGE)?, segment, cx.secret())
}

/// Finds the records of a segment without a summary (list of records) by reading all of its pages.
/// Skips bytes with a wrong checksum.
struct SegmentScan<'a> {
    cx: &'a Context,
    segment: Segment,
    incarnation: u64,
}

impl SegmentScan<'_> {
    fn stamp(&self, byte: usize) -> u64 {
        let page = u32::try_from(byte / PAGE).expect("segments are small");
        Position::new(self.segment, page).stamp(self.incarnation)
    }

    fn records(&self, bytes: &[u8]) -> Vec<Listed> {
        let (secret, tag) = (self.cx.secret(), |key| self.cx.tag(key));
        let mut records = Vec::new();
        let mut at = 0;
        while at + PAGE <= bytes.len() {
            if let Some(entries) = packed::entries(&bytes[at..at + PAGE], self.stamp(at), secret) {
                records.extend(entries.map(|(key, ..)| Listed::new(tag(key), at, Extent::Packed)));
            } else {
                at = self.run(at, bytes, &mut records);
            }
            at = (at + 1).next_multiple_of(PAGE);
        }
        records
    }

    /// Adds records that follow each other, starting at byte `start` of the segment. Returns the
    /// end of the last record in bytes, or `start` if there is no record.
    ///
    /// Skips a record whose content was not written completely. This is safe: if this record was to
    /// replace another, a durable tombstone already marks the other as removed.
    fn run(&self, start: usize, bytes: &[u8], records: &mut Vec<Listed>) -> usize {
        let secret = self.cx.secret();
        let granule = usize::try_from(self.cx.geometry.granule).expect("granules are small");
        let (mut at, mut last) = (start, start);
        while let Some(Ok(header)) = bytes.get(at..).map(|rest| Header::decode(rest, secret)) {
            if header.sequence != self.stamp(at) {
                break;
            }
            let end = at + HEADER + header.head_length as usize + header.body_length as usize;
            let content = bytes.get(at + HEADER..end);
            if content.is_some_and(|content| secret.checksum(content) == header.content) {
                let extent = Extent::Pages((end.div_ceil(PAGE) - at / PAGE) as u32);
                records.push(Listed::new(self.cx.tag(header.key), at, extent));
            }
            last = end - 1;
            at = end.next_multiple_of(granule);
        }
        last
    }
}
