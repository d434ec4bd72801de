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
    index.loaded();
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
    index.loaded();
    index
}

#[test]
fn an_uploaded_record_is_found_by_this_node_and_others() {
    let (mut index, record) = with_record(1);
    assert_eq!(index.offer(key(1), NOW), Err(Refused::Known));
    let segment = SegmentId { era: OWN, id: 1 };
    assert_eq!(
        index.find(key(1)),
        Some(RecordPlace { segment, offset: 4, length: 40, is_own: true })
    );
    let other = started(8, &[index.manifest(OWN)], &[(segment, record)]);
    assert_eq!(
        other.find(key(1)),
        Some(RecordPlace { segment, offset: 4, length: 40, is_own: false })
    );
    index.lose(segment, OWN);
    assert!(!index.has(key(1)) && index.manifest(OWN).segments.is_empty());
}

#[test]
fn a_record_removed_before_its_upload_ends_is_never_found() {
    let mut index = loaded();
    let order = index.offer(key(1), NOW).expect("room");
    assert!(index.remove(key(1), NOW));
    index.uploaded(OWN, segment(1), &[entry(1, order)]);
    assert!(!index.has(key(1)));
    let segment = SegmentId { era: OWN, id: 1 };
    for era in [OWN, 8] {
        let later = started(era, &[index.manifest(OWN)], &[(segment, entry(1, order))]);
        assert!(!later.has(key(1)));
    }
}

#[test]
fn a_newer_copy_is_found_after_a_removal() {
    let (mut index, old) = with_record(1);
    assert!(index.remove(key(1), NOW));
    assert!(!index.remove(key(1), NOW), "nothing is left to remove");
    let order = index.offer(key(1), WallTime(3)).expect("room");
    assert!(order > old.order, "although the wall clock went back");
    index.uploaded(OWN, segment(2), &[entry(1, order)]);
    let ids = [1, 2].map(|id| SegmentId { era: OWN, id });
    let records = [(ids[1], entry(1, order)), (ids[0], old)];
    let later = started(8, &[index.manifest(OWN)], &records);
    for index in [index, later] {
        assert_eq!(index.find(key(1)).map(|place| place.segment), Some(ids[1]));
    }
}

#[test]
fn a_removal_on_another_node_holds_whatever_its_clock_says() {
    let (first, record) = with_record(1);
    let segment = SegmentId { era: OWN, id: 1 };
    let mut second = started(8, &[first.manifest(OWN)], &[(segment, record)]);
    assert!(second.remove(key(1), WallTime(0)), "a clock that is far behind");
    let mut first = first;
    first.apply(&second.manifest(8), false);
    assert!(!first.has(key(1)));
    let records = [(segment, record)];
    let third = started(9, &[first.manifest(OWN), second.manifest(8)], &records);
    assert!(!third.has(key(1)));
}

#[test]
fn only_uploads_of_this_process_are_its_own() {
    let (mut index, record) = with_record(1);
    let segment = SegmentId { era: OWN, id: 1 };
    let is_own = |index: &ColdIndex| index.find(key(1)).map(|place| place.is_own);
    assert_eq!(is_own(&index), Some(true));
    let manifest = index.manifest(OWN);
    for era in [OWN, 8] {
        let restarted = started(era, std::slice::from_ref(&manifest), &[(segment, record)]);
        assert_eq!(is_own(&restarted), Some(false), "another process or another node");
    }
    let of_another = SegmentId { era: 8, id: 5 };
    index.load(of_another, &[entry(1, record.order)]);
    assert_eq!(is_own(&index), Some(true));
    index.load(SegmentId { era: 8, id: 6 }, &[entry(1, record.order + 1)]);
    assert_eq!(is_own(&index), Some(false), "a later copy of another node");
    assert!(index.remove(key(1), NOW));
    index.load(SegmentId { era: 8, id: 7 }, &[entry(1, record.order + 9_000)]);
    assert_eq!(is_own(&index), Some(false), "a copy that came after the removal");
}

#[test]
fn nothing_is_offered_before_the_manifests_are_read() {
    let mut index = ColdIndex::default();
    assert_eq!(index.offer(key(2), NOW), Err(Refused::Full));
}

#[test]
fn more_removals_than_the_limit_remove_more_never_less() {
    let (mut index, record) = with_record(1);
    assert!(index.remove(key(1), NOW));
    for number in 10..MAX_REMOVALS as u64 + 20 {
        index.offer(key(number), NOW).expect("room");
        assert!(index.remove(key(number), NOW));
    }
    assert!(index.removals.len() <= MAX_REMOVALS);
    let manifest = index.manifest(OWN);
    let segment = SegmentId { era: OWN, id: 1 };
    let later = started(8, &[manifest], &[(segment, record)]);
    assert!(!later.has(key(1)));
}
