//! Hides secrets in rules that foxy shows: values of header fields and query parameters whose names
//! say that they are secret. Exported traces hide such query parameters too.

use toml::{Table, Value};

/// The text that replaces a secret.
const HIDDEN: &str = "***";
/// If a name contains one of these texts, its value is secret.
const SECRET_NAMES: [&str; 9] =
    ["auth", "cookie", "credential", "key", "passw", "secret", "session", "signature", "token"];
/// Names of secret fields and parameters that contain none of these texts.
const OTHER_SECRET_NAMES: [&str; 1] = ["sig"];
/// Names that are not secrets, although they contain one of these texts.
const OPEN_NAMES: [&str; 2] = ["surrogate-key", "sec-websocket-key"];

/// Returns whether the value of a field or query parameter of this name is secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    let is_named = SECRET_NAMES.iter().any(|part| name.contains(part));
    !OPEN_NAMES.contains(&&*name) && (is_named || OTHER_SECRET_NAMES.contains(&&*name))
}

/// Returns the table of a rule without its secrets.
pub fn hidden(table: &Table) -> Table {
    let entry = |(key, value): (&String, &Value)| {
        let value = match (key.as_str(), value) {
            ("request-header-set" | "response-header-set", Value::Table(fields)) => {
                Value::Table(fields.iter().map(hidden_field).collect())
            }
            ("header" | "query", value) => hidden_pair(value),
            (_, value) => hidden_inside(value),
        };
        (key.clone(), value)
    };
    table.iter().map(entry).collect()
}

fn hidden_inside(value: &Value) -> Value {
    match value {
        Value::Table(table) => Value::Table(hidden(table)),
        Value::Array(values) => Value::Array(values.iter().map(hidden_inside).collect()),
        value => value.clone(),
    }
}

fn hidden_field((name, value): (&String, &Value)) -> (String, Value) {
    let value = if is_secret(name) { HIDDEN.into() } else { value.clone() };
    (name.clone(), value)
}

/// Hides the pattern in a condition such as `Cookie: PATTERN` or `token=PATTERN`.
fn hidden_pair(value: &Value) -> Value {
    match value {
        Value::Array(values) => Value::Array(values.iter().map(hidden_pair).collect()),
        Value::String(text) => match text.find([':', '=']) {
            Some(end) if is_secret(&text[..end]) => format!("{}{HIDDEN}", &text[..=end]).into(),
            _ => value.clone(),
        },
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_under_secret_names_are_hidden() {
        let rule = r#"
            name = "token"
            unless = [{ query = "key=SECRET" }, { query = "page=7" }]
            [when]
            host = "auth.test"
            header = ["X-Api-Key: SECRET", "Cookie", "Accept: text/*"]
            [then.request-header-set]
            authorization = "Bearer SECRET"
            X-Cache = "foxy"
            [then.response-header-set]
            Set-Cookie = ["a=SECRET"]
            Surrogate-Key = "news"
        "#;
        let shown = hidden(&rule.parse().expect("TOML")).to_string();
        assert!(!shown.contains("SECRET"), "{shown}");
        for part in [
            "\"token\"",
            "auth.test",
            "X-Api-Key:***",
            "\"Cookie\"",
            "Accept: text/*",
            "key=***",
            "page=7",
            "X-Cache = \"foxy\"",
            "\"news\"",
            "authorization = \"***\"",
        ] {
            assert!(shown.contains(part), "no {part} in {shown}");
        }
    }
}
