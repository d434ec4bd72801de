//! Converts the directives of nginx that set or remove header fields: `proxy_set_header`,
//! `proxy_hide_header` and `add_header`.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect};
use super::parse::NginxDirective;
use super::scope::{Levels, LocationScope, LocationTables};
use crate::settings;
use toml::{Table, Value};

/// Response fields that decide about caching. foxy applies rules before it decides about caching,
/// so a rule on such a field would change the decision. nginx applies its directives later.
const CACHING_FIELDS: [&str; 6] =
    ["cache-control", "expires", "vary", "set-cookie", "etag", "last-modified"];

/// Values of `Host` that foxy can send.
const KNOWN_HOSTS: [&str; 4] = ["$host", "$http_host", "$host:$server_port", "$proxy_host"];

/// Returns the value of `send-host`, which decides about the `Host` field to the origin. Without a
/// `proxy_set_header Host` line this is `default`.
pub fn sent_host(levels: &Levels<'_>, default: &str) -> String {
    let lines = levels.all(&["proxy_set_header"]);
    let host = lines.iter().find(|line| line.argument(0).eq_ignore_ascii_case("host"));
    match host.map(|line| line.argument(1)) {
        Some("$host" | "$http_host" | "$host:$server_port") => "keep".to_owned(),
        Some("$proxy_host") | None => default.to_owned(),
        Some(text) if text.contains('$') => "keep".to_owned(),
        Some(text) => text.to_owned(),
    }
}

/// Fields of origins that nginx passes to clients only with `proxy_pass_header`.
const HIDDEN_FIELDS: [&str; 6] = [
    "Server",
    "X-Accel-Buffering",
    "X-Accel-Charset",
    "X-Accel-Expires",
    "X-Accel-Limit-Rate",
    "X-Accel-Redirect",
];

/// Returns the fields of all `proxy_pass_header` lines in these blocks, in lower case.
pub fn passed(block: &[NginxDirective]) -> Vec<String> {
    let inner = block.iter().flat_map(|directive| passed(directive.children()));
    let own = block.iter().filter(|directive| directive.name() == "proxy_pass_header");
    own.map(|line| line.argument(0).to_ascii_lowercase()).chain(inner).collect()
}

/// Returns a rule that removes the fields that nginx hides from clients. `passed` are the fields
/// that nginx does not hide.
pub fn hidden(passed: &[String]) -> (Table, Original, bool) {
    let names = HIDDEN_FIELDS.iter().filter(|name| !passed.contains(&name.to_ascii_lowercase()));
    let names: Vec<Value> = names.map(|name| Value::from(*name)).collect();
    let then = effect("response-header-remove", Value::Array(names));
    let rule = AccessTerm::default().rule("fields that nginx hides", then);
    (rule, Original::file("fields"), false)
}

/// Adds at most two rules for a location: one on request fields, one on response fields.
pub fn add_rules(
    draft: &mut ImportDraft,
    location: &LocationScope<'_>,
    is_cached: bool,
    tables: &mut LocationTables,
) {
    let mut request = FieldEditTables::new("request-header");
    for line in location.levels.all(&["proxy_set_header"]) {
        if let Err(reason) = request_field(line, &mut request) {
            draft.leave(&line.original, reason);
        }
    }
    let mut response = FieldEditTables::new("response-header");
    for line in location.levels.all(&["proxy_hide_header"]) {
        let name = line.argument(0);
        let ignored = location.levels.all(&["proxy_ignore_headers"]);
        let is_ignored =
            ignored.iter().flat_map(|line| line.arguments()).any(|n| n.eq_ignore_ascii_case(name));
        let decides = CACHING_FIELDS.contains(&name.to_ascii_lowercase().as_str());
        if decides && !is_ignored && is_cached {
            let text = "foxy would remove this field before its caching decision, nginx after it; \
                        the field stays";
            draft.leave(&line.original, ImportReason::Opens(text.into()));
        } else if let Err(reason) = response.remove(name) {
            draft.leave(&line.original, reason);
        }
    }
    for line in location.levels.all(&["add_header"]) {
        if let Err(reason) = response_field(line, &mut response) {
            draft.leave(&line.original, reason);
        }
    }
    for (edits, suffix) in [(request, " request fields"), (response, " response fields")] {
        if let Some(then) = edits.then() {
            tables.rules.push((location.rule(suffix, then), location.original.clone(), false));
        }
    }
}

