//! The view of webcosm's layout: the state of both logs as the store's thread last showed it, and
//! the records in the index.

use crate::layout::PAGE;
use crate::map::{
    FilePart, LayoutView, OpenPart, PlacedRecord, RecordFate, RecordReader, RecordScan,
    SegmentPlace, SegmentUse, SharedFile, Survey,
};
use crate::webcosm::FILE_NAME;
use crate::webcosm::format::geometry::{Geometry, LogName, Segment};
use crate::webcosm::index::shared::{Content, SharedState};
use crate::webcosm::index::{Index, IndexEntry, Tag};
use crate::webcosm::reclaim::copies::is_worth_copying;

/// Largest number of index entries that one step of a survey or scan visits.
const ENTRIES_AT_ONCE: usize = 8 << 10;

const FILE: u64 = 0;
const LOGS: &[&str] = &["main", "probation"];

impl Geometry {
    /// Returns an empty slot (place for a segment) for a map.
    pub(super) fn free_place(&self, slot: u32) -> SegmentPlace {
        SegmentPlace {
            slot,
            file: Some(FILE),
            at: self.offset(slot, 0),
            bytes: self.segment_bytes(),
            log: self.log_of(slot) as u8,
            ..SegmentPlace::default()
        }
    }

    /// Begins a survey (a map of the live records) of these slots.
    pub(super) fn survey(&self, places: Vec<SegmentPlace>) -> Survey {
        let bytes = u64::from(self.slots()) * self.segment_bytes();
        let part = FilePart { file: FILE, start: self.start, bytes };
        let file = SharedFile::new(part, FILE_NAME.into(), None);
        Survey::of_log(LOGS, file, self.segment_bytes(), places)
    }
}

impl Content {
    /// Returns the place and state of each segment, without its records.
    fn places(&self) -> Vec<SegmentPlace> {
        let geometry = self.geometry();
        let free = |slot| geometry.free_place(slot);
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

    /// Returns the mean disk space of a record in this store, in bytes.
    fn mean_record_bytes(&self) -> u64 {
        let segments: u32 = self.logs.iter().map(|log| log.next - log.tail).sum();
        u64::from(segments) * self.geometry().segment_bytes() / self.index.len().max(1)
    }

    fn placed(&self, tag: Tag, entry: IndexEntry, mean: u64) -> PlacedRecord {
        let (slot, at) = self.geometry().find(entry.place);
        let is_copied = is_worth_copying(entry, mean);
        PlacedRecord {
            file: FILE,
            at: self.geometry().offset(slot, 0) + at,
            bytes: u64::from(entry.extent.pages()) * PAGE as u64,
            key: None,
            uses: Some(entry.uses),
            fate: Some(if is_copied { RecordFate::Copied } else { RecordFate::Dropped }),
            entry: tag.0,
            version: entry.place,
        }
    }
}

impl Survey {
    fn add_entry(&mut self, geometry: &Geometry, entry: IndexEntry) {
        let (slot, at) = geometry.find(entry.place);
        let first = at / PAGE as u64 * PAGE as u64;
        self.add(slot, first, u64::from(entry.extent.pages()) * PAGE as u64, entry.uses);
    }

    /// Adds all records of an index to the survey, and completes the survey.
    pub(super) fn add_all(&mut self, geometry: &Geometry, index: &Index) {
        index.entries(0, usize::MAX, |_, entry| self.add_entry(geometry, entry));
        while self.finish_some() {}
    }
}

impl LayoutView for SharedState {
    fn begin_survey(&self) -> Survey {
        let content = self.lock();
        content.geometry().survey(content.places())
    }

    /// First copies entries of the index while it holds the lock. Then marks their space without
    /// the lock.
    fn continue_survey(&self, survey: &mut Survey) -> bool {
        let mut entries = Vec::with_capacity(ENTRIES_AT_ONCE);
        let content = self.lock();
        let geometry = *content.geometry();
        let next = content.index.entries(survey.position(), ENTRIES_AT_ONCE, |_, entry| {
            entries.push(entry);
        });
        drop(content);
        entries.into_iter().for_each(|entry| survey.add_entry(&geometry, entry));
        survey.set_position(next.unwrap_or(usize::MAX));
        next.is_some()
    }

    fn continue_scan(&self, scan: &mut RecordScan) -> bool {
        let content = self.lock();
        let mean = content.mean_record_bytes();
        let mut found = Vec::new();
        let next =
            content.index.entries(scan.next, ENTRIES_AT_ONCE.min(scan.most), |tag, entry| {
                let record = content.placed(tag, entry, mean);
                if scan.wants(record.file, record.at) {
                    found.push(record);
                }
            });
        scan.found.append(&mut found);
        scan.parts = content.index.parts();
        scan.next = next.unwrap_or(scan.parts);
        next.is_some() && scan.found.len() < scan.most
    }

    fn locate(&self, record: &PlacedRecord) -> Option<RecordReader> {
        let content = self.lock();
        let readable = content.readable()?;
        let tag = Tag(record.entry);
        let entry = content.index.get(tag).filter(|entry| entry.place == record.version)?;
        let (location, bits) = (content.location(entry), content.index.bits());
        let part =
            OpenPart { file: readable.file, offset: location.offset, length: location.length };
        Some(RecordReader::new(vec![part], move |buffer| {
            let mut records = location.records(buffer, &readable.secret).into_iter();
            records.find(|(key, _)| Tag::of(key.hash(readable.salt), bits) == tag)
        }))
    }
}
