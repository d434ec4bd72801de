//! Completes segments: writes the summary of a segment (the list of its records), or marks the
//! segment as void (without a summary).

use crate::layout::PAGE;
use crate::webcosm::context::Context;
use crate::webcosm::format::geometry::{LogName, Position, Segment, Sequence};
use crate::webcosm::format::summary::{self, Listed, Tombstone, pages_for, tombstones_in};
use crate::webcosm::pending::Pending;
use crate::webcosm::tombstones::Tombstones;
use crate::webcosm::write::Writer;
use crate::webcosm::write::log::OpenSegment;
use foxy_device::{IoBuffer, IoError};

impl Writer {
    /// Returns, for each log, the segment number before which all segments are durable if a sync
    /// starts now and succeeds. The number does not rise while some tombstones are in no journal
    /// block.
    pub fn ends_if_synced(&self, tombstones: &Tombstones) -> [Sequence; 2] {
        LogName::ALL.map(|log| {
            let seals = &self.log(log).seals;
            let written = self.in_flight.first(log).map_or(seals.end, |first| first.min(seals.end));
            if tombstones.has_unwritten() {
                seals.durable_end
            } else {
                written.max(seals.durable_end)
            }
        })
    }

    /// Starts a new segment in the log if no segment is open. Returns whether a segment is now
    /// open.
    pub fn ensure_open(&mut self, cx: &Context, tombstones: &mut Tombstones, log: LogName) -> bool {
        self.skip_retired(cx, tombstones, log);
        let log = self.log_mut(log);
        if log.open.is_some() || !log.has_room() {
            return log.open.is_some();
        }
        let segment = log.segment(log.next);
        log.next += 1;
        log.open = Some(OpenSegment { segment, page: 0, records: Vec::new() });
        cx.occupy_slot(segment, cx.incarnation());
        true
    }

    /// Completes the open segment of a log: writes its summary (list of records) at the end of the
    /// segment.
    pub fn seal(&mut self, cx: &mut Context, tombstones: &mut Tombstones, log: LogName) {
        let Some(open) = self.log_mut(log).open.take() else { return };
        let OpenSegment { segment, page, records } = open;
        let room = cx.geometry.segment_pages - page - pages_for(records.len(), 0);
        let sealed = tombstones.seal(segment, tombstones_in(room));
        let (offset, buffer) = summary_of(cx, segment, cx.incarnation(), &records, &sealed);
        cx.write(offset, buffer, Pending::Summary(segment));
    }

    /// Completes the open segments in order to write tombstones into their summaries. Once the
    /// summaries are durable, the journal no longer needs these tombstones.
    pub fn seal_tombstones(&mut self, cx: &mut Context, tombstones: &mut Tombstones) {
        for log in LogName::ALL {
            if tombstones.unsealed(log) > 0 && self.ensure_open(cx, tombstones, log) {
                self.seal(cx, tombstones, log);
            }
        }
    }

    /// Returns whether a log has tombstones (marks of removals) to write into a summary, but no
    /// open segment and no free slot for the summary.
    pub fn cannot_seal(&self, tombstones: &Tombstones) -> bool {
        LogName::ALL.iter().any(|&log| tombstones.unsealed(log) > 0 && !self.log(log).has_room())
    }

    /// Processes the result of writing a summary. If the write failed, the segment becomes void
    /// (without a summary). A get still finds the segment's records, but the next opening of the
    /// store does not.
    pub fn summary_done(
        &mut self,
        cx: &Context,
        tombstones: &mut Tombstones,
        segment: Segment,
        result: Result<(), IoError>,
    ) {
        self.bad_slots.record(&cx.geometry, segment, result);
        match result {
            Ok(()) => {
                self.bad_slots.trust(cx.geometry.slot(segment), segment.sequence);
                self.log_mut(segment.log).seals.add(segment.sequence);
            }
            Err(_) => self.void(cx, tombstones, segment),
        }
    }

    /// Marks a segment as void: it has no valid summary, and webcosm will write none. The next
    /// opening of the store ignores it.
    pub fn void(&mut self, cx: &Context, tombstones: &mut Tombstones, segment: Segment) {
        tombstones.unseal(segment);
        let is_retired = self.bad_slots.is_retired(cx.geometry.slot(segment));
        tombstones.add_unwritten(if is_retired {
            Tombstone::retired(segment)
        } else {
            Tombstone::void(segment)
        });
        self.log_mut(segment.log).seals.add(segment.sequence);
        cx.statistics().retired_pages.add(u64::from(cx.geometry.segment_pages));
    }
}

/// Encodes the summary of a segment. Returns the summary and its byte offset in the file.
pub fn summary_of(
    cx: &Context,
    segment: Segment,
    incarnation: u64,
    records: &[Listed],
    tombstones: &[Tombstone],
) -> (u64, IoBuffer) {
    let geometry = &cx.geometry;
    let pages = pages_for(records.len(), tombstones.len());
    let mut buffer = IoBuffer::zeroed(pages as usize * PAGE);
    let last = Position::new(segment, geometry.segment_pages - 1);
    summary::encode(buffer.as_mut(), records, tombstones, last, incarnation, cx.secret());
    (geometry.offset(geometry.slot(segment), geometry.segment_pages - pages), buffer)
}
