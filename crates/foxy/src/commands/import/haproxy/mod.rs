//! Converts a HAProxy configuration: `bind` lines to listeners, backends to origins, conditions to
//! rules. The table in `directives` says which directives are converted.

mod backend;
mod conditions;
mod directives;
mod lines;
mod redirects;
mod refusals;
mod routing;
#[cfg(test)]
mod tests;

use super::draft::{ImportDraft, Original};
use super::handling::DirectiveHandling;
use super::original_files::OriginalFiles;
use super::report::ImportReason;
use super::terms::{AccessTerm, effect};
use directives::TABLE;
pub use lines::has_sections;
use lines::{HaproxyLine, HaproxySection};

/// The sections of the file, and the new configuration so far.
struct HaproxyImport {
    draft: ImportDraft,
    sections: Vec<HaproxySection>,
}

pub fn import(content: &str, files: &OriginalFiles, _utc: bool) -> ImportDraft {
    let mut sections = lines::sections(content);
    for line in sections.iter_mut().flat_map(|section| &mut section.lines) {
        line.read_lists(files);
    }
    let mut import = HaproxyImport { draft: ImportDraft::default(), sections };
    let sections = import.sections.clone();
    for section in &sections {
        match section.kind() {
            "global" | "defaults" | "frontend" | "backend" | "listen" | "cache" => {
                for line in &section.lines {
                    import.explain(line, section);
                }
            }
            _ => {
                let text = "foxy has nothing like this section".to_owned();
                import.draft.leave(&section.head.original, ImportReason::Missing(text));
            }
        }
    }
    for section in sections.iter().filter(|section| section.listens()).skip(1) {
        let text = "every listener of foxy serves the routes of all frontends".to_owned();
        import.draft.leave(&section.head.original, ImportReason::Opens(text));
    }
    for section in &sections {
        match section.kind() {
            "frontend" | "listen" => import.frontend(section),
            "cache" => import.cache(section),
            _ => {}
        }
    }
    import.client_certificates();
    import.without_origins();
    if sections.iter().all(|section| section.kind() != "cache") {
        let original = Original::file("no cache");
        import.draft.set("scheme", "null", &original);
    }
    import.draft
}

impl HaproxyImport {
    /// Reports a line that the import does not convert, with the reason that [`TABLE`] gives.
    fn explain(&mut self, line: &HaproxyLine, section: &HaproxySection) {
        const IN_DEFAULTS: [&[&str]; 4] =
            [&["timeout"], &["option"], &["http-check"], &["default_backend"]];
        let row = TABLE.iter().find(|(words, _)| line.starts(words));
        if let Some(reason) = DirectiveHandling::reason(row.map(|(_, handling)| *handling)) {
            self.draft.leave(&line.original, reason);
        } else if section.kind() == "defaults" && !IN_DEFAULTS.iter().any(|it| line.starts(it)) {
            let text = "foxy reads this line only in frontends and backends".to_owned();
            let opens = refusals::is_refusal(line);
            let reason = if opens { ImportReason::Opens } else { ImportReason::Missing };
            self.draft.leave(&line.original, reason(text));
        }
    }

    /// Returns the lines of the section and of all `defaults` sections in reverse order, so that
    /// the first match is the line in force.
    fn settings_of(&self, section: &HaproxySection) -> Vec<HaproxyLine> {
        let defaults = self.sections.iter().filter(|other| other.kind() == "defaults");
        let mut lines: Vec<HaproxyLine> = defaults.flat_map(|other| other.lines.clone()).collect();
        lines.extend(section.lines.iter().cloned());
        lines.reverse();
        lines
    }

    /// Converts a `cache` section. HAProxy caches only in memory, so the new configuration gets no
    /// store on disk.
    fn cache(&mut self, section: &HaproxySection) {
        self.draft.set("scheme", "null", &section.head.original);
        for line in &section.lines {
            let value = line.argument(0);
            match line.words[0].as_str() {
                "total-max-size" => self.draft.set("memory", format!("{value}M"), &line.original),
                "max-object-size" => {
                    self.draft.set("memory-object-limit", value, &line.original);
                }
                _ => {}
            }
        }
    }

    /// Makes foxy refuse every request if no backend became an origin. Otherwise foxy would be a
    /// forward proxy.
    fn without_origins(&mut self) {
        if self.draft.has_origin() {
            return;
        }
        let original = Original::file("no origin");
        let text = "no backend is convertible, so a rule refuses every request".to_owned();
        self.draft.leave(&original, ImportReason::Step(text));
        let then = effect("access", "deny");
        self.draft.list("rule", AccessTerm::default().rule("no origin", then), &original);
    }

