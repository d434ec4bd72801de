//! Converts the lines with which HAProxy redirects or refuses requests or answers them itself, and
//! the routes to backends that serve no request. Rules redirect or deny these requests.

use super::super::draft::Original;
use super::super::handling::DirectiveHandling;
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect, within, without_all};
use super::HaproxyImport;
use super::conditions::HaproxyAcls;
use super::directives::TABLE;
use super::lines::{HaproxyLine, HaproxySection};
use super::redirects::{self, is_redirect};
use super::routing::{HaproxyRoute, condition};
use toml::Table;

/// First words of the lines that keep requests from the servers of a backend.
const REFUSALS: [&[&str]; 7] = [
    &["http-request", "deny"],
    &["http-request", "reject"],
    &["http-request", "silent-drop"],
    &["http-request", "tarpit"],
    &["http-request", "return"],
    &["tcp-request", "connection", "reject"],
    &["block"],
];

/// Returns whether a line refuses requests or answers them itself.
pub fn is_refusal(line: &HaproxyLine) -> bool {
    REFUSALS.iter().any(|words| line.starts(words))
}

fn is_server(line: &HaproxyLine) -> bool {
    line.starts(&["server"]) || line.starts(&["server-template"])
}

/// Returns how the answer of foxy's rule differs from the answer of this line. Returns `None` for
/// equal answers.
fn difference(line: &HaproxyLine) -> Option<ImportReason> {
    let differs = |text: &str| Some(ImportReason::Differs(text.to_owned()));
    let missing = |text: &str| Some(ImportReason::Missing(text.to_owned()));
    let end = line.words.len() - condition(line).len();
    let options = line.words.get(2..end).unwrap_or_default();
    if line.words.windows(2).any(|words| words == ["redirect", "scheme"]) {
        return differs("foxy leaves out the port of the host");
    }
    match (line.words[0].as_str(), line.argument(0)) {
        (_, "return") => missing("foxy has no answers of its own; a rule refuses these requests"),
        (_, "tarpit") => differs("foxy answers 403 at once"),
        (_, "reject" | "silent-drop" | "connection") => {
            differs("foxy answers 403; the original closes the connection without an answer")
        }
        (_, "deny") if !options.is_empty() && options != ["deny_status", "403"] => {
            differs("foxy answers 403 with its own text")
        }
        _ => None,
    }
}

/// Returns the effect of a rule in place of this line, which redirects or refuses requests.
fn answer(line: &HaproxyLine) -> Table {
    if let Some(redirect) = redirects::effect(line) {
        return redirect;
    }
    let mut then = effect("access", "deny");
    if matches!(difference(line), Some(ImportReason::Missing(_))) {
        let text = "The configuration of HAProxy for this request is not converted.";
        then.insert("message".into(), text.into());
    }
    then
}

/// Returns the line with which a backend refuses every request.
pub fn refuses_all(backend: &HaproxySection) -> Option<&HaproxyLine> {
    let mut lines = backend.lines.iter();
    if lines.any(|line| line.starts(&["http-request", "allow"])) {
        return None;
    }
    backend.lines.iter().find(|line| is_refusal(line) && condition(line).is_empty())
}

impl HaproxyImport {
    /// Converts the lines that refuse requests, answer them or change header fields. The rules
    /// apply only to requests that match `scope`, the condition of the route.
    pub(super) fn access(
        &mut self,
        acls: &HaproxyAcls,
        section: &HaproxySection,
        scope: &AccessTerm,
    ) {
        let mut allowed: Vec<AccessTerm> = Vec::new();
        for line in &section.lines {
            let has_redirect = redirects::effect(line).is_some();
            if is_redirect(line) && !has_redirect {
                let text = "foxy has no such redirect; it serves these requests".to_owned();
                self.draft.leave(&line.original, ImportReason::Opens(text));
                continue;
            }
            let refuses = is_refusal(line) || has_redirect;
            if !refuses && !line.starts(&["http-request", "allow"]) {
                self.field(acls, line, scope);
                continue;
            }
            // `http-request allow` ends the `http-request` lines alone.
            let exceptions = if line.words[0] == "http-request" { &allowed[..] } else { &[] };
            match acls.terms(condition(line)) {
                Ok(terms) if refuses => {
                    for term in terms {
                        self.refusal(&term, exceptions, scope, line);
                    }
                    if let Some(reason) = difference(line) {
                        self.draft.leave(&line.original, reason);
                    }
                }
                Ok(terms) => allowed.extend(terms),
                Err(flaw) if refuses => {
                    self.draft.leave(&line.original, ImportReason::Opens(flaw.to_string()));
                }
                Err(flaw) => {
                    self.draft.leave(&line.original, ImportReason::Missing(flaw.to_string()));
                }
            }
        }
    }

