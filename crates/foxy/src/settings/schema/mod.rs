//! Generates the JSON Schema (draft 2020-12) of the configuration file from the table of settings.

mod tables;
#[cfg(test)]
mod tests;

use super::docs::bounds;
use super::kind::{Kind, Preset, Setting};
use super::rows;
use foxy_rules::coding::Coding;
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
    properties.insert("rule".into(), tables::rules());
    if let Some(one) = properties.remove("origin") {
        properties.insert("origin".into(), tables::one_or_tables(one));
    }
    let mut root = object(properties);
    root["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
    root["title"] = "foxy.toml".into();
    root["description"] = "The configuration file of the foxy caching proxy.".into();
    serde_json::to_string_pretty(&root).expect("a Value is JSON")
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
        Kind::Codings(_) => json!({ "enum": Coding::ALL.map(Coding::name) }),
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
