//! A map of the live records of a store: how many bytes of each segment are live, and the holes
//! between the records. A record is *live* if a get would find it.

use super::bits::Bits;
use super::{FilePart, SegmentPlace, SegmentUse};

/// Number of *strips*: equal parts of a segment. A map tells how much of each strip is live.
pub const STRIPS: usize = 16;

/// Largest number of units (see [`Survey::unit_bytes`]) in a survey. A store of 1 TiB has this
/// number of pages. Each unit needs a bit of memory while the survey is made.
const MAX_UNITS: u64 = 1 << 28;

/// Number of segments that one call of [`Survey::finish_some`] processes.
const FINISHED_AT_ONCE: usize = 128;

const PAGE: u64 = crate::layout::PAGE as u64;
const SLOT: u64 = crate::layout::SLOT as u64;

/// A scheme without segments has files that a map divides into about `WANTED_SEGMENTS` segments.
/// These two limits bound the size of such a segment, in bytes.
const MIN_SEGMENT_BYTES: u64 = 64 << 10;
const MAX_SEGMENT_BYTES: u64 = 16 << 20;
const WANTED_SEGMENTS: u64 = 1024;

/// The holes of one group. A hole is space inside a segment that no live record uses. Holes are
/// grouped by size: the size of a hole of group `n` is at least `least_hole` * 2^n, and below twice
/// this size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HoleCount {
    /// Number of holes in the group.
    pub holes: u64,
    /// Bytes of all holes in the group.
    pub bytes: u64,
}

/// A number of records, and the disk space that they use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecordCount {
    /// Number of records.
    pub records: u64,
    /// Disk space of the records in bytes.
    pub bytes: u64,
}

/// A file that many records share.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedFile {
    /// Number of the file. The pieces of records refer to this number.
    pub number: u64,
    /// Path of the file in the store's folder.
    pub name: String,
    /// Byte offset in the file at which the space for records starts.
    pub start: u64,
    /// Length in bytes of this file's space for records.
    pub bytes: u64,
    /// Byte offset in the file of the next record to be written. `None` if the scheme writes new
    /// records at several places.
    pub head: Option<u64>,
    first_place: u32,
}

impl SharedFile {
    /// Creates the description of a file whose space for records is `part`.
    pub fn new(part: FilePart, name: String, head: Option<u64>) -> Self {
        let FilePart { file: number, start, bytes } = part;
        Self { number, name, start, bytes, head, first_place: 0 }
    }
}

/// An unfinished map of the live records. Each step visits a part of the index, so that no step
/// delays a request.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Size of a segment in bytes. The last segment of a file may be shorter.
    pub segment_bytes: u64,
    /// Size of a unit in bytes. The survey keeps one bit per unit: whether a live record uses it.
    pub unit_bytes: u64,
    /// Names of the store's logs. In a store without logs, the name of its layout.
    pub areas: &'static [&'static str],
    /// The files that records share, in the order of their numbers.
    pub files: Vec<SharedFile>,
    /// The places of all segments, in the order of the files.
    pub segments: Vec<SegmentPlace>,
    /// Counts of the holes (unused space inside segments), grouped by size.
    pub holes: Vec<HoleCount>,
    /// The size in bytes of the smallest hole of the first group.
    pub least_hole: u64,
    /// Live records that have a file of their own, or that have no place on disk yet.
    pub apart: RecordCount,
    /// Whether records never share a unit, so that their bytes add up to the live bytes.
    adds_up: bool,
    live: Bits,
    /// The part of the index that the next step visits.
    next: usize,
    /// Number of segments whose live bytes, [strips](STRIPS) and holes are computed.
    finished: usize,
}

