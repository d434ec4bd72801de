//! Tests writes of one URL in any order. At the end, the cache contains the response of the fetch
//! that began last.

use super::*;
use crate::cache::stored::StoredBody;
use bytes::Bytes;
use foxy_base::WallTime;
use foxy_http::ResponseHead;
use foxy_rules::{Policy, StoredTimes};

const URL: Key = Key([0; 16]);
const PART: Key = Key([1; 16]);
const EN: Key = Key([2; 16]);
const DE: Key = Key([3; 16]);

fn response(tag: &str) -> Arc<Stored> {
    let mut head = ResponseHead::new(200);
    head.headers.append("ETag", tag);
    let times = StoredTimes { received: WallTime(0), initial_age: 0 };
    let body = StoredBody::Whole(Bytes::new());
    Arc::new(Stored::new(Bytes::new(), &head, Policy::default(), times, 0, body))
}

/// Creates a group of URLs, which share a counter of events. One URL of the group has several
/// watches (look-ups or fetches in progress).
fn group() -> Group {
    let mut group = Group::default();
    for _ in 0..3 {
        group.watch(URL);
    }
    group
}

fn fetch(group: &mut Group, key: Key, place: WritePlace) -> CacheWrite {
    let looked = group.next();
    CacheWrite { key, place, order: group.next(), looked, origin: WriteOrigin::Fetched }
}

/// Asks `group` whether a response may be written to the cache. If so, records the write in
/// `group`. If the decision is `Astray`, records the removal of the Vary list. Returns the
/// decision.
fn try_write(group: &mut Group, write: &CacheWrite, tag: &str) -> WriteVerdict {
    let response = response(tag);
    let judged = group.judge(URL, write, Some(&response));
    if judged == WriteVerdict::Astray {
        group.note(URL, &write.of_list(URL), || LeftUnderKey::Nothing);
    }
    if matches!(judged, WriteVerdict::Write | WriteVerdict::WriteWithoutWhole) {
        group.note(URL, write, || LeftUnderKey::Response(response));
        if write.place == WritePlace::NewList {
            group.note(URL, &write.of_list(URL), || LeftUnderKey::List);
        }
    }
    judged
}

#[test]
fn the_newest_of_one_key_stays_and_others_are_untouched_by_it() {
    let mut group = group();
    let (one, two) =
        (fetch(&mut group, EN, WritePlace::Variant), fetch(&mut group, EN, WritePlace::Variant));
    let other = CacheWrite { key: DE, ..one };
    assert_eq!(try_write(&mut group, &two, "2"), WriteVerdict::Write);
    assert_eq!(try_write(&mut group, &one, "1"), WriteVerdict::Outdated);
    assert_eq!(try_write(&mut group, &other, "1"), WriteVerdict::Write);
    let three = fetch(&mut group, EN, WritePlace::Variant);
    assert_eq!(try_write(&mut group, &three, "3"), WriteVerdict::Write);
}

#[test]
fn a_response_that_yields_to_a_newer_variant_leaves_nothing_older() {
    for place in [WritePlace::Whole, WritePlace::NewList] {
        let mut group = group();
        let [older, de] = [(); 2].map(|()| fetch(&mut group, DE, WritePlace::Variant));
        let de = CacheWrite { key: URL, place, ..de };
        let en = fetch(&mut group, EN, WritePlace::Variant);
        assert_eq!(try_write(&mut group, &en, "en"), WriteVerdict::Write);
        assert_eq!(try_write(&mut group, &de, "de"), WriteVerdict::Astray, "{place:?}");
        assert_eq!(try_write(&mut group, &older, "older"), WriteVerdict::Outdated, "{place:?}");
    }
}

#[test]
fn a_new_list_yields_to_a_newer_list_and_leaves_it_in_force() {
    let mut group = group();
    let [de, en] = [DE, EN].map(|key| fetch(&mut group, key, WritePlace::NewList));
    assert_eq!(try_write(&mut group, &en, "en"), WriteVerdict::Write);
    assert_eq!(try_write(&mut group, &de, "de"), WriteVerdict::Outdated);
}

#[test]
fn a_variant_whose_list_is_replaced_meanwhile_leaves_nothing_older() {
    for place in [WritePlace::Whole, WritePlace::NewList] {
        let key = if place == WritePlace::Whole { URL } else { DE };
        let mut group = group();
        let (one, two) =
            (fetch(&mut group, key, place), fetch(&mut group, EN, WritePlace::Variant));
        assert_eq!(try_write(&mut group, &one, "1"), WriteVerdict::Write);
        assert_eq!(try_write(&mut group, &two, "2"), WriteVerdict::Astray, "{place:?}");
        let after = fetch(&mut group, EN, WritePlace::Variant);
        assert_eq!(
            try_write(&mut group, &after, "3"),
            WriteVerdict::Write,
            "{place:?}: it found the new list"
        );
    }
}

