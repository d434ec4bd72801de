//! The view of webcosm's layout: the state of both logs as the store's thread last showed it, and
//! the records in the index.

use crate::contract::{Key, ReadNow, Record};
use crate::layout::PAGE;
use crate::map::{
    LayoutView, PlacedRecord, RecordFate, RecordScan, SegmentPlace, SegmentUse, Survey,
};
use crate::webcosm::format::geometry::{Geometry, LogName, Segment};
use crate::webcosm::index::shared::{Content, SharedState};
use crate::webcosm::index::{Index, IndexEntry, Tag};
use crate::webcosm::reclaim::copies::is_worth_copying;

/// Largest number of index entries that one step visits.
const ENTRIES_AT_ONCE: usize = 16 << 10;

impl Content {
    /// Returns the place of each segment, without its records.
    fn places(&self) -> Vec<SegmentPlace> {
        let geometry = self.geometry();
        let free = |slot| {
            let log = geometry.log_of(slot) as u8;
            SegmentPlace { slot, log, ..SegmentPlace::default() }
        };
        let mut places: Vec<_> = (0..geometry.slots()).map(free).collect();
        for (log, view) in LogName::ALL.into_iter().zip(&self.logs) {
            for sequence in view.tail..view.next {
                let slot = geometry.slot(Segment { log, sequence });
                let state = view.state(sequence);
                let written = match view.open.filter(|_| state == SegmentUse::Open) {
                    Some((_, page)) => u64::from(page) * PAGE as u64,
                    None => geometry.segment_bytes(),
                };
                let place = &mut places[slot as usize];
                (place.state, place.sequence, place.written) = (state, Some(sequence), written);
                place.age = view.next - 1 - sequence;
            }
        }
        places
    }

    /// Returns the mean disk space of a record in bytes.
    fn mean_record_bytes(&self) -> u64 {
        let segments: u32 = self.logs.iter().map(|log| log.next - log.tail).sum();
        u64::from(segments) * self.geometry().segment_bytes() / self.index.len().max(1)
    }

    fn placed(&self, tag: Tag, entry: IndexEntry, mean: u64) -> PlacedRecord {
        let (slot, at) = self.geometry().find(entry.place);
        let is_copied = is_worth_copying(entry, mean);
        PlacedRecord {
            slot,
            at,
            bytes: u64::from(entry.extent.pages()) * PAGE as u64,
            uses: entry.uses,
            fate: if is_copied { RecordFate::Copied } else { RecordFate::Dropped },
            tag: tag.0,
            place: entry.place,
        }
    }
}

impl Survey {
    fn add_entry(&mut self, geometry: &Geometry, entry: IndexEntry) {
        let (slot, at) = geometry.find(entry.place);
        let first = at / PAGE as u64 * PAGE as u64;
        self.add(slot, first, u64::from(entry.extent.pages()) * PAGE as u64, entry.uses);
    }

    /// Adds all records of an index, and completes the survey.
    pub(super) fn add_all(&mut self, geometry: &Geometry, index: &Index) {
        index.entries(0, usize::MAX, |_, entry| self.add_entry(geometry, entry));
        self.finish();
    }
}

impl LayoutView for SharedState {
    fn begin_survey(&self) -> Survey {
        let content = self.lock();
        Survey::new(content.geometry().segment_bytes(), content.places())
    }

    fn continue_survey(&self, survey: &mut Survey) -> bool {
        let content = self.lock();
        let geometry = *content.geometry();
        let next = content.index.entries(survey.next, ENTRIES_AT_ONCE, |_, entry| {
            survey.add_entry(&geometry, entry);
        });
        drop(content);
        match next {
            Some(next) => survey.next = next,
            None => survey.finish(),
        }
        next.is_some()
    }

    fn continue_scan(&self, scan: &mut RecordScan) -> bool {
        let content = self.lock();
        let mean = content.mean_record_bytes();
        let most = ENTRIES_AT_ONCE.min(scan.most);
        let RecordScan { slots, found, .. } = scan;
        let next = content.index.entries(scan.next, most, |tag, entry| {
            let record = content.placed(tag, entry, mean);
            if slots.contains(&record.slot) {
                found.push(record);
            }
        });
        scan.parts = content.index.parts();
        scan.next = next.unwrap_or(scan.parts);
        next.is_some() && scan.found.len() < scan.most
    }

    fn read_placed(&self, record: &PlacedRecord, read: &mut ReadNow<'_>) -> Option<(Key, Record)> {
        let content = self.lock();
        let readable = content.readable()?;
        let tag = Tag(record.tag);
        let entry = content.index.get(tag).filter(|entry| entry.place == record.place)?;
        let (location, bits) = (content.location(entry), content.index.bits());
        drop(content);
        let buffer = read(readable.file, location.offset, location.length)?;
        let mut records = location.records(buffer, &readable.secret).into_iter();
        records.find(|(key, _)| Tag::of(key.hash(readable.salt), bits) == tag)
    }
}
