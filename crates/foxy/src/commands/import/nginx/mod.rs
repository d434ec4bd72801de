//! Converts an nginx configuration: `listen` lines to listeners, locations to origins and rules.
//! The table in `directives` says which directives are converted.

mod caching;
mod client_certificates;
mod clients;
mod compression;
mod directives;
mod expression;
mod fields;
mod limits;
mod location;
mod parse;
mod real_ip;
mod redirects;
mod rewrites;
mod scope;
mod server;
#[cfg(test)]
mod tests;
mod virtual_hosts;

use super::draft::{ImportDraft, Original};
use super::handling::DirectiveHandling;
use super::original_files::OriginalFiles;
use super::report::ImportReason;
use super::terms::{AccessTerm, Facets, effect};
use directives::TABLE;
use foxy_cli::units::{parse_duration, show_duration};
use parse::NginxDirective;
use std::collections::HashMap;
use std::time::Duration;
use toml::Table;

/// An `upstream` block: a named group of servers.
#[derive(Debug, Default)]
pub struct NginxUpstream {
    /// Addresses of the servers, as `HOST:PORT`.
    servers: Vec<String>,
}

/// The new configuration so far, and what the `server` blocks contribute to it.
#[derive(Default)]
struct NginxImport {
    draft: ImportDraft,
    upstreams: HashMap<String, NginxUpstream>,
    /// For each cache zone, the time for which nginx keeps an unused response (`inactive`).
    zones: HashMap<String, String>,
    rates: limits::RequestZones,
    /// Rules that come before the rules of all servers.
    first_rules: Vec<(Table, Original, bool)>,
    tables: Vec<virtual_hosts::HostTables>,
    /// The conditions of the locations that pass `Upgrade` to the origin.
    upgrades: Vec<Facets>,
    real_ips: Vec<NginxDirective>,
    real_ip_header: Option<String>,
    /// Listeners at which each connection begins with a PROXY protocol header.
    with_header: Vec<Original>,
    listeners: Vec<(String, bool, Original)>,
    /// Fields of `proxy_pass_header` lines, in lower case.
    passed_fields: Vec<String>,
}

pub fn import(content: &str, files: &OriginalFiles, _utc: bool) -> ImportDraft {
    let mut import = NginxImport::default();
    let all = parse::directives(content, files);
    let has_http = all.iter().any(|directive| directive.name() == "http");
    if !has_http {
        import.http(&all);
    }
    for directive in all.iter().filter(|_| has_http) {
        match directive.name() {
            "http" => import.http(directive.children()),
            _ => import.explain(directive),
        }
    }
    import.finish()
}

impl NginxImport {
    /// Converts the directives of the `http` block.
    fn http(&mut self, all: &[NginxDirective]) {
        for directive in all {
            match directive.name() {
                "upstream" => self.upstream(directive),
                "proxy_cache_path" => self.cache_path(directive),
                "access_log" if directive.argument(0) == "off" => {
                    self.draft.set("access-log", "off", &directive.original);
                }
                "access_log" => self.access_log(directive),
                "limit_req_zone" => limits::read_zone(directive, &mut self.rates),
                "server" => {}
                _ => self.explain(directive),
            }
        }
        let servers: Vec<_> = all.iter().filter(|directive| directive.name() == "server").collect();
        self.client_certificates(all, &servers);
        self.balancers(all, &servers);
        self.compression(all);
        self.virtual_hosts(all, &servers);
        self.passed_fields.extend(fields::passed(all));
    }

    /// Reports a directive that the import does not convert, with the reason that [`TABLE`] gives.
    fn explain(&mut self, directive: &NginxDirective) {
        let row = TABLE.iter().find(|(name, _)| *name == directive.name());
        let reason = match row.map(|(_, handling)| *handling) {
            Some(DirectiveHandling::Opens(_)) if is_off(directive) => None,
            None if directive.name() == "include" => {
                Some(ImportReason::Missing("no such file is here".into()))
            }
            handling => DirectiveHandling::reason(handling),
        };
        if let Some(reason) = reason {
            self.draft.leave(&directive.original, reason);
        }
    }