impl Survey {
    /// Begins a survey of the segments of a log. `segment_bytes` is a power of two.
    pub(crate) fn of_log(
        areas: &'static [&'static str],
        file: SharedFile,
        segment_bytes: u64,
        segments: Vec<SegmentPlace>,
    ) -> Self {
        let mut survey = Self::new(segment_bytes, PAGE, segments);
        (survey.areas, survey.files) = (areas, vec![file]);
        survey
    }

    /// Begins a survey of files in which records have places of any size. `area` names the kind of
    /// layout, and `unallocated` is the space in bytes that no file has yet.
    pub fn of_files(
        area: &'static [&'static str; 1],
        mut files: Vec<SharedFile>,
        unallocated: u64,
    ) -> Self {
        files.sort_by_key(|file| file.number);
        let total = files.iter().map(|file| file.bytes).sum::<u64>() + unallocated;
        let segment_bytes = (total / WANTED_SEGMENTS).next_power_of_two();
        let segment_bytes = segment_bytes.clamp(MIN_SEGMENT_BYTES, MAX_SEGMENT_BYTES);
        let is_single = files.len() == 1;
        let mut places = Vec::new();
        for file in &mut files {
            file.first_place = places.len() as u32;
            places.extend(places_of(file, segment_bytes, is_single));
        }
        for at in (0..unallocated).step_by(segment_bytes as usize) {
            let bytes = segment_bytes.min(unallocated - at);
            places.push(SegmentPlace { bytes, ..SegmentPlace::default() });
        }
        for (slot, place) in (0..).zip(&mut places) {
            place.slot = slot;
        }
        let mut survey = Self::new(segment_bytes, SLOT, places);
        (survey.areas, survey.files, survey.adds_up) = (area, files, true);
        survey
    }

    fn new(segment_bytes: u64, least_hole: u64, segments: Vec<SegmentPlace>) -> Self {
        let total = segment_bytes * segments.len() as u64;
        let unit_bytes = (total / MAX_UNITS).max(least_hole).next_power_of_two().min(segment_bytes);
        let groups = (segment_bytes / least_hole).ilog2() as usize + 1;
        Self {
            segment_bytes,
            unit_bytes,
            areas: &[],
            files: Vec::new(),
            segments,
            holes: vec![HoleCount::default(); groups],
            least_hole,
            apart: RecordCount::default(),
            adds_up: false,
            live: Bits::new(total / unit_bytes),
            next: 0,
            finished: 0,
        }
    }

    /// Returns a survey without places, for tests.
    #[doc(hidden)]
    pub fn empty() -> Self {
        Self::new(PAGE, PAGE, Vec::new())
    }

    /// Returns whether the store is a log: its segments have numbers, and are discarded in order.
    pub fn is_log(&self) -> bool {
        !self.adds_up
    }

    /// Returns the live records and bytes in all segments.
    pub fn live(&self) -> RecordCount {
        let mut live = RecordCount::default();
        for place in &self.segments {
            live.records += u64::from(place.live_records);
            live.bytes += place.live_bytes;
        }
        live
    }

    /// Returns the part of the index that the next step of the survey visits.
    pub(crate) const fn position(&self) -> usize {
        self.next
    }

    /// Sets the part of the index that the next step of the survey visits.
    pub(crate) const fn set_position(&mut self, next: usize) {
        self.next = next;
    }

    /// Adds a live record that starts at byte `at` of the segment `slot`. The record takes `bytes`
    /// bytes of disk space, and had `uses` requests.
    pub(crate) fn add(&mut self, slot: u32, at: u64, bytes: u64, uses: u8) {
        let Some(segment) = self.segments.get_mut(slot as usize) else { return };
        segment.live_records += 1;
        segment.uses[usize::from(uses & 3)] += 1;
        self.mark(slot, at, bytes);
    }

    /// Marks bytes of the segment `slot` as live. Returns how many of them are within the segment.
    fn mark(&mut self, slot: u32, at: u64, bytes: u64) -> u64 {
        let end = (at + bytes.max(1)).min(self.segment_bytes);
        let start = u64::from(slot) * self.segment_bytes;
        let units = (start + at) / self.unit_bytes..(start + end).div_ceil(self.unit_bytes);
        self.live.set(units);
        end - at
    }

    /// Adds a live record that uses `bytes` bytes in these pieces. Pieces outside of the files are
    /// added to `apart`.
    pub(super) fn add_record(&mut self, bytes: u64, pieces: impl Iterator<Item = FilePart>) {
        let (mut placed, mut first) = (0, None);
        for FilePart { file, start, bytes } in pieces {
            let found = self.files.binary_search_by_key(&file, |it| it.number);
            let Some(file) = found.ok().map(|index| &self.files[index]) else { continue };
            let end = (start + bytes).min(file.start + file.bytes).saturating_sub(file.start);
            let (mut at, first_place) = (start.saturating_sub(file.start), file.first_place);
            while at < end {
                let slot = first_place + (at / self.segment_bytes) as u32;
                let within = at % self.segment_bytes;
                let marked = self.mark(slot, within, end - at);
                self.segments[slot as usize].live_bytes += marked;
                (placed, at) = (placed + marked, at + marked);
                first = first.or(Some(slot));
            }
        }
        match first {
            Some(slot) => self.segments[slot as usize].live_records += 1,
            None => self.apart.records += 1,
        }
        self.apart.bytes += bytes - placed;
    }

    /// Computes live bytes, [strips](STRIPS) and holes of some more segments. The whole index must
    /// have been visited before. Returns whether more segments follow.
    pub fn finish_some(&mut self) -> bool {
        let end = (self.finished + FINISHED_AT_ONCE).min(self.segments.len());
        for number in self.finished..end {
            self.finish_segment(number);
        }
        self.finished = end;
        let is_done = end == self.segments.len();
        if is_done {
            self.live = Bits::default();
        }
        !is_done
    }

    fn finish_segment(&mut self, number: usize) {
        let first = number as u64 * (self.segment_bytes / self.unit_bytes);
        let place = &mut self.segments[number];
        let units = place.bytes.div_ceil(self.unit_bytes);
        if !self.adds_up {
            place.live_bytes = self.live.count(first..first + units) * self.unit_bytes;
        }
        if place.state == SegmentUse::Used && place.live_bytes == 0 {
            (place.state, place.written) = (SegmentUse::Free, 0);
        }
        let border = |strip: usize| first + (strip as u64 * units).div_ceil(STRIPS as u64);
        for strip in 0..STRIPS {
            let (start, end) = (border(strip), border(strip + 1));
            let live = self.live.count(start..end);
            place.strips[strip] = (live * 9).div_ceil((end - start).max(1)).min(9) as u8;
        }
        let written = place.written.div_ceil(self.unit_bytes).min(units);
        for hole in self.live.gaps(first..first + written) {
            note(&mut self.holes, (hole.end - hole.start) * self.unit_bytes, self.least_hole);
        }
    }
}

