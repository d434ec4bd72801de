//! Keeps a map of each store for the dashboard, with small snapshots of the last hour. A map is
//! made in steps of a fraction of a millisecond, so that no request waits for it.

use super::map_json::{STATES, main_state, part_of_cell, segments_of_cell, survey_as_json};
use foxy_base::{Instant, WallTime, clock};
use foxy_store::StoreHandle;
use foxy_store::map::{FilePart, LayoutView, SegmentPlace, SegmentUse, Survey};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Shortest interval between the maps while a dashboard shows them.
const WATCHED_INTERVAL: Duration = Duration::from_secs(2);
/// Shortest interval between the saved snapshots of a store's map.
const SNAPSHOT_INTERVAL: Duration = Duration::from_secs(30);
/// Number of saved snapshots of a store's map: the last hour, or more in a large store.
const MAX_SNAPSHOTS: usize = 120;
/// A map counts as watched for this time after a dashboard asked for it.
const WATCH_TIME: Duration = Duration::from_secs(15);
/// foxy rests between two maps for this multiple of the work of the last map. So the maps of a large
/// store take at most 1 % of a core.
const REST_FACTOR: u32 = 100;
const LOOK_INTERVAL: Duration = Duration::from_millis(500);
/// Pause between two steps, for the other tasks of this thread.
const STEP_PAUSE: Duration = Duration::from_millis(1);
/// Longest time to wait until a store's thread reports its layout. A hanging disk may delay the
/// thread.
const MAX_VISIT_WAIT: Duration = Duration::from_secs(2);
/// The code of a cell's state in a snapshot of a store's map: a letter for each combination of
/// state and level (fraction of the bytes that live records use). This letter stands for the first
/// state and the lowest level.
const FIRST_CODE: u8 = b'#';
const LEVELS: u8 = 10;

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

#[derive(Debug)]
pub struct StoreMaps(Vec<RefCell<KeptMap>>);

impl StoreMaps {
    pub fn new(stores: usize) -> Self {
        Self((0..stores).map(|_| RefCell::default()).collect())
    }

    /// Returns the newest map of a store, if it is newer than `after`. The first call of a
    /// dashboard may find no map.
    pub fn map_as_json(&self, store: usize, after: WallTime, now: Instant) -> Option<Value> {
        let mut kept = self.0.get(store)?.borrow_mut();
        if kept.asked.is_none_or(|asked| now.since(asked) > WATCH_TIME) {
            kept.due = now;
        }
        kept.asked = Some(now);
        let map = kept.map.as_ref().filter(|(time, _)| *time > after);
        Some(map.map_or(json!({ "cells": null }), |(time, survey)| survey_as_json(survey, *time)))
    }

    /// Returns the part of a file that a cell of the newest map shows.
    pub fn part(&self, store: usize, slot: u32) -> Option<FilePart> {
        let kept = self.0.get(store)?.borrow();
        part_of_cell(&kept.map.as_ref()?.1, slot)
    }

    /// Returns the snapshots of a store's map of the last hour that are newer than `after`, oldest
    /// first.
    pub fn history_as_json(&self, store: usize, after: WallTime) -> Option<Value> {
        let kept = self.0.get(store)?.borrow();
        let shown =
            |it: &Snapshot| json!({ "time_ms": it.time.0, "cells": it.cells, "next": it.next });
        let newer = kept.snapshots.iter().filter(|snapshot| snapshot.time > after);
        Some(json!({
            "first_code": FIRST_CODE,
            "levels": LEVELS,
            "states": STATES.map(SegmentUse::name),
            "most": MAX_SNAPSHOTS,
            "snapshots": newer.map(shown).collect::<Vec<_>>(),
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
                let mut work = Duration::ZERO;
                let survey = survey(store, &mut work).await;
                kept.borrow_mut().keep(survey, work);
            }
        }
        tokio::time::sleep(LOOK_INTERVAL).await;
    }
}

/// Returns a map of the store. Returns `None` if its scheme has no layout, or the store does not
/// answer. Adds the time of all steps to `work`.
async fn survey(store: &StoreHandle, work: &mut Duration) -> Option<Survey> {
    let mut survey = visit(store, |layout| layout.begin_survey()).await?;
    loop {
        let begun = clock::monotonic();
        let step = |layout: &dyn LayoutView| (layout.continue_survey(&mut survey), survey);
        let (has_more, continued) = visit(store, step).await?;
        survey = continued;
        *work += clock::monotonic().since(begun);
        tokio::time::sleep(STEP_PAUSE).await;
        if !has_more {
            break;
        }
    }
    loop {
        let begun = clock::monotonic();
        let has_more = survey.finish_some();
        *work += clock::monotonic().since(begun);
        if !has_more {
            return Some(survey);
        }
        tokio::time::sleep(STEP_PAUSE).await;
    }
}

/// Calls `look` with the layout of a store, on the store's thread. Returns `None` if the scheme has
/// no layout, or the store does not answer.
pub async fn visit<T: Send + 'static>(
    store: &StoreHandle,
    look: impl FnOnce(&dyn LayoutView) -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = oneshot::channel();
    store.visit_layout(Box::new(move |layout| {
        // The error is ignored, because the receiver may be gone.
        let _ = sender.send(look(layout));
    }));
    timeout(MAX_VISIT_WAIT, receiver).await.ok()?.ok()
}

