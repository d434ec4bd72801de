//! Tests which responses a purge affects: for single purges, and for more purges than the limits of
//! the table allow.

use super::*;
use crate::cache::purge::rule::{Named, tags};
use foxy_base::Random;
use foxy_http::Headers;

const AT: WallTime = WallTime(7);

fn rule(named: Option<Named>, name: &str, strength: Strength, moment: u64) -> Vec<Rule> {
    let scopes = named.map_or(Ok(vec![Scope::All]), |named| named.scopes(name)).expect("a name");
    scopes
        .into_iter()
        .map(|scope| Rule { order: Order { scope, strength, at: AT }, moment })
        .collect()
}

fn table(limits: Limits, rules: &[Vec<Rule>]) -> PurgeTable {
    let mut table = PurgeTable::with_limits(limits);
    rules.iter().flatten().for_each(|rule| table.add(rule));
    table
}

fn judge(table: &PurgeTable, url: &str, begun: u64) -> Verdict {
    let mut headers = Headers::new();
    headers.append("Surrogate-Key", "shoes red");
    table.judge(url.as_bytes(), tags(&headers), begun)
}

const STALE: Verdict = Verdict::Stale { since: AT };

#[test]
fn each_scope_holds_for_its_own_and_for_nothing_else() {
    let cases = [
        (Some(Named::Url), "http://a.test/x", "http://a.test/x", "http://a.test/xy"),
        (Some(Named::Prefix), "http://a.test/x", "http://a.test/xy", "http://a.test/y"),
        (Some(Named::Site), "http://a.test", "http://a.test:81/", "https://a.test/"),
        (Some(Named::Site), "http://a.test:80", "http://a.test/", "http://a.test:81/"),
        (Some(Named::Site), "http://[::1]", "http://[::1]:81/", "http://[::2]/"),
        (Some(Named::Site), "a.test", "https://a.test/x", "http://b.a.test/x"),
    ];
    for (named, name, inside, outside) in cases {
        for (strength, expected) in [(Strength::Soft, STALE), (Strength::Hard, Verdict::Gone)] {
            let table = table(Limits::default(), &[rule(named, name, strength, 5)]);
            assert_eq!(judge(&table, inside, 4), expected, "{name} {inside}");
            assert_eq!(judge(&table, inside, 5), Verdict::Untouched, "{name}: begun after it");
            assert_eq!(judge(&table, outside, 4), Verdict::Untouched, "{name} {outside}");
            assert!(
                table.may_touch(inside.as_bytes(), 4) && !table.may_touch(inside.as_bytes(), 5)
            );
            assert!(!table.may_touch(outside.as_bytes(), 4), "{name} {outside}");
        }
    }
}

#[test]
fn a_tag_holds_for_the_responses_that_carry_it() {
    let table = table(
        Limits::default(),
        &[
            rule(Some(Named::Tag), "RED", Strength::Soft, 5),
            rule(Some(Named::Tag), "hats", Strength::Hard, 6),
        ],
    );
    assert_eq!(judge(&table, "http://a.test/", 4), STALE);
    assert_eq!(judge(&table, "http://a.test/", 5), Verdict::Untouched);
    assert!(table.may_touch(b"http://b.test/", 5), "a response under way may come with any tag");
    assert!(!table.may_touch(b"http://b.test/", 6));
}

#[test]
fn the_harder_of_two_rules_holds_whichever_came_first() {
    for (soft, hard) in [(5, 6), (6, 5)] {
        let rules = [
            rule(Some(Named::Url), "http://a.test/", Strength::Soft, soft),
            rule(Some(Named::Site), "a.test", Strength::Hard, hard),
        ];
        let table = table(Limits::default(), &rules);
        assert_eq!(judge(&table, "http://a.test/", 4), Verdict::Gone);
        let between = if soft == 6 { STALE } else { Verdict::Gone };
        assert_eq!(judge(&table, "http://a.test/", 5), between);
        assert_eq!(judge(&table, "http://a.test/", 6), Verdict::Untouched);
    }
}

