//! Generates `docs/configuration.md` from the table of settings.

use super::kind::{Kind, MIN_SPAN, Notation, Preset, Setting};
use super::origins::{self, OriginKey};
use super::rows;
use super::rules::keys::{KEYS, RuleKey, RulePart};
use super::values::exact;
use foxy_cli::units::show_duration;
use std::fmt::Write;

const OPENING: &str = "\
<!-- Made from the table of settings by `foxy check --print-docs`; a test compares. Edit the \
table. -->
# Configuration

foxy needs no configuration. Flags override environment variables, such as \
`FOXY_TIMEOUTS_CONNECT=5s` or `FOXY_CONNECT_PORTS=443,8443`. Environment variables override a TOML \
file. `--config` or `FOXY_CONFIG` names this file. Without a name, foxy reads \
`$XDG_CONFIG_HOME/foxy/foxy.toml` (usually `~/.config/foxy/foxy.toml`), else \
`/etc/foxy/foxy.toml`, if it exists.

`foxy check [FILE]` tests a configuration. The command opens what `foxy serve` would open, changes \
nothing, and prints every setting in force. `-` as FILE means standard input. `foxy check \
--print-schema` prints a JSON Schema for editors.

```toml
listen = \"0.0.0.0:3128\"
allow-client = [\"192.168.0.0/16\"]
store = [\"/disk1/foxy\", \"/disk2/foxy\"]
size = \"200G\"
connect-ports = 443
allow-destination = [\"10.0.0.0/8\"]

[timeouts]
connect = \"5s\"
```

Sizes are written `512M`, `10G` or `2TiB`; units are binary. Times are written `500ms`, `30s`, \
`5m`, `2h` or `1d`. A time may be from 10ms to 1d unless other bounds are given. In the file a \
list is one value or an array. A flag marked … takes a list if you repeat it. The table \
`[timeouts]` contains the settings named `timeouts.NAME`; other tables work alike.
";

const RULES: &str = "
## Rules

Each `[[rule]]` of the file has conditions (`when`, `unless`) and effects (`then`):

```toml
[[rule]]
name = \"assets\"
when = { host = \"example.org\", path = \"/assets/*\" }
unless = { query = \"preview\" }
then = { fresh-at-least = \"1h\", query-ignore = [\"utm_*\", \"signature\"] }
```

A rule matches if all conditions of `when` hold, and not all conditions of `unless` hold. If \
`unless` is a list of tables, each table is an exception of its own. A condition with a list \
holds if one of its values matches. For each effect, the first matching rule with this effect \
decides; each header field is an effect of its own. `foxy explain` shows each rule that foxy \
tries, and `foxy_rule_requests_total` counts the requests of each rule.

In patterns `*` is any text, `?` a character, `[a-z]` one of several, `{a,b}` an alternative, \
`\\*` a star. After `(?i)` case does not matter: `User-Agent: (?i)*badbot*`.

Servers may read the paths `/x/.git/../y`, `/x\\y` and `/x;v=1/y`, or the method `get`, in several \
ways. If one reading matches, `deny` applies; `allow` and `login = false` need all.

All clients share the cache. So only `access`, `bypass`, `rewrite`, `redirect`, `login`, \
`rate-limit`, `bandwidth-limit` and `server-timing` may depend on `client`, `method`, `header`, \
`days` and `hours`. In a rule with `bypass = true`, `request-header-…` may also depend on them. \
Rules about responses, and `foxy purge`, compare the URL of the cache key, which is the URL after \
`rewrite`. A rule may not depend on a query parameter that another rule leaves out of the cache \
key.
";

const ORIGINS: &str = "
## Origins

Each `[[origin]]` is an origin of foxy as a reverse proxy:

```toml
[[origin]]
hosts = \"shop.example\"
servers = [\"http://10.0.0.1:8080\", \"http://10.0.0.2:8080\"]
probe = \"/health\"
```

The first origin whose host and path match receives the request. If none matches, foxy answers 421 \
(host) or 404 (path). Keys:

";

const COLUMNS: usize = 100;

