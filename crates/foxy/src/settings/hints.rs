//! Makes messages about the form of a configuration file clearer, and adds remedies.

use super::kind::{Kind, Setting};
use super::rows;
use super::rules::keys::{KEYS, RuleKey, RulePart};
use super::text::quoted;
use foxy_cli::suggestion::nearest;
use toml::de::DeValue;

/// Returns the message for text that is not TOML. `text` is the text with the mistake.
pub fn of_toml(message: &str, text: &str) -> String {
    let remedy = if text.contains(['“', '”', '„', '‘', '’']) {
        "; use straight quotes: \"…\""
    } else if message == "duplicate key" {
        "; keep only one of the two"
    } else if message.starts_with("invalid") && !text.contains('"') {
        "; write a text in quotes: \"…\""
    } else {
        ""
    };
    format!("not valid TOML: {message}{remedy}")
}

/// Returns the message for a setting that does not exist.
pub fn unknown_setting(name: &str) -> String {
    let keys = || rows::all().map(|setting| setting.key);
    let tables = keys().filter_map(|key| key.split_once('.')).map(|(table, _)| table);
    let same = keys().find(|key| words(key) == words(name));
    match same.or_else(|| nearest(name, keys().chain(tables).chain(["rule"]))) {
        Some(near) => format!("there is no setting `{name}`; did you mean `{near}`?"),
        None => format!("there is no setting `{name}`; docs/configuration.md lists all"),
    }
}

/// Returns the words of a key in alphabetical order, without the `s` of a plural.
fn words(key: &str) -> Vec<String> {
    let words = key.split(['.', '-', '_']).filter(|word| !word.is_empty());
    let mut words: Vec<_> = words.map(|word| word.trim_end_matches('s').to_lowercase()).collect();
    words.sort();
    words
}