/// Divides the space of a file into places for the map. In a single file with a write head (the
/// offset of the next write), the age of a place is the number of places that the head entered
/// after it left this place.
fn places_of(
    file: &SharedFile,
    segment_bytes: u64,
    is_single: bool,
) -> impl Iterator<Item = SegmentPlace> {
    let count = file.bytes.div_ceil(segment_bytes);
    let (start, all, number) = (file.start, file.bytes, file.number);
    let head = file.head.map(|head| ((head - start) / segment_bytes).min(count.saturating_sub(1)));
    (0..count).map(move |place| {
        let at = place * segment_bytes;
        let bytes = segment_bytes.min(all - at);
        let state = if head == Some(place) { SegmentUse::Open } else { SegmentUse::Used };
        let age = head.filter(|_| is_single).map_or(0, |head| (head + count - place) % count);
        SegmentPlace {
            file: Some(number),
            at: start + at,
            bytes,
            written: bytes,
            state,
            age: age as u32,
            ..SegmentPlace::default()
        }
    })
}

fn note(holes: &mut [HoleCount], bytes: u64, least: u64) {
    if let Some(group) = (bytes / least).checked_ilog2()
        && let Some(count) = holes.get_mut(group as usize)
    {
        *count = HoleCount { holes: count.holes + 1, bytes: count.bytes + bytes };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finished(mut survey: Survey) -> Survey {
        while survey.finish_some() {}
        survey
    }

    #[test]
    fn live_units_strips_and_holes_follow_from_the_records() {
        let bytes = 64 * PAGE;
        let place = |slot, written| SegmentPlace { slot, written, bytes, ..Default::default() };
        let places = vec![place(0, 64 * PAGE), place(1, 8 * PAGE)];
        let mut survey = Survey::new(bytes, PAGE, places);
        survey.add(0, 0, 16 * PAGE, 0);
        survey.add(0, 20 * PAGE + 64, 100, 3);
        survey.add(0, 20 * PAGE + 64, 100, 3);
        survey.add(1, 0, PAGE, 1);
        let survey = finished(survey);
        let [first, second] = &survey.segments[..] else { panic!("two places") };
        assert_eq!((first.live_records, first.live_bytes), (3, 17 * PAGE));
        assert_eq!((first.uses, second.uses), ([1, 0, 0, 2], [0, 1, 0, 0]));
        assert_eq!(first.strips[..7], [9, 9, 9, 9, 0, 3, 0]);
        let holes: Vec<_> = survey.holes.iter().map(|group| group.holes).collect();
        assert_eq!(holes, [0, 0, 2, 0, 0, 1, 0], "4 and 7 pages, 43 pages");
        assert_eq!(survey.holes[2].bytes, 11 * PAGE);
    }

    #[test]
    fn records_in_files_count_where_their_pieces_are() {
        let part = |file, start, bytes| FilePart { file, start, bytes };
        let size = MIN_SEGMENT_BYTES;
        let files = vec![
            SharedFile::new(part(7, 4096, size + 1024), "b".into(), Some(4096 + size)),
            SharedFile::new(part(3, 0, 512), "a".into(), None),
        ];
        let mut survey = Survey::of_files(&["files"], files, 1000);
        survey.add_record(1024, [part(3, 0, 512), part(7, 4096 + size - 512, 512)].into_iter());
        survey.add_record(1024, [part(7, 4096 + size - 1024, 1024)].into_iter().skip(1));
        survey.add_record(2048, [part(7, 4096 + size, 1024), part(9, 0, 1024)].into_iter());
        let survey = finished(survey);
        let shown = |it: &SegmentPlace| (it.file, it.at, it.bytes, it.live_records, it.live_bytes);
        let shown: Vec<_> = survey.segments.iter().map(shown).collect();
        let expected = [
            (Some(3), 0, 512, 1, 512),
            (Some(7), 4096, size, 0, 512),
            (Some(7), 4096 + size, 1024, 1, 1024),
            (None, 0, 1000, 0, 0),
        ];
        assert_eq!(shown, expected);
        let states = [SegmentUse::Used, SegmentUse::Used, SegmentUse::Open, SegmentUse::Free];
        assert!(survey.segments.iter().map(|it| it.state).eq(states), "{:?}", survey.segments);
        assert_eq!(survey.apart, RecordCount { records: 1, bytes: 2048 });
        assert_eq!(survey.live(), RecordCount { records: 2, bytes: 2048 });
    }

    #[test]
    fn a_survey_of_a_terabyte_tells_pages_apart() {
        let segments = vec![SegmentPlace::default(); 1 << 16];
        let survey = Survey::new(16 << 20, PAGE, segments);
        assert_eq!((survey.unit_bytes, survey.live.memory()), (PAGE, 32 << 20));
        let survey = Survey::new(16 << 20, PAGE, vec![SegmentPlace::default(); 1 << 19]);
        assert_eq!((survey.unit_bytes, survey.live.memory()), (8 * PAGE, 32 << 20));
    }
}
