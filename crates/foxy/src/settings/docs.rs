//! `docs/configuration.md`, made from the table of settings.

use super::kind::{Area, Kind, Preset, Setting};
use super::rows;
use super::units::show_duration;
use super::values::exact;
use std::fmt::Write;

const OPENING: &str = "\
<!-- Made from the table of settings by `foxy check --print-docs`; a test compares. Edit the \
table. -->
# Configuration

foxy needs no configuration. What you set is taken from the command line first, then from a TOML \
file, then from the defaults below. The file is the one `--config` names; without that flag \
`$XDG_CONFIG_HOME/foxy/foxy.toml` (usually `~/.config/foxy/foxy.toml`) if there is one, else \
`/etc/foxy/foxy.toml` if there is one.

`foxy check FILE` says whether a file is sound and prints every setting that would be in force. A \
setting that does not exist is refused, not ignored.

```toml
listen = \"0.0.0.0:3128\"
store = [\"/disk1/foxy\", \"/disk2/foxy\"]
size = \"200G\"
allow-destination = [\"10.0.0.0/8\"]

[timeouts]
connect = \"5s\"
```

Sizes are `512M`, `10G`, `2TiB`; units are binary. Times are `500ms`, `30s`, `5m`, `2h`, `1d`. \
Lists can be given as one value or as an array in the file, and by repeating the flag on the \
command line.
";

const COLUMNS: usize = 100;

/// The whole document.
pub fn markdown() -> String {
    let mut text = OPENING.to_owned();
    for area in Area::ALL {
        write!(text, "\n## {}\n", area.heading()).expect("a String takes all");
        for setting in rows::all().filter(|setting| setting.area == area) {
            chapter(&mut text, setting).expect("a String takes all");
        }
    }
    wrapped(&text)
}

/// The text with lines of at most [`COLUMNS`] columns, where a space allows it. Code stays as it is.
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

fn chapter(text: &mut String, setting: &Setting) -> std::fmt::Result {
    write!(text, "\n### `{}`\n\n{}\n\n", setting.key, setting.doc)?;
    let words = setting.kind.words();
    for (word, meaning) in &words {
        writeln!(text, "- `{word}`: {meaning}")?;
    }
    if !words.is_empty() {
        text.push('\n');
    }
    if let Some(flag) = setting.flag {
        let repeats = if setting.kind.is_list() { ", repeatable" } else { "" };
        writeln!(text, "- Flag: `--{flag} {}`{repeats}", setting.kind.placeholder())?;
    }
    writeln!(text, "- File: `{}`", in_file(setting))?;
    if let Some(bounds) = bounds(&setting.kind) {
        writeln!(text, "- Bounds: {bounds}")?;
    }
    match setting.default {
        Preset::Fixed(texts) if !texts.is_empty() => {
            writeln!(text, "- Default: `{}`", setting.default)
        }
        _ => writeln!(text, "- Default: {}", setting.default),
    }
}

fn in_file(setting: &Setting) -> String {
    let example = setting.kind.example();
    let first = example.split(" or ").next().unwrap_or(&example);
    let first = first.split("\", ").next().unwrap_or(first);
    let closed =
        if first.matches('"').count() % 2 == 1 { format!("{first}\"") } else { first.to_owned() };
    match setting.key.split_once('.') {
        Some((table, name)) => format!("{name} = {closed}` in `[{table}]"),
        None => format!("{} = {closed}", setting.key),
    }
}

fn bounds(kind: &Kind) -> Option<String> {
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
    fn the_committed_document_is_the_one_made_from_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == markdown(),
            "docs/configuration.md is out of date; write it anew: \
             cargo run -- check --print-docs > docs/configuration.md"
        );
    }

    #[test]
    fn rows_are_named_once_and_documented_in_sentences() {
        let keys: BTreeSet<_> = rows::all().map(|setting| setting.key).collect();
        let flags: BTreeSet<_> = rows::all().filter_map(|setting| setting.flag).collect();
        assert_eq!(keys.len(), rows::all().count());
        assert_eq!(flags.len(), rows::all().filter(|setting| setting.flag.is_some()).count());
        for setting in rows::all() {
            assert!(setting.doc.ends_with('.'), "{}", setting.key);
        }
    }
}
