//! Tests of the table's decisions, in virtual time.

use super::lifetime::{AT_LEAST, Lifetime};
use super::{Decision, Slot, Table};
use crate::wire::key::RequestKey;
use foxy_base::Instant;
use foxy_http::Headers;
use std::time::Duration;

const PLAIN: RequestKey = RequestKey { key: 1, conditional: None, reload: false };
const CONDITIONAL: RequestKey = RequestKey { key: 1, conditional: Some(2), reload: false };
const UNCACHABLE: Lifetime = Lifetime { fresh: AT_LEAST, validated: false };
const HOUR: Lifetime = Lifetime { fresh: Duration::from_secs(3600), validated: true };

fn at(seconds: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(seconds)
}

fn fields(fields: &[(&str, &str)]) -> Headers {
    fields.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
}

fn find(
    table: &mut Table<&'static str>,
    asked: &RequestKey,
    now: Instant,
    new: &'static str,
) -> Decision<&'static str> {
    table.find(asked, &Headers::new(), now, || new)
}

fn fetch(decision: Decision<&'static str>) -> Slot {
    match decision {
        Decision::Fetch(slot, _) => slot,
        other => panic!("no fetch: {other:?}"),
    }
}

/// Creates a table with the complete answer `a`, stored at 0 s.
fn standing(lifetime: Lifetime) -> Table<&'static str> {
    let mut table = Table::new(1000);
    let slot = fetch(find(&mut table, &PLAIN, at(0), "a"));
    table.stands(slot, lifetime, 10, at(0));
    table
}

#[test]
fn requests_of_all_proxies_are_one_fetch_whether_it_is_under_way_or_over() {
    let mut table = Table::new(1000);
    let slot = fetch(find(&mut table, &PLAIN, at(0), "a"));
    assert_eq!(find(&mut table, &PLAIN, at(0), "b"), Decision::Answer("a"));
    table.head(slot, &PLAIN, &Headers::new(), &Headers::new(), true);
    assert_eq!(
        find(&mut table, &PLAIN, at(500), "b"),
        Decision::Answer("a"),
        "however long it takes"
    );
    table.stands(slot, UNCACHABLE, 10, at(600));
    assert_eq!(find(&mut table, &PLAIN, at(601), "b"), Decision::Answer("a"));
}

#[test]
fn an_uncachable_answer_is_forgotten_after_180_seconds() {
    let mut table = standing(UNCACHABLE);
    assert_eq!(find(&mut table, &PLAIN, at(179), "b"), Decision::Answer("a"));
    table.forget(at(180));
    assert_eq!(table.slots(), 0);
    fetch(find(&mut table, &PLAIN, at(180), "b"));
}

#[test]
fn a_cachable_answer_is_validated_after_its_lifetime() {
    let mut table = standing(HOUR);
    assert_eq!(find(&mut table, &PLAIN, at(3599), "b"), Decision::Answer("a"));
    let Decision::Validate(slot, "b", "a") = find(&mut table, &PLAIN, at(3600), "b") else {
        panic!("not asked about")
    };
    assert_eq!(find(&mut table, &PLAIN, at(3600), "c"), Decision::Answer("b"), "one asks for all");
    table.stands(slot, HOUR, 10, at(3601));
    assert_eq!(
        (table.slots(), find(&mut table, &PLAIN, at(3700), "c")),
        (1, Decision::Answer("b"))
    );
}

#[test]
fn reloads_and_conditions_use_origin_answers_of_the_last_180_seconds() {
    let reload = RequestKey { reload: true, ..PLAIN };
    for (asked, is_asked_about) in [(&reload, true), (&CONDITIONAL, false)] {
        let mut table = standing(HOUR);
        assert_eq!(find(&mut table, asked, at(179), "b"), Decision::Answer("a"));
        let decision = find(&mut table, asked, at(180), "b");
        let expected = if is_asked_about {
            matches!(decision, Decision::Validate(_, "b", "a"))
        } else {
            matches!(decision, Decision::Fetch(_, "b"))
        };
        assert!(expected, "{asked:?}: {decision:?}");
        assert_eq!(find(&mut table, asked, at(180), "c"), Decision::Answer("b"), "{asked:?}");
    }
}

#[test]
fn lesson_3_a_short_answer_is_for_its_own_condition_and_a_whole_one_for_everybody() {
    let mut table = Table::new(1000);
    let short = fetch(find(&mut table, &CONDITIONAL, at(0), "304"));
    assert_eq!(find(&mut table, &CONDITIONAL, at(0), "b"), Decision::Answer("304"));
    table.head(short, &CONDITIONAL, &Headers::new(), &Headers::new(), false);
    table.stands(short, UNCACHABLE, 10, at(0));
    assert_eq!(find(&mut table, &CONDITIONAL, at(1), "b"), Decision::Answer("304"));
    let whole = fetch(find(&mut table, &PLAIN, at(1), "200"));
    table.remove(whole);
    let other = RequestKey { conditional: Some(3), ..CONDITIONAL };
    let whole = fetch(find(&mut table, &other, at(1), "200"));
    table.head(whole, &other, &Headers::new(), &Headers::new(), true);
    assert_eq!(find(&mut table, &PLAIN, at(1), "b"), Decision::Answer("200"));
    assert_eq!(find(&mut table, &other, at(1), "b"), Decision::Answer("200"));
}

#[test]
fn answers_that_depend_on_fields_are_for_requests_that_have_them_alike() {
    let vary = fields(&[("Vary", "Accept-Encoding, accept-language")]);
    let (plain, gzip) = (fields(&[("Accept", "x/y")]), fields(&[("Accept-Encoding", "gzip")]));
    let mut table = Table::new(1000);
    let first = fetch(table.find(&PLAIN, &plain, at(0), || "plain"));
    table.head(first, &PLAIN, &plain, &vary, true);
    table.stands(first, UNCACHABLE, 10, at(0));
    let second = fetch(table.find(&PLAIN, &gzip, at(0), || "gzip"));
    table.head(second, &PLAIN, &gzip, &vary, true);
    table.stands(second, UNCACHABLE, 10, at(0));
    assert_eq!(table.find(&PLAIN, &plain, at(1), || "new"), Decision::Answer("plain"));
    assert_eq!(table.find(&PLAIN, &gzip, at(1), || "new"), Decision::Answer("gzip"));
    assert_eq!(table.find(&PLAIN, &Headers::new(), at(1), || "new"), Decision::Answer("plain"));
    table.head(first, &PLAIN, &plain, &fields(&[("Vary", "*")]), true);
    assert_eq!(
        table.find(&PLAIN, &fields(&[("Accept-Encoding", "br")]), at(1), || "x"),
        Decision::Answer("plain")
    );
}

#[test]
fn memory_is_bounded_and_what_was_unused_longest_goes() {
    let mut table = Table::new(25);
    let asked = |key| RequestKey { key, ..PLAIN };
    for key in [1, 2] {
        let slot = fetch(find(&mut table, &asked(key), at(0), "x"));
        table.stands(slot, HOUR, 10, at(0));
    }
    assert_eq!(find(&mut table, &asked(1), at(1), "new"), Decision::Answer("x"));
    let under_way = fetch(find(&mut table, &asked(3), at(1), "y"));
    table.stands(under_way, HOUR, 10, at(1));
    assert_eq!((table.slots(), table.evicted()), (2, 1));
    assert_eq!(find(&mut table, &asked(1), at(1), "new"), Decision::Answer("x"));
    fetch(find(&mut table, &asked(2), at(1), "new"));
    while table.evict() {}
    assert_eq!(table.slots(), 1, "what is under way stays");
}
