//! Converts the `server` blocks of nginx: listeners, certificates, names and locations.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::parse::NginxDirective;
use super::scope::{Levels, LocationTables, ServerHosts};
use super::{NginxImport, clients};

/// Returns whether a `listen` line has the option `default_server`. Such a server gets the requests
/// whose host no server names.
pub fn is_default(server: &NginxDirective) -> bool {
    let listens = server.children().iter().filter(|child| child.name() == "listen");
    listens.flat_map(NginxDirective::arguments).any(|word| word.starts_with("default"))
}

/// Returns the hosts that the `server_name` lines of a server list. Leaves out forms that foxy does
/// not know.
pub fn hosts(server: &NginxDirective) -> ServerHosts {
    let mut hosts = ServerHosts::default();
    let lines = server.children().iter().filter(|child| child.name() == "server_name");
    for name in lines.flat_map(NginxDirective::arguments) {
        let name = name.to_ascii_lowercase();
        if name.is_empty() || name == "_" || is_unknown(&name) {
            continue;
        }
        if let Some(below) = name.strip_prefix('.') {
            hosts.origin.extend([below.to_owned(), format!("*.{below}")]);
            hosts.rule.push(below.to_owned());
        } else if name.starts_with("*.") {
            hosts.origin.push(name.clone());
            hosts.rule.push(name);
        } else {
            hosts.origin.push(name.clone());
            hosts.rule.push(format!("={name}"));
        }
    }
    hosts
}

/// Returns whether a `server_name` is a regular expression, or has a wildcard elsewhere than in a
/// leading `*.`.
fn is_unknown(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    rest.contains(['*', '~', '^', '('])
}

impl NginxImport {
    pub(super) fn server(
        &mut self,
        http: &[NginxDirective],
        server: &NginxDirective,
        is_default: bool,
        mut hosts: ServerHosts,
    ) -> Option<LocationTables> {
        for child in server.children() {
            match child.name() {
                "listen" => self.listen(child),
                "ssl_certificate" => {
                    self.draft.push("tls-certificate", child.argument(0), &child.original);
                }
                "ssl_certificate_key" => {
                    self.draft.push("tls-key", child.argument(0), &child.original);
                }
                "server_name" => {
                    for name in child.arguments().iter().filter(|name| is_unknown(name)) {
                        let text = format!("foxy knows names and *.name, not {name}");
                        self.draft.leave(&child.original, ImportReason::Missing(text));
                    }
                }
                "access_log" => self.access_log(child),
                "set_real_ip_from" => self.real_ip(child),
                "return" if !clients::is_refusal(child) => {
                    let text = "foxy sends no redirects";
                    self.draft.leave(&child.original, ImportReason::Missing(text.into()));
                }
                _ => self.explain(child),
            }
        }
        if is_default {
            hosts = ServerHosts { others: hosts.others, ..ServerHosts::default() };
        } else if hosts.origin.is_empty() {
            let text = "no name of this server is convertible, so it is left out";
            self.draft.leave(&server.original, ImportReason::Missing(text.into()));
            return None;
        }
        Some(self.locations(&Levels::new(http, server), &hosts))
    }

    fn listen(&mut self, child: &NginxDirective) {
        let options = child.arguments().get(1..).unwrap_or_default();
        let has_tls = options.iter().any(|option| option == "ssl");
        let address = child.argument(0).to_owned();
        if options.iter().any(|option| option == "proxy_protocol") {
            let text = "list the balancers in `proxy-protocol-from`";
            self.draft.leave(&child.original, ImportReason::Step(text.into()));
        }
        if options.iter().any(|option| option == "quic") {
            let text = "foxy has no HTTP/3";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
            return;
        }
        self.listeners.push((address, has_tls, child.original.clone()));
    }

    fn access_log(&mut self, child: &NginxDirective) {
        let path = child.argument(0);
        if path == "off" {
            let text = "foxy logs every request";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
        } else if self.draft.value("access-log").is_some() {
            let text = "foxy has one access log";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
        } else {
            let new = path.replacen("/var/log/nginx/", "/var/log/foxy/", 1);
            self.draft.set("access-log", new, &child.original);
            self.draft.set("access-log-format", "combined", &child.original);
        }
    }

    fn real_ip(&mut self, child: &NginxDirective) {
        self.draft.push("forwarded-from", child.argument(0), &child.original);
        let text = "rules on clients see the address of the balancer";
        self.draft.leave(&child.original, ImportReason::Differs(text.into()));
    }
}

/// Adds each address once to `listen` or `listen-tls`. `0.0.0.0:80` and `[::]:80` together become
/// `:80`.
pub fn add_listeners(draft: &mut ImportDraft, listeners: &[(String, bool, Original)]) {
    let full = |address: &str, has_tls: bool| {
        let is_port = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit());
        match address.strip_prefix("*:") {
            Some(port) => format!("0.0.0.0:{port}"),
            None if is_port => format!("0.0.0.0:{address}"),
            None if address.starts_with("unix:") || address.contains("]:") => address.to_owned(),
            None if address.contains(':') && !address.starts_with('[') => address.to_owned(),
            None => format!("{address}:{}", if has_tls { 443 } else { 80 }),
        }
    };
    let all: Vec<_> = listeners
        .iter()
        .map(|(address, has_tls, original)| (full(address, *has_tls), *has_tls, original))
        .collect();
    for (address, has_tls, original) in &all {
        let port = address.rsplit(':').next().unwrap_or_default();
        let has = |wanted: &str| {
            let wanted = format!("{wanted}:{port}");
            all.iter().any(|(other, tls, _)| *other == wanted && tls == has_tls)
        };
        let is_wild = address.starts_with("0.0.0.0:") || address.starts_with("[::]:");
        let joined = if is_wild && has("0.0.0.0") && has("[::]") {
            format!(":{port}")
        } else {
            address.clone()
        };
        let key = if *has_tls { "listen-tls" } else { "listen" };
        draft.push(key, joined, original);
    }
    let has_plain = listeners.iter().any(|(_, has_tls, _)| !has_tls);
    if !listeners.is_empty() && !has_plain {
        draft.set("listen", "off", &listeners[0].2);
    }
}
