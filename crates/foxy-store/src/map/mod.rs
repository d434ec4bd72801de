//! A view of a store's layout, for people: which segments (large units that are written and freed
//! as a whole) are open, full, being freed or free, and which records are in them. The view changes
//! nothing, and no request waits for it.

mod bits;
mod record_array;
mod survey;

use crate::contract::{Key, ReadNow, Record};
use foxy_device::{FileId, IoBuffer};
pub use record_array::{RecordArray, RecordSize};
pub use survey::{HoleCount, RecordCount, STRIPS, SharedFile, Survey};

/// The current use of the place (the space in the file) of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SegmentUse {
    /// The place contains no segment and no live record.
    #[default]
    Free,
    /// The place contains live records. The scheme reuses the space between the records.
    Used,
    /// The segment is open: new records are written to it.
    Open,
    /// The segment is full, and the list of its records is being written.
    Sealing,
    /// The segment is complete: the list of its records is written.
    Sealed,
    /// The segment is the next to be discarded, and its records in use are being copied.
    Copying,
    /// The segment is being discarded. The journal durably states this, then the records of the
    /// segment leave the index.
    Leaving,
}

impl SegmentUse {
    /// Returns the name of the use as one word, for maps.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::Used => "used",
            Self::Open => "open",
            Self::Sealing => "sealing",
            Self::Sealed => "sealed",
            Self::Copying => "copying",
            Self::Leaving => "leaving",
        }
    }
}

/// A part of a file, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FilePart {
    /// Number of the file that contains the part.
    pub file: u64,
    /// Byte offset of the part in the file.
    pub start: u64,
    /// Length of the part in bytes.
    pub bytes: u64,
}

impl FilePart {
    /// Returns whether the byte at offset `at` of a file is in this part.
    pub const fn contains(&self, file: u64, at: u64) -> bool {
        file == self.file && self.start <= at && at < self.start + self.bytes
    }
}

/// The place of a segment: a space in the file. Also the state of the segment, and the number and
/// bytes of its live records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentPlace {
    /// Number of the place in the map.
    pub slot: u32,
    /// The number of the file that contains the place. `None` if the space is not part of a file
    /// yet.
    pub file: Option<u64>,
    /// Byte offset of the place in the file.
    pub at: u64,
    /// Length of the place in bytes.
    pub bytes: u64,
    /// Number of the log (sequence of segments) that the place belongs to: its index in
    /// [`Survey::areas`]. 0 in a store without logs.
    pub log: u8,
    /// The current use of the place.
    pub state: SegmentUse,
    /// The number of the segment in its log. A later segment has a larger number. `None` if the
    /// place is free, or the scheme does not number its segments.
    pub sequence: Option<u32>,
    /// Number of segments that the log has begun after this segment.
    pub age: u32,
    /// Number of bytes written so far, from the start of the segment.
    pub written: u64,
    /// Number of records in the segment that a get would find.
    pub live_records: u32,
    /// Bytes of all units (see [`Survey::unit_bytes`]) that contain bytes of a live record.
    pub live_bytes: u64,
    /// Number of live records by their use count (number of requests). The count stops at 3.
    pub uses: [u32; 4],
    /// The segment is split into equal parts, the [strips](STRIPS). For each strip, how much of it
    /// live records use: from 0 (nothing) to 9 (all).
    pub strips: [u8; STRIPS],
}

impl SegmentPlace {
    /// Returns the part of the file that the place covers. The part is empty if the space is not
    /// part of a file yet.
    pub fn part(&self) -> FilePart {
        let bytes = if self.file.is_some() { self.bytes } else { 0 };
        FilePart { file: self.file.unwrap_or(0), start: self.at, bytes }
    }
}

/// The fate of a record when its segment is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFate {
    /// The record was requested often enough for its size. The store copies it to a new segment,
    /// unless the limit on copied bytes is reached.
    Copied,
    /// The record is lost with its segment.
    Dropped,
}

