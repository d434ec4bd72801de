//! Finding the newest segments when a store is opened: onwards from the one that the journal says
//! may not be durable. A segment without a summary is read through; one that has nothing of its
//! place in the log in it is a gap.

use crate::contract::{Key, Outbox};
use crate::layout::PAGE;
use crate::record::{HEADER, Header};
use crate::webcosm::Webcosm;
use crate::webcosm::format::geometry::{LogName, Position, Segment};
use crate::webcosm::format::incarnation::{begun_in, first_of_life, number};
use crate::webcosm::format::packed;
use crate::webcosm::format::summary::{Listed, Summary};
use crate::webcosm::index::{Extent, Tag};
use crate::webcosm::io::Pending;
use foxy_device::{IoBuffer, IoError};
use std::collections::{BTreeMap, BTreeSet};

/// What is found out while opening.
#[derive(Debug, Default)]
pub struct HeadFinding {
    /// The size that the store is to have from now on, if it is another.
    pub resizing: Option<u64>,
    /// How often the journal was read.
    pub journal_tries: u32,
    /// The records of segments that have no summary, and the life they were written in.
    pub unsealed: BTreeMap<Segment, (u64, Vec<Listed>)>,
    /// Segments with nothing in them, before ones with something.
    pub gaps: BTreeSet<Segment>,
    gaps_in_a_row: BTreeSet<Segment>,
}

impl Webcosm {
    /// Looks at each log in turn, from the segment that its `next` names on.
    pub(crate) fn find_head(&mut self, log: LogName, out: &mut Outbox) {
        self.finding.gaps_in_a_row.clear();
        let log = &self.logs[log as usize];
        self.look_at(log.segment(log.next), out);
    }

    /// Syncs come often enough that a gap of more segments has nothing behind it.
    fn look_at(&mut self, segment: Segment, out: &mut Outbox) {
        let log = &self.logs[segment.log as usize];
        let far = self.finding.gaps_in_a_row.len() > log.together() as usize + 1;
        if far || segment.sequence - log.tail >= log.segments() {
            return match segment.log {
                LogName::Main => self.find_head(LogName::Probation, out),
                LogName::Probation => self.heads_found(out),
            };
        }
        let (offset, length) = self.end_of(segment);
        self.file.read(offset, length, Pending::LookAtEnd(segment), out);
    }

    /// Whether a segment with that place in its log may have been written in that life: in the last
    /// one only those from its beginning on, and nothing else there.
    pub(crate) fn fits(&self, segment: Segment, life: u64) -> bool {
        let begun = segment.sequence >= first_of_life(self.file.superblock(), segment.log);
        if begun {
            life == self.file.superblock().opens
        } else {
            life < self.file.superblock().opens
        }
    }

    /// The life that the last page of a segment says.
    pub(crate) fn life_at_end(&self, bytes: &[u8], segment: Segment) -> Option<u64> {
        let last = Position::new(segment, self.geometry.segment_pages - 1);
        last.life_in(number(&bytes[bytes.len().checked_sub(PAGE)?..], 8)?)
    }

    pub(crate) fn looked_at_end(
        &mut self,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let sealed = result.is_ok_and(|buffer| {
            let life =
                self.life_at_end(buffer.as_ref(), segment).filter(|&life| self.fits(segment, life));
            life.is_some_and(|life| self.judge_end(buffer.as_ref(), segment, life).is_some())
        });
        if sealed {
            return self.found(segment, out);
        }
        self.file.read(
            self.geometry.offset(self.geometry.slot(segment), 0),
            PAGE,
            Pending::LookAtStart(segment),
            out,
        );
    }

    pub(crate) fn looked_at_start(
        &mut self,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let begun = result.ok().and_then(|buffer| self.life_at_start(buffer.as_ref(), segment));
        match begun.filter(|&life| self.fits(segment, life)) {
            Some(_) => {
                let length =
                    usize::try_from(self.geometry.segment_bytes()).expect("segments are small");
                self.file.read(
                    self.geometry.offset(self.geometry.slot(segment), 0),
                    length,
                    Pending::LookAtAll(segment),
                    out,
                );
            }
            None => self.is_gap(segment, out),
        }
    }