/// The fields that a rule sets and removes. `side` is `request-header` or `response-header`.
struct FieldEditTables {
    side: &'static str,
    set: Table,
    removed: Vec<Value>,
}

impl FieldEditTables {
    fn new(side: &'static str) -> Self {
        Self { side, set: Table::new(), removed: Vec::new() }
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), ImportReason> {
        let table = Value::Table(Table::from_iter([(name.to_owned(), Value::from(value))]));
        self.check(&format!("{}-set = {table}", self.side))?;
        self.set.insert(name.to_owned(), value.into());
        Ok(())
    }

    fn remove(&mut self, name: &str) -> Result<(), ImportReason> {
        self.check(&format!("{}-remove = [\"{name}\"]", self.side))?;
        self.removed.push(name.into());
        Ok(())
    }

    fn check(&self, effect: &str) -> Result<(), ImportReason> {
        match settings::mistakes(&format!("[[rule]]\nthen = {{ {effect} }}")) {
            None => Ok(()),
            Some(mistake) => Err(ImportReason::Missing(mistake)),
        }
    }

    fn then(self) -> Option<Table> {
        let mut then = Table::new();
        if !self.set.is_empty() {
            then.insert(format!("{}-set", self.side), Value::Table(self.set));
        }
        if !self.removed.is_empty() {
            then.insert(format!("{}-remove", self.side), Value::Array(self.removed));
        }
        (!then.is_empty()).then_some(then)
    }
}

fn request_field(line: &NginxDirective, edits: &mut FieldEditTables) -> Result<(), ImportReason> {
    let name = line.argument(0);
    let lower = name.to_ascii_lowercase();
    match (lower.as_str(), line.argument(1)) {
        ("host", value) if value.contains('$') && !KNOWN_HOSTS.contains(&value) => {
            Err(ImportReason::Differs("foxy has no variables, and sends the client's Host".into()))
        }
        ("host" | "upgrade" | "connection", _) => Ok(()),
        (name, _) if name == "forwarded" || name.starts_with("x-forwarded-") => {
            Err(ImportReason::NotNeeded(
                "foxy sends Forwarded and X-Forwarded-*; it keeps the lists of clients in \
                 `forwarded-from` alone"
                    .into(),
            ))
        }
        (_, "") => edits.remove(name),
        (lower, value) if value == format!("$http_{}", lower.replace('-', "_")) => Ok(()),
        ("x-real-ip" | "x-client-ip", value) if value.contains('$') => {
            edits.remove(name)?;
            Err(ImportReason::Missing(
                "a rule removes the client's field; foxy sends the address in X-Forwarded-For and \
                 Forwarded"
                    .into(),
            ))
        }
        (_, value) if value.contains('$') => {
            edits.remove(name)?;
            Err(ImportReason::Missing(
                "foxy has no variables, so the origin gets no such field; a rule removes the \
                 client's field"
                    .into(),
            ))
        }
        (_, value) => edits.set(name, value),
    }
}

fn response_field(line: &NginxDirective, edits: &mut FieldEditTables) -> Result<(), ImportReason> {
    let (name, value) = (line.argument(0), line.argument(1));
    if value.contains("$upstream_cache_status") {
        return Err(ImportReason::NotNeeded("foxy sends Cache-Status".into()));
    }
    if value.contains('$') {
        return Err(ImportReason::Missing("foxy has no variables".into()));
    }
    if CACHING_FIELDS.contains(&name.to_ascii_lowercase().as_str()) {
        let text = "foxy would add this field before its caching decision, nginx after it";
        return Err(ImportReason::Missing(text.into()));
    }
    edits.set(name, value)?;
    Err(ImportReason::Differs(
        "foxy sets the field in place of the origin's, for every status".into(),
    ))
}
