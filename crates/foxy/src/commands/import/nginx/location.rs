//! Converts the `location` blocks of a server to origins and rules.

use super::super::report::ImportReason;
use super::super::terms::written;
use super::parse::NginxDirective;
use super::scope::{Levels, LocationTables, PrefixLocation, ServerHosts};
use super::{NginxImport, caching, clients, fields, nginx_time};
use toml::{Table, Value};

/// Returns the path prefix of a location. Returns `None` for an exact path or a regular expression.
fn prefix(location: &NginxDirective) -> Option<&str> {
    match location.arguments() {
        [path] if path.starts_with('/') => Some(path),
        [mark, path] if mark == "^~" => Some(path),
        _ => None,
    }
}

impl NginxImport {
    pub(super) fn locations<'d>(
        &mut self,
        server: &Levels<'d>,
        hosts: &'d ServerHosts,
    ) -> LocationTables {
        let mut tables = LocationTables::default();
        let children = server.blocks[0].iter().filter(|child| child.name() == "location");
        let (mut prefixes, others): (Vec<_>, Vec<_>) =
            children.partition(|location| prefix(location).is_some());
        prefixes.sort_by_key(|location| usize::MAX - prefix(location).map_or(0, str::len));
        for location in others {
            self.unlisted_location(location);
        }
        let paths: Vec<&str> = prefixes.iter().filter_map(|location| prefix(location)).collect();
        for location in &prefixes {
            let Some(path) = prefix(location) else { continue };
            for child in location.children() {
                self.explain_in_location(child);
            }
            let is_inner = |other: &&&str| other.starts_with(path) && **other != path;
            let location = PrefixLocation {
                prefix: path,
                levels: server.inside(location),
                original: &location.original,
                inner: paths.iter().filter(is_inner).copied().collect(),
                hosts,
            };
            self.location(&location, &mut tables);
        }
        tables
    }

    fn explain_in_location(&mut self, child: &NginxDirective) {
        match child.name() {
            "location" => {
                let text = "foxy reads no location inside a location";
                self.draft.leave(&child.original, ImportReason::Opens(text.into()));
            }
            "grpc_pass" | "fastcgi_pass" | "uwsgi_pass" | "scgi_pass" => {
                let text = "foxy reaches origins only over HTTP";
                self.draft.leave(&child.original, ImportReason::Missing(text.into()));
            }
            _ => self.explain(child),
        }
    }

    /// Reports a location with an exact path or a regular expression, because an origin of foxy has
    /// only a path prefix.
    fn unlisted_location(&mut self, location: &NginxDirective) {
        let refuses = location.children().iter().any(|child| {
            matches!(child.name(), "deny" | "auth_basic" | "auth_request" | "internal")
                || clients::is_refusal(child)
        });
        let text = "an origin has a path prefix, not an expression; these requests go to the \
                    location with their prefix";
        let reason = if refuses { ImportReason::Opens } else { ImportReason::Missing };
        self.draft.leave(&location.original, reason(text.into()));
    }

    fn location(&mut self, location: &PrefixLocation<'_>, tables: &mut LocationTables) {
        let refusal =
            location.levels.all(&["return"]).into_iter().find(|line| clients::is_refusal(line));
        if let Some(line) = refusal {
            let then = Table::from_iter([("access".to_owned(), Value::from("deny"))]);
            let rule = location.rule(" return", then);
            tables.rules.push((rule, line.original.clone(), true));
            return;
        }
        let Some(pass) = location.levels.last("proxy_pass") else { return };
        match self.origin(location, pass) {
            Ok(origin) => tables.origins.push((origin, location.original.clone())),
            Err(reason) => {
                self.draft.leave(&pass.original, reason);
                let text = "The configuration of nginx for this location is not converted.";
                let then = Table::from_iter([
                    ("access".to_owned(), Value::from("deny")),
                    ("message".to_owned(), Value::from(text)),
                ]);
                let rule = location.rule(" is not converted", then);
                return tables.rules.push((rule, location.original.clone(), true));
            }
        }
        clients::add_rules(&mut self.draft, location, tables);
        fields::add_rules(&mut self.draft, location, tables);
        caching::add_rules(&mut self.draft, &self.zones, location, tables);
    }

    /// Converts the `proxy_pass` line of a location to an entry of `[[origin]]`.
    fn origin(
        &mut self,
        location: &PrefixLocation<'_>,
        pass: &NginxDirective,
    ) -> Result<Table, ImportReason> {
        let missing = |text: &str| Err(ImportReason::Missing(text.to_owned()));
        let url = pass.argument(0);
        let Some((scheme, rest)) = url.split_once("://") else {
            return missing("foxy needs http:// or https://");
        };
        if url.contains('$') {
            return missing("foxy has no variables; write the origins");
        }
        let (authority, path) = match rest.find('/') {
            Some(at) => (&rest[..at], &rest[at..]),
            None => (rest, ""),
        };
        if !path.is_empty() && path != location.prefix {
            return missing("foxy sends the client's path to the origin; see `rewrite` of a rule");
        }
        let upstream = self.upstreams.get(authority);
        let (servers, default_host) = match upstream {
            Some(upstream) => (upstream.servers.clone(), authority),
            None => (vec![authority.to_owned()], "server"),
        };
        if servers.iter().any(|server| server.starts_with("unix:")) {
            return missing("foxy reaches origins over TCP");
        }
        let mut origin = Table::new();
        let site = location.hosts.origin.first().map_or("", String::as_str);
        let name = format!("{}: {site}{}", location.original.place, location.prefix);
        origin.insert("name".into(), name.into());
        if !location.hosts.origin.is_empty() {
            origin.insert("hosts".into(), written(&location.hosts.origin));
        }
        if location.prefix != "/" {
            origin.insert("path".into(), location.prefix.into());
        }
        let urls: Vec<String> =
            servers.iter().map(|server| format!("{scheme}://{server}")).collect();
        origin.insert("servers".into(), written(&urls));
        let host = fields::sent_host(&location.levels, default_host);
        origin.insert("send-host".into(), host.into());
        for (directive, key) in
            [("proxy_connect_timeout", "connect-timeout"), ("proxy_read_timeout", "head-timeout")]
        {
            let time =
                location.levels.last(directive).and_then(|line| nginx_time(line.argument(0)));
            if let Some(time) = time {
                origin.insert(key.into(), time.into());
            }
        }
        Ok(origin)
    }
}
