//! Converts an nginx configuration: `listen` lines to listeners, locations to origins and rules.
//! The table in `directives` says which directives are converted.

mod caching;
mod client_certificates;
mod clients;
mod directives;
mod fields;
mod location;
mod parse;
mod scope;
mod server;

use super::draft::{ImportDraft, Original};
use super::handling::DirectiveHandling;
use super::original_files::OriginalFiles;
use super::report::ImportReason;
use directives::TABLE;
use parse::NginxDirective;
use std::collections::HashMap;

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
    /// Origins and rules of the servers with exact names. In the new file they come first, then
    /// `wide` (servers with wildcards), then `last` (the default server).
    tables: Vec<scope::LocationTables>,
    wide: Vec<scope::LocationTables>,
    last: Vec<scope::LocationTables>,
    listeners: Vec<(String, bool, Original)>,
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
                "server" => {}
                _ => self.explain(directive),
            }
        }
        let servers: Vec<_> = all.iter().filter(|directive| directive.name() == "server").collect();
        let marked = servers.iter().position(|server| server::is_default(server));
        let default = marked.unwrap_or(0);
        self.ports_of_their_own(&servers);
        self.client_certificates(all, &servers);
        let hosts: Vec<_> = servers.iter().map(|server| server::hosts(server)).collect();
        for (number, server) in servers.iter().enumerate() {
            let mut own = hosts[number].clone();
            let is_default = number == default;
            if is_default || own.has_wildcard() {
                let others = hosts.iter().enumerate().filter(|(other, _)| *other != number);
                let names = others.flat_map(|(_, hosts)| &hosts.rule);
                let is_narrower = |name: &&String| is_default || name.starts_with('=');
                own.others = names.filter(is_narrower).cloned().collect();
            }
            let has_wildcard = own.has_wildcard();
            let tables = self.server(all, server, is_default, own);
            let place = match (is_default, has_wildcard) {
                (true, _) => &mut self.last,
                (false, true) => &mut self.wide,
                (false, false) => &mut self.tables,
            };
            place.extend(tables);
        }
    }

    /// If there are several servers, reports each `listen` line that is not for port 80 or 443 of
    /// all addresses. In foxy, the hosts of the line's server become reachable at every listener.
    fn ports_of_their_own(&mut self, servers: &[&NginxDirective]) {
        let usual = |address: &str| {
            let port = address.rsplit(':').next().unwrap_or_default();
            let is_wild = !address.contains(':') || address.starts_with("[::]:");
            is_wild && matches!(port, "80" | "443")
        };
        for server in servers.iter().filter(|_| servers.len() > 1) {
            let listens = server.children().iter().filter(|child| child.name() == "listen");
            for line in listens.filter(|line| !usual(line.argument(0))) {
                let text = "every listener of foxy serves all hosts".to_owned();
                self.draft.leave(&line.original, ImportReason::Opens(text));
            }
        }
    }

    /// Reports a directive that the import does not convert, with the reason from the table.
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
                    let text = "foxy has no servers that only help out; this server is left out";
                    self.draft.leave(&child.original, ImportReason::Differs(text.into()));
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
        let tables = || self.tables.iter().chain(&self.wide).chain(&self.last);
        for tables in tables() {
            for (origin, original) in &tables.origins {
                self.draft.list("origin", origin.clone(), original);
            }
        }
        for tables in tables() {
            for (rule, original, refuses) in &tables.rules {
                if !self.draft.list("rule", rule.clone(), original) && *refuses {
                    let text = "no rule can deny these requests, so foxy serves them".to_owned();
                    self.draft.leave(original, ImportReason::Opens(text));
                }
            }
        }
        if tables().all(|tables| tables.origins.is_empty()) {
            let text = "no location is a reverse proxy that foxy can replace, so this file makes a \
                        forward proxy";
            self.draft.leave(&Original::file("origins"), ImportReason::Step(text.into()));
        }
        self.draft
    }
}

/// Returns whether the argument switches the directive off. `satisfy all` is nginx's default.
fn is_off(directive: &NginxDirective) -> bool {
    matches!(directive.argument(0), "off" | "0" | "all")
}

/// Converts a time such as `10m`, `1h` or `30`. A number without a unit is in seconds.
fn nginx_time(text: &str) -> Option<String> {
    let text = if text.bytes().all(|byte| byte.is_ascii_digit()) {
        format!("{text}s")
    } else {
        text.to_owned()
    };
    let time = match text.strip_suffix('w') {
        Some(weeks) => format!("{}d", weeks.parse::<u64>().ok()? * 7),
        None => text,
    };
    foxy_cli::units::parse_duration(&time).ok().map(foxy_cli::units::show_duration)
}
