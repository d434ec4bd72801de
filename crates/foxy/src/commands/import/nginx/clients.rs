//! Converts `allow` and `deny` lines of nginx into rules.

use super::super::draft::ImportDraft;
use super::super::range_set::{AddressSet, RangeTexts};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, Facets, effect};
use super::parse::NginxDirective;
use super::scope::{LocationScope, LocationTables};

/// Returns whether a `return` line refuses requests, with status 403, 404, 410 or 444.
pub fn is_refusal(line: &NginxDirective) -> bool {
    line.name() == "return" && matches!(line.argument(0), "403" | "404" | "410" | "444")
}

/// Returns whether the `allow` and `deny` lines refuse every client.
pub fn denies_all(location: &LocationScope<'_>) -> bool {
    let lines = location.levels.all(&["allow", "deny"]);
    denied(&lines).is_some_and(|denied| denied.complement().texts().is_empty())
}

/// Adds a rule that refuses the clients that nginx refuses in this location.
pub fn add_rules(
    draft: &mut ImportDraft,
    location: &LocationScope<'_>,
    tables: &mut LocationTables,
) {
    let lines = location.levels.all(&["allow", "deny"]);
    add_rule(draft, location, &lines, &[], tables);
}

/// Adds a rule that refuses the clients that these `allow` and `deny` lines refuse. The rule does
/// not apply to the listed methods.
pub fn add_rule(
    draft: &mut ImportDraft,
    location: &LocationScope<'_>,
    lines: &[&NginxDirective],
    methods: &[String],
    tables: &mut LocationTables,
) {
    let Some(first) = lines.first() else { return };
    let Some(denied) = denied(lines) else {
        let text = "a line of `allow` or `deny` names no network";
        return draft.leave(&first.original, ImportReason::Opens(text.into()));
    };
    if denied.texts().is_empty() {
        return;
    }
    let served = denied.complement().texts();
    let clients = |texts: &[String]| Facets::from([("client", texts.to_vec())]);
    let change = |term: &mut AccessTerm| {
        if served.len() < denied.texts().len() {
            if !served.is_empty() {
                *term = std::mem::take(term).and_not(&clients(&served));
            }
        } else {
            term.when.extend(clients(&denied.texts()));
        }
        if !methods.is_empty() {
            *term = std::mem::take(term).and_not(&Facets::from([("method", methods.to_vec())]));
        }
    };
    let then = effect("access", "deny");
    let suffix = if methods.is_empty() { " deny" } else { " limit_except" };
    tables.rules.push((location.rule_with(suffix, change, then), first.original.clone(), true));
}

/// Returns the clients that the lines refuse. As in nginx, the first line that matches a client
/// decides.
fn denied(lines: &[&NginxDirective]) -> Option<AddressSet> {
    let everybody = ["0.0.0.0/0".to_owned(), "::/0".to_owned()];
    let mut rest = AddressSet::read(&everybody)?;
    let mut served = AddressSet::read(&[])?.complement();
    for line in lines {
        let network = match line.argument(0) {
            "all" => AddressSet::read(&everybody)?,
            text => AddressSet::read(&[text.to_owned()])?,
        };
        if line.name() == "deny" {
            // `rest` has the clients about which no earlier line has decided. So this line refuses
            // only the clients of its network that are in `rest`.
            served = served.intersection(&rest.intersection(&network).complement());
        }
        rest = rest.intersection(&network.complement());
    }
    Some(served.complement())
}
