//! Converts Squid's lists about the use of the cache: `cache`, `store_miss` and `send_hit`.

use super::super::draft::{ImportDraft, Original};
use super::super::report::ImportReason;
use super::super::terms::{AccessTerm, effect, without_all};
use super::access::{self, AccessLine, AccessPurpose, rule_name};
use super::acl::{ExpandedLine, SquidAcls};
use super::lines::SquidLine;
use super::{SquidImport, access_line};

type Converted = Result<(), ImportReason>;

/// Keys of conditions on a single request. foxy has no rule with such a condition and `store`.
const OF_REQUEST: [&str; 6] = ["client", "user", "method", "header", "days", "hours"];

#[derive(Debug, Default)]
pub struct CacheLists {
    cache: Vec<AccessLine>,
    store_miss: Vec<AccessLine>,
    send_hit: Vec<AccessLine>,
}

/// The question that one of the two lists answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CacheDenial {
    /// Whether a response is stored (`store_miss`).
    Store,
    /// Whether a stored response answers (`send_hit`).
    Hit,
}

pub fn cache(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.cache_lists.cache.push(access_line(line)?);
    Ok(())
}

pub fn store_miss(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.cache_lists.store_miss.push(access_line(line)?);
    Ok(())
}

pub fn send_hit(import: &mut SquidImport<'_>, line: &SquidLine) -> Converted {
    import.cache_lists.send_hit.push(access_line(line)?);
    Ok(())
}

impl CacheLists {
    pub fn finish(&self, draft: &mut ImportDraft, acls: &SquidAcls) {
        let mut all = self.cache.iter().chain(&self.store_miss).chain(&self.send_hit);
        if let Some(line) = all.find(|line| line.denies_names(acls)) {
            bypass_addresses(draft, line.original());
        }
        // These rules come before the rules of `cache`, whose `bypass = false` would decide first.
        add_denials(draft, acls, &self.send_hit, CacheDenial::Hit);
        add_denials(draft, acls, &self.store_miss, CacheDenial::Store);
        access::add_rules(draft, acls, &self.cache, AccessPurpose::Cache);
    }
}

/// Adds a rule that bypasses the cache if a URL has an address. Squid looks up the name of the
/// address, and foxy does not.
fn bypass_addresses(draft: &mut ImportDraft, original: &Original) {
    let text = "foxy caches no URL with an address; Squid looks up the address's name";
    draft.leave(original, ImportReason::Differs(text.into()));
    let mut term = AccessTerm::default();
    term.when.insert("host", vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()]);
    let name = format!("{} (addresses)", rule_name(original));
    draft.list("rule", term.rule(&name, effect("bypass", true)), original);
}

/// Adds rules for the requests that a list denies. If no line matches a request, Squid does the
/// opposite of the last line.
fn add_denials(
    draft: &mut ImportDraft,
    acls: &SquidAcls,
    lines: &[AccessLine],
    denial: CacheDenial,
) {
    let mut allowed: Vec<AccessTerm> = Vec::new();
    for line in lines {
        let expanded = match acls.expand(line.literals()) {
            Ok(expanded) => expanded,
            Err(flaw) => ExpandedLine { terms: Vec::new(), lost: vec![flaw] },
        };
        for flaw in &expanded.lost {
            let reason = if line.allows() {
                ImportReason::Missing(format!("{flaw}; foxy caches less"))
            } else {
                ImportReason::Opens(format!("{flaw}; foxy would use its cache here"))
            };
            draft.leave(line.original(), reason);
        }
        if line.allows() {
            allowed.extend(expanded.terms);
        } else {
            deny(draft, expanded.terms, &allowed, line.original(), denial);
        }
    }
    if let Some(last) = lines.last().filter(|line| line.allows()) {
        deny(draft, vec![AccessTerm::default()], &allowed, last.original(), denial);
    }
}

/// Adds rules that keep the cache from the requests that `terms` match, except those that `allowed`
/// matches.
fn deny(
    draft: &mut ImportDraft,
    terms: Vec<AccessTerm>,
    allowed: &[AccessTerm],
    original: &Original,
    denial: CacheDenial,
) {
    let rest = allowed.iter().try_fold(terms.clone(), |terms, other| without_all(&terms, other));
    let rest = rest.unwrap_or_else(|flaw| {
        draft.leave(original, ImportReason::Differs(format!("{flaw}; foxy caches less")));
        terms
    });
    for term in rest {
        let mut facets = std::iter::once(&term.when).chain(&term.unless);
        let is_of_request =
            facets.any(|facets| OF_REQUEST.iter().any(|key| facets.contains_key(key)));
        let then = match denial {
            CacheDenial::Store if !is_of_request => effect("store", false),
            CacheDenial::Store => {
                let text = "foxy also answers these requests without its cache";
                draft.leave(original, ImportReason::Differs(text.into()));
                effect("bypass", true)
            }
            CacheDenial::Hit => {
                let text = "foxy also stores none of these responses";
                draft.leave(original, ImportReason::Differs(text.into()));
                effect("bypass", true)
            }
        };
        draft.list("rule", term.rule(&rule_name(original), then), original);
    }
}
