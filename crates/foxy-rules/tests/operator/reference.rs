//! Compares the compiled rules with a plain reference implementation, which checks all rules in
//! order.

use crate::{Asked, conditions, rule};
use foxy_rules::operator::{
    Access, Effects, FieldEdits, OperatorRule, OperatorRules, Pattern, RequestFacts, SharedFacts,
};
use proptest::prelude::*;

const SHARED_PARTS: [(&str, &[&str]); 4] = [
    ("host", &["a.test", "b.test", "*.a.test", "*", "192.0.2.0/24", "c.a.test,b.test"]),
    ("path", &["/x", "/x/*", "*.css", "/y,/z/*", "*", "/x/../*"]),
    ("port", &["80", "443,8000-8999"]),
    ("query", &["q", "q=1"]),
];
const CLIENT_PARTS: [(&str, &[&str]); 2] = [
    ("client", &["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "0.0.0.0/0"]),
    ("method", &["GET", "POST,PUT"]),
];
/// Names of header fields that rules change. The last two differ in case alone.
const FIELDS: [&str; 3] = ["A", "X-Site", "x-site"];

fn when_of(parts: Vec<(&'static str, &'static [&'static str])>) -> impl Strategy<Value = String> {
    let part = |(name, values): (&'static str, &'static [&'static str])| {
        proptest::option::weighted(0.4, proptest::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("{name}={value}")))
    };
    let parts: Vec<_> = parts.into_iter().map(part).collect();
    parts.prop_map(|parts| parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn when() -> impl Strategy<Value = String> {
    when_of([&SHARED_PARTS[..], &CLIENT_PARTS[..]].concat())
}

fn shared_when() -> impl Strategy<Value = String> {
    when_of(SHARED_PARTS.to_vec())
}

fn edits() -> impl Strategy<Value = Option<FieldEdits>> {
    let name = || proptest::sample::select(&FIELDS[..]).prop_map(str::to_owned);
    let set = proptest::collection::vec((name(), "[12]"), 0..3);
    let remove = proptest::collection::vec(name(), 0..2);
    proptest::option::of((remove, set).prop_map(|(remove, set)| FieldEdits { remove, set }))
}

fn then() -> impl Strategy<Value = Effects> {
    (any::<Option<bool>>(), any::<Option<bool>>(), any::<Option<bool>>(), edits()).prop_filter_map(
        "no effect",
        |(deny, bypass, login, request_fields)| {
            let access =
                deny.map(|deny| if deny { Access::Deny { message: None } } else { Access::Allow });
            // A rule that changes fields may depend on the client only with a bypass.
            let request_fields = request_fields.filter(|_| bypass == Some(true));
            let then = Effects { access, bypass, login, request_fields, ..Effects::default() };
            (then != Effects::default()).then_some(then)
        },
    )
}

fn patterns(texts: &'static [&'static str]) -> impl Strategy<Value = Option<Vec<Pattern>>> {
    let pattern = |text: &str| text.parse().expect("a pattern");
    let one = proptest::sample::select(texts).prop_map(move |text| vec![pattern(text)]);
    proptest::option::of(one)
}

/// No effect leaves the parameter `q` out of the key, because conditions name this parameter.
fn shared_then() -> impl Strategy<Value = Effects> {
    (patterns(&["a", "b*"]), patterns(&["[qa]", "[qbd]"]), any::<Option<bool>>(), edits())
        .prop_filter_map("no effect", |(query_ignore, query_keep, query_sort, response_fields)| {
            let none = Effects::default();
            let then = Effects { query_ignore, query_keep, query_sort, response_fields, ..none };
            (then != Effects::default()).then_some(then)
        })
}

fn url() -> impl Strategy<Value = String> {
    (
        proptest::sample::select(&["http", "https"][..]),
        proptest::sample::select(&["a.test", "c.a.test", "b.test:8080", "192.0.2.9", "d.test"][..]),
        proptest::sample::select(
            &[
                "/x",
                "/x/y",
                "/x/../y",
                "/z\\x",
                "/y/..;/x",
                "/x;a/y",
                "/a.css",
                "/z/q",
                "/",
                "/x?q=1",
                "/x?d&q=1&a=2&b=3",
            ][..],
        ),
    )
        .prop_map(|(scheme, host, path)| format!("{scheme}://{host}{path}"))
}

fn request() -> impl Strategy<Value = String> {
    (
        proptest::sample::select(&["GET", "POST", "PUT", "get"][..]),
        url(),
        proptest::sample::select(&["@10.1.2.3", "@10.9.9.9", "@2001:db8::7", "@192.0.2.1"][..]),
    )
        .prop_map(|(method, url, client)| format!("{method} {url} {client}"))
}

fn rules<T: AsRef<str>>(list: &[(T, Vec<T>, Effects)]) -> Vec<OperatorRule> {
    let numbered = list.iter().enumerate().map(|(number, (when, unless, then))| OperatorRule {
        unless: unless.iter().map(|when| conditions(when.as_ref())).collect(),
        ..rule(&number.to_string(), conditions(when.as_ref()), then.clone())
    });
    numbered.collect()
}

/// The value that each field of [`FIELDS`] gets, where `Some(None)` removes the field. For each
/// name, the first rule that changes the field decides.
type Changes = [Option<Option<String>>; 3];

fn changes<'r>(edits: impl Iterator<Item = &'r FieldEdits> + Clone) -> Changes {
    FIELDS.map(|name| {
        edits.clone().find_map(|edits| {
            let is_same = |other: &str| other.eq_ignore_ascii_case(name);
            match edits.set.iter().find(|(set, _)| is_same(set)) {
                Some((_, value)) => Some(Some(value.clone())),
                None => edits.remove.iter().any(|removed| is_same(removed)).then_some(None),
            }
        })
    })
}

/// Reads compiled changes by name.
fn found(changes: &[foxy_rules::operator::FieldChange<'_>]) -> Changes {
    FIELDS.map(|name| {
        let mut same = changes.iter().filter(|change| change.name.eq_ignore_ascii_case(name));
        let first = same.next().map(|change| change.value.map(str::to_owned));
        assert!(same.next().is_none(), "{name} changes twice");
        first
    })
}

/// The decisions about a request: access, bypass, whether a login is needed, and field changes.
type Decisions = (Option<Access>, bool, Option<bool>, Changes);

/// Checks each rule alone, in order. The first rule that matches and has the effect decides.
fn reference(rules: &[OperatorRule], facts: &RequestFacts<'_, &[(&str, &str)]>) -> Decisions {
    let (mut access, mut bypass, mut login, mut edits) = (None, None, None, Vec::new());
    let mut bypasses_by_fields = false;
    for rule in rules {
        let alone = OperatorRules::new(vec![rule.clone()]).expect("sound");
        if alone.explain(facts, None)[0].result.is_ok() {
            access = access.or(rule.then.access.clone());
            bypass = bypass.or(rule.then.bypass);
            login = login.or(rule.then.login);
            let before = changes(edits.iter().copied());
            edits.extend(&rule.then.request_fields);
            bypasses_by_fields |=
                changes(edits.iter().copied()) != before && rule.then.bypass == Some(true);
        }
    }
    (access, bypass == Some(true) || bypasses_by_fields, login, changes(edits.into_iter()))
}

/// Returns the key that the rules choose: each effect comes from the first rule with the effect.
fn reference_key(matching: &[&OperatorRule], url: &str) -> String {
    let ignore = matching.iter().find_map(|rule| rule.then.query_ignore.as_ref());
    let keep = matching.iter().find_map(|rule| rule.then.query_keep.as_ref());
    let sort = matching.iter().find_map(|rule| rule.then.query_sort) == Some(true);
    let Some((path, query)) = url.split_once('?') else { return url.to_owned() };
    let name = |parameter: &str| parameter.split('=').next().unwrap_or_default().to_owned();
    let is_in = |list: &Vec<Pattern>, parameter: &str| {
        list.iter().any(|pattern| pattern.matches(name(parameter).as_bytes()))
    };
    let mut kept: Vec<&str> = query
        .split('&')
        .filter(|parameter| !ignore.is_some_and(|list| is_in(list, parameter)))
        .filter(|parameter| keep.is_none_or(|list| is_in(list, parameter)))
        .collect();
    if sort {
        kept.sort_unstable();
    }
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

proptest! {
    #[test]
    fn compiled_rules_decide_as_the_plain_search(
        list in proptest::collection::vec((when(), proptest::collection::vec(when(), 0..3), then()), 0..12),
        requests in proptest::collection::vec(request(), 1..6),
    ) {
        let rules = rules(&list);
        let compiled = OperatorRules::new(rules.clone()).expect("sound");
        for request in &requests {
            let asked = Asked::new(request);
            let decision = compiled.decide(&asked.facts());
            let login = decision.position(foxy_rules::operator::Effect::Login);
            let login = login.and_then(|position| rules[position].then.login);
            let fields = found(decision.request_changes());
            let found = (decision.access().cloned(), decision.bypasses(), login, fields);
            prop_assert_eq!(found, reference(&rules, &asked.facts()), "{}", request);
        }
    }

    #[test]
    fn compiled_rules_change_responses_and_keys_as_the_plain_search(
        list in proptest::collection::vec(
            (shared_when(), proptest::collection::vec(shared_when(), 0..2), shared_then()),
            0..12,
        ),
        url in url(),
    ) {
        let rules = rules(&list);
        let compiled = OperatorRules::new(rules.clone()).expect("sound");
        let asked = format!("GET {url}");
        let (asked, no_fields): (_, &[(&str, &str)]) = (Asked::new(&asked), &[]);
        let matches = |rule: &&OperatorRule| {
            let alone = OperatorRules::new(vec![(*rule).clone()]).expect("sound");
            alone.explain(&asked.facts(), None)[0].result.is_ok()
        };
        let matching: Vec<&OperatorRule> = rules.iter().filter(matches).collect();
        let edits = matching.iter().filter_map(|rule| rule.then.response_fields.as_ref());
        let expected = changes(edits);
        let facts = SharedFacts::of(url.as_bytes(), 200, no_fields, None).expect("a URL");
        prop_assert_eq!(found(&compiled.response_changes(&facts)), expected, "{}", url);
        let key = String::from_utf8(compiled.key(url.clone().into_bytes()).0).expect("ASCII");
        prop_assert_eq!(key, reference_key(&matching, &url), "{}", url);
    }
}
