//! The map of a store as JSON, for the dashboard, `foxy top` and `foxy store map`. The size of the
//! JSON does not depend on the size of the store.

use foxy_base::WallTime;
use foxy_store::map::{FilePart, STRIPS, SegmentPlace, SegmentUse, Survey};
use serde_json::{Value, json};

/// Largest number of cells of a map. In a larger store, a cell stands for several segments.
const MAX_CELLS: usize = 4096;

/// The states of cells. If the segments of a cell have several states, the cell shows the last of
/// them in this list.
pub const STATES: [SegmentUse; 7] = [
    SegmentUse::Free,
    SegmentUse::Used,
    SegmentUse::Sealed,
    SegmentUse::Leaving,
    SegmentUse::Sealing,
    SegmentUse::Copying,
    SegmentUse::Open,
];

/// Returns the map of a store as JSON, for the scripts of the dashboard's page.
pub fn survey_as_json(survey: &Survey, time: WallTime) -> Value {
    let each = segments_of_cell(survey.segments.len());
    let cells = survey.segments.chunks(each).map(|segments| cell(survey, segments));
    let holes = survey.holes.iter().map(|group| json!([group.holes, group.bytes]));
    json!({
        "time_ms": time.0,
        "is_log": survey.is_log(),
        "areas": survey.areas,
        "files": survey.files.iter().map(|file| &file.name).collect::<Vec<_>>(),
        "segment_bytes": survey.segment_bytes,
        "unit_bytes": survey.unit_bytes,
        "segments": survey.segments.len(),
        "free": survey.segments.iter().filter(|it| it.state == SegmentUse::Free).count(),
        "segments_of_cell": each,
        "states": STATES.map(SegmentUse::name),
        "cells": cells.collect::<Vec<_>>(),
        "holes": holes.collect::<Vec<_>>(),
        "least_hole": survey.least_hole,
        "apart": { "records": survey.apart.records, "bytes": survey.apart.bytes },
    })
}

/// Returns the number of segments for which a cell stands.
pub fn segments_of_cell(segments: usize) -> usize {
    segments.div_ceil(MAX_CELLS).max(1)
}

/// Returns the part of a file that the cell with this first segment shows. If the segments of the
/// cell are in several files, returns the part in the first of them.
pub fn part_of_cell(survey: &Survey, slot: u32) -> Option<FilePart> {
    let from = survey.segments.get(slot as usize..)?;
    let mut part = from.first()?.part();
    for next in &from[1..segments_of_cell(survey.segments.len()).min(from.len())] {
        let next = next.part();
        if next.file == part.file && next.start == part.start + part.bytes {
            part.bytes += next.bytes;
        }
    }
    Some(part)
}

/// Returns the position in [`STATES`] of the state that a cell shows.
pub fn main_state(segments: &[SegmentPlace]) -> u8 {
    let number = |it: &SegmentPlace| STATES.iter().position(|state| *state == it.state);
    segments.iter().filter_map(number).max().unwrap_or(0) as u8
}

/// Returns a cell as an array: slot, state, log, sequence, age, written bytes, live records, live
/// bytes. Next come the numbers of live records by use count, and a digit for the live share of
/// each part (strip) of the segment. The last entries are the length in bytes, the file's position
/// in the list of files, and the offset in the file. Log, sequence and age are of the newest
/// segment.
fn cell(survey: &Survey, segments: &[SegmentPlace]) -> Value {
    let newest = segments.iter().filter(|it| it.sequence.is_some()).min_by_key(|it| it.age);
    let shown = newest.unwrap_or(&segments[0]);
    let sum = |of: fn(&SegmentPlace) -> u64| segments.iter().map(of).sum::<u64>();
    let uses = [0, 1, 2, 3].map(|n| segments.iter().map(|it| u64::from(it.uses[n])).sum::<u64>());
    let strip = |n: usize| {
        let sum: usize = segments.iter().map(|segment| usize::from(segment.strips[n])).sum();
        char::from(b'0' + sum.div_ceil(segments.len()).min(9) as u8)
    };
    let SegmentPlace { slot, at, .. } = segments[0];
    let file =
        segments[0].file.and_then(|file| survey.files.iter().position(|it| it.number == file));
    json!([
        slot,
        main_state(segments),
        shown.log,
        shown.sequence,
        shown.age,
        sum(|it| it.written),
        sum(|it| it.live_records.into()),
        sum(|it| it.live_bytes),
        uses,
        (0..STRIPS).map(strip).collect::<String>(),
        sum(|it| it.bytes),
        file,
        at,
    ])
}