/// Returns the message for a mistake in a table such as `[[rule]]`. `message` is serde's message.
pub fn of_table(message: &str) -> String {
    let Some((name, expected)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'))
    else {
        let message = message.replace("expected a map", "expected a table: { X-Cache = \"foxy\" }");
        return message.trim_end().to_owned();
    };
    let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
    let part = KEYS.iter().find(|RuleKey(_, key, ..)| *key == name).map(|RuleKey(part, ..)| part);
    let is_rule_key = |first: &&str| KEYS.iter().any(|RuleKey(_, key, ..)| key == first);
    let is_of_rule = known.contains(&"then") || known.first().is_some_and(is_rule_key);
    match (part, name) {
        (Some(RulePart::Condition), _) if is_of_rule => {
            format!("`{name}` belongs in `when` or `unless`: when = {{ {name} = … }}")
        }
        (Some(RulePart::Effect), _) if is_of_rule => {
            format!("`{name}` belongs in `then`: then = {{ {name} = … }}")
        }
        (None, "deny" | "allow") if is_of_rule => {
            format!("there is no key `{name}`; write then = {{ access = \"{name}\" }}")
        }
        _ => match nearest(name, known.iter().copied()) {
            Some(near) => format!("there is no key `{name}`; did you mean `{near}`?"),
            None => format!("there is no key `{name}` here; the keys are {}", known.join(", ")),
        },
    }
}

/// Returns the value that the user probably means by a value of the wrong type, in TOML.
pub fn instead(setting: &Setting, value: &DeValue<'_>) -> String {
    let notation = setting.kind.notation();
    let example = || match notation.is_number {
        true => notation.example.to_owned(),
        false => quoted(&notation.example),
    };
    let has = |word: &str| setting.kind.words().iter().any(|(known, _)| *known == word);
    match value {
        DeValue::String(text) if notation.is_list && text.contains(',') => list(text, false),
        DeValue::String(text) if text.trim().parse::<u64>().is_ok() => text.trim().to_owned(),
        DeValue::Integer(number) if matches!(setting.kind, Kind::Span { .. }) => {
            format!("\"{}s\"", number.as_str())
        }
        DeValue::Boolean(true) if has("on") => "\"on\"".to_owned(),
        DeValue::Boolean(false) if has("off") || notation.placeholder.ends_with("|off") => {
            "\"off\"".to_owned()
        }
        _ => example(),
    }
}

/// Returns a remedy if a text contains several values of a list.
pub fn several(setting: &Setting, value: &DeValue<'_>) -> String {
    match value {
        // `=` gives an option of a store.
        DeValue::String(text)
            if setting.kind.notation().is_list && text.contains(',') && !text.contains('=') =>
        {
            format!("; write several values as a list: {}", list(text, true))
        }
        _ => String::new(),
    }
}

fn list(text: &str, is_quoted: bool) -> String {
    let shown = |value: &str| if is_quoted { quoted(&value) } else { value.to_owned() };
    let values: Vec<String> = text.split(',').map(|value| shown(value.trim())).collect();
    format!("[{}]", values.join(", "))
}

#[cfg(test)]
mod tests {
    use crate::settings::file;
    use crate::settings::rows::Written;
    use std::path::Path;

    /// A file with a mistake, and the message about it.
    const MISTAKES: &[(&str, &str)] = &[
        ("listen = 127.0.0.1:3128", "invalid float, expected nothing; write a text in quotes"),
        ("listen = “:3128”", "use straight quotes"),
        ("size = \"1G\"\nsize = \"2G\"", "duplicate key; keep only one of the two"),
        ("[timeout]\nconnect = \"5s\"", "did you mean `timeouts`?"),
        ("connect-timeout = \"5s\"", "did you mean `timeouts.connect`?"),
        ("[[rules]]\nthen = {}", "did you mean `rule`?"),
        ("[origin]\nservers = \"http://a\"", "write [[origin]]"),
        ("workers = \"4\"", "`workers` takes a whole number, not a string; write 4"),
        ("timeouts.connect = 5", "`timeouts.connect` takes a text, not an integer; write \"5s\""),
        ("pac = true", "`pac` takes a text, not a boolean; write \"on\""),
        ("admin = false", "`admin` takes a text, not a boolean; write \"off\""),
        ("connect-ports = \"443,8443\"", "write [443, 8443]"),
        (
            "allow-client = \"10.0.0.0/8, ::1\"",
            "write several values as a list: [\"10.0.0.0/8\", \"::1\"]",
        ),
        ("store = \"off\"", "leave out `store` and write scheme = \"null\""),
        ("cache-dir = \"/c\"", "or name the folder in `store`"),
        ("[[origin]]\nserver = \"http://a\"", "origin 1: there is no key `server`; did you mean"),
        ("[[rule]]\nhost = \"a\"\nthen = {}", "`host` belongs in `when` or `unless`"),
        ("[[rule]]\naccess = \"deny\"\nthen = {}", "`access` belongs in `then`"),
        ("[[rule]]\nwhen = { access = \"deny\" }\nthen = {}", "`access` belongs in `then`"),
        ("[[rule]]\nthen.deny = true", "write then = { access = \"deny\" }"),
        ("[[rule]]\nwhen = { hosts = \"a\" }\nthen = {}", "no key `hosts`; did you mean `host`?"),
        ("[[rule]]\nthen = { x1 = 1 }", "there is no key `x1` here; the keys are access, message"),
        ("[[rule]]\nthen = \"deny\"", "expected a table: { access = \"deny\" }"),
        ("[[rule]]\nthen = { rewrite = \"/a /b\" }", "expected a table: { from = \"/old\","),
        ("[[rule]]\nthen = { response-header-set = \"A: b\" }", "expected a table: { X-Cache"),
        ("[[rule]]\nthen = { fresh-at-least = 3600 }", "duration \"3600\" is not a whole number"),
        ("[[rule]]\nthen = { rate-limit = 10 }", "`10` is not a rate; write 10/s"),
        ("[[rule]]\nthen = { stale-if-error = true }", "invalid type: boolean `true`"),
        (
            "[[rule]]\nwhen = { method = \"GET, PUT\" }\nthen = { bypass = true }",
            "`GET, PUT` is not a method; write GET or [\"GET\", \"HEAD\"]",
        ),
        (
            "[[rule]]\nwhen = { header = \"User-Agent = x\" }\nthen = { bypass = true }",
            "`User-Agent = x` is not a name of a field; write NAME or NAME: PATTERN",
        ),
        (
            "[[rule]]\nwhen = { query = \"a, b\" }\nthen = { store = false }",
            "`a, b` is not a name of a parameter",
        ),
        (
            "[[rule]]\nthen = { query-ignore = \"utm_*, sig\" }",
            "`utm_*, sig` is not a name of a parameter; write a list: [\"utm_*\", \"sig\"]",
        ),
        (
            "[[rule]]\nwhen = { url = \"(\" }\nthen = { bypass = true }",
            "`(` is not a usable regular expression: unclosed group\n  |",
        ),
        (
            "[[rule]]\nwhen = { host = \"http://a.test\" }\nthen = { bypass = true }",
            "`http://a.test` is a URL; write its host alone",
        ),
        (
            "[[rule]]\nwhen = { host = \"a.test/x\" }\nthen = { bypass = true }",
            "`a.test/x` is not a host; write the path in `path`",
        ),
    ];

    #[test]
    fn common_mistakes_are_told_with_a_remedy() {
        for (content, expected) in MISTAKES {
            let read = file::read(Path::new("foxy.toml"), content, &mut Written::default());
            let message = read.expect_err(content).to_string();
            assert!(message.contains(expected), "{content}\n{message}");
        }
    }
}
