//! Tests of the JSON Schema: the schema and foxy accept the same values.

use super::*;
use crate::settings::mistakes;
use crate::settings::origins;
use crate::settings::rules::keys::{KEYS, RuleKey, RulePart};
use foxy_base::Random;
use foxy_cli::machine::Machine;
use regex::bytes::RegexBuilder;

/// Returns whether `value` matches `schema`. Supports all keywords that [`text`] writes.
fn is_valid(value: &Value, schema: &Value) -> bool {
    let has_type = match schema["type"].as_str() {
        None => true,
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("the schema has the type {other}"),
    };
    let branches = |keyword: &str| {
        schema[keyword]
            .as_array()
            .map(|all| all.iter().filter(|branch| is_valid(value, branch)).count())
    };
    let number = value.as_u64().unwrap_or(0);
    let has_pattern = |pattern: &str| {
        let regex = RegexBuilder::new(pattern).unicode(false).build().expect("an expression");
        regex.is_match(value.as_str().unwrap_or_default().as_bytes())
    };
    let has_required = |keys: &Vec<Value>| {
        keys.iter().all(|key| value.get(key.as_str().unwrap_or_default()).is_some())
    };
    let is_in_object = |(name, value): (&String, &Value)| match (
        schema["properties"].get(name),
        &schema["additionalProperties"],
    ) {
        (Some(schema), _) | (None, schema @ Value::Object(_)) => is_valid(value, schema),
        (None, others) => *others != Value::Bool(false),
    };
    has_type
        && branches("anyOf").is_none_or(|count| count >= 1)
        && branches("oneOf").is_none_or(|count| count == 1)
        && schema["enum"].as_array().is_none_or(|words| words.contains(value))
        && schema["pattern"].as_str().is_none_or(has_pattern)
        && schema["required"].as_array().is_none_or(has_required)
        && schema["minItems"].as_u64().is_none_or(|_| value != &json!([]))
        && schema.get("const").is_none_or(|word| word == value)
        && schema["minimum"]
            .as_u64()
            .is_none_or(|least| value.as_i64().is_none_or(|number| number >= 0) && number >= least)
        && schema["maximum"].as_u64().is_none_or(|most| number <= most)
        && (schema["type"] != "array"
            || value
                .as_array()
                .is_some_and(|all| all.iter().all(|value| is_valid(value, &schema["items"]))))
        && (schema["type"] != "object"
            || value.as_object().is_some_and(|all| all.iter().all(is_in_object)))
}

fn parsed() -> Value {
    serde_json::from_str(&text()).expect("JSON")
}

fn toml_as_json(text: &str) -> Value {
    let table: toml::Table = text.parse().expect("TOML");
    serde_json::to_value(table).expect("no value has another form in JSON")
}

#[test]
fn the_settings_that_check_prints_are_valid() {
    let machine = Machine { cores: 2, cache_folder: "/c".into(), ..Machine::default() };
    let loaded = crate::settings::load(None, None, &machine);
    let shown = loaded.unwrap_or_else(|all| panic!("{all}")).show();
    let value = toml_as_json(&shown);
    assert!(value["timeouts"]["connect"].is_string(), "{shown}");
    assert!(is_valid(&value, &parsed()), "{shown}");
}

#[test]
fn every_setting_is_described_and_its_default_and_example_are_valid() {
    let root = parsed();
    for setting in rows::all() {
        let schema = match setting.key.split_once('.') {
            None => &root["properties"][setting.key],
            Some((table, name)) => &root["properties"][table]["properties"][name],
        };
        let description = schema["description"].as_str().expect("a description");
        assert!(description.starts_with(&setting.doc()), "{}", setting.key);
        let fixed = matches!(setting.default, Preset::Fixed(_));
        assert_eq!(schema.get("default").is_some(), fixed, "{}", setting.key);
        for value in schema
            .get("default")
            .into_iter()
            .chain(schema["examples"].as_array().into_iter().flatten())
        {
            assert!(is_valid(value, schema), "{}: {value}", setting.key);
        }
    }
}

#[test]
fn the_examples_of_the_documents_and_packages_are_valid() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |path: &str| std::fs::read_to_string(root.join(path)).expect("there");
    let mut examples = vec![read("packaging/debian/foxy.toml")];
    examples.push(read("packaging/kubernetes/foxy.toml"));
    examples.push(read("crates/foxy/tests/import/squid-office.toml"));
    for document in ["docs/configuration.md", "docs/operation.md"] {
        let text = read(document);
        let blocks = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
        examples.extend(blocks.map(ToOwned::to_owned));
    }
    assert!(examples.len() >= 7, "{examples:?}");
    for example in examples {
        assert_eq!(crate::settings::mistakes(&example), None, "{example}");
        assert!(is_valid(&toml_as_json(&example), &parsed()), "{example}");
    }
}

