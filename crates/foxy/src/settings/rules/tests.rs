//! Tests that rules are read from a file, and that each mistake is reported with its place.

use super::keys::RulePart::{Condition, Effect};
use super::keys::{KEYS, RuleKey};
use super::*;
use crate::settings::file;
use crate::settings::rows::Written;
use crate::settings::tables::show;
use foxy_rules::operator::serve_named_clients_alone;
use std::path::Path;

fn read_file(content: &str) -> Result<Written, String> {
    let mut written = Written::default();
    file::read(Path::new("foxy.toml"), content, &mut written).map_err(|all| all.to_string())?;
    compile(&written.rules).map_err(|complaint| complaint.to_string())?;
    Ok(written)
}

#[test]
fn each_key_of_the_documentation_is_read() {
    for RuleKey(part, key, example, _) in KEYS {
        let rule = match part {
            Condition => format!("when = {{ {key} = {example} }}\nthen = {{ store = false }}"),
            Effect => format!("then = {{ {key} = {example} }}"),
        };
        let mut written = Written::default();
        let read = file::read(Path::new("foxy.toml"), &format!("[[rule]]\n{rule}"), &mut written);
        assert!(read.is_ok(), "{key}: {}", read.expect_err("refused"));
        let rule = &written.rules[0].value;
        match part {
            Condition => assert_ne!(rule.when, Conditions::default(), "{key} has no effect"),
            Effect => assert_ne!(rule.then, Effects::default(), "{key} has no effect"),
        }
    }
}

/// A file with a mistake, and a part of the message.
const MISTAKES: &[(&str, &str)] = &[
    ("rule = 5", "foxy.toml:1:8: `rule` is a list of tables; write [[rule]]"),
    (
        "[[rule]]\nthen = { acces = \"deny\" }",
        "foxy.toml:2:10: rule 1: there is no key `acces`; did you",
    ),
    ("[[rule]]\nthen = { access = \"no\" }", "foxy.toml:2:19: rule 1: unknown variant `no`"),
    (
        "[[rule]]\nwhen = { client = \"10.0.0.0/33\" }\nthen = { bypass = true }",
        "foxy.toml:2:19: rule 1: `10.0.0.0/33` is not a network; write 192.0.2.0/24",
    ),
    (
        "[[rule]]\nthen = { redirect = { to = \"//a.test/\" } }",
        "foxy.toml:2:21: rule 1: `//a.test/` is no URL; begin with https://HOST/",
    ),
    (
        "[[rule]]\nthen = { redirect = { status = 200, to = \"/a\" } }",
        "rule 1: 200 is no status of a redirect",
    ),
    ("[[rule]]\nname = \"a\"", "rule 1: missing field `then`"),
    (
        "[[rule]]\nwhen = { status = 99 }\nthen = { store = false }",
        "rule 1: `99` is not a status of a response",
    ),
    (
        "[[rule]]\nwhen = { port = 0 }\nthen = { store = false }",
        "rule 1: `0` is not a port; write 443 or 8000-8999",
    ),
    (
        "[[rule]]\nthen = { access = \"allow\", message = \"Hi\" }",
        "rule 1: `message` is for refused requests",
    ),
    (
        "[[rule]]\nthen = { fresh-at-least = \"2h\", fresh-at-most = \"1h\" }",
        "`fresh-at-least` is longer than `fresh-at-most`",
    ),
    (
        "[[rule]]\nwhen = { size-at-least = \"2M\", size-at-most = \"1M\" }\n\
             then = { store = false }",
        "`size-at-least` is larger than `size-at-most`",
    ),
    (
        "[[rule]]\nunless = { user = \"a\" }\nthen = { login = false }",
        "`login` applies before foxy knows the user",
    ),
    (
        "[[rule]]\nthen = { upstream = \"http://user:word@p.test\" }",
        "`upstream` must be `direct`, `parents`, the URL of a parent without credentials",
    ),
    (
        "[[rule]]\nthen = { upstream = [\"origin:a\", \"direct\"] }",
        "`origin:NAME` must be the only value of `upstream`; remove the others",
    ),
    ("[[rule]]\nthen = { upstream = [] }", "`upstream` is empty; write `direct`"),
    (
        "[[rule]]\nwhen = { user = \"a\" }\nthen = { upstream = \"direct\" }",
        "remove these conditions or add `bypass = true`",
    ),
    ("[[rule]]\nthen = {}", "foxy.toml:1:1: rule `rule-1`: the rule has no effect"),
    (
        "[[rule]]\nthen = { response-header-set = { Content-Length = \"1\" } }",
        "no rule may change Content-Length, because foxy manages this field",
    ),
    (
        "[[rule]]\nthen = { request-header-set = { X-A = \"a\\r\\nB: c\" } }",
        "the value of X-A must be one line of ASCII text",
    ),
    (
        "[[rule]]\nwhen = { client = \"10.0.0.0/8\" }\nthen = { fresh-at-least = \"1h\" }",
        "`fresh-at-least` may not depend on the client",
    ),
    (
        "[[rule]]\nwhen = { status = [404] }\nthen = { access = \"deny\" }",
        "`access` applies before the response arrives",
    ),
    (
        "[[rule]]\nwhen = { status = 200 }\nthen = { response-header-remove = [\"A\"] }",
        "`response-header` also applies to responses without a body, such as 304",
    ),
    (
        "[[rule]]\nwhen = { path = \"/a\" }\nthen = { query-keep = [\"id\"] }\n\
             [[rule]]\nwhen = { query = \"preview\" }\nthen = { store = false }",
        "leaves this parameter out of the cache key; change one of these rules",
    ),
    ("[[rule]]\nwhen = { path = \"secret\" }\nthen = { bypass = true }", "begin with / or *"),
    ("[[rule]]\nname = \"a\\u001b\"\nthen = { bypass = true }", "`name` must be one line of text"),
    (
        "[[rule]]\nname = \"a\"\nthen = { store = false }\n\
             [[rule]]\nname = \"a\"\nthen = { store = true }",
        "foxy.toml:4:1: rule `a`: another rule has this name",
    ),
];

