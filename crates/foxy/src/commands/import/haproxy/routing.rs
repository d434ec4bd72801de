//! Converts the `use_backend` and `default_backend` lines of a frontend (its routes) to origins,
//! and its `http-request` lines to rules.

use super::super::draft::Original;
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, Facets, TermFlaw, effect, within, without_all, written};
use super::HaproxyImport;
use super::conditions::HaproxyAcls;
use super::lines::{HaproxyLine, HaproxySection};
use super::refusals::refuses_all;
use toml::{Table, Value};

/// Returns the condition of a line: the words from `if` or `unless` to the end. Returns no words if
/// the line has no condition.
pub fn condition(line: &HaproxyLine) -> &[String] {
    let at = line.words.iter().position(|word| word == "if" || word == "unless");
    at.map_or(&[], |at| &line.words[at..])
}

/// A backend that a frontend uses, and the condition for a request to go to this backend.
pub struct HaproxyRoute {
    pub term: AccessTerm,
    pub backend: String,
    pub original: Original,
}

impl HaproxyImport {
    pub(super) fn routes(&mut self, section: &HaproxySection) {
        let acls = HaproxyAcls::of(&section.lines);
        self.access(&acls, section, &self.reach(section));
        let mut routes = Vec::new();
        for line in section.lines.iter().filter(|line| line.starts(&["use_backend"])) {
            match acls.terms(condition(line)) {
                Ok(terms) => routes.extend(terms.into_iter().map(|term| HaproxyRoute {
                    term,
                    backend: line.argument(0).to_owned(),
                    original: line.original.clone(),
                })),
                Err(flaw) => {
                    let text = format!("{flaw}; these requests go to the next origin");
                    self.lost_route(line.argument(0), &line.original, text);
                }
            }
        }
        let settings = self.settings_of(section);
        let default = settings.iter().find(|line| line.starts(&["default_backend"]));
        let own = (section.kind() == "listen").then(|| (section.name(), &section.head));
        let last = default.map(|line| (line.argument(0), line)).or(own);
        routes.extend(last.map(|(backend, line)| HaproxyRoute {
            term: AccessTerm::default(),
            backend: backend.to_owned(),
            original: line.original.clone(),
        }));
        for (at, route) in routes.iter().enumerate() {
            self.route(route, &routes[..at], section);
        }
    }

    fn route(&mut self, route: &HaproxyRoute, earlier: &[HaproxyRoute], frontend: &HaproxySection) {
        let wanted = |section: &&HaproxySection| {
            matches!(section.kind(), "backend" | "listen") && section.name() == route.backend
        };
        let Some(backend) = self.sections.iter().find(wanted).cloned() else {
            let text = format!("there is no backend {}", route.backend);
            return self.lost_route(&route.backend, &route.original, text);
        };
        let is_refused = refuses_all(&backend).is_some();
        let Some(base) = (!is_refused).then(|| self.origin(&backend)).flatten() else {
            return self.refused_route(route, earlier, &backend);
        };
        let Some((hosts, paths)) = hosts_and_paths(&route.term) else {
            return match chosen_by_rules(route, earlier) {
                Ok(terms) => {
                    self.chosen_origin(route, base, &terms);
                    self.of_backend(route, &backend, frontend);
                }
                Err(flaw) => {
                    let text = format!("{flaw}; these requests go to the next origin");
                    self.lost_route(&route.backend, &route.original, text);
                }
            };
        };
        let count = paths.len();
        for (number, path) in (1..).zip(&paths) {
            let part = if count > 1 { format!(" ({number} of {count})") } else { String::new() };
            let name = format!("{}: {}{part}", route.original.place, route.backend);
            let mut origin = Table::from_iter([("name".to_owned(), Value::from(name))]);
            if !hosts.is_empty() {
                origin.insert("hosts".into(), written(&hosts));
            }
            if path != "/" {
                origin.insert("path".into(), path.as_str().into());
            }
            origin.extend(base.clone());
            self.draft.list("origin", origin, &route.original);
        }
        self.of_backend(route, &backend, frontend);
    }

    /// Converts the rules of the backend of a route.
    fn of_backend(
        &mut self,
        route: &HaproxyRoute,
        backend: &HaproxySection,
        frontend: &HaproxySection,
    ) {
        if backend.kind() != "listen" {
            self.access(&HaproxyAcls::of(&backend.lines), backend, &route.term);
        }
        self.caching(route, backend, frontend);
    }

    /// Returns the requests that reach a section. If several sections have listeners, the scheme
    /// tells them apart where possible.
    fn reach(&self, section: &HaproxySection) -> AccessTerm {
        let mut reach = AccessTerm::default();
        let is_alone = self.sections.iter().filter(|section| section.listens()).count() < 2;
        if let Some(scheme) = section.scheme().filter(|_| !is_alone) {
            reach.when.insert("scheme", vec![scheme.to_owned()]);
        }
        reach
    }

    /// Adds an origin that no host leads to, and rules that choose this origin for the requests
    /// that match one of `terms`.
    fn chosen_origin(&mut self, route: &HaproxyRoute, base: Table, terms: &[AccessTerm]) {
        let name = format!("{}: {}", route.original.place, route.backend);
        if !self.draft.has_named("origin", &name) {
            let mut origin = Table::from_iter([("name".to_owned(), Value::from(name.as_str()))]);
            origin.insert("hosts".into(), "chosen-by-rules.invalid".into());
            origin.extend(base);
            self.draft.list("origin", origin, &route.original);
        }
        for term in terms {
            let mut then = effect("upstream", format!("origin:{name}"));
            let mut facets = std::iter::once(&term.when).chain(&term.unless);
            if facets.any(is_of_request) {
                then.insert("bypass".into(), true.into());
            }
            self.rule(term, " origin", then, &route.original);
        }
    }

