//! The scope of an nginx location: the blocks around the location, its hosts and its path prefix.
//! Makes the rules that apply to exactly the requests of the location.

use super::super::draft::Original;
use super::super::terms::{AccessTerm, Facets};
use super::parse::NginxDirective;
use toml::Table;

/// The names of a server, in the form of an origin's `hosts` (`origin`) and of a rule's `host`
/// (`rule`). Both are empty if the server accepts every host.
#[derive(Clone, Debug, Default)]
pub struct ServerHosts {
    pub origin: Vec<String>,
    pub rule: Vec<String>,
    /// Hosts that other servers serve, in the form of a rule's `host`. Rules of this server do not
    /// apply to these hosts.
    pub others: Vec<String>,
}

impl ServerHosts {
    pub fn has_wildcard(&self) -> bool {
        self.rule.iter().any(|host| !host.starts_with('='))
    }
}

/// The blocks around a location, from the innermost to the outermost.
#[derive(Clone, Debug)]
pub struct Levels<'d> {
    pub blocks: Vec<&'d [NginxDirective]>,
}

impl<'d> Levels<'d> {
    pub fn new(http: &'d [NginxDirective], server: &'d NginxDirective) -> Self {
        Self { blocks: vec![server.children(), http] }
    }

    pub fn inside(&self, location: &'d NginxDirective) -> Self {
        let mut blocks = vec![location.children()];
        blocks.extend(&self.blocks);
        Self { blocks }
    }

    /// Returns the directives with one of these names that are in force. As in nginx, the innermost
    /// block with such a directive hides all outer blocks.
    pub fn all(&self, names: &[&str]) -> Vec<&'d NginxDirective> {
        let of = |block: &&'d [NginxDirective]| {
            let found = block.iter().filter(|directive| names.contains(&directive.name()));
            found.collect::<Vec<_>>()
        };
        self.blocks.iter().map(of).find(|found| !found.is_empty()).unwrap_or_default()
    }

    pub fn last(&self, name: &str) -> Option<&'d NginxDirective> {
        self.all(&[name]).last().copied()
    }
}

/// The origins and rules of a server, each with the directive that it replaces. The flag of a rule
/// is true if the rule refuses requests.
#[derive(Debug, Default)]
pub struct LocationTables {
    pub origins: Vec<(Table, Original)>,
    pub rules: Vec<(Table, Original, bool)>,
}

/// A location that serves all paths with a certain prefix.
pub struct PrefixLocation<'d> {
    pub prefix: &'d str,
    pub levels: Levels<'d>,
    pub original: &'d Original,
    /// Longer prefixes that begin with this prefix. nginx serves their paths from other locations.
    pub inner: Vec<&'d str>,
    pub hosts: &'d ServerHosts,
}

impl PrefixLocation<'_> {
    /// Returns the condition that holds for exactly the requests of this location.
    fn term(&self) -> AccessTerm {
        let mut term = AccessTerm::default();
        if !self.hosts.rule.is_empty() {
            term.when.insert("host", self.hosts.rule.clone());
        }
        if self.prefix != "/" {
            term.when.insert("path", vec![pattern(self.prefix)]);
        }
        if !self.hosts.others.is_empty() {
            term = term.and_not(&Facets::from([("host", self.hosts.others.clone())]));
        }
        if !self.inner.is_empty() {
            let paths = self.inner.iter().map(|path| pattern(path)).collect();
            term = term.and_not(&Facets::from([("path", paths)]));
        }
        term
    }

    /// Returns a rule that applies to the requests of this location.
    pub fn rule(&self, suffix: &str, then: Table) -> Table {
        self.rule_with(suffix, |_| {}, then)
    }

    /// Returns a rule that applies to the requests of this location. `change` adds conditions.
    pub fn rule_with(
        &self,
        suffix: &str,
        change: impl FnOnce(&mut AccessTerm),
        then: Table,
    ) -> Table {
        let site = self.hosts.rule.first().map_or("", |host| host.trim_start_matches('='));
        let name = format!("{}: {site}{}{suffix}", self.original.place, self.prefix);
        let mut term = self.term();
        change(&mut term);
        term.rule(&name, then)
    }
}

/// Returns the pattern of a rule's `path` for all paths with this prefix.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::new();
    for c in prefix.chars() {
        if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "*"
}
