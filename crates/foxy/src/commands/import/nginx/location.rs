//! Converts the `location` blocks of a server to origins and rules.

use super::super::condition_text::escaped;
use super::super::report::ImportReason;
use super::super::terms::written;
use super::super::terms::{AccessTerm, effect};
use super::expression::PathExpression;
use super::parse::NginxDirective;
use super::scope::{Levels, LocationPath, LocationScope, LocationTables, ServerHosts};
use super::scope::{beginning, refusal};
use super::{NginxImport, caching, clients, fields, limits, nginx_time, redirects, rewrites};
use toml::{Table, Value};

/// A location that the import can read.
struct ListedLocation<'d> {
    path: LocationPath<'d>,
    directive: &'d NginxDirective,
}

/// The prefix of a location, and the origin of its requests. `None` if foxy refuses these requests.
type PrefixOrigin<'d> = (&'d str, Option<Table>);

impl NginxImport {
    /// Converts all locations of a server for these hosts. For a request, nginx first tries the
    /// exact location of its path. Then nginx tries the expressions, and then the longest prefix.
    pub(super) fn locations<'d>(
        &mut self,
        server: &'d NginxDirective,
        levels: &Levels<'d>,
        hosts: &'d ServerHosts,
    ) -> LocationTables {
        let mut tables = LocationTables::default();
        let answers = server.children().iter().any(redirects::answers_all);
        if !answers {
            rewrites::add_server_rules(&mut self.draft, server, levels, hosts, &mut tables);
        }
        let root = LocationPath::Prefix { prefix: "/", firm: false };
        let mut listed = if answers { Vec::new() } else { self.listed(server) };
        let has_root = listed
            .iter()
            .any(|location| matches!(location.path, LocationPath::Prefix { prefix: "/", .. }));
        if !has_root {
            listed.push(ListedLocation { path: root, directive: server });
        }
        let all: Vec<_> =
            (0..listed.len()).map(|at| scope(&listed, at, server, levels, hosts)).collect();
        let mut prefixes: Vec<PrefixOrigin<'d>> = Vec::new();
        let mut of_prefixes = LocationTables::default();
        for location in &all {
            if let LocationPath::Prefix { prefix, .. } = location.path {
                let origin = self.prefix_location(location, &mut of_prefixes);
                prefixes.push((prefix, origin));
            }
        }
        for location in &all {
            if !matches!(location.path, LocationPath::Prefix { .. }) {
                self.other_location(location, &mut prefixes, &mut tables);
            }
        }
        // Origins with a longer path come first, because the first origin that matches counts.
        tables.origins.splice(0..0, of_prefixes.origins);
        tables.rules.extend(of_prefixes.rules);
        tables
    }

    /// Returns the locations of a server: exact paths, then expressions, then prefixes, of which
    /// the longest is first. Reports the locations that it cannot read.
    fn listed<'d>(&mut self, server: &'d NginxDirective) -> Vec<ListedLocation<'d>> {
        let mut listed = Vec::new();
        for directive in server.children().iter().filter(|child| child.name() == "location") {
            for child in directive.children() {
                self.explain_in_location(child);
            }
            match LocationPath::read(directive) {
                Some(path) => listed.push(ListedLocation { path, directive }),
                None if directive.argument(0).starts_with('@') => {
                    let text = "foxy has no named locations";
                    self.draft.leave(&directive.original, ImportReason::Missing(text.into()));
                }
                None => {
                    let text = "foxy does not have this expression, so it serves these requests \
                                like others of the same beginning; write rules";
                    self.draft.leave(&directive.original, ImportReason::Opens(text.into()));
                }
            }
        }
        listed.sort_by_key(|location| match location.path {
            LocationPath::Exact(_) => 0,
            LocationPath::Expression(_) => 1,
            LocationPath::Prefix { prefix, .. } => usize::MAX - prefix.len(),
        });
        listed
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

    /// Converts a location with a prefix. Returns its origin.
    fn prefix_location(
        &mut self,
        location: &LocationScope<'_>,
        tables: &mut LocationTables,
    ) -> Option<Table> {
        let pass = self.pass(location, tables)?;
        match self.origin(location, pass) {
            Ok(origin) => {
                tables.origins.push((origin.clone(), location.original.clone()));
                self.add_rules(location, tables);
                Some(origin)
            }
            Err(reason) => {
                self.draft.leave(&pass.original, reason);
                let rule = location.not_converted();
                tables.rules.push((rule, location.original.clone(), true));
                None
            }
        }
    }

    /// Converts a location with an exact path or a regular expression. foxy finds an origin by a
    /// path prefix only. If this finds another origin than nginx does, a rule chooses the
    /// location's own origin. If no rule can match exactly the requests of the location, rules
    /// refuse the requests that would go to another origin.
    fn other_location<'d>(
        &mut self,
        location: &LocationScope<'d>,
        prefixes: &mut Vec<PrefixOrigin<'d>>,
        tables: &mut LocationTables,
    ) {
        let Some(pass) = self.pass(location, tables) else { return };
        let origin = match self.origin(location, pass) {
            Ok(origin) => origin,
            Err(reason) => {
                self.draft.leave(&pass.original, reason);
                let rule = location.not_converted();
                return tables.rules.push((rule, location.original.clone(), true));
            }
        };
        let carriers = carriers(&location.path, prefixes);
        if carriers.is_empty() {
            prefixes.push(("/", Some(origin.clone())));
            tables.origins.push((origin, location.original.clone()));
            return self.add_rules(location, tables);
        }
        let (same, others): (Vec<_>, Vec<_>) =
            carriers.into_iter().partition(|(_, carrier)| is_same(carrier, &origin));
        if others.is_empty() {
            return self.add_rules(location, tables);
        }
        if !location.is_exact() {
            let text = "foxy chooses origins by the beginning of the path; a rule refuses \
                        requests that would go to another origin than in nginx";
            self.draft.leave(location.original, ImportReason::Missing(text.into()));
        }
        let expression = match &location.path {
            _ if location.is_exact() => {
                let chosen = same.first().map_or(&origin, |(_, origin)| origin);
                let name = chosen.get("name").and_then(Value::as_str).unwrap_or_default();
                let way = Value::from(format!("origin:{name}"));
                let then = effect("upstream", way);
                let rule = location.rule(" origin", then);
                tables.rules.push((rule, location.original.clone(), true));
                if same.is_empty() {
                    tables.origins.push((origin, location.original.clone()));
                }
                return self.add_rules(location, tables);
            }
            LocationPath::Expression(expression) if !same.is_empty() => expression,
            _ => {
                let rule = location.not_converted();
                return tables.rules.push((rule, location.original.clone(), true));
            }
        };
        for (prefix, _) in others {
            let rule = location.refused_within(prefix, prefixes, &expression.at_least);
            tables.rules.push((rule, location.original.clone(), true));
        }
        self.add_rules(location, tables);
    }

    /// Returns the `proxy_pass` line of a location. If the location refuses its requests or answers
    /// them itself, adds a rule that redirects or refuses them, and returns `None`.
    fn pass<'d>(
        &mut self,
        location: &LocationScope<'d>,
        tables: &mut LocationTables,
    ) -> Option<&'d NginxDirective> {
        let own = location.levels.blocks[0];
        let internal = own.iter().find(|line| line.name() == "internal");
        let refusing = own.iter().find(|line| clients::is_refusal(line)).or(internal);
        if let Some(line) = refusing {
            let then = effect("access", "deny");
            let rule = location.rule(&format!(" {}", line.name()), then);
            tables.rules.push((rule, line.original.clone(), true));
            return None;
        }
        if clients::denies_all(location) {
            clients::add_rules(&mut self.draft, location, tables);
            return None;
        }
        let answer = own.iter().find(|line| redirects::answers_all(line));
        let redirect = answer.filter(|_| location.is_exact());
        if let Some((line, then)) =
            redirect.and_then(|line| Some((line, redirects::effect(line, location)?)))
        {
            let rule = location.rule(" redirect", then);
            tables.rules.push((rule, line.original.clone(), false));
            return None;
        }
        let pass = location.levels.last("proxy_pass").filter(|_| answer.is_none());
        if pass.is_none() {
            let (original, text) = match answer {
                Some(line) => (&line.original, "foxy has no such redirect or answer"),
                None => (location.original, "foxy serves no files"),
            };
            let text = format!("{text}; a rule refuses these requests");
            self.draft.leave(original, ImportReason::Missing(text));
            let rule = location.not_converted();
            tables.rules.push((rule, original.clone(), true));
        }
        pass
    }

    fn add_rules(&mut self, location: &LocationScope<'_>, tables: &mut LocationTables) {
        rewrites::add_rules(&mut self.draft, location, tables);
        clients::add_rules(&mut self.draft, location, tables);
        limits::add_rules(&mut self.draft, &mut self.rates, location, tables);
        let is_cached = caching::inactive(&self.zones, location).is_some();
        fields::add_rules(&mut self.draft, location, is_cached, tables);
        caching::add_rules(&mut self.draft, &self.zones, location, tables);
        let upgrade = location.levels.all(&["proxy_set_header"]).into_iter();
        let upgrade = upgrade.filter(|line| line.argument(0).eq_ignore_ascii_case("upgrade"));
        if upgrade.into_iter().any(|line| !line.argument(1).is_empty()) {
            self.upgrades.push(location.facets());
        }
    }

    /// Converts the `proxy_pass` line of a location to an entry of `[[origin]]`.
    fn origin(
        &mut self,
        location: &LocationScope<'_>,
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
        let prefix = match location.path {
            LocationPath::Prefix { prefix, .. } => prefix,
            _ => "/",
        };
        let own = match location.path {
            LocationPath::Exact(path) => path,
            _ => prefix,
        };
        if !path.is_empty() && path != own {
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
        origin.insert("name".into(), location.name().into());
        if !location.hosts.origin.is_empty() {
            origin.insert("hosts".into(), written(&location.hosts.origin));
        }
        if prefix != "/" {
            origin.insert("path".into(), prefix.into());
        }
        let urls: Vec<String> =
            servers.iter().map(|server| format!("{scheme}://{server}")).collect();
        origin.insert("servers".into(), written(&urls));
        let host = fields::sent_host(&location.levels, default_host);
        let redirect = location.levels.last("proxy_redirect");
        let is_default = redirect.is_none_or(|line| line.argument(0) == "default");
        if redirect.is_none_or(|line| line.argument(0) != "off") && (host != "keep" || !is_default)
        {
            let text = "foxy does not change the field Location; let the origin send redirects to \
                        paths, or set `send-host` to \"keep\"";
            let original = redirect.map_or(&pass.original, |line| &line.original);
            self.draft.leave(original, ImportReason::Differs(text.into()));
        }
        origin.insert("send-host".into(), host.into());
        for (directive, key) in
            [("proxy_connect_timeout", "connect-timeout"), ("proxy_read_timeout", "head-timeout")]
        {
            let Some(line) = location.levels.last(directive) else { continue };
            match nginx_time(line.argument(0)) {
                Some(time) => {
                    origin.insert(key.into(), time.into());
                }
                None => {
                    let why = ImportReason::Missing("the time is not readable".into());
                    self.draft.leave(&line.original, why);
                }
            }
        }
        Ok(origin)
    }
}