impl KeptMap {
    fn keep(&mut self, survey: Option<Survey>, work: Duration) {
        let (now, time) = (clock::monotonic(), clock::wall());
        let rest = work * REST_FACTOR;
        self.due = now + WATCHED_INTERVAL.max(rest);
        if self.snapshot_due <= now {
            self.snapshot_due = now + SNAPSHOT_INTERVAL.max(rest);
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
            let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
            let live: u64 = segments.iter().map(|segment| segment.live_bytes).sum();
            let level =
                (live * u64::from(LEVELS - 1)).div_ceil(bytes.max(1)).min(u64::from(LEVELS - 1));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn survey(segments: u32) -> Survey {
        let place = |slot| SegmentPlace {
            slot,
            state: if slot == 1 { SegmentUse::Open } else { SegmentUse::Sealed },
            sequence: Some(slot),
            age: segments - 1 - slot,
            bytes: 1 << 20,
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
        let start = WallTime(0);
        assert_eq!(maps.map_as_json(0, start, now), Some(json!({ "cells": null })));
        assert_eq!(maps.map_as_json(1, start, now), None);
        maps.0[0].borrow_mut().keep(Some(survey(10_000)), Duration::ZERO);
        let map = maps.map_as_json(0, start, now).expect("a store");
        assert_eq!((&map["segments_of_cell"], &map["segments"]), (&json!(3), &json!(10_000)));
        let cells = map["cells"].as_array().expect("a list");
        assert_eq!((cells.len(), &cells[0][1], &cells[1][0]), (3334, &json!(6), &json!(3)));
        let time = WallTime(map["time_ms"].as_u64().expect("a time"));
        assert_eq!(maps.map_as_json(0, time, now), Some(json!({ "cells": null })), "sent already");
    }

    #[test]
    fn the_maps_of_a_large_store_rest_longer() {
        for (work, least) in [(1, WATCHED_INTERVAL), (2000, Duration::from_secs(200))] {
            let (mut kept, now) = (KeptMap::default(), clock::monotonic());
            kept.keep(Some(survey(3)), Duration::from_millis(work));
            let snapshot = least.max(SNAPSHOT_INTERVAL);
            assert!(kept.due.since(now) >= least && kept.snapshot_due.since(now) >= snapshot);
        }
    }

    #[test]
    fn snapshots_are_short_and_at_most_an_hour_is_kept() {
        let maps = StoreMaps::new(1);
        for _ in 0..MAX_SNAPSHOTS + 5 {
            let mut kept = maps.0[0].borrow_mut();
            kept.snapshot_due = Instant::ZERO;
            kept.keep(Some(survey(10_000)), Duration::ZERO);
        }
        let history = maps.history_as_json(0, WallTime(0)).expect("a store");
        let snapshots = history["snapshots"].as_array().expect("a list");
        assert_eq!(snapshots.len(), MAX_SNAPSHOTS);
        let cells = snapshots[0]["cells"].as_str().expect("text");
        assert_eq!((cells.len(), cells.as_bytes()[1]), (3334, FIRST_CODE + 2 * LEVELS + 5));
        assert_eq!(snapshots[0]["next"][0], 10_000);
        let newest = WallTime(snapshots[MAX_SNAPSHOTS - 1]["time_ms"].as_u64().expect("a time"));
        let later = maps.history_as_json(0, newest).expect("a store");
        assert_eq!(later["snapshots"], json!([]));
    }
}