#[test]
fn a_mistake_is_reported_with_its_place_and_remedy() {
    for (content, expected) in MISTAKES {
        let complaint = read_file(content).expect_err(content);
        assert!(complaint.contains(expected), "{content}\n{complaint}");
    }
}

#[test]
fn the_shown_rules_are_a_file_that_gives_the_same() {
    let content = "[[rule]]\nname = \"assets\"\nwhen = { host = [\"a.test\"], path = \"/x/*\" }\n\
                   unless = { scheme = \"https\" }\nthen = { fresh-at-least = \"1h\", query-keep = [] }\n\
                   [[rule]]\nthen = { rewrite = { from = \"/a\", to = \"/b\" } }\n";
    let first = read_file(content).expect("sound");
    let second = read_file(&show("rule", &first.rules, RULE_KEYS)).expect("sound");
    let rules = |written: &Written| {
        written.rules.iter().map(|written| written.value.clone()).collect::<Vec<_>>()
    };
    assert_eq!(rules(&first), rules(&second));
    assert_eq!(second.rules[1].value.name, "rule-2");
}

#[test]
fn only_rules_that_admit_named_clients_replace_allow_client() {
    let serves = |content: &str| {
        let rules: Vec<_> =
            read_file(content).expect(content).rules.into_iter().map(|rule| rule.value).collect();
        serve_named_clients_alone(&rules)
    };
    let rule = |when: &str, unless: &str, access: &str| {
        format!(
            "[[rule]]\nwhen = {{ {when} }}\nunless = {{ {unless} }}\nthen = {{ access = \"{access}\" }}\n"
        )
    };
    let (office, others) = ("client = \"10.9.0.0/16\"", "host = \"x.test\"");
    let allow =
        |when: &str| format!("[[rule]]\nwhen = {{ {when} }}\nthen = {{ access = \"allow\" }}\n");
    let deny_others = rule("", office, "deny");
    assert!(serves(&allow(office)) && serves(&deny_others));
    let two = |other: &str| {
        let list = format!("unless = [{{ {office} }}, {{ {other} }}]");
        format!("[[rule]]\n{list}\nthen = {{ access = \"deny\" }}\n")
    };
    assert!(serves(&two("client = \"10.8.0.1\"")) && !serves(&two(others)));
    assert!(!serves(&allow(others)) && !serves(&rule(others, office, "deny")));
    assert!(!serves(&[allow(office), allow(others)].concat()));
    assert!(!serves(&[allow(""), deny_others].concat()));
    assert!(!serves("[[rule]]\nwhen = { client = \"10.9.0.7\" }\nthen = { access = \"deny\" }\n"));
}