#[test]
fn a_hard_purge_of_everything_is_the_only_rule_left() {
    let rules = [
        rule(Some(Named::Url), "http://a.test/", Strength::Soft, 1),
        rule(Some(Named::Prefix), "http://a.test/x", Strength::Hard, 2),
        rule(Some(Named::Tag), "red", Strength::Soft, 3),
        rule(Some(Named::Site), "a.test", Strength::Soft, 4),
        rule(None, "", Strength::Hard, 5),
    ];
    let table = table(Limits::default(), &rules);
    assert_eq!(table.rules(), rules[4]);
    assert_eq!(judge(&table, "http://any.test/", 4), Verdict::Gone);
    assert_eq!(judge(&table, "http://any.test/", 5), Verdict::Untouched);
}

#[test]
fn the_rules_given_out_make_the_same_table() {
    let rules = [
        rule(Some(Named::Url), "http://a.test/", Strength::Soft, 1),
        rule(Some(Named::Url), "http://a.test/", Strength::Hard, 6),
        rule(Some(Named::Prefix), "http://a.test/x", Strength::Hard, 2),
        rule(Some(Named::Tag), "red", Strength::Soft, 3),
        rule(Some(Named::Site), "https://a.test", Strength::Soft, 4),
        rule(None, "", Strength::Soft, 5),
    ];
    let before = table(Limits::default(), &rules);
    let after = table(Limits::default(), &[before.rules()]);
    let sorted = |mut rules: Vec<Rule>| {
        rules.sort_by_key(|rule| rule.moment);
        rules
    };
    assert_eq!(sorted(after.rules()), sorted(before.rules()));
    assert_eq!(sorted(after.rules()), sorted(rules.concat()));
}

#[test]
fn however_many_rules_there_are_none_is_forgotten_and_the_table_stays_small() {
    const SEED: u64 = 11;
    let limits = Limits { urls: 16, tags: 8, prefixes: 8, sites: 4 };
    let mut random = Random::new(SEED);
    let (mut bounded, mut whole) = (PurgeTable::with_limits(limits), PurgeTable::default());
    for moment in 1..=400 {
        let strength = match random.next_u64() % 3 {
            0 => Strength::Soft,
            1 => Strength::Doubt,
            _ => Strength::Hard,
        };
        let host = random.next_u64() % 6;
        let path = random.next_u64() % 50;
        let (named, name) = match random.next_u64() % 8 {
            0 => (Named::Tag, format!("t{path}")),
            1 => (Named::Prefix, format!("http://h{host}.test/{path}")),
            2 => (Named::Site, format!("http://h{host}.test")),
            _ => (Named::Url, format!("http://h{host}.test/{path}")),
        };
        for rule in rule(Some(named), &name, strength, moment) {
            bounded.add(&rule);
            whole.add(&rule);
        }
        assert!(bounded.urls.len() <= 16 && bounded.tags.len() <= 8 && bounded.sites.len() <= 4);
        assert!(bounded.prefixes.values().map(HashMap::len).sum::<usize>() <= 8);
        let url = format!("http://h{}.test/{}", random.next_u64() % 6, random.next_u64() % 50);
        let begun = random.next_u64() % moment;
        let harshness = |verdict| match verdict {
            Verdict::Untouched => 0,
            Verdict::Stale { .. } => 1,
            Verdict::InDoubt(_) => 2,
            Verdict::Gone => 3,
        };
        let tag = xxh3_128(format!("t{}", random.next_u64() % 50).as_bytes());
        let exact = harshness(whole.judge(url.as_bytes(), [tag], begun));
        let coarse = harshness(bounded.judge(url.as_bytes(), [tag], begun));
        assert!(
            coarse >= exact,
            "seed {SEED}, moment {moment}: {url} since {begun}: {coarse} < {exact}"
        );
    }
}
