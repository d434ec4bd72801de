//! The scope of an nginx location: the directives around the location, its hosts and paths, and the
//! origins and rules that replace the location.

use super::super::draft::Original;
use super::super::terms::{AccessTerm, Facets};
use super::parse::NginxDirective;
use toml::Table;

/// The names of a server as hosts of an origin, and as hosts of a rule. Empty for every host.
#[derive(Clone, Debug, Default)]
pub struct ServerHosts {
    pub origin: Vec<String>,
    pub rule: Vec<String>,
    /// Hosts of a rule that belong to other servers.
    pub others: Vec<String>,
}

impl ServerHosts {
    pub fn has_wildcard(&self) -> bool {
        self.rule.iter().any(|host| !host.starts_with('='))
    }
}

/// The blocks around a location, from inside to outside.
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

    /// Returns the directives of this name that count: those of the innermost block that has any.
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

/// The origins and rules of a server. The flag of a rule is true if the rule refuses requests.
#[derive(Debug, Default)]
pub struct LocationTables {
    pub origins: Vec<(Table, Original)>,
    pub rules: Vec<(Table, Original, bool)>,
}

/// A location with a literal beginning of paths.
pub struct PrefixLocation<'d> {
    pub prefix: &'d str,
    pub levels: Levels<'d>,
    pub original: &'d Original,
    /// The longer beginnings, which other locations serve.
    pub inner: Vec<&'d str>,
    pub hosts: &'d ServerHosts,
}

impl PrefixLocation<'_> {
    /// Returns the conditions of this location.
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

    /// Returns a rule about this location.
    pub fn rule(&self, suffix: &str, then: Table) -> Table {
        self.rule_with(suffix, |_| {}, then)
    }

    /// Returns a rule about this location with further conditions.
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

/// Returns the pattern for all paths with this beginning.
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
