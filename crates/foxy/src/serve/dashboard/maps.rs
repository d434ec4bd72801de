//! Keeps a map of each store for the dashboard, with small snapshots of the last hour. A map is
//! made in steps of a fraction of a millisecond, so that no request waits for it.

use foxy_base::{Instant, WallTime, clock};
use foxy_store::StoreHandle;
use foxy_store::map::{STRIPS, SegmentPlace, SegmentUse, Survey};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;

/// Largest number of cells of a map. In a larger store, a cell stands for several segments.
const MAX_CELLS: usize = 4096;
/// Interval between the maps while a dashboard shows them.
const WATCHED_INTERVAL: Duration = Duration::from_secs(2);
/// Interval between the saved snapshots of a store's map.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);
/// Number of saved snapshots of a store's map: the last hour.
const MAX_SNAPSHOTS: usize = 120;
/// A map counts as watched for this time after a dashboard asked for it.
const WATCH_TIME: Duration = Duration::from_secs(15);
/// foxy rests between two maps for this multiple of the time that the last map took.
const REST_FACTOR: u32 = 20;
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Pause between two steps, for the other tasks of this thread.
const STEP_PAUSE: Duration = Duration::from_millis(1);
/// The code of a cell's state in a snapshot of a store's map: a letter for each combination of
/// state and level. This letter stands for the first state and the lowest level.
const FIRST_CODE: u8 = b'#';
const LEVELS: u8 = 10;

const STATES: [SegmentUse; 6] = [
    SegmentUse::Free,
    SegmentUse::Sealed,
    SegmentUse::Leaving,
    SegmentUse::Sealing,
    SegmentUse::Copying,
    SegmentUse::Open,
];

/// A map at an earlier time: a character for each cell.
#[derive(Debug)]
struct Snapshot {
    time: WallTime,
    cells: String,
    /// The number of the next segment of each log (main log and probation log).
    next: [u32; 2],
}

#[derive(Debug, Default)]
struct KeptMap {
    map: Option<(WallTime, Survey)>,
    snapshots: VecDeque<Snapshot>,
    asked: Option<Instant>,
    /// Time when the next map is due.
    due: Instant,
    snapshot_due: Instant,
}

/// The maps of all stores.
#[derive(Debug)]
pub struct StoreMaps(Vec<RefCell<KeptMap>>);

impl StoreMaps {
    pub fn new(stores: usize) -> Self {
        Self((0..stores).map(|_| RefCell::default()).collect())
    }

    /// Returns the newest map of a store. The first call of a dashboard may find none.
    pub fn map_as_json(&self, store: usize, now: Instant) -> Option<Value> {
        let mut kept = self.0.get(store)?.borrow_mut();
        if kept.asked.is_none_or(|asked| now.since(asked) > WATCH_TIME) {
            kept.due = now;
        }
        kept.asked = Some(now);
        let map = kept.map.as_ref();
        Some(map.map_or(json!({ "cells": null }), |(time, survey)| survey_as_json(survey, *time)))
    }

    /// Returns the snapshots of a store's map of the last hour, oldest first.
    pub fn history_as_json(&self, store: usize) -> Option<Value> {
        let kept = self.0.get(store)?.borrow();
        let shown =
            |it: &Snapshot| json!({ "time_ms": it.time.0, "cells": it.cells, "next": it.next });
        Some(json!({
            "first_code": FIRST_CODE,
            "levels": LEVELS,
            "states": STATES.map(SegmentUse::name),
            "snapshots": kept.snapshots.iter().map(shown).collect::<Vec<_>>(),
        }))
    }
}