#[test]
fn mistakes_are_invalid() {
    for file in [
        "sise = \"10G\"",
        "size = true",
        "size = 1",
        "workers = \"2\"",
        "workers = 0",
        "connect-ports = [0]",
        "scheme = \"tape\"",
        "origin = [\"http://a.test\"]",
        "timeouts = 5",
        "timeouts.conect = \"1s\"",
    ] {
        assert!(!is_valid(&toml_as_json(file), &parsed()), "{file}");
    }
}

/// Values of every type, in TOML.
const VALUES: &[&str] = &[
    "-1",
    "0",
    "1",
    "80",
    "100",
    "199",
    "200",
    "404",
    "599",
    "600",
    "65535",
    "65536",
    "99999999999",
    "true",
    "false",
    "1.5",
    "[]",
    "['deny']",
    "[200, '404']",
    "[100]",
    "['gzip', 'br']",
    "['deflate']",
    "[true]",
    "{}",
    "{ a = 1 }",
    "{ from = '/a', to = '/b' }",
    "{ at-most = '1s' }",
    "{ at-most = 1 }",
    "{ X-A = 'b' }",
    "{ X-A = 1 }",
    "''",
    "'allow'",
    "'deny'",
    "'Deny'",
    "'http'",
    "'https'",
    "'ftp'",
    "'gzip'",
    "'zstd'",
    "'br'",
    "'deflate'",
    "'200'",
    "'0404'",
    "'404'",
    "'199'",
    "'600'",
    "'x'",
    "'mon'",
    "'Mon-fri'",
    "'day'",
    "'8:00-18:00'",
    "'10/s'",
    "'0/s'",
    "'1M/s'",
    "'1M'",
    "'10 GiB'",
    "'1s'",
    "'5 m'",
    "'-1'",
    "'1.5'",
    "'direct'",
    "'v1'",
    "'off'",
    "'/a'",
];

/// Fragments of random texts.
const FRAGMENTS: [&str; 24] = [
    "0", "1", "99", "200", "404", "600", "k", "M", "iB", "s", "ms", "h", "/", "-", ":", "mon",
    "SUN", "allow", "deny", "gzip", "br", "http", " ", "+",
];

/// Returns [`VALUES`] and random texts, in TOML.
fn values() -> Vec<String> {
    let mut random = Random::new(7);
    let mut text = || {
        let count = 1 + random.below(4);
        let fragments = (0..count).map(|_| {
            let at = usize::try_from(random.below(FRAGMENTS.len() as u64)).expect("a small number");
            FRAGMENTS[at]
        });
        format!("'{}'", fragments.collect::<String>())
    };
    let random: Vec<String> = (0..60).map(|_| text()).collect();
    VALUES.iter().map(ToString::to_string).chain(random).collect()
}

/// Checks that the schema accepts the value of each file that foxy accepts, and with `is_exact` no
/// other value.
#[track_caller]
fn compare(file: impl Fn(&str) -> String, schema: &Value, is_exact: bool) {
    for value in values() {
        let file = file(&value);
        let mistake = mistakes(&file);
        let matches = is_valid(&toml_as_json(&file), schema);
        assert!(matches || mistake.is_some(), "the schema refuses what foxy accepts: {file}");
        assert!(!(matches && is_exact) || mistake.is_none(), "{file}: {mistake:?}");
    }
}

#[test]
fn the_schema_and_foxy_accept_the_same_values_of_settings() {
    let root = parsed();
    for setting in rows::all() {
        let is_exact = !setting.kind.words().is_empty()
            || matches!(setting.kind, Kind::Codings(_) | Kind::Count { .. } | Kind::Ports(_));
        compare(|value| format!("{} = {value}", setting.key), &root, is_exact);
    }
}

/// Keys of rules with values that the schema describes exactly.
const EXACT_KEYS: &[&str] = &[
    "access",
    "bypass",
    "days",
    "fresh-at-least",
    "fresh-at-most",
    "heuristic",
    "login",
    "message",
    "negative-fresh",
    "query-sort",
    "rate-limit",
    "scheme",
    "server-timing",
    "status",
    "store",
    "store-set-cookie",
    "stale-if-error",
];

#[test]
fn the_schema_and_foxy_accept_the_same_values_in_rules_and_origins() {
    let root = parsed();
    for RuleKey(part, key, ..) in KEYS {
        let file = |value: &str| match part {
            RulePart::Condition => {
                let is_of_response = ["content-type", "status", "size-at-least", "size-at-most"];
                let then =
                    if is_of_response.contains(key) { "store = false" } else { "bypass = true" };
                format!("[[rule]]\nwhen = {{ {key} = {value} }}\nthen = {{ {then} }}\n")
            }
            RulePart::Effect => format!("[[rule]]\nthen = {{ {key} = {value} }}\n"),
        };
        compare(file, &root, EXACT_KEYS.contains(key));
    }
    for key in origins::keys() {
        let servers = if key == "servers" { "" } else { "servers = 'http://10.0.0.1'\n" };
        let file = |value: &str| format!("[[origin]]\n{servers}{key} = {value}\n");
        compare(file, &root, ["http2", "proxy-protocol"].contains(&key));
    }
}
