//! Converts the `server` blocks of nginx: listeners, certificates, names and logs.

use super::super::draft::{ImportDraft, Original};
use super::super::original_files;
use super::super::report::ImportReason;
use super::NginxImport;
use super::parse::NginxDirective;
use super::scope::ServerHosts;

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
pub fn is_unknown(name: &str) -> bool {
    let rest = name.strip_prefix("*.").unwrap_or(name);
    rest.contains(['*', '~', '^', '('])
}

impl NginxImport {
    /// Converts those directives of a `server` block that do not depend on the block's host names.
    pub(super) fn server(&mut self, server: &NginxDirective) {
        for child in server.children() {
            match child.name() {
                "listen" => self.listen(child),
                "ssl_certificate" => {
                    self.draft.push("tls-certificate", child.argument(0), &child.original);
                }
                "ssl_certificate_key" => {
                    self.draft.push("tls-key", child.argument(0), &child.original);
                }
                "access_log" => self.access_log(child),
                _ => self.explain(child),
            }
        }
        if server.children().iter().all(|child| child.name() != "listen") {
            self.listeners.push(("80".to_owned(), false, server.original.clone()));
        }
    }

    fn listen(&mut self, child: &NginxDirective) {
        let has_tls = has_option(child, "ssl");
        let address = child.argument(0).to_owned();
        if has_option(child, "proxy_protocol") {
            self.with_header.push(child.original.clone());
        }
        if is_quic(child) {
            let text = "foxy has no HTTP/3";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
            return;
        }
        self.listeners.push((address, has_tls, child.original.clone()));
    }

    pub(super) fn access_log(&mut self, child: &NginxDirective) {
        let path = child.argument(0);
        if path == "off" {
            let text = "foxy logs every request";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
        } else if self.draft.value("access-log").is_some_and(|log| log.as_str() != Some("off")) {
            let text = "foxy has one access log";
            self.draft.leave(&child.original, ImportReason::Missing(text.into()));
        } else {
            let new = original_files::own_log(path, "/var/log/nginx/");
            let text = format!("foxy logs to {new}");
            self.draft.set("access-log", new, &child.original);
            self.draft.set("access-log-format", "combined", &child.original);
            self.draft.leave(&child.original, ImportReason::Differs(text));
        }
    }
}

/// Returns whether a `listen` line has this option.
pub fn has_option(line: &NginxDirective, name: &str) -> bool {
    line.arguments().iter().skip(1).any(|option| option == name)
}

/// Returns whether a `listen` line is for HTTP/3, which foxy does not serve.
pub fn is_quic(line: &NginxDirective) -> bool {
    has_option(line, "quic")
}

/// Returns the address of a `listen` line with its port.
pub fn full_address(address: &str, has_tls: bool) -> String {
    let is_port = !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit());
    match address.strip_prefix("*:") {
        Some(port) => format!("0.0.0.0:{port}"),
        None if is_port => format!("0.0.0.0:{address}"),
        None if address.starts_with("unix:") || address.contains("]:") => address.to_owned(),
        None if address.contains(':') && !address.starts_with('[') => address.to_owned(),
        None => format!("{address}:{}", if has_tls { 443 } else { 80 }),
    }
}

/// Adds each address once to `listen` or `listen-tls`. `0.0.0.0:80` and `[::]:80` together become
/// `:80`.
pub fn add_listeners(draft: &mut ImportDraft, listeners: &[(String, bool, Original)]) {
    let all: Vec<_> = listeners
        .iter()
        .map(|(address, has_tls, original)| (full_address(address, *has_tls), *has_tls, original))
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