    /// Adds a rule that redirects or refuses the requests that `term` matches. Requests that an
    /// earlier `allow` line matches (`allowed`) are exceptions of the rule.
    fn refusal(
        &mut self,
        term: &AccessTerm,
        allowed: &[AccessTerm],
        scope: &AccessTerm,
        line: &HaproxyLine,
    ) {
        let original = &line.original;
        let mut term = match within(term, scope) {
            Ok(Some(term)) if allowed.iter().all(|allow| allow.unless.is_empty()) => term,
            Ok(None) => return,
            _ => {
                let text = "no rule of foxy can combine these conditions".to_owned();
                return self.draft.leave(original, ImportReason::Opens(text));
            }
        };
        for allow in allowed {
            term = term.and_not(&allow.when);
        }
        self.rule(&term, "", answer(line), original);
    }

    /// Reports a route that is not converted, so that its requests go elsewhere. If its backend
    /// refuses requests, foxy permits more.
    pub(super) fn lost_route(&mut self, backend: &str, original: &Original, text: String) {
        let is_named = |section: &&HaproxySection| {
            matches!(section.kind(), "backend" | "listen")
                && (backend.contains('%') || section.name() == backend)
        };
        let restricts = |line: &HaproxyLine| {
            let row = TABLE.iter().find(|(words, _)| line.starts(words));
            is_refusal(line) || row.is_some_and(|row| matches!(row.1, DirectiveHandling::Opens(_)))
        };
        let refuses = self.sections.iter().filter(is_named).any(|section| {
            section.lines.iter().any(restricts) || !section.lines.iter().any(is_server)
        });
        let reason = if refuses { ImportReason::Opens(text) } else { ImportReason::Missing(text) };
        self.draft.leave(original, reason);
    }

    /// Converts a route to a backend that serves no request. Rules deny the requests that no
    /// earlier route of the frontend takes. The route for all other requests needs no rule, because
    /// foxy refuses requests without an origin.
    pub(super) fn refused_route(
        &mut self,
        route: &HaproxyRoute,
        earlier: &[HaproxyRoute],
        backend: &HaproxySection,
    ) {
        let name = &route.backend;
        let refusing = refuses_all(backend);
        let has_servers = backend.lines.iter().any(is_server);
        let has_statistics = backend.lines.iter().any(|line| line.starts(&["stats"]));
        let redirect = backend.lines.iter().find(|line| is_redirect(line));
        let redirect = redirect.filter(|_| refusing.is_none() && !has_servers);
        let sends =
            |line: &&HaproxyLine| redirects::effect(line).is_some() && condition(line).is_empty();
        if let Some(line) = redirect.filter(|line| !sends(line)) {
            let text = "foxy has no such redirect; these requests go to the next origin";
            return self.draft.leave(&line.original, ImportReason::Opens(text.to_owned()));
        }
        let text = match refusing {
            Some(_) => format!("{name} refuses all requests"),
            None if has_servers => format!("foxy uses no server of {name}, so foxy answers 403"),
            None if has_statistics => format!("{name} has no server, only statistics"),
            None => format!("{name} has no server, so HAProxy answers 503 and foxy 403"),
        };
        if route.term.is_always() && redirect.is_none() {
            let text = format!("{text}; foxy refuses requests that no origin matches");
            let loses_site = refusing.is_none() && has_servers;
            let reason = if loses_site {
                ImportReason::Missing(text)
            } else {
                ImportReason::NotNeeded(text)
            };
            return self.draft.leave(&route.original, reason);
        }
        let start = Ok(vec![route.term.clone()]);
        let terms = earlier.iter().fold(start, |terms, other| without_all(&terms?, &other.term));
        let terms = match terms {
            Ok(terms) => terms,
            Err(flaw) => {
                let text = format!("{text}; {flaw}");
                return self.draft.leave(&route.original, ImportReason::Opens(text));
            }
        };
        for term in terms {
            let line = refusing.or(redirect);
            let then = line.map_or_else(|| effect("access", "deny"), answer);
            self.rule(&term, "", then, &route.original);
        }
        if refusing.or(redirect).is_none() {
            self.draft.leave(&route.original, ImportReason::Differs(text));
        }
        for line in backend.lines.iter().filter(|line| is_refusal(line)) {
            if let Some(reason) = difference(line) {
                self.draft.leave(&line.original, reason);
            }
        }
    }
}