    /// Converts `upstream NAME { server ADDRESS …; }`.
    fn upstream(&mut self, directive: &NginxDirective) {
        let mut upstream = NginxUpstream::default();
        for child in directive.children() {
            let options = child.arguments().get(1..).unwrap_or_default();
            let has = |name: &str| options.iter().any(|option| option == name);
            match child.name() {
                "server" if has("down") => {}
                "server" if has("backup") => {
                    let text = "foxy has no backup servers, so this server is left out; if it may \
                                get requests at any time, add it to `servers`";
                    self.draft.leave(&child.original, ImportReason::Step(text.into()));
                }
                "server" => {
                    let address = child.argument(0);
                    let has_port = address.rsplit_once(':').is_some_and(|(_, port)| {
                        !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
                    });
                    let port = if has_port { "" } else { ":80" };
                    upstream.servers.push(format!("{address}{port}"));
                    if options.iter().any(|option| option.starts_with("weight=")) {
                        let text =
                            "foxy takes the less busy of two random servers, without weights";
                        self.draft.leave(&child.original, ImportReason::Differs(text.into()));
                    }
                }
                "keepalive" | "zone" | "least_conn" | "random" | "keepalive_timeout" => {
                    let text =
                        "foxy keeps connections, and takes the less busy of two random servers";
                    self.draft.leave(&child.original, ImportReason::NotNeeded(text.into()));
                }
                _ => {
                    let text = "foxy takes the less busy of two random servers";
                    self.draft.leave(&child.original, ImportReason::Missing(text.into()));
                }
            }
        }
        self.upstreams.insert(directive.argument(0).to_owned(), upstream);
    }

    fn finish(mut self) -> ImportDraft {
        server::add_listeners(&mut self.draft, &self.listeners);
        self.finish_balancers();
        if self.tables.iter().all(|hosts| hosts.tables.origins.is_empty()) {
            let text = "no location is a reverse proxy that foxy can replace, so this file makes a \
                        forward proxy";
            self.draft.leave(&Original::file("origins"), ImportReason::Step(text.into()));
        } else {
            let rule = self.upgrade_rule();
            self.first_rules.extend(rule);
            self.first_rules.push(fields::hidden(&self.passed_fields));
        }
        let tables = || self.tables.iter().map(|hosts| &hosts.tables);
        for (origin, original) in tables().flat_map(|tables| &tables.origins) {
            self.draft.list("origin", origin.clone(), original);
        }
        let rules = tables().flat_map(|tables| &tables.rules);
        for (rule, original, limits) in self.first_rules.iter().chain(rules) {
            if !self.draft.list("rule", rule.clone(), original) && *limits {
                let text = "foxy cannot have this rule, so nothing denies or limits these requests";
                self.draft.leave(original, ImportReason::Opens(text.into()));
            }
        }
        limits::finish(&mut self.draft, &self.rates);
        if !self.zones.is_empty() {
            let file = Original::file("caching");
            let text = "foxy does not read X-Accel-Expires and X-Accel-Redirect of the origin; let \
                        the origin send Cache-Control";
            self.draft.leave(&file, ImportReason::Step(text.into()));
            let text = "a client's `Cache-Control: no-cache` makes foxy ask the origin";
            self.draft.leave(&file, ImportReason::Differs(text.into()));
        }
        self.draft
    }

    /// Returns a rule that refuses WebSocket handshakes where nginx does not pass `Upgrade`. foxy
    /// always passes this field.
    fn upgrade_rule(&mut self) -> Option<(Table, Original, bool)> {
        const WEBSOCKET: &str = "Upgrade: (?i)websocket";
        if self.upgrades.iter().any(Facets::is_empty) {
            return None;
        }
        let mut term = AccessTerm::default();
        term.when.insert("header", vec![WEBSOCKET.to_owned()]);
        for facets in &self.upgrades {
            term = term.and_not(facets);
        }
        let original = Original::file("WebSocket");
        let text = "foxy passes handshakes to every origin; where the original does not, a rule \
                    refuses them";
        self.draft.leave(&original, ImportReason::Differs(text.into()));
        let then = effect("access", "deny");
        Some((term.rule("WebSocket without Upgrade", then), original, true))
    }
}

/// Returns whether the argument switches the directive off. The argument `all` of `satisfy` counts
/// as off, because it is nginx's default.
fn is_off(directive: &NginxDirective) -> bool {
    matches!(directive.argument(0), "off" | "0" | "all")
}

/// Converts a time such as `1h30m`, `10m` or `30`. A number without a unit is in seconds.
fn nginx_time(text: &str) -> Option<String> {
    const DAY: Duration = Duration::from_secs(86_400);
    let (mut total, mut rest) = (Duration::ZERO, text.trim_start());
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let one = match unit.trim() {
            "" => Duration::from_secs(1),
            "w" => DAY * 7,
            "M" => DAY * 30,
            "y" => DAY * 365,
            unit => parse_duration(&format!("1{unit}")).ok()?,
        };
        total = total.checked_add(one.checked_mul(number.parse().ok()?)?)?;
        rest = after;
    }
    Some(show_duration(total))
}
