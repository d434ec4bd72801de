//! Parses settings in a TOML file. Reports each mistake with its line and column.

use super::complaint::{Complaint, Complaints, FileLines, Source};
use super::hints;
use super::kind::{Kind, Notation, Setting};
use super::origins;
use super::rows;
use super::rows::Written;
use super::rules;
use super::tables::WrittenTable;
use super::text;
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Parses `content` into `written`. `path` appears only in messages.
pub fn read(path: &Path, content: &str, written: &mut Written) -> Result<(), Complaints> {
    let mut reader =
        Reader { lines: FileLines::new(path, content), written, complaints: Vec::new() };
    let (document, errors) = DeTable::parse_recoverable(content);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        let text = content.get(span.clone()).unwrap_or_default();
        reader.complain(span, hints::of_toml(error.message(), text));
    }
    if reader.complaints.is_empty() {
        reader.table("", document.get_ref());
    }
    if reader.complaints.is_empty() { Ok(()) } else { Err(Complaints(reader.complaints)) }
}

struct Reader<'a> {
    lines: FileLines<'a>,
    written: &'a mut Written,
    complaints: Vec<Complaint>,
}

impl Reader<'_> {
    fn complain(&mut self, span: Range<usize>, message: String) {
        self.complaints.push(Complaint { message, source: Some(self.source(span)) });
    }

    fn source(&self, span: Range<usize>) -> Source {
        Source::File(self.lines.place(span))
    }

    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let name = format!("{prefix}{}", key.get_ref());
            match value.get_ref() {
                _ if name == "rule" => {
                    self.rules(value);
                    continue;
                }
                DeValue::Array(tables) if name == "origin" && is_of_tables(tables) => {
                    self.origins(tables);
                    continue;
                }
                DeValue::Table(_) if name == "origin" => {
                    let text = "an origin with several keys is in a list; write [[origin]]";
                    self.complain(key.span(), text.into());
                    continue;
                }
                _ => {}
            }
            let inner = format!("{name}.");
            if let Some(setting) = rows::all().find(|setting| setting.key == name) {
                self.setting(setting, key.span(), value);
            } else if rows::all().any(|setting| setting.key.starts_with(&inner)) {
                match value.get_ref() {
                    DeValue::Table(table) => self.table(&inner, table),
                    _ => {
                        self.complain(value.span(), format!("`{name}` is a table; write [{name}]"))
                    }
                }
            } else {
                self.complain(key.span(), hints::unknown_setting(&name));
            }
        }
    }

    fn rules(&mut self, value: &Spanned<DeValue<'_>>) {
        let DeValue::Array(tables) = value.get_ref() else {
            return self
                .complain(value.span(), "`rule` is a list of tables; write [[rule]]".into());
        };
        for (number, table) in (1..).zip(tables.iter()) {
            match rules::read(table, number) {
                Ok((rule, text)) => {
                    let source = self.source(table.span());
                    self.written.rules.push(WrittenTable { value: rule, text, source });
                }
                Err(error) => {
                    let span = error.span().unwrap_or(table.span());
                    self.complain(
                        span,
                        format!("rule {number}: {}", hints::of_table(error.message())),
                    );
                }
            }
        }
    }

    fn origins(&mut self, tables: &[Spanned<DeValue<'_>>]) {
        for (number, table) in (1..).zip(tables.iter()) {
            match origins::read(table, number) {
                Ok((value, text)) => {
                    let source = self.source(table.span());
                    self.written.origins.push(WrittenTable { value, text, source });
                }
                Err(error) => {
                    let span = error.span().unwrap_or(table.span());
                    self.complain(
                        span,
                        format!("origin {number}: {}", hints::of_table(error.message())),
                    );
                }
            }
        }
    }

    fn setting(
        &mut self,
        setting: &'static Setting,
        key: Range<usize>,
        value: &Spanned<DeValue<'_>>,
    ) {
        let texts = match texts(setting, value.get_ref()) {
            Ok(texts) => texts,
            Err(message) => return self.complain(value.span(), message),
        };
        let texts: Vec<&OsStr> = texts.iter().map(OsStr::new).collect();
        match text::put(&setting.kind, &texts, self.written) {
            Ok(()) => {
                let source = self.source(key);
                self.written.sources.insert(setting.key, source);
            }
            Err(message) => {
                let remedy = hints::several(setting, value.get_ref());
                self.complain(value.span(), message + &remedy);
            }
        }
    }
}

