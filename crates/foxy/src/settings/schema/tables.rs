//! Generates the JSON Schema of the lists `[[rule]]` and `[[origin]]`.

use super::{SIZE_PATTERN, TIME_PATTERN, object};
use crate::settings::origins::{self, OriginKey};
use crate::settings::rules::keys::{KEYS, RuleKey, RulePart};
use serde_json::{Map, Value, json};

/// Regular expression for texts that are a status of a final response.
const STATUS_PATTERN: &str = r"^\+?0*[2-5][0-9][0-9]$";
/// Regular expression for a port or a range of ports.
const PORT_PATTERN: &str = r"^\s*\+?[0-9]+\s*(-\s*\+?[0-9]+\s*)?$";
/// Regular expression for a day or a range of days.
const DAYS_PATTERN: &str = concat!(
    r"^\s*([mM][oO][nN]|[tT][uU][eE]|[wW][eE][dD]|[tT][hH][uU]|[fF][rR][iI]|[sS][aA][tT]",
    r"|[sS][uU][nN])\s*(-\s*([mM][oO][nN]|[tT][uU][eE]|[wW][eE][dD]|[tT][hH][uU]",
    r"|[fF][rR][iI]|[sS][aA][tT]|[sS][uU][nN])\s*)?$"
);
const HOURS_PATTERN: &str = r"^\s*\+?[0-9]+:\+?[0-9]+\s*-\s*\+?[0-9]+:\+?[0-9]+\s*$";
const RATE_PATTERN: &str = r"^\s*\+?0*[1-9][0-9]*\s*/\s*[smh]\s*$";
const BANDWIDTH_PATTERN: &str = r"^\s*[0-9]+\s*([bB]|[kKmMgGtT]([iI]?[bB])?)?\s*/s\s*$";

/// Returns the schema of the list of rules.
pub fn rules() -> Value {
    let part = |part: RulePart| {
        let keys = KEYS.iter().filter(|key| key.0 == part);
        object(keys.map(|RuleKey(_, key, example, doc)| described(key, example, doc)).collect())
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
pub fn one_or_tables(one: Value) -> Value {
    let keys = origins::KEYS.iter();
    let mut table =
        object(keys.map(|OriginKey(key, example, doc)| described(key, example, doc)).collect());
    table["required"] = json!(["servers"]);
    let mut both = one.clone();
    if let Some(map) = both.as_object_mut() {
        map.retain(|key, _| key == "description" || key == "examples");
    }
    both["anyOf"] = json!([one, { "type": "array", "items": table }]);
    both
}

fn described(key: &str, example: &str, doc: &str) -> (String, Value) {
    let mut schema = of_key(key, &example_of(example));
    schema["description"] = doc.into();
    (key.to_owned(), schema)
}

fn example_of(toml: &str) -> Value {
    let table: toml::Table =
        format!("v = {toml}").parse().expect("the examples of rules are sound; a test reads them");
    serde_json::to_value(&table["v"]).expect("no value has another form in JSON")
}

/// Returns the schema of a key. Its example tells whether the key takes a list.
fn of_key(key: &str, example: &Value) -> Value {
    let first = example.as_array().and_then(|values| values.first()).unwrap_or(example);
    let item = form(key).unwrap_or_else(|| of_type(first));
    if !example.is_array() {
        return item;
    }
    let mut list = json!({ "type": "array", "items": item });
    if matches!(key, "servers" | "upstream") {
        list["minItems"] = 1.into();
    }
    json!({ "anyOf": [item, list] })
}

fn of_type(example: &Value) -> Value {
    let name = match example {
        Value::Bool(_) => "boolean",
        Value::String(_) => "string",
        _ => "object",
    };
    json!({ "type": name })
}

/// Returns the schema for one value of a key whose values have a special form.
fn form(key: &str) -> Option<Value> {
    let text = |pattern: &str| json!({ "type": "string", "pattern": pattern });
    let number = |least: u32, most: u32, pattern: &str| {
        let integer = json!({ "type": "integer", "minimum": least, "maximum": most });
        json!({ "anyOf": [integer, text(pattern)] })
    };
    Some(match key {
        "access" => json!({ "enum": ["allow", "deny"] }),
        "scheme" => json!({ "enum": ["http", "https"] }),
        "http2" => json!({ "enum": ["auto", "off", "prior-knowledge"] }),
        "proxy-protocol" => json!({ "enum": ["v1", "v2"] }),
        "status" => number(200, 599, STATUS_PATTERN),
        "port" => number(1, u16::MAX.into(), PORT_PATTERN),
        "days" => text(DAYS_PATTERN),
        "hours" => text(HOURS_PATTERN),
        "rate-limit" => text(RATE_PATTERN),
        "bandwidth-limit" => text(BANDWIDTH_PATTERN),
        "size-at-least" | "size-at-most" => text(SIZE_PATTERN),
        "fresh-at-least"
        | "fresh-at-most"
        | "negative-fresh"
        | "stale-while-revalidate"
        | "stale-if-error"
        | "probe-interval"
        | "connect-timeout"
        | "head-timeout" => text(TIME_PATTERN),
        "rewrite" => {
            let strings = json!({ "from": { "type": "string" }, "to": { "type": "string" } });
            table(strings, &["from", "to"])
        }
        "heuristic" => {
            let percent = json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX });
            let time = text(TIME_PATTERN);
            table(json!({ "at-least": time, "percent": percent, "at-most": time }), &["at-most"])
        }
        "request-header-set" | "response-header-set" => {
            json!({ "type": "object", "additionalProperties": { "type": "string" } })
        }
        // foxy reads a number in place of these texts as a text.
        "user"
        | "method"
        | "host"
        | "hosts"
        | "ca"
        | "url"
        | "query"
        | "header"
        | "content-type"
        | "query-ignore"
        | "query-keep"
        | "request-header-remove"
        | "response-header-remove" => {
            json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] })
        }
        _ => return None,
    })
}

fn table(properties: Value, required: &[&str]) -> Value {
    let mut table = object(Map::new());
    table["properties"] = properties;
    table["required"] = json!(required);
    table
}
