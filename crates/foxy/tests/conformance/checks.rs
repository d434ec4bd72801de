//! The checks of the cache suite (`http-cache-tests`) with their results. Counts results as the
//! suite does, and compares them with docs/conformance.md.

use std::collections::{BTreeMap, BTreeSet};

pub const DOCUMENT: &str = include_str!("../../../../docs/conformance.md");

/// A check of the suite, and its result.
pub struct Check {
    pub kind: String,
    pub needs: Vec<String>,
    pub passed: bool,
    pub problem: String,
}

/// The checks, each under its id.
pub type Checks = BTreeMap<String, Check>;

/// Returns the ids of failed checks of the kinds `required` and `optimal`. As in the suite, a check
/// also fails if it depends on a failed check.
pub fn failures(checks: &Checks) -> BTreeSet<String> {
    fn passes(checks: &Checks, id: &str) -> bool {
        checks.get(id).is_some_and(|check| {
            check.passed && check.needs.iter().all(|needed| passes(checks, needed))
        })
    }
    let counted = checks.iter().filter(|(_, check)| check.kind != "check");
    counted.map(|(id, _)| id).filter(|id| !passes(checks, id)).cloned().collect()
}

/// Panics unless exactly the checks in `documented` failed.
pub fn assert_documented(checks: &Checks, documented: &BTreeSet<String>) {
    let failed = failures(checks);
    let described = |id: &String| format!("\n  {id}: {}", checks[id].problem);
    let unexpected: String = failed.difference(documented).map(described).collect();
    assert!(
        unexpected.is_empty(),
        "checks that fail without a reason in docs/conformance.md:{unexpected}"
    );
    let passed: Vec<&String> = documented.difference(&failed).collect();
    assert!(
        passed.is_empty(),
        "checks that pass, to be taken out of docs/conformance.md: {passed:?}"
    );
}

/// Returns how many checks of `kind` passed, such as `7 of 9`, as docs/conformance.md writes it.
pub fn share(checks: &Checks, kind: &str) -> String {
    let failed = failures(checks);
    let all: Vec<_> = checks.iter().filter(|(_, check)| check.kind == kind).collect();
    let passed = all.iter().filter(|(id, _)| !failed.contains(*id)).count();
    format!("{passed} of {}", all.len())
}

/// Returns the checks whose failure docs/conformance.md explains for the version `cut` of the
/// suite. The table rows have the form `| ids | kind | versions | reason |`.
pub fn documented(cut: &str) -> BTreeSet<String> {
    rows(4)
        .filter(|columns| is_about(columns[2], cut))
        .flat_map(|columns| names(columns[0]))
        .collect()
}

/// Returns the checks that cannot run in virtual time, each with its reason, for the version `cut`
/// of the suite. The table rows of docs/conformance.md have the form `| ids | versions | reason |`.
pub fn documented_unplayable(cut: &str) -> BTreeMap<String, String> {
    let of_cut = rows(3).filter(|columns| is_about(columns[1], cut));
    let reason = |columns: &[&str]| columns[2].trim_end_matches(" |").to_owned();
    of_cut.flat_map(|columns| names(columns[0]).map(move |id| (id, reason(&columns)))).collect()
}

fn rows(columns: usize) -> impl Iterator<Item = Vec<&'static str>> {
    let rows = DOCUMENT.lines().filter(|line| line.starts_with("| `"));
    rows.map(|row| row.split(" | ").collect::<Vec<_>>()).filter(move |row| row.len() == columns)
}

fn is_about(cuts: &str, cut: &str) -> bool {
    cuts.split(", ").any(|named| named == cut)
}

fn names(column: &str) -> impl Iterator<Item = String> {
    column.split('`').skip(1).step_by(2).map(str::to_owned)
}