/// Makes the maps that are due, until the future is dropped.
pub async fn keep(maps: &StoreMaps, stores: &[(String, StoreHandle)]) {
    loop {
        for (kept, (_, store)) in maps.0.iter().zip(stores) {
            let now = clock::monotonic();
            let is_watched = kept.borrow().asked.is_some_and(|it| now.since(it) <= WATCH_TIME);
            let is_due = is_watched && kept.borrow().due <= now;
            if is_due || kept.borrow().snapshot_due <= now {
                let survey = survey(store).await;
                kept.borrow_mut().keep(survey, now);
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Returns a map of the store. Returns `None` if its scheme has no layout.
async fn survey(store: &StoreHandle) -> Option<Survey> {
    let layout = store.layout()?;
    let mut survey = layout.begin_survey();
    while layout.continue_survey(&mut survey) {
        tokio::time::sleep(STEP_PAUSE).await;
    }
    Some(survey)
}

impl KeptMap {
    fn keep(&mut self, survey: Option<Survey>, begun: Instant) {
        let (now, time) = (clock::monotonic(), clock::wall());
        self.due = now + WATCHED_INTERVAL.max(now.since(begun) * REST_FACTOR);
        if self.snapshot_due <= now {
            self.snapshot_due = now + SNAPSHOT_INTERVAL;
            if self.snapshots.len() >= MAX_SNAPSHOTS {
                self.snapshots.pop_front();
            }
            self.snapshots.extend(survey.as_ref().map(|survey| Snapshot::of(survey, time)));
        }
        self.map = survey.map(|survey| (time, survey));
    }
}

impl Snapshot {
    fn of(survey: &Survey, time: WallTime) -> Self {
        let each = segments_of_cell(survey.segments.len());
        let code = |segments: &[SegmentPlace]| {
            let bytes = survey.segment_bytes * segments.len() as u64;
            let live: u64 = segments.iter().map(|segment| segment.live_bytes).sum();
            let level = (live * u64::from(LEVELS - 1)).div_ceil(bytes).min(u64::from(LEVELS - 1));
            char::from(FIRST_CODE + main_state(segments) * LEVELS + level as u8)
        };
        let next = [0, 1].map(|log| {
            let newest = |it: &&SegmentPlace| it.log == log && it.sequence.is_some();
            let all = survey.segments.iter().filter(newest);
            all.filter_map(|it| Some(it.sequence? + it.age + 1)).next().unwrap_or(0)
        });
        Self { time, cells: survey.segments.chunks(each).map(code).collect(), next }
    }
}

/// Returns a map for the page's scripts.
pub fn survey_as_json(survey: &Survey, time: WallTime) -> Value {
    let each = segments_of_cell(survey.segments.len());
    let cells = survey.segments.chunks(each).map(cell);
    let holes = survey.holes.iter().map(|group| json!([group.holes, group.bytes]));
    json!({
        "time_ms": time.0,
        "segment_bytes": survey.segment_bytes,
        "unit_bytes": survey.unit_bytes,
        "segments": survey.segments.len(),
        "segments_of_cell": each,
        "states": STATES.map(SegmentUse::name),
        "cells": cells.collect::<Vec<_>>(),
        "holes": holes.collect::<Vec<_>>(),
    })
}

fn segments_of_cell(segments: usize) -> usize {
    segments.div_ceil(MAX_CELLS).max(1)
}

/// Returns the position in [`STATES`] of the state that a cell shows. If the cell's segments have
/// several states, the cell shows the last of them in this list.
fn main_state(segments: &[SegmentPlace]) -> u8 {
    let number = |it: &SegmentPlace| STATES.iter().position(|state| *state == it.state);
    segments.iter().filter_map(number).max().unwrap_or(0) as u8
}

/// Returns a cell: slot, state, log, sequence, age, written bytes, live records, live bytes,
/// records by use count, and the strips as digits. Sequence and age are of the newest segment.
fn cell(segments: &[SegmentPlace]) -> Value {
    let newest = segments.iter().filter(|it| it.sequence.is_some()).min_by_key(|it| it.age);
    let shown = newest.unwrap_or(&segments[0]);
    let sum = |of: fn(&SegmentPlace) -> u64| segments.iter().map(of).sum::<u64>();
    let uses = [0, 1, 2, 3].map(|n| segments.iter().map(|it| u64::from(it.uses[n])).sum::<u64>());
    let strip = |n: usize| {
        let sum: usize = segments.iter().map(|segment| usize::from(segment.strips[n])).sum();
        char::from(b'0' + sum.div_ceil(segments.len()).min(9) as u8)
    };
    json!([
        segments[0].slot,
        main_state(segments),
        shown.log,
        shown.sequence,
        shown.age,
        sum(|it| it.written),
        sum(|it| it.live_records.into()),
        sum(|it| it.live_bytes),
        uses,
        (0..STRIPS).map(strip).collect::<String>(),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(segments: u32) -> Survey {
        let place = |slot| SegmentPlace {
            slot,
            state: if slot == 1 { SegmentUse::Open } else { SegmentUse::Sealed },
            sequence: Some(slot),
            age: segments - 1 - slot,
            live_bytes: 1 << 19,
            ..SegmentPlace::default()
        };
        let mut survey = Survey::empty();
        survey.segment_bytes = 1 << 20;
        survey.segments = (0..segments).map(place).collect();
        survey
    }

    #[test]
    fn a_huge_store_has_a_bounded_number_of_cells() {
        let maps = StoreMaps::new(1);
        let now = Instant::ZERO;
        assert_eq!(maps.map_as_json(0, now), Some(json!({ "cells": null })));
        assert_eq!(maps.map_as_json(1, now), None);
        maps.0[0].borrow_mut().keep(Some(survey(10_000)), now);
        let map = maps.map_as_json(0, now).expect("a store");
        assert_eq!((&map["segments_of_cell"], &map["segments"]), (&json!(3), &json!(10_000)));
        let cells = map["cells"].as_array().expect("a list");
        assert_eq!((cells.len(), &cells[0][1], &cells[1][0]), (3334, &json!(5), &json!(3)));
    }

    #[test]
    fn snapshots_are_short_and_at_most_an_hour_is_kept() {
        let maps = StoreMaps::new(1);
        for _ in 0..MAX_SNAPSHOTS + 5 {
            let mut kept = maps.0[0].borrow_mut();
            kept.snapshot_due = Instant::ZERO;
            kept.keep(Some(survey(10_000)), Instant::ZERO);
        }
        let history = maps.history_as_json(0).expect("a store");
        let snapshots = history["snapshots"].as_array().expect("a list");
        assert_eq!(snapshots.len(), MAX_SNAPSHOTS);
        let cells = snapshots[0]["cells"].as_str().expect("text");
        assert_eq!((cells.len(), cells.as_bytes()[1]), (3334, FIRST_CODE + LEVELS + 5));
        assert_eq!(snapshots[0]["next"][0], 10_000);
    }
}