#[test]
fn whole_and_part_take_each_others_place_where_they_are_of_one() {
    for (whole, part, late_part, late_whole) in [
        ("\"a\"", "\"a\"", WriteVerdict::Write, WriteVerdict::Write),
        ("\"a\"", "\"b\"", WriteVerdict::WriteWithoutWhole, WriteVerdict::OutdatedAndGone),
    ] {
        let mut group = group();
        let (one, two) =
            (fetch(&mut group, URL, WritePlace::Whole), fetch(&mut group, PART, WritePlace::Part));
        assert_eq!(try_write(&mut group, &one, whole), WriteVerdict::Write);
        assert_eq!(try_write(&mut group, &two, part), late_part);
        assert_eq!(try_write(&mut group, &one, whole), late_whole);
    }
}

#[test]
fn what_a_look_up_found_is_written_only_where_nothing_was_written_since() {
    let mut group = group();
    let found =
        CacheWrite { origin: WriteOrigin::Found, ..fetch(&mut group, EN, WritePlace::Variant) };
    assert_eq!(group.judge(URL, &found, None), WriteVerdict::Write);
    let earlier = CacheWrite { origin: WriteOrigin::FoundEarlier, ..found };
    assert_eq!(group.judge(URL, &earlier, None), WriteVerdict::Outdated);
    let old = CacheWrite { order: found.looked - 1, origin: WriteOrigin::Fetched, ..found };
    group.note(URL, &old, || LeftUnderKey::Response(response("1")));
    assert_eq!(group.judge(URL, &found, None), WriteVerdict::Outdated);
    let again =
        CacheWrite { origin: WriteOrigin::Found, ..fetch(&mut group, EN, WritePlace::Variant) };
    assert_eq!(group.judge(URL, &again, None), WriteVerdict::Write);
}

#[test]
fn a_fetch_is_joined_unless_a_later_one_has_written_what_may_answer() {
    let mut group = group();
    let fetches = [(EN, WritePlace::Variant), (DE, WritePlace::Variant), (URL, WritePlace::Whole)];
    let older = fetch(&mut group, EN, WritePlace::Variant).order;
    let [en, de, whole] = fetches.map(|(key, place)| fetch(&mut group, key, place));
    assert!(group.may_join(URL, None, older));
    assert_eq!(try_write(&mut group, &de, "de"), WriteVerdict::Write);
    let joins = [None, Some(EN), Some(DE)].map(|key| group.may_join(URL, key, older));
    assert_eq!(joins, [false, true, false]);
    assert_eq!(try_write(&mut group, &en, "en"), WriteVerdict::Write);
    assert!(!group.may_join(URL, Some(EN), older) && group.may_join(URL, Some(EN), en.order));
    assert_eq!(try_write(&mut group, &whole, "whole"), WriteVerdict::Write);
    assert!(!group.may_join(URL, Some(EN), en.order));
}

#[test]
fn what_was_forgotten_for_a_newer_response_is_not_written_again() {
    let mut group = group();
    let (one, two) =
        (fetch(&mut group, EN, WritePlace::Variant), fetch(&mut group, EN, WritePlace::Variant));
    group.note(URL, &two, || LeftUnderKey::Nothing);
    assert_eq!(try_write(&mut group, &one, "1"), WriteVerdict::OutdatedAndGone);
    assert!(!group.has_written(URL, EN));
    assert_eq!(try_write(&mut group, &two, "2"), WriteVerdict::Write);
    assert!(group.has_written(URL, EN));
}

#[test]
fn an_invalidation_is_of_its_url_alone() {
    let (mut group, other) = (group(), Key([9; 16]));
    let before = fetch(&mut group, URL, WritePlace::Whole);
    group.invalidate(other);
    assert!(group.is_of_now(URL, before.order));
    assert_eq!(group.judge(URL, &before, None), WriteVerdict::Write);
    group.invalidate(URL);
    assert!(!group.is_of_now(URL, before.order));
    assert_eq!(group.judge(URL, &before, None), WriteVerdict::Outdated);
    let after = fetch(&mut group, URL, WritePlace::Whole);
    assert_eq!(group.judge(URL, &after, None), WriteVerdict::Write);
}

#[test]
fn too_many_writes_to_remember_let_no_older_fetch_write() {
    let mut group = group();
    let slow = fetch(&mut group, EN, WritePlace::Variant);
    for number in 0..=u8::try_from(MAX_REMEMBERED_WRITES).expect("few") {
        let write = fetch(&mut group, Key([100 + number; 16]), WritePlace::Variant);
        assert_eq!(try_write(&mut group, &write, "x"), WriteVerdict::Write);
    }
    assert_eq!(try_write(&mut group, &slow, "1"), WriteVerdict::OutdatedAndGone);
    let late = fetch(&mut group, EN, WritePlace::Variant);
    assert_eq!(try_write(&mut group, &late, "2"), WriteVerdict::Write);
}

#[test]
fn nothing_is_remembered_of_a_url_that_nobody_watches() {
    let mut group = Group::default();
    for number in 0..100 {
        let base = Key([number; 16]);
        group.watch(base);
        let write = CacheWrite { key: base, ..fetch(&mut group, base, WritePlace::Whole) };
        group.note(base, &write, || LeftUnderKey::Nothing);
        group.unwatch(base);
    }
    assert!(group.watched.is_empty());
}
