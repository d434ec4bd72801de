//! Decides which server of nginx serves a host, over http and over https. foxy serves each host at
//! every listener, so rules refuse what nginx does not serve there.

use super::super::draft::Original;
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, Facets};
use super::parse::NginxDirective;
use super::scope::{Levels, LocationTables, ServerHosts, refusal};
use super::{NginxImport, expression, redirects, server};
use toml::Table;

/// A server with its names and listeners.
struct VirtualServer<'d> {
    directive: &'d NginxDirective,
    names: ServerHosts,
    /// Address, scheme, and whether the server is the default of this address.
    listeners: Vec<(String, &'static str, bool)>,
}

impl<'d> VirtualServer<'d> {
    fn new(directive: &'d NginxDirective) -> Self {
        let lines = directive.children().iter().filter(|child| child.name() == "listen");
        let mut listeners: Vec<_> = lines
            .filter(|line| !server::is_quic(line))
            .map(|line| {
                let has_tls = server::has_option(line, "ssl");
                let address = server::full_address(line.argument(0), has_tls);
                let address = address.replacen("[::]:", "0.0.0.0:", 1);
                let is_default = ["default", "default_server"];
                let is_default = is_default.iter().any(|name| server::has_option(line, name));
                (address, if has_tls { "https" } else { "http" }, is_default)
            })
            .collect();
        if directive.children().iter().all(|child| child.name() != "listen") {
            listeners.push(("0.0.0.0:80".into(), "http", false));
        }
        Self { directive, names: server::hosts(directive), listeners }
    }

    fn has(&self, scheme: &str) -> bool {
        self.listeners.iter().any(|(_, own, _)| *own == scheme)
    }

    fn proxies(&self) -> bool {
        let children = self.directive.children();
        let answers = children.iter().any(redirects::answers_all);
        !answers && children.iter().any(|child| has_inside(child, "proxy_pass"))
    }
}

fn has_inside(directive: &NginxDirective, name: &str) -> bool {
    directive.name() == name || directive.children().iter().any(|child| has_inside(child, name))
}

/// The origins and rules of a server for some of its hosts, and their place (`rank`) in the new
/// file. Exact names come first, then wildcards, then the default server.
pub struct HostTables {
    rank: u8,
    hosts: ServerHosts,
    pub tables: LocationTables,
}

impl NginxImport {
    pub(super) fn virtual_hosts(&mut self, http: &[NginxDirective], servers: &[&NginxDirective]) {
        let all: Vec<_> = servers.iter().map(|server| VirtualServer::new(server)).collect();
        let is_used = |scheme: &&str| all.iter().any(|server| server.has(scheme));
        let schemes: Vec<&'static str> = ["http", "https"].into_iter().filter(is_used).collect();
        for (number, server) in all.iter().enumerate() {
            self.server(server.directive);
            self.report_listeners(&all, server);
            let scopes = host_scopes(&all, number, &schemes);
            let unknown = self.unknown_names(&all, number, &schemes);
            if scopes.is_empty() && !unknown {
                let text = "no name of this server is convertible, so it is left out";
                let original = &server.directive.original;
                self.draft.leave(original, ImportReason::Missing(text.into()));
            }
            let levels = Levels::new(http, server.directive);
            for (rank, hosts) in scopes {
                let tables = self.locations(server.directive, &levels, &hosts);
                self.tables.push(HostTables { rank, hosts, tables });
            }
            self.names_without_server(&all, number, &schemes);
        }
        self.tables.sort_by_key(|tables| tables.rank);
        self.refuse_crossed_origins();
    }