/// A live record and its place.
#[derive(Clone, Copy, Debug)]
pub struct PlacedRecord {
    /// Number of the file that contains the record.
    pub file: u64,
    /// Byte offset of the record in the file. For a small record in a shared page, the offset of
    /// the page.
    pub at: u64,
    /// Number of bytes that a get reads to find the record.
    pub bytes: u64,
    /// The key, if the index in memory contains it.
    pub key: Option<Key>,
    /// Number of requests since the record was written, at most 3. For a small record, the count
    /// starts at 1 to 3 instead of 0. `None` if the scheme does not count requests.
    pub uses: Option<u8>,
    /// The fate of the record when its segment is discarded. `None` if the scheme does not discard
    /// segments.
    pub fate: Option<RecordFate>,
    /// Identifies the record's entry in the index of the storage scheme.
    pub(crate) entry: u64,
    /// Distinguishes this record from a later record that has the same `entry`.
    pub(crate) version: u64,
}

/// A part of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenPart {
    /// The file that contains the part.
    pub file: FileId,
    /// Byte offset of the part in the file.
    pub offset: u64,
    /// Length of the part in bytes.
    pub length: usize,
}

type Verify = dyn FnOnce(IoBuffer) -> Option<(Key, Record)> + Send;

/// Reads and verifies a record on any thread.
pub struct RecordReader {
    parts: Vec<OpenPart>,
    verify: Box<Verify>,
}

impl RecordReader {
    /// Creates a reader that reads `parts` and checks the bytes with `verify`.
    pub fn new(
        parts: Vec<OpenPart>,
        verify: impl FnOnce(IoBuffer) -> Option<(Key, Record)> + Send + 'static,
    ) -> Self {
        Self { parts, verify: Box::new(verify) }
    }

    /// Reads and verifies the record. `read` may wait for the disk. Returns `None` if the record is
    /// no longer there.
    pub fn read(self, read: &mut ReadNow<'_>) -> Option<(Key, Record)> {
        let mut part = |it: &OpenPart| read(it.file, it.offset, it.length);
        if let [only] = &self.parts[..] {
            return (self.verify)(part(only)?);
        }
        let mut all = Vec::new();
        for it in &self.parts {
            all.extend_from_slice(part(it)?.as_ref());
        }
        (self.verify)(IoBuffer::copy_of(&all))
    }
}

/// A scan of the index for live records.
#[derive(Debug)]
pub struct RecordScan {
    /// The scan finds only records that start in this part of a file. `None` finds all records.
    pub within: Option<FilePart>,
    /// The scan ends after it has found about this number of records.
    pub most: usize,
    /// The records found so far, in no order.
    pub found: Vec<PlacedRecord>,
    /// The part of the index to visit next. A later scan can continue here.
    pub next: usize,
    /// Number of parts into which the index is divided.
    pub parts: usize,
}

impl RecordScan {
    /// Begins a scan at a part of the index: 0, or the end of an earlier scan.
    pub const fn new(within: Option<FilePart>, most: usize, next: usize) -> Self {
        Self { within, most, found: Vec::new(), next, parts: 0 }
    }

    /// Returns whether the scan wants a record that starts at byte `at` of a file.
    pub(crate) fn wants(&self, file: u64, at: u64) -> bool {
        self.within.is_none_or(|part| part.contains(file, at))
    }
}

/// A view of a storage scheme's layout. Each method takes a fraction of a millisecond, even in a
/// large store.
pub trait LayoutView {
    /// Begins a survey, a map of the live records. It still lacks the records of the index.
    fn begin_survey(&self) -> Survey;
    /// Adds the records in the next part of the index to the survey. Returns whether more parts
    /// follow. After the last part, call [`Survey::finish_some`].
    fn continue_survey(&self, survey: &mut Survey) -> bool;
    /// Adds the records in the next part of the index to the scan. Returns whether more parts
    /// follow.
    fn continue_scan(&self, scan: &mut RecordScan) -> bool;
    /// Returns a reader of a record that a scan found. Returns `None` if the record is no longer
    /// there, or its file is not open.
    fn locate(&self, record: &PlacedRecord) -> Option<RecordReader>;
}

/// A function that receives a view of a store's layout. It runs on a thread that may use the
/// layout.
pub type LayoutVisit = Box<dyn FnOnce(&dyn LayoutView) + Send>;
