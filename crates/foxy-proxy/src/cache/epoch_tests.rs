//! Writes of one URL in any order: what is there at last is of the fetch that began last.

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

/// A group with one URL that several watch.
fn group() -> Group {
    let mut group = Group::default();
    for _ in 0..3 {
        group.watch(URL);
    }
    group
}

fn fetch(group: &mut Group, key: Key, place: EpochScope) -> Turn {
    let looked = group.next();
    Turn { key, place, order: group.next(), looked, brings: Brings::Fetched }
}

/// Writes a turn if it may.
fn write(group: &mut Group, turn: &Turn, tag: &str) -> Judged {
    let response = response(tag);
    let judged = group.judge(URL, turn, Some(&response));
    if judged == Judged::Astray {
        group.note(URL, &turn.of_list(URL), || Left::Nothing);
    }
    if matches!(judged, Judged::Write | Judged::WriteWithoutWhole) {
        group.note(URL, turn, || Left::Response(response));
        if turn.place == EpochScope::NewList {
            group.note(URL, &turn.of_list(URL), || Left::List);
        }
    }
    judged
}

#[test]
fn the_newest_of_one_key_stays_and_others_are_untouched_by_it() {
    let mut group = group();
    let (one, two) =
        (fetch(&mut group, EN, EpochScope::Variant), fetch(&mut group, EN, EpochScope::Variant));
    let other = Turn { key: DE, ..one };
    assert_eq!(write(&mut group, &two, "2"), Judged::Write);
    assert_eq!(write(&mut group, &one, "1"), Judged::Outdated);
    assert_eq!(write(&mut group, &other, "1"), Judged::Write);
    let three = fetch(&mut group, EN, EpochScope::Variant);
    assert_eq!(write(&mut group, &three, "3"), Judged::Write);
}

#[test]
fn a_response_that_yields_to_a_newer_variant_leaves_nothing_older() {
    for place in [EpochScope::Whole, EpochScope::NewList] {
        let mut group = group();
        let [older, de] = [(); 2].map(|()| fetch(&mut group, DE, EpochScope::Variant));
        let de = Turn { key: URL, place, ..de };
        let en = fetch(&mut group, EN, EpochScope::Variant);
        assert_eq!(write(&mut group, &en, "en"), Judged::Write);
        assert_eq!(write(&mut group, &de, "de"), Judged::Astray, "{place:?}");
        assert_eq!(write(&mut group, &older, "older"), Judged::Outdated, "{place:?}");
    }
}

#[test]
fn a_new_list_yields_to_a_newer_list_and_leaves_it_in_force() {
    let mut group = group();
    let [de, en] = [DE, EN].map(|key| fetch(&mut group, key, EpochScope::NewList));
    assert_eq!(write(&mut group, &en, "en"), Judged::Write);
    assert_eq!(write(&mut group, &de, "de"), Judged::Outdated);
}

#[test]
fn a_variant_whose_list_is_replaced_meanwhile_leaves_nothing_older() {
    for place in [EpochScope::Whole, EpochScope::NewList] {
        let key = if place == EpochScope::Whole { URL } else { DE };
        let mut group = group();
        let (one, two) =
            (fetch(&mut group, key, place), fetch(&mut group, EN, EpochScope::Variant));
        assert_eq!(write(&mut group, &one, "1"), Judged::Write);
        assert_eq!(write(&mut group, &two, "2"), Judged::Astray, "{place:?}");
        let after = fetch(&mut group, EN, EpochScope::Variant);
        assert_eq!(
            write(&mut group, &after, "3"),
            Judged::Write,
            "{place:?}: it found the new list"
        );
    }
}

#[test]
fn whole_and_part_take_each_others_place_where_they_are_of_one() {
    for (whole, part, late_part, late_whole) in [
        ("\"a\"", "\"a\"", Judged::Write, Judged::Write),
        ("\"a\"", "\"b\"", Judged::WriteWithoutWhole, Judged::OutdatedAndGone),
    ] {
        let mut group = group();
        let (one, two) =
            (fetch(&mut group, URL, EpochScope::Whole), fetch(&mut group, PART, EpochScope::Part));
        assert_eq!(write(&mut group, &one, whole), Judged::Write);
        assert_eq!(write(&mut group, &two, part), late_part);
        assert_eq!(write(&mut group, &one, whole), late_whole);
    }
}