impl LocationScope<'_> {
    /// Returns a rule that refuses the requests of this location whose path begins with `prefix`,
    /// but with no longer prefix in `prefixes`. The expression `at_least` finds the requests of the
    /// location.
    fn refused_within(&self, prefix: &str, prefixes: &[PrefixOrigin<'_>], at_least: &str) -> Table {
        let inner = prefixes.iter().filter(|(other, origin)| {
            origin.is_some() && other.starts_with(prefix) && *other != prefix
        });
        let elsewhere = LocationScope {
            path: LocationPath::Prefix { prefix, firm: true },
            levels: self.levels.clone(),
            original: self.original,
            hosts: self.hosts,
            more: Vec::new(),
            other_paths: inner.map(|(path, _)| beginning(path)).collect(),
            other_urls: Vec::new(),
        };
        let change = |term: &mut AccessTerm| {
            term.when.insert("url", vec![at_least.to_owned()]);
        };
        elsewhere.rule_with(" is not converted", change, refusal())
    }
}

/// Returns the location at a position of `listed`, with the paths of other locations as its
/// exceptions.
fn scope<'d>(
    listed: &[ListedLocation<'d>],
    at: usize,
    server: &'d NginxDirective,
    levels: &Levels<'d>,
    hosts: &'d ServerHosts,
) -> LocationScope<'d> {
    let ListedLocation { path, directive } = &listed[at];
    let is_server = std::ptr::eq(*directive, server);
    let levels = if is_server { levels.clone() } else { levels.inside(directive) };
    let mut scope = LocationScope {
        path: path.clone(),
        levels,
        original: &directive.original,
        hosts,
        more: Vec::new(),
        other_paths: Vec::new(),
        other_urls: Vec::new(),
    };
    let is_listed = |wanted: &str| {
        listed.iter().any(|other| match other.path {
            LocationPath::Prefix { prefix: path, .. } | LocationPath::Exact(path) => path == wanted,
            LocationPath::Expression(_) => false,
        })
    };
    for (number, other) in listed.iter().enumerate().filter(|(number, _)| *number != at) {
        match (&other.path, path) {
            (LocationPath::Exact(exact), LocationPath::Prefix { prefix, .. })
                if exact.starts_with(prefix) =>
            {
                scope.other_paths.push(escaped(exact));
            }
            (LocationPath::Exact(exact), LocationPath::Expression(_)) => {
                scope.other_paths.push(escaped(exact));
            }
            (LocationPath::Prefix { prefix: other, .. }, LocationPath::Prefix { prefix, .. })
                if other.starts_with(prefix) =>
            {
                scope.other_paths.push(beginning(other));
                scope.other_paths.extend(slashless(other).filter(|path| !is_listed(path)));
            }
            // A prefix with `^~` is firm. A longer prefix without `^~` may lie inside a firm
            // prefix. There, nginx tries the expression.
            (LocationPath::Prefix { prefix, firm: true }, LocationPath::Expression(_))
                if !listed.iter().any(|inner| is_open_within(&inner.path, prefix)) =>
            {
                scope.other_paths.push(beginning(prefix));
            }
            (LocationPath::Expression(other), LocationPath::Prefix { firm: false, .. }) => {
                except(&mut scope, other);
            }
            (LocationPath::Expression(other), LocationPath::Expression(_)) if number < at => {
                except(&mut scope, other);
            }
            _ => {}
        }
    }
    if let LocationPath::Prefix { prefix, .. } = path {
        scope.more.extend(slashless(prefix).filter(|path| !is_listed(path)));
    }
    scope
}