    /// Converts lines that set or remove a header field, such as `http-request set-header NAME
    /// VALUE`.
    pub(super) fn field(&mut self, acls: &HaproxyAcls, line: &HaproxyLine, scope: &AccessTerm) {
        let side = match line.words[0].as_str() {
            "http-request" => "request-header",
            "http-response" => "response-header",
            _ => return,
        };
        let (name, value) = (line.argument(1), line.argument(2));
        let then = match line.argument(0) {
            "del-header" => effect(&format!("{side}-remove"), Value::Array(vec![name.into()])),
            "set-header" if name.to_ascii_lowercase().starts_with("x-forwarded-") => {
                let text = "foxy sends Forwarded and X-Forwarded-*".to_owned();
                return self.draft.leave(&line.original, ImportReason::NotNeeded(text));
            }
            "set-header" if value.contains('%') => {
                let text = "foxy has no variables".to_owned();
                return self.draft.leave(&line.original, ImportReason::Missing(text));
            }
            "set-header" => effect(&format!("{side}-set"), effect(name, value)),
            _ => return,
        };
        let terms = acls.terms(condition(line));
        let terms = terms.and_then(|terms| {
            let scoped = terms.iter().map(|term| within(term, scope));
            scoped.filter_map(Result::transpose).collect::<Result<Vec<_>, _>>()
        });
        match terms {
            Ok(terms) => {
                for term in terms {
                    self.rule(&term, "", then.clone(), &line.original);
                }
                let text = "if several rules change these fields, only the first match applies";
                self.draft.leave(&line.original, ImportReason::Differs(text.into()));
            }
            Err(flaw) => {
                self.draft.leave(&line.original, ImportReason::Missing(flaw.to_string()));
            }
        }
    }

    /// Adds the rule on caching for a route. Without a `cache-store` line HAProxy caches nothing,
    /// so the rule then makes foxy bypass its cache. The rule does the same if a line about the
    /// cache has a condition, because foxy could otherwise share what HAProxy does not share.
    fn caching(
        &mut self,
        route: &HaproxyRoute,
        backend: &HaproxySection,
        frontend: &HaproxySection,
    ) {
        let lines = || frontend.lines.iter().chain(&backend.lines);
        let is_use = |line: &HaproxyLine| line.starts(&["http-request", "cache-use"]);
        let is_store = |line: &HaproxyLine| line.starts(&["http-response", "cache-store"]);
        let store = lines().find(|line| is_store(line));
        let mut of_cache = lines().filter(|line| is_use(line) || is_store(line));
        let conditional = of_cache.find(|line| ["if", "unless"].contains(&line.argument(2)));
        if let Some(line) = conditional {
            let text = "foxy caches nothing here; write a rule for the condition".to_owned();
            self.draft.leave(&line.original, ImportReason::Missing(text));
        }
        let Some(store) = store.filter(|_| conditional.is_none()) else {
            let then = effect("bypass", true);
            return self.rule(&route.term, " without a cache", then, &route.original);
        };
        let cache = self
            .sections
            .iter()
            .find(|section| section.kind() == "cache" && section.name() == store.argument(1));
        let age = cache.and_then(|cache| cache.lines.iter().find(|line| line.starts(&["max-age"])));
        let age = format!("{}s", age.map_or("60", |line| line.argument(0)));
        let heuristic = Table::from_iter(
            ["at-least", "at-most"].map(|key| (key.to_owned(), Value::from(age.as_str()))),
        );
        let mut then = effect("heuristic", heuristic);
        then.insert("fresh-at-most".into(), age.into());
        // `bypass = false` keeps a later rule from setting `bypass`, such as the rule of a route
        // that HAProxy does not cache.
        then.insert("bypass".into(), false.into());
        self.rule(&route.term, " cache", then, &store.original);
    }

    pub(super) fn rule(
        &mut self,
        term: &AccessTerm,
        suffix: &str,
        then: Table,
        original: &Original,
    ) {
        let text: String = original.text.chars().take(100).collect();
        let name = format!("{}: {text}{suffix}", original.place);
        self.draft.list("rule", term.rule(&name, then), original);
    }
}

/// Returns the requests of a route that no earlier route takes.
fn chosen_by_rules(
    route: &HaproxyRoute,
    earlier: &[HaproxyRoute],
) -> Result<Vec<AccessTerm>, TermFlaw> {
    let start = Ok(vec![route.term.clone()]);
    earlier.iter().fold(start, |terms, other| without_all(&terms?, &other.term))
}

/// Returns whether a condition is about a single request. Then a rule that chooses the origin must
/// bypass the cache.
fn is_of_request(facets: &Facets) -> bool {
    ["client", "method", "header"].iter().any(|key| facets.contains_key(key))
}

/// Returns the hosts and path prefixes for the origin of a route. Returns `None` if the route has a
/// condition that an origin cannot express.
fn hosts_and_paths(term: &AccessTerm) -> Option<(Vec<String>, Vec<String>)> {
    let known = term.when.keys().all(|key| matches!(*key, "host" | "path"));
    if !known || !term.unless.is_empty() {
        return None;
    }
    let hosts = term.when.get("host").map_or(&[][..], Vec::as_slice);
    let hosts = hosts.iter().map(|host| host.trim_start_matches('=').to_owned()).collect();
    let Some(paths) = term.when.get("path") else { return Some((hosts, vec!["/".into()])) };
    let beginning = |path: &String| {
        let literal = path.strip_suffix('*')?;
        (!literal.contains(['*', '?', '[', '\\', '{'])).then(|| literal.to_owned())
    };
    Some((hosts, paths.iter().map(beginning).collect::<Option<_>>()?))
}
