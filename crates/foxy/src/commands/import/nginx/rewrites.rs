//! Reports the `rewrite` lines of nginx, and makes rules that refuse the requests that they match.
//! foxy's own rewriting and redirects see the path before nginx decodes it.

use super::super::draft::ImportDraft;
use super::super::report::ImportReason;
use super::expression::PathExpression;
use super::parse::NginxDirective;
use super::scope::{Levels, LocationPath, LocationScope, LocationTables, ServerHosts, refusal};

/// Adds rules for the `rewrite` lines of a server. nginx executes these lines before it chooses a
/// location.
pub fn add_server_rules<'d>(
    draft: &mut ImportDraft,
    server: &'d NginxDirective,
    levels: &Levels<'d>,
    hosts: &'d ServerHosts,
    tables: &mut LocationTables,
) {
    for line in server.children().iter().filter(|child| child.name() == "rewrite") {
        let scope = LocationScope {
            path: LocationPath::Prefix { prefix: "/", firm: true },
            levels: levels.clone(),
            original: &line.original,
            hosts,
            more: Vec::new(),
            other_paths: Vec::new(),
            other_urls: Vec::new(),
        };
        add_rule(draft, &scope, line, tables);
    }
}

/// Adds rules for the `rewrite` lines of a location.
pub fn add_rules(
    draft: &mut ImportDraft,
    location: &LocationScope<'_>,
    tables: &mut LocationTables,
) {
    for line in location.levels.of_location().iter().filter(|line| line.name() == "rewrite") {
        add_rule(draft, location, line, tables);
    }
}

fn add_rule(
    draft: &mut ImportDraft,
    scope: &LocationScope<'_>,
    line: &NginxDirective,
    tables: &mut LocationTables,
) {
    let is_url =
        ["http://", "https://", "$scheme"].iter().any(|it| line.argument(1).starts_with(it));
    let is_redirect = is_url || matches!(line.argument(2), "permanent" | "redirect");
    let Some(expression) = PathExpression::read(line.argument(0), false) else {
        let text = if is_redirect {
            "foxy does not have this expression, so the origin gets these requests"
        } else {
            "foxy does not have this expression, so the origin gets the old path"
        };
        return draft.leave(&line.original, ImportReason::Opens(text.into()));
    };
    let text = if is_redirect {
        "a rule refuses these requests; to redirect them, write `redirect` of a rule in its place"
    } else {
        "a rule refuses these requests; to serve them, write `rewrite` of a rule in its place"
    };
    draft.leave(&line.original, ImportReason::Missing(text.into()));
    let rule = scope.rule_with(
        " rewrite",
        |term| {
            if !term.when.contains_key("url") {
                match expression.patterns {
                    Some(patterns) if !term.when.contains_key("path") => {
                        term.when.insert("path", patterns)
                    }
                    _ => term.when.insert("url", vec![expression.at_least]),
                };
            }
        },
        refusal(),
    );
    tables.rules.push((rule, line.original.clone(), true));
}
