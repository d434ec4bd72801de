//! The configuration that `foxy import` makes (the draft): settings, rules and origins, and a list
//! of the directives that it could not convert (the leftovers).

use super::report::{ImportReason, Leftover, OriginalPlace};
use crate::settings;
use toml::{Table, Value};

/// A part of the new configuration, with place and text of the directive that it replaces.
#[derive(Debug)]
struct DraftPart {
    place: OriginalPlace,
    /// The words of the directive, for a comment in the new file.
    original: String,
    content: DraftContent,
}

#[derive(Debug)]
enum DraftContent {
    Setting(&'static str, Value),
    /// An entry of `[[rule]]` or `[[origin]]`. The text is the name of the list: `rule` or
    /// `origin`.
    Listed(&'static str, Table),
}

/// Keys that stand first in an entry of `[[rule]]` or `[[origin]]`, in this order.
const FIRST_KEYS: [&str; 4] = ["name", "when", "unless", "then"];

/// The new configuration, under construction.
#[derive(Debug, Default)]
pub struct ImportDraft {
    parts: Vec<DraftPart>,
    pub leftovers: Vec<Leftover>,
}

/// A directive of the original configuration: its place in the file and its text.
#[derive(Clone, Debug)]
pub struct Original {
    pub place: OriginalPlace,
    pub text: String,
}

impl Original {
    /// Returns the place and text for a leftover (directive that is not converted) that concerns
    /// the whole file. `text` names its subject, because the leftover has no line.
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

    /// Sets a setting. A second value replaces the first. If foxy refuses the value, the directive
    /// becomes a leftover (directive that is not converted).
    pub fn set(&mut self, key: &'static str, value: impl Into<Value>, original: &Original) {
        let value = value.into();
        if let Some(mistake) = settings::mistakes(&format!("{key} = {value}")) {
            return self.leave(original, ImportReason::Missing(mistake));
        }
        self.parts.retain(|part| !part.is_setting(key));
        self.add(DraftContent::Setting(key, value), original);
    }

    /// Removes the values of a list for which `keep` is false.
    pub fn retain(&mut self, key: &str, keep: impl Fn(&Value) -> bool) {
        for part in &mut self.parts {
            if let DraftContent::Setting(name, Value::Array(values)) = &mut part.content
                && *name == key
            {
                values.retain(&keep);
            }
        }
        let is_empty = self.value(key).and_then(Value::as_array).is_some_and(Vec::is_empty);
        self.parts.retain(|part| !(is_empty && part.is_setting(key)));
    }

    /// Adds a value to a setting that is a list. If foxy refuses the value, the directive becomes a
    /// leftover (directive that is not converted).
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

    /// Sets `client-crl` to the lists of revoked certificates in `file`.
    pub fn revoked_certificates(&mut self, file: &str, original: &Original) {
        self.push("client-crl", file, original);
        let text = "foxy does not look for the authorities of `client-ca` in the lists";
        self.leave(original, ImportReason::Differs(text.into()));
    }

    /// Returns the draft's value of the setting `key`.
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.parts.iter().find_map(|part| match &part.content {
            DraftContent::Setting(name, value) if *name == key => Some(value),
            _ => None,
        })
    }

    /// Adds an entry to the list `key`. An entry whose name is taken gets a number. If foxy refuses
    /// the entry, the directive becomes a leftover (directive that is not converted), and the
    /// function returns false.
    pub fn list(&mut self, key: &'static str, mut table: Table, original: &Original) -> bool {
        if let Some(Value::String(name)) = table.get_mut("name") {
            *name = self.free_name(key, name);
        }
        let content = DraftContent::Listed(key, table);
        let mistake = settings::mistakes(&content.text());
        let is_sound = mistake.is_none();
        match mistake {
            None => self.add(content, original),
            Some(mistake) => self.leave(original, content.loss(mistake)),
        }
        is_sound
    }

    /// Returns `name`, with a number if an entry of the list `key` has this name.
    fn free_name(&self, key: &str, name: &str) -> String {
        let is_free = |name: &String| {
            let mut listed = self.parts.iter().filter_map(|part| match &part.content {
                DraftContent::Listed(list, table) if *list == key => table.get("name"),
                _ => None,
            });
            listed.all(|taken| taken.as_str() != Some(name))
        };
        let numbered = (2..).map(|number| format!("{name} ({number})"));
        std::iter::once(name.to_owned()).chain(numbered).find(is_free).unwrap_or_default()
    }

    /// Returns whether the list `key` has an entry with this name.
    pub fn has_named(&self, key: &str, name: &str) -> bool {
        self.parts.iter().any(|part| match &part.content {
            DraftContent::Listed(list, table) => {
                *list == key && table.get("name").and_then(Value::as_str) == Some(name)
            }
            DraftContent::Setting(..) => false,
        })
    }

    pub fn has_origin(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.content, DraftContent::Listed("origin", _)))
    }

    fn add(&mut self, content: DraftContent, original: &Original) {
        let Original { place, text } = original.clone();
        self.parts.push(DraftPart { place, original: text, content });
    }

    /// Removes the setting, rule or origin at a line of [`Self::text`], counted from 1. Its
    /// directive becomes a leftover (directive that is not converted) with `reason`. Returns false
    /// if there is nothing at the line.
    pub fn remove_line(&mut self, line: usize, reason: &str) -> bool {
        let mut next = 1;
        for at in self.order() {
            next += self.parts[at].text().matches('\n').count();
            if line < next {
                let DraftPart { place, original: text, content } = self.parts.remove(at);
                let reason = content.loss(reason.to_owned());
                self.leftovers.push(Leftover { place, text, reason });
                return true;
            }
        }
        false
    }

    /// Makes every listener accept connections from this machine alone, because foxy refuses to
    /// start as an open proxy. Returns whether this changed a listener.
    pub fn listen_on_loopback(&mut self) -> bool {
        let mut changed = Vec::new();
        for part in &mut self.parts {
            let DraftContent::Setting(
                "listen" | "listen-tls" | "listen-transparent",
                Value::Array(values),
            ) = &mut part.content
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
            let text = "no setting says which clients foxy serves, so it listens on this machine \
                        alone; set `allow-client` and `listen`";
            self.leave(original, ImportReason::Step(text.into()));
        }
        !changed.is_empty()
    }

    /// Returns the configuration as TOML: settings, then origins, then rules. Settings come first,
    /// because a TOML key after a table header belongs to that table.
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
    /// Returns the reason for the leftover (directive that is not converted) if foxy refuses this
    /// setting, rule or origin. The content may be a rule that denies or limits requests, or keeps
    /// responses from the cache. Without this rule, foxy serves or caches more than the original.
    fn loss(&self, mistake: String) -> ImportReason {
        let Self::Listed("rule", rule) = self else { return ImportReason::Missing(mistake) };
        let effects = rule.get("then").and_then(Value::as_table);
        let restricts = effects.is_some_and(|then| {
            then.get("access").and_then(Value::as_str) == Some("deny")
                || ["rate-limit", "bandwidth-limit"].iter().any(|limit| then.contains_key(*limit))
                || then.get("bypass") == Some(&Value::Boolean(true))
                || then.get("store") == Some(&Value::Boolean(false))
        });
        if restricts { ImportReason::Opens(mistake) } else { ImportReason::Missing(mistake) }
    }

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
