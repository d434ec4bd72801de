//! Generates the JSON Schema (draft 2020-12) of the configuration file from the table of settings.

use super::docs::bounds;
use super::kind::{Kind, Preset, Setting};
use super::origins::{self, OriginKey};
use super::rows;
use super::rules::keys::{KEYS, RuleKey, RulePart};
use serde_json::{Map, Value, json};

/// Regular expression for texts that `ByteSize` accepts.
const SIZE_PATTERN: &str = r"^\s*[0-9]+\s*([bB]|[kKmMgGtT]([iI]?[bB])?)?\s*$";
/// Regular expression for texts that `parse_duration` accepts.
const TIME_PATTERN: &str = r"^\s*[0-9]+\s*(ms|s|m|h|d)\s*$";
/// Regular expression for texts that `values::origin` accepts.
const ORIGIN_PATTERN: &str = r"^[hH][tT][tT][pP][sS]?://[^/?#@ ]+/?$";

/// Returns the whole schema as JSON text.
pub fn text() -> String {
    let mut properties = Map::new();
    for setting in rows::all() {
        let schema = schema(setting);
        match setting.key.split_once('.') {
            None => {
                properties.insert(setting.key.into(), schema);
            }
            Some((table, name)) => {
                let table = properties.entry(table).or_insert_with(|| object(Map::new()));
                table["properties"][name] = schema;
            }
        }
    }
    properties.insert("rule".into(), rules());
    if let Some(one) = properties.remove("origin") {
        properties.insert("origin".into(), one_or_tables(one));
    }
    let mut root = object(properties);
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "foxy.toml".into();
    root["description"] = "The configuration file of the foxy caching proxy.".into();
    serde_json::to_string_pretty(&root).expect("a Value is JSON")
}

/// Returns the schema of the list of rules. The example of a key determines the type of its values.
fn rules() -> Value {
    let part = |part: RulePart| {
        let keys = KEYS.iter().filter(|key| key.0 == part);
        object(
            keys.map(|RuleKey(_, key, example, doc)| {
                let mut schema = type_of(&example_of(example));
                schema["description"] = (*doc).into();
                ((*key).to_owned(), schema)
            })
            .collect(),
        )
    };
    let conditions = part(RulePart::Condition);
    let mut rule = object(Map::new());
    rule["properties"] = json!({
        "name": { "type": "string", "description": "Name in explanations and metrics." },
        "when": conditions,
        "unless": { "anyOf": [conditions, { "type": "array", "items": conditions }] },
        "then": part(RulePart::Effect),
    });
    rule["required"] = json!(["then"]);
    json!({ "type": "array", "items": rule, "description": "Rules of the operator, in order." })
}

/// Returns the schema of `origin`: a single URL, or the list of `[[origin]]` tables.
fn one_or_tables(one: Value) -> Value {
    let keys = origins::KEYS.iter().map(|OriginKey(key, example, doc)| {
        let mut schema = type_of(&example_of(example));
        schema["description"] = (*doc).into();
        ((*key).to_owned(), schema)
    });
    let mut table = object(keys.collect());
    table["required"] = json!(["servers"]);
    let mut both = one.clone();
    if let Some(map) = both.as_object_mut() {
        map.retain(|key, _| key == "description" || key == "examples");
    }
    both["anyOf"] = json!([one, { "type": "array", "items": table }]);
    both
}

fn example_of(toml: &str) -> Value {
    let table: toml::Table =
        format!("v = {toml}").parse().expect("the examples of rules are sound; a test reads them");
    serde_json::to_value(&table["v"]).expect("no value has another form in JSON")
}

fn type_of(example: &Value) -> Value {
    let name = |value: &Value| match value {
        Value::String(_) => "string",
        Value::Number(_) => "integer",
        Value::Bool(_) => "boolean",
        _ => "object",
    };
    let Value::Array(values) = example else {
        return json!({ "type": name(example) });
    };
    let mut items: Vec<Value> = values.iter().map(|value| json!({ "type": name(value) })).collect();
    items.dedup();
    let item = if items.len() == 1 { items.remove(0) } else { json!({ "anyOf": items }) };
    json!({ "anyOf": [item, { "type": "array", "items": item }] })
}

fn object(properties: Map<String, Value>) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn schema(setting: &Setting) -> Value {
    let notation = setting.kind.notation();
    let item = item(&setting.kind);
    let mut schema = if notation.is_list {
        json!({ "anyOf": [item, { "type": "array", "items": item }] })
    } else {
        item
    };
    let mut description = setting.doc();
    if let Some(bounds) = bounds(&setting.kind) {
        description = format!("{description} Bounds: {bounds}.");
    }
    match &setting.default {
        Preset::Fixed(texts) => schema["default"] = default(setting, texts),
        prose => {
            schema["examples"] = json!([value(setting, notation.example)]);
            description = format!("{description} Default: {prose}.");
        }
    }
    schema["description"] = description.into();
    schema
}

/// Returns the schema for one value of a setting. A setting that is a list has several values.
fn item(kind: &Kind) -> Value {
    let words = kind.words();
    if !words.is_empty() {
        let words =
            words.iter().map(|(word, meaning)| json!({ "const": word, "description": meaning }));
        return json!({ "type": "string", "oneOf": words.collect::<Vec<_>>() });
    }
    match kind {
        Kind::Size { at_least, at_most, .. } => json!({ "anyOf": [
            { "type": "string", "pattern": SIZE_PATTERN },
            { "type": "integer", "minimum": at_least.0, "maximum": at_most.0 },
        ] }),
        Kind::Count { at_least, at_most, .. } => {
            json!({ "type": "integer", "minimum": at_least, "maximum": at_most })
        }
        Kind::Ports(_) => json!({ "type": "integer", "minimum": 1, "maximum": u16::MAX }),
        Kind::Span { .. } => json!({ "type": "string", "pattern": TIME_PATTERN }),
        Kind::Origin(_) => json!({ "type": "string", "pattern": ORIGIN_PATTERN }),
        _ => json!({ "type": "string" }),
    }
}

fn default(setting: &Setting, texts: &[&str]) -> Value {
    let mut values: Vec<Value> = texts.iter().map(|text| value(setting, text)).collect();
    if setting.kind.notation().is_list { values.into() } else { values.remove(0) }
}

fn value(setting: &Setting, text: &str) -> Value {
    if setting.kind.notation().is_number {
        let number: u64 = text.parse().expect("the table's numbers are sound; a test reads them");
        number.into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_cli::machine::Machine;

    /// Returns whether `value` matches `schema`. Supports all keywords that [`text`] writes, except
    /// `pattern`: other tests check texts with the parsers.
    fn is_valid(value: &Value, schema: &Value) -> bool {
        let has_type = match schema["type"].as_str() {
            None => true,
            Some("string") => value.is_string(),
            Some("integer") => value.is_u64(),
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
        let is_in_object = |(name, value): (&String, &Value)| {
            let Some(listed) = schema.get("properties") else { return true };
            listed.get(name).is_some_and(|schema| is_valid(value, schema))
        };
        has_type
            && branches("anyOf").is_none_or(|count| count >= 1)
            && branches("oneOf").is_none_or(|count| count == 1)
            && schema.get("const").is_none_or(|word| word == value)
            && schema["minimum"].as_u64().is_none_or(|least| number >= least)
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
            let blocks =
                text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
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
}
