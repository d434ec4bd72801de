//! The scope of an nginx location: the blocks around the location, its hosts and its paths. Makes
//! the rules that apply to exactly the requests of the location.

use super::super::condition_text::{case_mark, escaped};
use super::super::draft::Original;
use super::super::terms::{AccessTerm, Facets};
use super::expression::PathExpression;
use super::parse::NginxDirective;
use toml::{Table, Value};

/// The hosts of a server, in the form of an origin's `hosts` (`origin`) and of a rule's `host`
/// (`rule`). Both are empty if the server accepts every host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHosts {
    pub origin: Vec<String>,
    pub rule: Vec<String>,
    /// Hosts that other servers serve, in the form of a rule's `host`. Rules of this server do not
    /// apply to these hosts.
    pub others: Vec<String>,
    /// The scheme of the requests, if the server serves these hosts over one scheme only.
    pub scheme: Option<&'static str>,
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

    /// Returns the directives of the location itself. Returns none for the server as a whole.
    pub fn of_location(&self) -> &'d [NginxDirective] {
        match self.blocks[..] {
            [own, _, _, ..] => own,
            _ => &[],
        }
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

/// The paths of a location.
#[derive(Clone, Debug)]
pub enum LocationPath<'d> {
    /// All paths with this beginning. In a `firm` location (`^~`), nginx tries no expressions.
    Prefix {
        prefix: &'d str,
        firm: bool,
    },
    Exact(&'d str),
    Expression(PathExpression),
}

impl<'d> LocationPath<'d> {
    /// Reads the arguments of a location. Returns `None` for a named location, and for a regular
    /// expression that foxy cannot express.
    pub fn read(location: &'d NginxDirective) -> Option<Self> {
        let (mark, path) = match location.arguments() {
            [word] => {
                let marks = ["^~", "~*", "~", "="];
                let mark = marks.into_iter().find(|mark| word.starts_with(mark)).unwrap_or("");
                (mark, &word[mark.len()..])
            }
            [mark, path] => (mark.as_str(), path.as_str()),
            _ => return None,
        };
        match mark {
            "~" | "~*" => PathExpression::read(path, mark == "~*").map(Self::Expression),
            _ if !path.starts_with('/') => None,
            "=" => Some(Self::Exact(path)),
            _ => Some(Self::Prefix { prefix: path, firm: mark == "^~" }),
        }
    }

    /// Returns the literal text with which all paths of the location begin.
    pub fn literal_beginning(&self) -> String {
        match self {
            Self::Prefix { prefix: path, .. } | Self::Exact(path) => (*path).to_owned(),
            Self::Expression(PathExpression { patterns: Some(patterns), .. }) => {
                let literal = |pattern: &String| {
                    let unmarked = pattern.strip_prefix(case_mark(true));
                    let has_cases = |c: char| unmarked.is_some() && c.is_ascii_alphabetic();
                    let ends = |c: char| "*?[{\\".contains(c) || has_cases(c);
                    let pattern = unmarked.unwrap_or(pattern);
                    pattern[..pattern.find(ends).unwrap_or(pattern.len())].to_owned()
                };
                let mut all = patterns.iter().map(literal);
                let first = all.next().unwrap_or_default();
                all.fold(first, |common, text| {
                    let same = common.chars().zip(text.chars()).take_while(|(a, b)| a == b);
                    same.map(|(c, _)| c).collect()
                })
            }
            Self::Expression(_) => String::new(),
        }
    }
}

/// A location with its hosts.
pub struct LocationScope<'d> {
    pub path: LocationPath<'d>,
    pub levels: Levels<'d>,
    pub original: &'d Original,
    pub hosts: &'d ServerHosts,
    /// Further paths of the location, as patterns.
    pub more: Vec<String>,
    /// Patterns for paths that nginx serves from other locations.
    pub other_paths: Vec<String>,
    /// Expressions for URLs that nginx serves from other locations.
    pub other_urls: Vec<String>,
}

impl LocationScope<'_> {
    /// Returns the paths of the location as a condition. `None` means all paths.
    fn condition(&self) -> Option<(&'static str, Vec<String>)> {
        let (key, mut values) = match &self.path {
            LocationPath::Prefix { prefix: "/", .. } => return None,
            LocationPath::Prefix { prefix, .. } => ("path", vec![beginning(prefix)]),
            LocationPath::Exact(path) => ("path", vec![escaped(path)]),
            LocationPath::Expression(PathExpression { patterns: Some(patterns), .. }) => {
                ("path", patterns.clone())
            }
            LocationPath::Expression(expression) => ("url", vec![expression.at_least.clone()]),
        };
        if key == "path" {
            values.extend(self.more.iter().cloned());
        }
        Some((key, values))
    }

    /// Returns whether rules match exactly the requests of this location.
    pub fn is_exact(&self) -> bool {
        let is_inexact = |path: &LocationPath<'_>| {
            matches!(path, LocationPath::Expression(PathExpression { patterns: None, .. }))
        };
        !is_inexact(&self.path) && self.other_urls.is_empty()
    }

    /// Returns the condition that holds for exactly the requests of this location.
    fn term(&self) -> AccessTerm {
        let mut term = AccessTerm::default();
        if !self.hosts.rule.is_empty() {
            term.when.insert("host", self.hosts.rule.clone());
        }
        if let Some(scheme) = self.hosts.scheme {
            term.when.insert("scheme", vec![scheme.to_owned()]);
        }
        if let Some((key, values)) = self.condition() {
            term.when.insert(key, values);
        }
        for (key, values) in
            [("host", &self.hosts.others), ("path", &self.other_paths), ("url", &self.other_urls)]
        {
            if !values.is_empty() {
                term = term.and_not(&Facets::from([(key, values.clone())]));
            }
        }
        term
    }

    /// Returns all conditions of the location, without its exceptions.
    pub fn facets(&self) -> Facets {
        self.term().when
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
        let name = self.name() + suffix;
        let mut term = self.term();
        change(&mut term);
        term.rule(&name, then)
    }

    /// Returns a rule that refuses the requests of this location, because the import does not
    /// convert the location.
    pub fn not_converted(&self) -> Table {
        self.rule(" is not converted", refusal())
    }

    /// Returns a name for rules and origins. The name contains the line number of the location, so
    /// that names differ.
    pub fn name(&self) -> String {
        let site = self.hosts.rule.first().map_or("", |host| host.trim_start_matches('='));
        let text = self.original.text.strip_prefix("location").unwrap_or_default();
        let path = match &self.path {
            LocationPath::Prefix { prefix, .. } => prefix,
            LocationPath::Exact(path) => path,
            LocationPath::Expression(_) => text,
        };
        let scheme = self.hosts.scheme.map(|scheme| format!(" ({scheme})")).unwrap_or_default();
        format!("{}: {site}{path}{scheme}", self.original.place)
    }
}

/// Returns the effects (`access` and `message`) of a rule. The rule refuses requests for a location
/// of nginx whose configuration the import does not convert.
pub fn refusal() -> Table {
    let text = "The configuration of nginx for this location is not converted.";
    Table::from_iter([
        ("access".to_owned(), Value::from("deny")),
        ("message".to_owned(), Value::from(text)),
    ])
}

/// Returns the pattern of a rule's `path` for all paths with this prefix.
pub fn beginning(prefix: &str) -> String {
    escaped(prefix) + "*"
}