    /// Reports the listeners of other servers at which foxy also serves the hosts of this server.
    fn report_listeners(&mut self, all: &[VirtualServer<'_>], server: &VirtualServer<'_>) {
        let mut missing: Vec<&str> = Vec::new();
        for (address, scheme, _) in all.iter().flat_map(|other| &other.listeners) {
            let is_own = server.listeners.iter().any(|(own, of, _)| own == address && of == scheme);
            if !is_own && server.has(scheme) && !missing.contains(&address.as_str()) {
                missing.push(address);
            }
        }
        if !missing.is_empty() && server.proxies() {
            let text =
                format!("foxy serves the hosts of this server also at {}", missing.join(", "));
            self.draft.leave(&server.directive.original, ImportReason::Opens(text));
        }
    }

    /// Adds a rule that refuses the hosts of those names that an origin cannot have, such as
    /// regular expressions. The rule leaves out the schemes whose default server is this server.
    /// Returns whether the server has such names.
    fn unknown_names(
        &mut self,
        all: &[VirtualServer<'_>],
        number: usize,
        schemes: &[&'static str],
    ) -> bool {
        let directive = all[number].directive;
        let is_refused =
            |scheme: &&&str| all[number].has(scheme) && default_of(all, scheme) != Some(number);
        let refused: Vec<String> =
            schemes.iter().filter(is_refused).map(ToString::to_string).collect();
        let lines = directive.children().iter().filter(|child| child.name() == "server_name");
        let names = lines.flat_map(NginxDirective::arguments);
        let mut urls = Vec::new();
        let mut has_names = false;
        for name in names.filter(|name| server::is_unknown(&name.to_ascii_lowercase())) {
            has_names = true;
            let url = match (name.strip_prefix('~'), name.strip_suffix(".*")) {
                (Some(regex), _) => expression::host(regex),
                (None, Some(start)) if !start.contains('*') => {
                    expression::host(&format!("^{}\\.", start.replace('.', "\\.")))
                }
                _ => None,
            };
            match url {
                Some(url) => urls.push(url),
                None if refused.is_empty() => {}
                None => {
                    let text =
                        format!("foxy does not know {name}, so another server gets its hosts");
                    self.draft.leave(&directive.original, ImportReason::Opens(text));
                }
            }
        }
        if !urls.is_empty() && !refused.is_empty() {
            let text = "foxy knows names and *.name alone; a rule refuses the other hosts of this \
                        server";
            self.draft.leave(&directive.original, ImportReason::Missing(text.into()));
            let others = all.iter().flat_map(|server| server.names.rule.iter().cloned());
            let others: Vec<String> = others.collect();
            let mut term = AccessTerm::default();
            term.when.insert("url", urls);
            if refused.len() < schemes.len() {
                term.when.insert("scheme", refused);
            }
            if !others.is_empty() {
                term = term.and_not(&Facets::from([("host", others)]));
            }
            let name = format!("{}: names without an equivalent", directive.original.place);
            self.refuse(term.rule(&name, refusal()), &directive.original);
        }
        has_names
    }

    /// Refuses requests for the host names of a server over a scheme (http or https) that the
    /// server does not serve. Otherwise the default server of the scheme would answer them from its
    /// own origin.
    fn names_without_server(
        &mut self,
        all: &[VirtualServer<'_>],
        number: usize,
        schemes: &[&'static str],
    ) {
        let server = &all[number];
        for scheme in schemes.iter().filter(|scheme| !server.has(scheme)) {
            let others = others(all, number, scheme);
            let is_new = |name: &&String| !others.contains(name);
            let names: Vec<String> = server.names.rule.iter().filter(is_new).cloned().collect();
            let serves = default_of(all, scheme).is_some_and(|default| all[default].proxies());
            if names.is_empty() || !serves || !server.proxies() {
                continue;
            }
            let mut term = AccessTerm::default();
            term.when.insert("host", names);
            term.when.insert("scheme", vec![(*scheme).to_owned()]);
            let original = &server.directive.original;
            let name = format!("{}: not over {scheme}", original.place);
            self.refuse(term.rule(&name, refusal()), original);
            let text = format!(
                "a rule refuses these hosts over {scheme}, where nginx would serve \
                                the default server"
            );
            self.draft.leave(original, ImportReason::Differs(text));
        }
    }

    /// Adds a rule if servers for http and for https have the same hosts and different origins.
    /// foxy sends all requests to the first origin, so the rule refuses the requests that belong to
    /// the second origin.
    fn refuse_crossed_origins(&mut self) {
        for second in 1..self.tables.len() {
            let is_crossed = (0..second).any(|first| {
                let (a, b) = (&self.tables[first], &self.tables[second]);
                let shares = a.hosts.origin == b.hosts.origin
                    || a.hosts.origin.iter().any(|host| b.hosts.origin.contains(host));
                let differs = origins(&a.tables) != origins(&b.tables);
                let proxies = !a.tables.origins.is_empty() && !b.tables.origins.is_empty();
                a.hosts.scheme != b.hosts.scheme && shares && differs && proxies
            });
            if !is_crossed {
                continue;
            }
            let hosts = self.tables[second].hosts.clone();
            let mut term = AccessTerm::default();
            if !hosts.rule.is_empty() {
                term.when.insert("host", hosts.rule.clone());
            }
            term.when.extend(hosts.scheme.map(|scheme| ("scheme", vec![scheme.to_owned()])));
            if !hosts.others.is_empty() {
                term = term.and_not(&Facets::from([("host", hosts.others)]));
            }
            let Some((_, original)) = self.tables[second].tables.origins.first().cloned() else {
                continue;
            };
            let name = format!("{}: another origin for the same hosts", original.place);
            let text = "an earlier server has the same hosts with other origins; a rule refuses \
                        the requests of this server";
            self.draft.leave(&original, ImportReason::Missing(text.into()));
            let rule = (term.rule(&name, refusal()), original, true);
            self.tables[second].tables = LocationTables { origins: Vec::new(), rules: vec![rule] };
        }
    }

    /// Adds a rule that comes before the rules of all servers.
    fn refuse(&mut self, rule: Table, original: &Original) {
        self.first_rules.push((rule, original.clone(), true));
    }
}

/// Returns the server that gets the requests over `scheme` whose host no server names.
fn default_of(all: &[VirtualServer<'_>], scheme: &str) -> Option<usize> {
    let is_marked = |server: &VirtualServer<'_>| {
        server.listeners.iter().any(|(_, own, default)| *own == scheme && *default)
    };
    let marked = all.iter().position(is_marked);
    marked.or_else(|| all.iter().position(|server| server.has(scheme)))
}

/// Returns the names of all other servers with this scheme.
fn others(all: &[VirtualServer<'_>], number: usize, scheme: &str) -> Vec<String> {
    let others =
        all.iter().enumerate().filter(|(other, server)| *other != number && server.has(scheme));
    let mut names: Vec<String> = Vec::new();
    for name in others.flat_map(|(_, server)| &server.names.rule) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    names
}

/// Returns the hosts of a server, each group with its place (rank) in the new file. If http and
/// https have different default servers, returns the names of a default server separately. Only the
/// default of one scheme can have an origin for all hosts.
fn host_scopes(
    all: &[VirtualServer<'_>],
    number: usize,
    schemes: &[&'static str],
) -> Vec<(u8, ServerHosts)> {
    let server = &all[number];
    let defaults: Vec<_> = schemes.iter().map(|scheme| default_of(all, scheme)).collect();
    let splits = defaults.windows(2).any(|pair| pair[0] != pair[1]);
    let named = |scheme: &&'static str| {
        let is_default = default_of(all, scheme) == Some(number);
        let mut own = server.names.clone();
        if own.has_wildcard() {
            own.others = others(all, number, scheme);
            own.others.retain(|name| name.starts_with('='));
        }
        (server.has(scheme) && !own.rule.is_empty() && (splits || !is_default)).then_some(own)
    };
    let rest = |scheme: &&'static str| {
        let mut others = others(all, number, scheme);
        if splits {
            others.extend(server.names.rule.iter().cloned());
        }
        let hosts = ServerHosts { others, ..ServerHosts::default() };
        (default_of(all, scheme) == Some(number)).then_some(hosts)
    };
    let rank = u8::from(server.names.has_wildcard());
    let named = merged(schemes, schemes.iter().map(named).collect());
    let rest = merged(schemes, schemes.iter().map(rest).collect());
    let named = named.into_iter().map(|hosts| (rank, hosts));
    named.chain(rest.into_iter().map(|hosts| (2, hosts))).collect()
}

/// Joins the hosts of http and https if they are equal. Otherwise, each host keeps its scheme.
fn merged(schemes: &[&'static str], found: Vec<Option<ServerHosts>>) -> Vec<ServerHosts> {
    match found.as_slice() {
        [Some(single)] => vec![single.clone()],
        [Some(a), Some(b)] if a == b => vec![a.clone()],
        _ => {
            let found = found.into_iter().zip(schemes);
            let with_scheme = found.filter_map(|(hosts, scheme)| {
                Some(ServerHosts { scheme: Some(*scheme), ..hosts? })
            });
            with_scheme.collect()
        }
    }
}

/// Returns the origins without their names, to compare them.
fn origins(tables: &LocationTables) -> Vec<Table> {
    let without_name = |(origin, _): &(Table, Original)| {
        let mut origin = origin.clone();
        for key in ["name", "hosts", "head-timeout", "connect-timeout"] {
            origin.remove(key);
        }
        origin
    };
    tables.origins.iter().map(without_name).collect()
}
