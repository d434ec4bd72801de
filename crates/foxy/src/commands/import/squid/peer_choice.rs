//! Converts the lists by which Squid chooses peers (`always_direct`, `never_direct` and
//! `cache_peer_access`) to rules with `upstream`. Each list answers yes or no for a request. A rule
//! stands for one combination of answers.

use super::super::terms::{AccessTerm, Facets, TermFlaw};
use super::access::AccessLine;
use super::acl::SquidAcls;

/// Largest number of combinations of the lists' answers, and so of rules. If there are more, the
/// lists are not converted.
const MOST_COMBINATIONS: usize = 200;

/// Keys of conditions about the client or the single request. The choice of an upstream must not
/// depend on these conditions if responses may be cached.
const CLIENT_KEYS: [&str; 6] = ["client", "user", "method", "header", "days", "hours"];

/// The answers (yes or no) of all access lists to requests that `term` matches, but no term of an
/// earlier choice.
#[derive(Clone, Debug, Default)]
pub struct PeerChoice {
    pub term: AccessTerm,
    pub answers: Vec<bool>,
}

/// The lines of an access list, and the list's answer if it has no lines.
pub type ChoiceList<'l> = (Vec<&'l AccessLine>, bool);

/// Combines the answers of all lists. A request belongs to the first returned choice whose term
/// matches the request.
pub fn choices(acls: &SquidAcls, lists: &[ChoiceList<'_>]) -> Result<Vec<PeerChoice>, TermFlaw> {
    let mut all = vec![PeerChoice::default()];
    for (lines, default) in lists {
        let branches = branches(acls, lines, *default)?;
        let mut joined: Vec<PeerChoice> = Vec::new();
        for choice in all {
            for (term, answer) in &branches {
                let answers = [&choice.answers[..], &[*answer]].concat();
                let Some(term) = both(choice.term.clone(), term)? else { continue };
                if !joined.iter().any(|earlier| covers(&earlier.term, &term)) {
                    joined.push(PeerChoice { term, answers });
                }
            }
        }
        all = joined;
        if all.len() > MOST_COMBINATIONS {
            let why = "the lists have too many combinations".to_owned();
            return Err(TermFlaw::NoEquivalent { name: "cache_peer_access".into(), why });
        }
    }
    Ok(all)
}

/// Returns the terms of one list with their answers. The last term matches every request.
fn branches(
    acls: &SquidAcls,
    lines: &[&AccessLine],
    default: bool,
) -> Result<Vec<(AccessTerm, bool)>, TermFlaw> {
    let mut branches = Vec::new();
    for line in lines {
        let expanded = acls.expand(line.literals())?;
        if let Some(flaw) = expanded.lost.into_iter().next() {
            return Err(flaw);
        }
        branches.extend(expanded.terms.into_iter().map(|term| (term, line.allows())));
    }
    let last = lines.last().map_or(default, |line| !line.allows());
    branches.push((AccessTerm::default(), last));
    Ok(branches)
}

/// Returns the term that holds if both terms hold. Returns `None` if this is impossible.
fn both(term: AccessTerm, other: &AccessTerm) -> Result<Option<AccessTerm>, TermFlaw> {
    let mut joined = term;
    for (key, values) in &other.when {
        match joined.and(key, values)? {
            Some(term) => joined = term,
            None => return Ok(None),
        }
    }
    Ok(Some(other.unless.iter().fold(joined, |term, facets| term.and_not(facets))))
}

/// Returns whether `earlier` holds for each request for which `later` holds. May return false for a
/// pair of terms that are written differently.
fn covers(earlier: &AccessTerm, later: &AccessTerm) -> bool {
    earlier.when.iter().all(|(key, values)| later.when.get(key) == Some(values))
        && earlier.unless.iter().all(|facets| later.unless.contains(facets))
}

/// Returns whether a term depends on the client or on a single request, and not on the URL alone.
pub fn depends_on_client(term: &AccessTerm) -> bool {
    let has_key = |facets: &Facets| facets.keys().any(|key| CLIENT_KEYS.contains(key));
    has_key(&term.when) || term.unless.iter().any(has_key)
}

/// Returns whether Squid may cache a response to a request for which the term holds.
pub fn is_cacheable(term: &AccessTerm) -> bool {
    let methods = term.when.get("method");
    methods.is_none_or(|methods| methods.iter().any(|method| method == "GET" || method == "HEAD"))
}