    /// Converts the listeners and routes of a frontend.
    fn frontend(&mut self, section: &HaproxySection) {
        for line in section.lines.iter().filter(|line| line.starts(&["bind"])) {
            if section.listens() {
                self.bind(line);
            }
        }
        for line in self.settings_of(section).iter().filter(|line| line.starts(&["timeout"])) {
            let key = match line.argument(0) {
                "client" => "timeouts.client-read",
                "http-request" => "timeouts.client-head",
                "http-keep-alive" => "timeouts.client-idle",
                "tunnel" => "timeouts.tunnel-idle",
                _ => continue,
            };
            match time(line.argument(1)) {
                Some(time) if self.draft.value(key).is_none() => {
                    self.draft.set(key, time, &line.original);
                }
                _ => {}
            }
        }
        self.routes(section);
    }

    /// Converts `verify`, `ca-file` and `crl-file` of the `bind` lines. foxy asks the clients of
    /// all its TLS listeners alike, so all lines with TLS must have the same options.
    fn client_certificates(&mut self) {
        let sections = self.sections.iter().filter(|it| matches!(it.kind(), "frontend" | "listen"));
        let lines = sections.flat_map(|section| &section.lines);
        let binds: Vec<_> =
            lines.filter(|line| line.starts(&["bind"]) && line.has("ssl")).cloned().collect();
        let wanted = |line: &HaproxyLine| {
            let verify = line.option("verify").filter(|word| *word != "none")?;
            let file = |name| line.option(name).map(ToOwned::to_owned);
            Some((verify.to_owned(), file("ca-file").unwrap_or_default(), file("crl-file")))
        };
        let Some(first) = binds.first() else { return };
        if let Some((verify, file, revoked)) = wanted(first)
            && binds.iter().all(|line| wanted(line) == wanted(first))
        {
            self.draft.push("client-ca", file, &first.original);
            self.draft.set("client-certificates", verify, &first.original);
            if let Some(revoked) = revoked {
                self.draft.revoked_certificates(&revoked, &first.original);
            }
            return;
        }
        for line in binds.iter().filter(|line| wanted(line).is_some()) {
            let text = "foxy asks clients for certificates at all TLS listeners alike";
            self.draft.leave(&line.original, ImportReason::Opens(text.into()));
        }
    }

    fn bind(&mut self, line: &HaproxyLine) {
        for address in line.argument(0).split(',') {
            let address = match address.strip_prefix("*:") {
                Some(port) => format!("0.0.0.0:{port}"),
                None => match address.strip_prefix(':') {
                    Some(port) if !port.contains(':') => format!("0.0.0.0:{port}"),
                    _ => address.strip_prefix("ipv4@").unwrap_or(address).to_owned(),
                },
            };
            if !line.has("ssl") {
                self.draft.push("listen", address, &line.original);
                continue;
            }
            self.draft.push("listen-tls", address, &line.original);
            let crt = line.option("crt").unwrap_or_default();
            if crt.ends_with('/') || std::path::Path::new(crt).is_dir() {
                let text = format!("list each certificate of {crt} in tls-certificate and tls-key");
                self.draft.leave(&line.original, ImportReason::Step(text));
            }
            self.draft.push("tls-certificate", crt, &line.original);
            self.draft.push("tls-key", crt, &line.original);
        }
        if line.has("accept-proxy") {
            let text = "list the balancers in `proxy-protocol-from`";
            self.draft.leave(&line.original, ImportReason::Step(text.into()));
        }
        if self.draft.value("listen").is_none() {
            self.draft.set("listen", "off", &line.original);
        } else if self.draft.value("listen").is_some_and(has_off_and_more) {
            let rest = self.draft.value("listen").and_then(toml::Value::as_array).cloned();
            let rest = rest.into_iter().flatten().filter(|value| value.as_str() != Some("off"));
            let rest: Vec<toml::Value> = rest.collect();
            self.draft.set("listen", rest, &line.original);
        }
    }
}

fn has_off_and_more(value: &toml::Value) -> bool {
    let values = value.as_array().map_or(&[][..], Vec::as_slice);
    values.len() > 1 && values.iter().any(|value| value.as_str() == Some("off"))
}

/// Converts a time such as `50000`, `10s` or `1m`. A number without a unit is in milliseconds.
fn time(text: &str) -> Option<String> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    let text = if is_number { format!("{text}ms") } else { text.to_owned() };
    foxy_cli::units::parse_duration(&text).ok().map(foxy_cli::units::show_duration)
}