/// Returns the path without its last slash, as a pattern. nginx redirects this path to the prefix.
fn slashless(prefix: &str) -> impl Iterator<Item = String> {
    let path = prefix.strip_suffix('/').filter(|path| !path.is_empty());
    path.map(escaped).into_iter()
}

fn except(scope: &mut LocationScope<'_>, expression: &PathExpression) {
    match &expression.patterns {
        Some(patterns) => scope.other_paths.extend(patterns.iter().cloned()),
        None => scope.other_urls.push(expression.at_most.clone()),
    }
}

fn is_open_within(path: &LocationPath<'_>, outer: &str) -> bool {
    matches!(path, LocationPath::Prefix { prefix, firm: false } if prefix.starts_with(outer))
}

/// Returns the origins to which foxy may send requests for these paths.
fn carriers<'d>(path: &LocationPath<'_>, prefixes: &[PrefixOrigin<'d>]) -> Vec<(&'d str, Table)> {
    let literal = path.literal_beginning();
    let origins = || {
        let all = prefixes.iter().filter_map(|(prefix, origin)| Some((*prefix, origin.clone()?)));
        all.collect::<Vec<_>>()
    };
    let around = origins().into_iter().filter(|(prefix, _)| literal.starts_with(prefix));
    let mut found: Vec<_> = around.max_by_key(|(prefix, _)| prefix.len()).into_iter().collect();
    if matches!(path, LocationPath::Expression(_)) {
        let is_new =
            |prefix: &str| !found.iter().any(|(other, _): &(&str, Table)| *other == prefix);
        let inside = origins().into_iter();
        let inside = inside.filter(|(prefix, _)| prefix.starts_with(&literal) && is_new(prefix));
        let inside: Vec<_> = inside.collect();
        found.extend(inside);
    }
    found
}

/// Returns whether two origins have the same servers and differ in path and times alone.
fn is_same(a: &Table, b: &Table) -> bool {
    ["servers", "send-host"].iter().all(|key| a.get(*key) == b.get(*key))
}
