//! The configuration that an import makes: settings, rules, and what could not be converted.

use super::report::{ImportReason, Leftover, OriginalPlace};
use crate::settings;
use toml::{Table, Value};

/// A part of the new configuration, and the directive from which it comes.
#[derive(Debug)]
struct DraftPart {
    place: OriginalPlace,
    /// The words of the directive.
    original: String,
    content: DraftContent,
}

#[derive(Debug)]
enum DraftContent {
    Setting(&'static str, Value),
    /// A table in a list of tables: `rule` or `origin`.
    Listed(&'static str, Table),
}

/// The keys of a table that stand first, in this order.
const FIRST_KEYS: [&str; 4] = ["name", "when", "unless", "then"];

/// The new configuration.
#[derive(Debug, Default)]
pub struct ImportDraft {
    parts: Vec<DraftPart>,
    pub leftovers: Vec<Leftover>,
}

/// A directive, as the handlers see it: its place and its text.
#[derive(Clone, Debug)]
pub struct Original {
    pub place: OriginalPlace,
    pub text: String,
}

impl Original {
    /// The configuration as a whole.
    pub fn file(text: &str) -> Self {
        Self { place: OriginalPlace { file: None, line: 0 }, text: text.to_owned() }
    }
}

impl ImportDraft {
    pub fn leave(&mut self, original: &Original, reason: ImportReason) {
        let Original { place, text } = original.clone();
        let leftover = Leftover { place, text, reason };
        if !self.leftovers.contains(&leftover) {
            self.leftovers.push(leftover);
        }
    }

    /// Sets a setting. A second value replaces the first. A value that foxy refuses is reported.
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>, original: &Original) {
        let value = value.into();
        if let Some(mistake) = settings::mistakes(&format!("{key} = {value}")) {
            return self.leave(original, ImportReason::Missing(mistake));
        }
        self.parts.retain(|part| !part.is_setting(key));
        self.add(DraftContent::Setting(key, value), original);
    }

    /// Adds a value to a setting that is a list.
    pub fn push(&mut self, key: &'static str, value: impl Into<Value>, original: &Original) {
        let value = value.into();
        if let Some(mistake) = settings::mistakes(&format!("{key} = [{value}]")) {
            return self.leave(original, ImportReason::Missing(mistake));
        }
        for part in &mut self.parts {
            if let DraftContent::Setting(name, Value::Array(values)) = &mut part.content
                && *name == key
            {
                if !values.contains(&value) {
                    values.push(value);
                }
                return;
            }
        }
        self.add(DraftContent::Setting(key, Value::Array(vec![value])), original);
    }

    /// Returns the value of a setting.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.parts.iter().find_map(|part| match &part.content {
            DraftContent::Setting(name, value) if *name == key => Some(value),
            _ => None,
        })
    }

    /// Adds a table to the list `key`. Returns whether foxy accepts the table.
    pub fn list(&mut self, key: &'static str, table: Table, original: &Original) -> bool {
        let content = DraftContent::Listed(key, table);
        match settings::mistakes(&content.text()) {
            None => self.add(content, original),
            Some(mistake) => {
                self.leave(original, ImportReason::Missing(mistake));
                return false;
            }
        }
        true
    }

    fn add(&mut self, content: DraftContent, original: &Original) {
        let Original { place, text } = original.clone();
        self.parts.push(DraftPart { place, original: text, content });
    }

    /// Removes the part whose text contains this line of [`Self::text`], and reports the reason.
    /// Returns whether there is such a part.
    pub fn remove_line(&mut self, line: usize, reason: &str) -> bool {
        let mut next = 1;
        for at in self.order() {
            next += self.parts[at].text().matches('\n').count();
            if line < next {
                let DraftPart { place, original: text, content } = self.parts.remove(at);
                let is_refusal = content.text().contains("access = \"deny\"");
                let reason = if is_refusal { ImportReason::Opens } else { ImportReason::Missing }(
                    reason.to_owned(),
                );
                self.leftovers.push(Leftover { place, text, reason });
                return true;
            }
        }
        false
    }

    /// Makes every listener reachable from this machine alone, because foxy does not start as an
    /// open proxy. Returns whether a listener has changed.
    pub fn listen_on_loopback(&mut self) -> bool {
        let mut changed = Vec::new();
        for part in &mut self.parts {
            let DraftContent::Setting("listen" | "listen-tls", Value::Array(values)) =
                &mut part.content
            else {
                continue;
            };
            for value in values {
                let text = value.as_str().unwrap_or_default();
                let port = text.rsplit(':').next().unwrap_or_default();
                let local = format!("localhost:{port}");
                if text != local {
                    *value = local.into();
                    let original =
                        Original { place: part.place.clone(), text: part.original.clone() };
                    changed.push(original);
                }
            }
        }
        for original in &changed {
            let text = "the original serves clients of all networks; foxy would be an open proxy, \
                        so it listens on this machine alone; set `allow-client` and `listen`";
            self.leave(original, ImportReason::Step(text.into()));
        }
        !changed.is_empty()
    }

    /// Returns the configuration as text: settings first, because tables end the list of settings,
    /// then origins and rules.
    pub fn text(&self) -> String {
        self.order().into_iter().map(|at| self.parts[at].text()).collect()
    }

    fn order(&self) -> Vec<usize> {
        let rank = |at: &usize| match self.parts[*at].content {
            DraftContent::Setting(..) => 0,
            DraftContent::Listed("origin", _) => 1,
            DraftContent::Listed(..) => 2,
        };
        let mut order: Vec<usize> = (0..self.parts.len()).collect();
        order.sort_by_key(rank);
        order
    }
}

impl DraftPart {
    fn is_setting(&self, key: &str) -> bool {
        matches!(&self.content, DraftContent::Setting(name, _) if *name == key)
    }

    fn text(&self) -> String {
        match &self.content {
            DraftContent::Setting(..) => {
                let comment =
                    if self.place.line == 0 { "" } else { &format!("  # {}", self.place) };
                format!("{}{comment}\n", self.content.text())
            }
            DraftContent::Listed(..) => {
                format!("\n# {}: {}\n{}\n", self.place, self.original, self.content.text())
            }
        }
    }
}

impl DraftContent {
    fn text(&self) -> String {
        match self {
            Self::Setting(key, value) => format!("{key} = {value}"),
            Self::Listed(key, table) => {
                let mut entries: Vec<_> = table.iter().collect();
                let rank = |key: &str| FIRST_KEYS.iter().position(|first| *first == key);
                entries.sort_by_key(|(key, _)| rank(key).unwrap_or(FIRST_KEYS.len()));
                let lines = entries.iter().map(|(key, value)| format!("\n{key} = {value}"));
                format!("[[{key}]]{}", lines.collect::<String>())
            }
        }
    }
}
