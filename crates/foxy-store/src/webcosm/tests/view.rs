//! Tests the layout map of a store. Segment by segment, it agrees with a check of the closed store.

use super::*;
use crate::contract::Lookup;
use crate::layout::PAGE;
use crate::map::{RecordScan, SegmentUse, Survey};
use crate::one_file::medium::Medium;
use crate::webcosm::FILE_NAME;
use crate::webcosm::check::{CheckScope, LogName, Report, SegmentState, check};
use foxy_device::{IoBuffer, StorePath};
use std::sync::Arc;

fn lookup(store: &Store) -> Arc<dyn Lookup> {
    store.driver.scheme().lookup().expect("webcosm has a lookup")
}

fn surveyed(lookup: &dyn Lookup) -> Survey {
    let layout = lookup.layout().expect("webcosm has a layout");
    let mut survey = layout.begin_survey();
    while layout.continue_survey(&mut survey) {}
    while survey.finish_some() {}
    survey
}

/// Returns a store with replaced, removed and requested records, whose logs have already reused
/// their space.
fn worked() -> Store {
    let mut store = new();
    for key in 0..900 {
        assert_eq!(store.put(key, 0, length(key)), Answer::Stored);
        if key % 5 == 0 {
            assert_eq!(store.put(key / 2, 1, length(key)), Answer::Stored);
        }
        if key % 7 == 0 {
            store.driver.remove(name(key / 3));
        }
        store.driver.get(name(key - key % 16));
    }
    store.flush();
    store
}

fn checked(bytes: &[u8]) -> Report {
    let scope = CheckScope { records: false, listed: None };
    let mut read = |offset, buffer: &mut [u8]| {
        let from = usize::try_from(offset).expect("small");
        buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
        Ok(buffer.len())
    };
    check(Medium::File, bytes.len() as u64, scope, &mut read).expect("a store")
}

#[test]
fn it_agrees_with_a_check_segment_by_segment() {
    let mut store = worked();
    let lookup = lookup(&store);
    assert_eq!(store.driver.close(), Answer::Closed);
    let survey = surveyed(&*lookup);
    let bytes = store.kill().content(&StorePath::new(FILE_NAME)).expect("a store");
    let report = checked(&bytes);
    assert_eq!(survey.segments.len(), report.segments.len());
    for (place, segment) in survey.segments.iter().zip(&report.segments) {
        let is_free = segment.state == SegmentState::Free;
        assert_eq!(place.state == SegmentUse::Free, is_free, "{place:?} {segment:?}");
        assert!(is_free || place.state == SegmentUse::Sealed, "{place:?} {segment:?}");
        assert_eq!((place.slot, place.log), (segment.slot, segment.log as u8));
        assert_eq!(place.sequence, segment.sequence, "{place:?} {segment:?}");
        let live = (u64::from(place.live_records), place.live_bytes);
        assert_eq!(live, (segment.live_records, segment.live_bytes), "{place:?} {segment:?}");
    }
    assert_eq!(survey.holes, report.survey.holes);
    let states = |state| survey.segments.iter().filter(|place| place.state == state).count();
    assert!(states(SegmentUse::Sealed) > 2);
    assert!(survey.segments.iter().any(|place| place.uses[1..] != [0, 0, 0]));
    assert!(survey.holes.iter().any(|group| group.holes > 0));
}

#[test]
fn the_write_heads_are_open_and_the_newest_of_their_logs() {
    let store = worked();
    let survey = surveyed(&*lookup(&store));
    let open: Vec<_> =
        survey.segments.iter().filter(|place| place.state == SegmentUse::Open).collect();
    assert!(!open.is_empty());
    for place in open {
        assert_eq!(place.age, 0);
        assert!(place.written < survey.segment_bytes && place.written % PAGE as u64 == 0);
    }
    for log in LogName::ALL {
        let oldest =
            survey.segments.iter().filter(|it| it.log == log as u8).max_by_key(|it| it.age);
        assert!(oldest.is_some_and(|place| place.state != SegmentUse::Open), "{oldest:?}");
    }
}

#[test]
fn a_scan_finds_each_live_record_of_a_segment_and_reads_it() {
    let mut store = worked();
    let lookup = lookup(&store);
    assert_eq!(store.driver.close(), Answer::Closed);
    let survey = surveyed(&*lookup);
    let bytes = store.kill().content(&StorePath::new(FILE_NAME)).expect("a store");
    let layout = lookup.layout().expect("webcosm has a layout");
    let mut read = |_, offset, length| {
        let from = usize::try_from(offset).ok()?;
        bytes.get(from..from + length).map(IoBuffer::copy_of)
    };
    let mut all = 0;
    for place in &survey.segments {
        let mut scan = RecordScan::new(Some(place.part()), usize::MAX, 0);
        while layout.continue_scan(&mut scan) {}
        assert_eq!(scan.found.len(), place.live_records as usize, "{place:?}");
        for record in &scan.found {
            let (key, found) = layout
                .locate(record)
                .and_then(|reader| reader.read(&mut read))
                .expect("still there");
            let number = u64::from_le_bytes(key.0[8..].try_into().expect("eight bytes"));
            let versions = [0, 1].map(|version| content(number, version, found.len()));
            assert!(versions.contains(&found), "key {number}");
        }
        all += scan.found.len();
    }
    assert!(all > 100, "{all}");
}