    /// The life that the first page of a segment says.
    fn life_at_start(&self, bytes: &[u8], segment: Segment) -> Option<u64> {
        begun_in(bytes.get(..PAGE)?, segment, self.file.secret())
    }

    pub(crate) fn looked_at_all(
        &mut self,
        segment: Segment,
        result: Result<IoBuffer, IoError>,
        out: &mut Outbox,
    ) {
        let Ok(buffer) = result else { return self.is_gap(segment, out) };
        let life = self.life_at_start(buffer.as_ref(), segment);
        let Some(life) = life else { return self.is_gap(segment, out) };
        let records = self.records_of(buffer.as_ref(), segment, life);
        self.finding.unsealed.insert(segment, (life, records));
        self.found(segment, out);
    }

    fn found(&mut self, segment: Segment, out: &mut Outbox) {
        self.logs[segment.log as usize].next = segment.sequence + 1;
        let mut gaps = std::mem::take(&mut self.finding.gaps_in_a_row);
        self.finding.gaps.append(&mut gaps);
        self.look_after(segment, out);
    }

    fn is_gap(&mut self, segment: Segment, out: &mut Outbox) {
        self.finding.gaps_in_a_row.insert(segment);
        self.look_after(segment, out);
    }

    fn look_after(&mut self, Segment { log, sequence }: Segment, out: &mut Outbox) {
        self.look_at(Segment { log, sequence: sequence + 1 }, out);
    }

    /// The records of a segment, found by reading it through; nothing in it is trusted that does
    /// not have its checksum.
    fn records_of(&self, bytes: &[u8], segment: Segment, life: u64) -> Vec<Listed> {
        let mut records = Vec::new();
        let mut at = 0;
        while at + PAGE <= bytes.len() {
            let page = u32::try_from(at / PAGE).expect("segments are small");
            let stamp = Position::new(segment, page).stamp(life);
            if let Some(entries) = packed::entries(&bytes[at..at + PAGE], stamp, self.file.secret())
            {
                records.extend(entries.map(|(key, ..)| self.listed(key, at, Extent::Packed)));
            } else {
                at = self.run_from(at, bytes, (segment, life), &mut records);
            }
            at = (at + 1).next_multiple_of(PAGE);
        }
        records
    }

    /// Records that follow each other from a byte on; gives the last byte that belongs to one, or
    /// that byte. One whose content was cut off is nobody's: whatever it was to replace is durably
    /// forgotten.
    fn run_from(
        &self,
        start: usize,
        bytes: &[u8],
        (segment, life): (Segment, u64),
        records: &mut Vec<Listed>,
    ) -> usize {
        let granule = usize::try_from(self.geometry.granule).expect("granules are small");
        let (mut at, mut last) = (start, start);
        while let Some(Ok(header)) =
            bytes.get(at..).map(|rest| Header::decode(rest, self.file.secret()))
        {
            let page = u32::try_from(at / PAGE).expect("segments are small");
            if header.sequence != Position::new(segment, page).stamp(life) {
                break;
            }
            let end = at + HEADER + header.head_length as usize + header.body_length as usize;
            let pages = end.div_ceil(PAGE) - at / PAGE;
            let whole = bytes
                .get(at + HEADER..end)
                .is_some_and(|content| self.file.secret().checksum(content) == header.content);
            if whole {
                records.push(self.listed(header.key, at, Extent::Pages(pages as u32)));
            }
            last = end - 1;
            at = end.next_multiple_of(granule);
        }
        last
    }

    fn listed(&self, key: Key, at: usize, extent: Extent) -> Listed {
        let tag: Tag = self.tag(key);
        Listed { tag, step: (at / 64) as u32, class: extent.class() }
    }

    /// What a segment without a summary was found to hold.
    pub(crate) fn unsealed_summary(&mut self, segment: Segment) -> Option<Summary> {
        let (life, records) = self.finding.unsealed.remove(&segment)?;
        self.take_slot(segment, life);
        Some(Summary { records, facts: Vec::new() })
    }
}