#[test]
fn what_a_look_up_found_is_written_only_where_nothing_was_written_since() {
    let mut group = group();
    let found = Turn { brings: Brings::Found, ..fetch(&mut group, EN, EpochScope::Variant) };
    assert_eq!(group.judge(URL, &found, None), Judged::Write);
    let earlier = Turn { brings: Brings::FoundEarlier, ..found };
    assert_eq!(group.judge(URL, &earlier, None), Judged::Outdated);
    let old = Turn { order: found.looked - 1, brings: Brings::Fetched, ..found };
    group.note(URL, &old, || Left::Response(response("1")));
    assert_eq!(group.judge(URL, &found, None), Judged::Outdated);
    let again = Turn { brings: Brings::Found, ..fetch(&mut group, EN, EpochScope::Variant) };
    assert_eq!(group.judge(URL, &again, None), Judged::Write);
}

#[test]
fn a_fetch_is_joined_unless_a_later_one_has_written_what_may_answer() {
    let mut group = group();
    let fetches = [(EN, EpochScope::Variant), (DE, EpochScope::Variant), (URL, EpochScope::Whole)];
    let older = fetch(&mut group, EN, EpochScope::Variant).order;
    let [en, de, whole] = fetches.map(|(key, place)| fetch(&mut group, key, place));
    assert!(group.may_join(URL, None, older));
    assert_eq!(write(&mut group, &de, "de"), Judged::Write);
    let joins = [None, Some(EN), Some(DE)].map(|key| group.may_join(URL, key, older));
    assert_eq!(joins, [false, true, false]);
    assert_eq!(write(&mut group, &en, "en"), Judged::Write);
    assert!(!group.may_join(URL, Some(EN), older) && group.may_join(URL, Some(EN), en.order));
    assert_eq!(write(&mut group, &whole, "whole"), Judged::Write);
    assert!(!group.may_join(URL, Some(EN), en.order));
}

#[test]
fn what_was_forgotten_for_a_newer_response_is_not_written_again() {
    let mut group = group();
    let (one, two) =
        (fetch(&mut group, EN, EpochScope::Variant), fetch(&mut group, EN, EpochScope::Variant));
    group.note(URL, &two, || Left::Nothing);
    assert_eq!(write(&mut group, &one, "1"), Judged::OutdatedAndGone);
    assert!(!group.has_written(URL, EN));
    assert_eq!(write(&mut group, &two, "2"), Judged::Write);
    assert!(group.has_written(URL, EN));
}

#[test]
fn an_invalidation_is_of_its_url_alone() {
    let (mut group, other) = (group(), Key([9; 16]));
    let before = fetch(&mut group, URL, EpochScope::Whole);
    group.invalidate(other);
    assert!(group.is_of_now(URL, before.order));
    assert_eq!(group.judge(URL, &before, None), Judged::Write);
    group.invalidate(URL);
    assert!(!group.is_of_now(URL, before.order));
    assert_eq!(group.judge(URL, &before, None), Judged::Outdated);
    let after = fetch(&mut group, URL, EpochScope::Whole);
    assert_eq!(group.judge(URL, &after, None), Judged::Write);
}

#[test]
fn too_many_writes_to_remember_let_no_older_fetch_write() {
    let mut group = group();
    let slow = fetch(&mut group, EN, EpochScope::Variant);
    for number in 0..=u8::try_from(REMEMBERED).expect("few") {
        let turn = fetch(&mut group, Key([100 + number; 16]), EpochScope::Variant);
        assert_eq!(write(&mut group, &turn, "x"), Judged::Write);
    }
    assert_eq!(write(&mut group, &slow, "1"), Judged::OutdatedAndGone);
    let late = fetch(&mut group, EN, EpochScope::Variant);
    assert_eq!(write(&mut group, &late, "2"), Judged::Write);
}

#[test]
fn nothing_is_remembered_of_a_url_that_nobody_watches() {
    let mut group = Group::default();
    for number in 0..100 {
        let base = Key([number; 16]);
        group.watch(base);
        let turn = Turn { key: base, ..fetch(&mut group, base, EpochScope::Whole) };
        group.note(base, &turn, || Left::Nothing);
        group.unwatch(base);
    }
    assert!(group.watched.is_empty());
}
