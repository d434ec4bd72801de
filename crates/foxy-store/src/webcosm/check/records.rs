//! Checks the records of a segment. For each record it finds out whether a get would find the
//! record, how much disk space it uses, and whether its bytes are valid.

use super::finding::{Finding, Level, Reason};
use super::report::{RecordReport, SegmentReport, Standing};
use super::scan::{FoundRecord, Scan};
use super::walk::{VisitedSegment, Walk};
use crate::layout::PAGE;
use crate::webcosm::format::geometry::Position;
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::{Extent, IndexEntry};
use std::collections::BTreeMap;

/// A record that a summary lists, and whether a get would find it.
#[derive(Clone, Copy, Debug)]
pub struct JudgedRecord {
    listed: Listed,
    standing: Standing,
}

impl JudgedRecord {
    pub fn is_live(&self) -> bool {
        self.standing == Standing::Live
    }
}

impl Walk<'_> {
    /// Adds the records of a segment to the check's own index, from the newest to the oldest.
    /// Returns all records of the segment in writing order.
    pub(super) fn learn(
        &mut self,
        visited: &VisitedSegment,
        report: &mut SegmentReport,
    ) -> Vec<JudgedRecord> {
        let slot = self.geometry.slot(visited.segment);
        let space = space(&visited.summary.records, visited.content_pages);
        let mut judged = Vec::with_capacity(visited.summary.records.len());
        for &listed in visited.summary.records.iter().rev() {
            let byte = u64::from(listed.step) * 64;
            let page = u32::try_from(byte / PAGE as u64).expect("steps are small");
            let position = Position::new(visited.segment, page);
            let possible = page < visited.content_pages && self.index.can_have(listed.tag);
            let forgotten = self
                .tombstones
                .get(&listed.tag)
                .is_some_and(|tombstone| tombstone.reaches(position));
            let standing = if forgotten || !possible {
                Standing::Forgotten
            } else if self.index.get(listed.tag).is_some() {
                Standing::Replaced
            } else {
                let extent = Extent::of_class(listed.class);
                let place = self.geometry.place(slot, byte);
                self.index.insert(listed.tag, IndexEntry { place, extent, uses: 0 });
                Standing::Live
            };
            let bytes = space.get(&listed.step).copied().unwrap_or(0);
            (report.records, report.bytes) = (report.records + 1, report.bytes + bytes);
            if standing == Standing::Live {
                report.live_records += 1;
                let class = &mut self.classes[usize::from(listed.class) % 64];
                (class.records, class.bytes) = (class.records + 1, class.bytes + bytes);
            }
            judged.push(JudgedRecord { listed, standing });
        }
        judged.reverse();
        judged
    }

    pub(super) fn verify(
        &mut self,
        visited: &VisitedSegment,
        judged: &[JudgedRecord],
        content: &[u8],
    ) {
        let slot = self.geometry.slot(visited.segment);
        let start = self.geometry.offset(slot, 0);
        let wanted = self.scope.listed == Some(slot);
        let mut found: BTreeMap<(u32, &'static str), Finding> = BTreeMap::new();
        for JudgedRecord { listed, standing } in judged {
            let scan = Scan {
                secret: &self.secret,
                geometry: &self.geometry,
                segment: visited.segment,
                incarnation: visited.incarnation,
            };
            let salt = self.superblock.salt;
            let whole = if self.index.can_have(listed.tag) {
                scan.listed(content, *listed, |key| self.index.tag(key.hash(salt)))
            } else {
                Err(Reason::EntryImpossible)
            };
            let at = start + u64::from(listed.step) * 64;
            if let Err(reason) = whole {
                let level = if visited.in_tail { Level::Normal } else { Level::Damage };
                let length = u64::from(Extent::of_class(listed.class).pages()) * PAGE as u64;
                let new = Finding { at, length, slot: Some(slot), reason, level, misses: 0 };
                let finding = found.entry((listed.step, reason.name())).or_insert(new);
                finding.misses += u64::from(*standing == Standing::Live);
            }
            let found_record = whole.ok();
            if let Some(record) = found_record.filter(|_| *standing == Standing::Live) {
                (self.take)(record);
            }
            if wanted {
                let (tag, class, standing) = (listed.tag.0, listed.class, *standing);
                let lengths =
                    |it: FoundRecord<'_>| (it.key, it.head.len() as u64, it.body.len() as u64);
                let found = found_record.map(lengths);
                self.listed.push(RecordReport { tag, at, class, standing, found });
            }
        }
        self.verified_bytes += content.len() as u64;
        found.into_values().for_each(|finding| self.findings.add(finding));
    }
}

/// Returns the disk space of each record in bytes, by the start of the record. The space of a
/// record ends at the next record, or with the record's last page. Records that share a page divide
/// its space equally.
fn space(records: &[Listed], content_pages: u32) -> BTreeMap<u32, u64> {
    let mut starts: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for listed in records {
        let page = u64::from(listed.step) * 64 / PAGE as u64;
        let pages = u64::from(Extent::of_class(listed.class).pages());
        let end = (page + pages).min(u64::from(content_pages)) * PAGE as u64;
        starts.entry(listed.step).or_insert((0, end)).0 += 1;
    }
    let next: Vec<u64> = starts.keys().skip(1).map(|&step| u64::from(step) * 64).collect();
    let ends = next.into_iter().chain([u64::MAX]);
    starts
        .iter()
        .zip(ends)
        .map(|((&step, &(sharing, end)), next)| {
            let bytes = end.min(next).saturating_sub(u64::from(step) * 64);
            (step, bytes / sharing)
        })
        .collect()
}
