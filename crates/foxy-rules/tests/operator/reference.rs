//! Compares the compiled rules with a plain reference implementation, which checks all rules in
//! order.

use crate::{Asked, conditions, rule};
use foxy_rules::operator::{Access, Effects, OperatorRule, OperatorRules, RequestFacts};
use proptest::prelude::*;

const PARTS: [(&str, &[&str]); 6] = [
    ("host", &["a.test", "b.test", "*.a.test", "*", "192.0.2.0/24", "c.a.test,b.test"]),
    ("path", &["/x", "/x/*", "*.css", "/y,/z/*", "*"]),
    ("client", &["10.0.0.0/8", "10.1.0.0/16", "2001:db8::/32", "0.0.0.0/0"]),
    ("method", &["GET", "POST,PUT"]),
    ("port", &["80", "443,8000-8999"]),
    ("query", &["q", "q=1"]),
];

fn when() -> impl Strategy<Value = String> {
    let part = |(name, values): (&'static str, &'static [&'static str])| {
        proptest::option::weighted(0.4, proptest::sample::select(values))
            .prop_map(move |value| value.map(|value| format!("{name}={value}")))
    };
    PARTS
        .map(part)
        .to_vec()
        .prop_map(|parts| parts.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

fn then() -> impl Strategy<Value = Effects> {
    (any::<Option<bool>>(), any::<Option<bool>>()).prop_filter_map("no effect", |(deny, bypass)| {
        let access =
            deny.map(|deny| if deny { Access::Deny { message: None } } else { Access::Allow });
        (access.is_some() || bypass.is_some()).then(|| Effects {
            access,
            bypass,
            ..Effects::default()
        })
    })
}

fn request() -> impl Strategy<Value = String> {
    (
        proptest::sample::select(&["GET", "POST", "PUT"][..]),
        proptest::sample::select(&["http", "https"][..]),
        proptest::sample::select(&["a.test", "c.a.test", "b.test:8080", "192.0.2.9", "d.test"][..]),
        proptest::sample::select(&["/x", "/x/y", "/x/../y", "/a.css", "/z/q", "/", "/x?q=1"][..]),
        proptest::sample::select(&["@10.1.2.3", "@10.9.9.9", "@2001:db8::7", "@192.0.2.1"][..]),
    )
        .prop_map(|(method, scheme, host, path, client)| {
            format!("{method} {scheme}://{host}{path} {client}")
        })
}

/// Checks each rule alone, in order. The first rule that matches and has the effect decides.
fn reference(
    rules: &[OperatorRule],
    facts: &RequestFacts<'_, &[(&str, &str)]>,
) -> (Option<Access>, bool) {
    let (mut access, mut bypass) = (None, None);
    for rule in rules {
        let alone = OperatorRules::new(vec![rule.clone()]).expect("sound");
        if alone.explain(facts, None)[0].result.is_ok() {
            access = access.or(rule.then.access.clone());
            bypass = bypass.or(rule.then.bypass);
        }
    }
    (access, bypass == Some(true))
}

proptest! {
    #[test]
    fn compiled_rules_decide_as_the_plain_search(
        list in proptest::collection::vec((when(), proptest::collection::vec(when(), 0..3), then()), 0..12),
        requests in proptest::collection::vec(request(), 1..6),
    ) {
        let rules: Vec<OperatorRule> = list
            .iter()
            .enumerate()
            .map(|(number, (when, unless, then))| OperatorRule {
                unless: unless.iter().map(|when| conditions(when)).collect(),
                ..rule(&number.to_string(), conditions(when), then.clone())
            })
            .collect();
        let compiled = OperatorRules::new(rules.clone()).expect("sound");
        for request in &requests {
            let asked = Asked::new(request);
            let decision = compiled.decide(&asked.facts());
            let found = (decision.access().cloned(), decision.bypasses());
            prop_assert_eq!(found, reference(&rules, &asked.facts()), "{}", request);
        }
    }
}