pub fn markdown() -> String {
    let mut text = OPENING.to_owned();
    let mut chapter = "";
    for setting in rows::all() {
        if setting.chapter != chapter {
            chapter = setting.chapter;
            text.push_str(&format!("\n## {chapter}\n"));
        }
        section(&mut text, setting).expect("a String takes all");
    }
    text.push_str(ORIGINS);
    for OriginKey(key, example, doc) in origins::KEYS {
        text.push_str(&format!("- `{key} = {example}`: {doc}\n"));
    }
    text.push_str(RULES);
    for part in [RulePart::Condition, RulePart::Effect] {
        let heading = if part == RulePart::Condition { "`when` and `unless`" } else { "`then`" };
        text.push_str(&format!("\nKeys of {heading}:\n\n"));
        for RuleKey(_, key, example, doc) in KEYS.iter().filter(|key| key.0 == part) {
            text.push_str(&format!("- `{key} = {example}`: {doc}\n"));
        }
    }
    wrapped(&text)
}

/// Wraps `text` at spaces so that lines have at most [`COLUMNS`] columns. Does not wrap inside text
/// in backquotes.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut in_code = false;
    for paragraph in text.split_inclusive('\n').map(str::trim_end) {
        in_code ^= paragraph.starts_with("```");
        let indent = if paragraph.starts_with("- ") { "  " } else { "" };
        let mut column = 0;
        for word in paragraph.split(' ').filter(|_| !in_code) {
            let length = word.chars().count();
            if column > 0 && column + 1 + length > COLUMNS {
                out.push('\n');
                out.push_str(indent);
                column = indent.len();
            } else if column > 0 {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += length;
        }
        if in_code {
            out.push_str(paragraph);
        }
        out.push('\n');
    }
    out
}

fn section(text: &mut String, setting: &Setting) -> std::fmt::Result {
    write!(text, "\n### `{}`\n\n{}\n\n", setting.key, setting.doc())?;
    let words = setting.kind.words();
    for (word, meaning) in &words {
        writeln!(text, "- `{word}`: {meaning}")?;
    }
    if !words.is_empty() {
        text.push('\n');
    }
    if let Some(flag) = setting.flag {
        let Notation { placeholder, is_list, .. } = setting.kind.notation();
        let repeats = if is_list { "…" } else { "" };
        write!(text, "`--{flag} {placeholder}{repeats}`. ")?;
    }
    let has_usual_bounds = matches!(setting.kind, Kind::Span { at_least: MIN_SPAN, .. });
    if !has_usual_bounds && let Some(bounds) = bounds(&setting.kind) {
        write!(text, "{bounds}. ")?;
    }
    match &setting.default {
        Preset::Fixed([]) => writeln!(text),
        Preset::Fixed(_) => writeln!(text, "Default: `{}`.", setting.default),
        Preset::Computed(prose) | Preset::Nothing(prose) => writeln!(text, "Default: {prose}."),
    }
}

/// Describes the smallest and largest value that a setting accepts.
pub fn bounds(kind: &Kind) -> Option<String> {
    match kind {
        Kind::Size { at_least, at_most, .. } => {
            Some(format!("{} to {}", exact(*at_least), exact(*at_most)))
        }
        Kind::Span { at_least, at_most, .. } => {
            Some(format!("{} to {}", show_duration(*at_least), show_duration(*at_most)))
        }
        Kind::Count { at_least, at_most, .. } => Some(format!("{at_least} to {at_most}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_committed_document_is_made_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == markdown(),
            "docs/configuration.md is out of date; write it anew: \
             cargo run -- check --print-docs > target/new.md \
             && cp target/new.md docs/configuration.md"
        );
    }

    #[test]
    fn keys_and_flags_are_unique_and_documents_are_sentences() {
        let keys: BTreeSet<_> = rows::all().map(|setting| setting.key).collect();
        let flags: BTreeSet<_> = rows::all().filter_map(|setting| setting.flag).collect();
        assert_eq!(keys.len(), rows::all().count());
        assert_eq!(flags.len(), rows::all().filter(|setting| setting.flag.is_some()).count());
        for setting in rows::all() {
            assert!(setting.doc().ends_with('.'), "{}", setting.key);
        }
    }
}
