//! The view of the layout of a storage scheme that keeps its index as an array of records in
//! memory.

use super::{FilePart, LayoutView, PlacedRecord, RecordReader, RecordScan, Survey};
use crate::contract::Key;

/// Largest number of array elements that one step of a survey or scan visits.
const PLACES_AT_ONCE: usize = 4 << 10;

/// The key, sequence number and disk space of a live record in the array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSize {
    /// Key of the record.
    pub key: Key,
    /// The sequence number of the put that wrote the record.
    pub sequence: u64,
    /// Disk space of the record in bytes.
    pub bytes: u64,
}

/// The records of a storage scheme, as an array in memory. Every implementation is also a
/// [`LayoutView`].
pub trait RecordArray {
    /// Begins a survey of the files that records share.
    fn survey(&self) -> Survey;
    /// Returns the number of elements in the array, including elements without a live record.
    fn places(&self) -> usize;
    /// Returns the live record at this place of the array, if any.
    fn record(&self, place: usize) -> Option<RecordSize>;
    /// Returns piece number `number` of the live record at this place of the array. A piece is a
    /// contiguous part of a file. The numbers start at 0. A record that has no place on disk yet
    /// has no piece.
    fn piece(&self, place: usize, number: usize) -> Option<FilePart>;
    /// Returns a reader of the live record at this place of the array. Returns `None` if its file
    /// is not open.
    fn reader(&self, place: usize) -> Option<RecordReader>;
}

impl<A: RecordArray> LayoutView for A {
    fn begin_survey(&self) -> Survey {
        self.survey()
    }

    fn continue_survey(&self, survey: &mut Survey) -> bool {
        let end = survey.position().saturating_add(PLACES_AT_ONCE).min(self.places());
        for place in survey.position()..end {
            if let Some(record) = self.record(place) {
                let pieces = (0..).map_while(|number| self.piece(place, number));
                survey.add_record(record.bytes, pieces);
            }
        }
        survey.set_position(end);
        end < self.places()
    }

    fn continue_scan(&self, scan: &mut RecordScan) -> bool {
        scan.parts = self.places();
        let end = scan.next.saturating_add(PLACES_AT_ONCE).min(scan.parts);
        while scan.next < end && scan.found.len() < scan.most {
            let place = scan.next;
            scan.next += 1;
            if let Some(record) = self.record(place)
                && let Some(FilePart { file, start: at, .. }) = self.piece(place, 0)
                && scan.wants(file, at)
            {
                let RecordSize { key, sequence, bytes } = record;
                scan.found.push(PlacedRecord {
                    file,
                    at,
                    bytes,
                    key: Some(key),
                    uses: None,
                    fate: None,
                    entry: place as u64,
                    version: sequence,
                });
            }
        }
        scan.next < scan.parts && scan.found.len() < scan.most
    }

    fn locate(&self, record: &PlacedRecord) -> Option<RecordReader> {
        let place = usize::try_from(record.entry).ok().filter(|place| *place < self.places())?;
        let is_same = self.record(place).is_some_and(|it| it.sequence == record.version);
        if is_same { self.reader(place) } else { None }
    }
}
