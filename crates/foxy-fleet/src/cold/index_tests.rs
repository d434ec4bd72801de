//! Tests that no removed or replaced record is found again: after uploads, restarts, on other
//! nodes, and with more removals than the limit.

use super::*;

const NOW: WallTime = WallTime(1_000);
const OWN: u64 = 7;

fn key(number: u64) -> Key {
    Key(u128::from(number).to_le_bytes())
}

fn entry(number: u64, order: u64) -> SegmentRecord {
    SegmentRecord { key: key(number), order, offset: 4, length: 40 }
}

fn segment(id: u64) -> SegmentEntry {
    SegmentEntry { id, count: 1, length: 100 }
}

fn loaded() -> ColdIndex {
    let mut index = ColdIndex::default();
    index.loaded(NOW);
    index
}

/// Returns an index whose node has uploaded a record with this number.
fn with_record(number: u64) -> (ColdIndex, SegmentRecord) {
    let mut index = loaded();
    let order = index.offer(key(number), NOW).expect("room");
    index.uploaded(OWN, segment(number), &[entry(number, order)]);
    (index, entry(number, order))
}

/// Returns the index of a node that starts with these manifests, and with all their segments.
fn started(era: u64, manifests: &[Manifest], records: &[(SegmentId, SegmentRecord)]) -> ColdIndex {
    let mut index = ColdIndex::default();
    manifests.iter().for_each(|manifest| index.apply(manifest, manifest.era == era));
    records.iter().for_each(|(segment, record)| index.load(*segment, &[*record]));
    index.loaded(NOW);
    index
}

#[test]
fn an_uploaded_record_is_found_by_this_node_and_others() {
    let (mut index, record) = with_record(1);
    assert_eq!(index.offer(key(1), NOW), Err(Refused::Known));
    let segment = SegmentId { era: OWN, id: 1 };
    assert_eq!(index.find(key(1)), Some(RecordPlace { segment, offset: 4, length: 40 }));
    let other = started(8, &[index.manifest(OWN).0], &[(segment, record)]);
    assert_eq!(other.find(key(1)), index.find(key(1)));
    index.lose(segment, OWN);
    assert!(!index.has(key(1)) && index.manifest(OWN).0.segments.is_empty());
}

#[test]
fn a_record_removed_before_its_upload_ends_is_never_found() {
    let mut index = loaded();
    let order = index.offer(key(1), NOW).expect("room");
    assert_eq!(index.remove(key(1), NOW), Some(key(1)));
    index.uploaded(OWN, segment(1), &[entry(1, order)]);
    assert!(!index.has(key(1)));
    let segment = SegmentId { era: OWN, id: 1 };
    for era in [OWN, 8] {
        let later = started(era, &[index.manifest(OWN).0], &[(segment, entry(1, order))]);
        assert!(!later.has(key(1)));
    }
}

#[test]
fn a_newer_copy_is_found_after_a_removal() {
    let (mut index, old) = with_record(1);
    assert_eq!(index.remove(key(1), NOW), Some(key(1)));
    assert_eq!(index.remove(key(1), NOW), None, "nothing is left to remove");
    let order = index.offer(key(1), WallTime(3)).expect("room");
    assert!(order > old.order, "although the wall clock went back");
    index.uploaded(OWN, segment(2), &[entry(1, order)]);
    let ids = [1, 2].map(|id| SegmentId { era: OWN, id });
    let records = [(ids[1], entry(1, order)), (ids[0], old)];
    let later = started(8, &[index.manifest(OWN).0], &records);
    for index in [index, later] {
        assert_eq!(index.find(key(1)).map(|place| place.segment), Some(ids[1]));
    }
}

#[test]
fn a_removal_on_another_node_holds_whatever_its_clock_says() {
    let (first, record) = with_record(1);
    let segment = SegmentId { era: OWN, id: 1 };
    let mut second = started(8, &[first.manifest(OWN).0], &[(segment, record)]);
    assert!(second.remove(key(1), WallTime(0)).is_some(), "a clock that is far behind");
    let mut first = first;
    first.apply(&second.manifest(8).0, false);
    assert!(!first.has(key(1)));
    let records = [(segment, record)];
    let third = started(9, &[first.manifest(OWN).0, second.manifest(8).0], &records);
    assert!(!third.has(key(1)));
}

#[test]
fn a_removal_counts_before_the_manifests_are_read() {
    let (first, record) = with_record(1);
    let mut restarted = ColdIndex::default();
    assert_eq!(restarted.offer(key(2), NOW), Err(Refused::Full));
    restarted.remove(key(1), NOW);
    restarted.apply(&first.manifest(OWN).0, true);
    restarted.load(SegmentId { era: OWN, id: 1 }, &[record]);
    restarted.loaded(NOW);
    assert!(!restarted.has(key(1)));
}

#[test]
fn more_removals_than_the_limit_remove_more_never_less() {
    let (mut index, record) = with_record(1);
    assert_eq!(index.remove(key(1), NOW), Some(key(1)));
    for number in 10..MAX_REMOVALS as u64 + 20 {
        index.offer(key(number), NOW).expect("room");
        assert!(index.remove(key(number), NOW).is_some());
    }
    assert!(index.removals.len() <= MAX_REMOVALS);
    let manifest = index.manifest(OWN).0;
    let segment = SegmentId { era: OWN, id: 1 };
    let later = started(8, &[manifest], &[(segment, record)]);
    assert!(!later.has(key(1)));
}

#[test]
fn many_removals_before_the_manifests_are_read_remove_everything() {
    let (first, record) = with_record(1);
    let mut restarted = ColdIndex::default();
    let told = (10..MAX_REMOVALS as u64 + 20).map(|number| restarted.remove(key(number), NOW));
    assert_eq!(told.flatten().filter(|key| *key == ALL).count(), 1, "told once");
    restarted.apply(&first.manifest(OWN).0, true);
    restarted.load(SegmentId { era: OWN, id: 1 }, &[record]);
    restarted.loaded(NOW);
    assert!(!restarted.has(key(1)));
}