fn is_of_tables(values: &[Spanned<DeValue<'_>>]) -> bool {
    !values.is_empty() && values.iter().all(|value| value.get_ref().is_table())
}

fn texts(setting: &Setting, value: &DeValue<'_>) -> Result<Vec<String>, String> {
    match value {
        DeValue::Array(values) if setting.kind.notation().is_list => {
            values.iter().map(|value| text(setting, value.get_ref())).collect()
        }
        value => Ok(vec![text(setting, value)?]),
    }
}

fn text(setting: &Setting, value: &DeValue<'_>) -> Result<String, String> {
    let Notation { is_number, .. } = setting.kind.notation();
    match value {
        DeValue::Integer(integer) if is_number || matches!(setting.kind, Kind::Size { .. }) => {
            let digits = integer.as_str().replace('_', "");
            i64::from_str_radix(&digits, integer.radix())
                .map(|value| value.to_string())
                .map_err(|_| format!("{} is too large", integer.as_str()))
        }
        DeValue::String(text) if !is_number => Ok(text.to_string()),
        other => Err(format!(
            "`{}` takes {}, not {}; write {}",
            setting.key,
            if is_number { "a whole number" } else { "a text" },
            article(other.type_str()),
            hints::instead(setting, other),
        )),
    }
}

fn article(noun: &str) -> String {
    let vowel = noun.starts_with(['a', 'e', 'i', 'o', 'u']);
    format!("{} {noun}", if vowel { "an" } else { "a" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::ByteSize;
    use std::time::Duration;

    fn complaints(content: &str) -> String {
        match read(Path::new("foxy.toml"), content, &mut Written::default()) {
            Ok(()) => String::new(),
            Err(complaints) => complaints.to_string(),
        }
    }

    #[test]
    fn a_file_is_read_with_the_places_of_its_settings() {
        let content = "listen = \"127.0.0.1:80\"\nsize = 33554432\nstore = [\"/a\", \"/b\"]\nworkers = 0x2\n\
                       allow-destination = \"10.0.0.0/8\"\n\n[timeouts]\nconnect = \"5s\"\n";
        let mut written = Written::default();
        read(Path::new("foxy.toml"), content, &mut written).expect("sound");
        assert_eq!(written.disk.size, Some(ByteSize(32 << 20)));
        assert_eq!(written.disk.store.as_ref().map(Vec::len), Some(2));
        assert_eq!(written.network.workers, Some(2));
        assert_eq!(written.timeouts.connect, Some(Duration::from_secs(5)));
        assert_eq!(written.sources["timeouts.connect"].to_string(), "foxy.toml:8:1");
        assert_eq!(written.memory.size, None);
    }

    #[test]
    fn an_unknown_setting_is_refused_with_the_nearest_name() {
        assert_eq!(
            complaints("\nsise = \"10G\"\n"),
            "foxy.toml:2:1: there is no setting `sise`; did you mean `size`?\n  |\n2 | sise = \"10G\"\n  | ^^^^"
        );
        assert!(
            complaints("[timeouts]\nconect = \"1s\"").contains("did you mean `timeouts.connect`?")
        );
        assert!(complaints("[quux]\na = 1").contains("docs/configuration.md"));
    }

    #[test]
    fn wrong_types_say_what_to_write() {
        let cases = [
            ("size = true", "`size` takes a text, not a boolean; write \"10G\""),
            ("workers = \"two\"", "`workers` takes a whole number, not a string; write 2"),
            ("stop-after = 5", "`stop-after` takes a text, not an integer; write \"5s\""),
            ("timeouts = 5", "`timeouts` is a table; write [timeouts]"),
            ("origin = [\"http://a\"]", "`origin` takes a text, not an array"),
            ("workers = 99999999999999999999", "is too large"),
        ];
        for (content, expected) in cases {
            assert!(complaints(content).contains(expected), "{content}: {}", complaints(content));
        }
    }

    #[test]
    fn every_mistake_is_reported_in_file_order() {
        let all = complaints("workers = 0\nsize = \"5 parsecs\"\nlisten = \"here\"\n");
        let lines: Vec<_> = all.lines().filter(|line| line.starts_with("foxy.toml")).collect();
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("foxy.toml:1:11: 0 is too small"), "{all}");
        assert!(lines[1].starts_with("foxy.toml:2:8: "), "{all}");
    }

    #[test]
    fn broken_toml_has_a_place_too() {
        assert!(
            complaints("listen = \n").starts_with("foxy.toml:1:"),
            "{}",
            complaints("listen = \n")
        );
        assert!(
            complaints("size = \"1G\"\nsize = \"2G\"\n")
                .starts_with("foxy.toml:2:1: not valid TOML: ")
        );
    }
}
