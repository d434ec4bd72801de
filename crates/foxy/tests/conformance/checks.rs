//! Checks and what came of them, counted as the suite counts, and what docs/conformance.md says of
//! them.

use std::collections::{BTreeMap, BTreeSet};

pub const DOCUMENT: &str = include_str!("../../../../docs/conformance.md");

/// A check and what came of it.
pub struct Check {
    pub kind: String,
    pub needs: Vec<String>,
    pub passed: bool,
    pub problem: String,
}

/// Checks by their names.
pub type Checks = BTreeMap<String, Check>;

/// The required and optimal checks that failed, or need one that did, as the suite counts them.
pub fn failures(checks: &Checks) -> BTreeSet<String> {
    fn passes(checks: &Checks, id: &str) -> bool {
        checks.get(id).is_some_and(|check| {
            check.passed && check.needs.iter().all(|needed| passes(checks, needed))
        })
    }
    let counted = checks.iter().filter(|(_, check)| check.kind != "check");
    counted.map(|(id, _)| id).filter(|id| !passes(checks, id)).cloned().collect()
}

/// Fails unless the checks that failed are those documented.
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

/// How many of a kind passed, in the words of the document.
pub fn share(checks: &Checks, kind: &str) -> String {
    let failed = failures(checks);
    let all: Vec<_> = checks.iter().filter(|(_, check)| check.kind == kind).collect();
    let passed = all.iter().filter(|(id, _)| !failed.contains(*id)).count();
    format!("{passed} of {}", all.len())
}

/// The checks that the document gives a reason for: rows `| ids | kind | cuts | reason |`.
pub fn documented(cut: &str) -> BTreeSet<String> {
    rows(4)
        .filter(|columns| is_about(columns[2], cut))
        .flat_map(|columns| names(columns[0]))
        .collect()
}

/// The checks that are documented not to be played in virtual time, and why: rows `| ids | cuts |
/// reason |`.
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
