//! Squid's ACLs: named lists of values that a request can match. Reads `acl` lines. Converts ACLs
//! to conditions of foxy's rules that match the same requests.

use super::super::range_set::AddressSet;
use super::super::terms::{AccessTerm, Facets, TermFlaw};
use super::acl_values::{self, AclWord, Expressed};
use std::collections::HashMap;

/// The most levels of ACLs in ACLs (`any-of`, `all-of`) that are read. ACLs that contain each other
/// have no end.
const DEEPEST: usize = 8;

/// All ACLs of a Squid configuration, by name.
#[derive(Debug)]
pub struct SquidAcls {
    lists: HashMap<String, SquidAcl>,
    /// Whether the clock of the original runs in UTC. Hours in foxy's rules are in UTC, so only
    /// then can `time` ACLs be converted.
    utc: bool,
    /// Whether foxy will ask every client for credentials. Then each client has a user, and
    /// `proxy_auth` ACLs can be converted.
    pub has_users: bool,
}

#[derive(Debug)]
struct SquidAcl {
    kind: String,
    /// The values of each `acl` line with this name.
    lines: Vec<Vec<AclWord>>,
    /// If a URL has an address instead of a name, whether Squid looks up the name of the address
    /// and compares this name.
    looks_up: bool,
}

/// The requests that an ACL matches.
#[derive(Debug)]
enum AclMeaning {
    Always,
    Branches {
        branches: Vec<Facets>,
        /// Values of the ACL for which rules have no condition.
        lost: Vec<TermFlaw>,
    },
    /// The ACL combines other ACLs. If `any` is true, at least one of them must match, otherwise
    /// all of them. The flag beside a name is true if `!` precedes the name.
    Lists {
        any: bool,
        names: Vec<(bool, String)>,
    },
}

/// Terms (conditions with exceptions). A line of an access directive matches if one of its terms
/// holds. `lost` are the values that no term covers.
#[derive(Debug, Default)]
pub struct ExpandedLine {
    pub terms: Vec<AccessTerm>,
    pub lost: Vec<TermFlaw>,
}

/// Splits `NAME` or `!NAME`. The flag is true with `!`.
pub fn literal(word: &str) -> (bool, String) {
    match word.strip_prefix('!') {
        Some(name) => (true, name.to_owned()),
        None => (false, word.to_owned()),
    }
}

impl SquidAcls {
    /// Creates the ACLs that Squid predefines. `utc` is true if the original's clock runs in UTC.
    pub fn built_in(utc: bool) -> Self {
        let mut acls = Self { lists: HashMap::new(), utc, has_users: false };
        let lists: [(&str, &str, &[&str]); 6] = [
            ("all", "src", &["all"]),
            ("localhost", "src", &["127.0.0.1", "::1"]),
            ("to_localhost", "dst", &["127.0.0.0/8", "0.0.0.0", "::1", "::"]),
            ("to_linklocal", "dst", &["169.254.0.0/16", "fe80::/10"]),
            ("CONNECT", "method", &["CONNECT"]),
            ("manager", "url_regex", &["^https?://[^/]+/squid-internal-mgr/"]),
        ];
        for (name, kind, values) in lists {
            acls.define(
                name,
                kind,
                values.iter().map(|text| AclWord::plain(text)).collect(),
                false,
            );
        }
        acls
    }

    /// Adds the values of an `acl` line. Several lines with the same name make one ACL.
    /// `looks_up` is false if the line has the option `-n`.
    pub fn define(&mut self, name: &str, kind: &str, values: Vec<AclWord>, looks_up: bool) {
        let new = || SquidAcl { kind: kind.to_owned(), lines: Vec::new(), looks_up: false };
        let list = self.lists.entry(name.to_owned()).or_insert_with(new);
        list.lines.push(values);
        list.looks_up |= looks_up && matches!(kind, "dstdomain" | "dstdom_regex");
    }

    /// Returns the networks of an ACL of client addresses. Returns `None` for another type of ACL,
    /// or if a value cannot be converted.
    pub fn clients(&self, name: &str) -> Option<Vec<String>> {
        let AclMeaning::Branches { branches, lost } = self.meaning(name).ok()? else { return None };
        let clients = branches.iter().map(|facets| facets.get("client"));
        let clients: Vec<_> = clients.collect::<Option<_>>()?;
        lost.is_empty().then(|| clients.into_iter().flatten().cloned().collect())
    }

    /// Returns the ports of an ACL of ports. Returns `None` for another type of ACL.
    pub fn ports(&self, name: &str) -> Option<Vec<String>> {
        let AclMeaning::Branches { branches, .. } = self.meaning(name).ok()? else { return None };
        Some(branches.first()?.get("port")?.clone())
    }

    /// Returns whether `time` ACLs are converted.
    pub const fn uses_utc(&self) -> bool {
        self.utc
    }

    /// Returns whether an ACL, or a list in it, asks clients for credentials.
    pub fn asks(&self, name: &str) -> bool {
        self.has(name, &|list| acl_values::asks(&list.kind), 0)
    }

    /// Returns whether an ACL, or a list in it, compares the names that Squid looks up for
    /// addresses. With `negated`, counts only ACLs after an odd number of `!`.
    pub fn looks_up(&self, name: &str, negated: bool) -> bool {
        self.looks_up_within(name, negated, 0)
    }

    fn looks_up_within(&self, name: &str, negated: bool, depth: usize) -> bool {
        self.lists.get(name).is_some_and(|list| match list.kind.as_str() {
            "any-of" | "all-of" => list.lines.iter().flatten().any(|word| {
                let (not, inner) = literal(&word.text);
                depth < DEEPEST && self.looks_up_within(&inner, not != negated, depth + 1)
            }),
            _ => list.looks_up && !negated,
        })
    }

    fn has(&self, name: &str, holds: &dyn Fn(&SquidAcl) -> bool, depth: usize) -> bool {
        self.lists.get(name).is_some_and(|list| match list.kind.as_str() {
            "any-of" | "all-of" => list.lines.iter().flatten().any(|word| {
                let (_, inner) = literal(&word.text);
                depth < DEEPEST && self.has(&inner, holds, depth + 1)
            }),
            _ => holds(list),
        })
    }

    /// Returns terms (conditions with exceptions) that match the same requests as all ACLs in
    /// `literals` together.
    pub fn expand(&self, literals: &[(bool, String)]) -> Result<ExpandedLine, TermFlaw> {
        let mut line = ExpandedLine { terms: vec![AccessTerm::default()], lost: Vec::new() };
        for (negated, name) in literals {
            line = self.narrow(line, *negated, name, 0)?;
        }
        Ok(line)
    }

    fn narrow(
        &self,
        line: ExpandedLine,
        negated: bool,
        name: &str,
        depth: usize,
    ) -> Result<ExpandedLine, TermFlaw> {
        if depth == DEEPEST {
            return Err(TermFlaw::Undefined(name.to_owned()));
        }
        match self.meaning(name)? {
            AclMeaning::Always if negated => Ok(ExpandedLine::default()),
            AclMeaning::Always => Ok(line),
            AclMeaning::Branches { branches, lost } if negated => {
                if let Some(flaw) = lost.into_iter().next() {
                    return Err(flaw);
                }
                let without = |term: AccessTerm| {
                    branches.iter().fold(term, |term, facets| term.and_not(facets))
                };
                let terms = line.terms.into_iter().map(without).collect();
                Ok(ExpandedLine { terms, lost: line.lost })
            }
            AclMeaning::Branches { branches, mut lost } => {
                if branches.is_empty() && !lost.is_empty() {
                    return Err(lost.remove(0));
                }
                let mut terms = Vec::new();
                for term in &line.terms {
                    for facets in &branches {
                        terms.extend(with_all(term.clone(), facets)?);
                    }
                }
                lost.splice(0..0, line.lost);
                Ok(ExpandedLine { terms, lost })
            }
            AclMeaning::Lists { any, names } => {
                let names = names.into_iter().map(|(not, name)| (not != negated, name));
                if any != negated {
                    let mut joined = ExpandedLine::default();
                    for (not, name) in names {
                        let start = ExpandedLine { terms: line.terms.clone(), lost: Vec::new() };
                        let branch = self.narrow(start, not, &name, depth + 1)?;
                        joined.terms.extend(branch.terms);
                        joined.lost.extend(branch.lost);
                    }
                    joined.lost.extend(line.lost);
                    return Ok(joined);
                }
                names
                    .into_iter()
                    .try_fold(line, |line, (not, name)| self.narrow(line, not, &name, depth + 1))
            }
        }
    }

    fn meaning(&self, name: &str) -> Result<AclMeaning, TermFlaw> {
        let list = self.lists.get(name).ok_or_else(|| TermFlaw::Undefined(name.to_owned()))?;
        let words = || list.lines.iter().flatten();
        match list.kind.as_str() {
            "src" if words().any(|word| word.text == "all") => Ok(AclMeaning::Always),
            kind if acl_values::asks(kind) && self.has_users => {
                if words().any(|word| word.text == "REQUIRED") {
                    return Ok(AclMeaning::Always);
                }
                acl_values::users(name, kind, words()).map(branches)
            }
            kind @ ("any-of" | "all-of") => Ok(AclMeaning::Lists {
                any: kind == "any-of",
                names: words().map(|word| literal(&word.text)).collect(),
            }),
            "req_header" if list.lines.len() > 1 => Err(TermFlaw::NoEquivalent {
                name: name.to_owned(),
                why: "req_header: several lines may name several fields".into(),
            }),
            "time" if self.utc => acl_values::times(name, &list.lines).map(branches),
            kind => acl_values::express(name, kind, words()).map(branches),
        }
    }
}

fn branches(expressed: Expressed) -> AclMeaning {
    AclMeaning::Branches { branches: expressed.branches, lost: expressed.lost }
}

fn with_all(term: AccessTerm, facets: &Facets) -> Result<Option<AccessTerm>, TermFlaw> {
    facets.iter().try_fold(Some(term), |term, (key, values)| match term {
        Some(term) => term.and(key, values),
        None => Ok(None),
    })
}

/// Converts a value of a `src` or `dst` ACL to networks. The value is an address, a network with a
/// prefix length or a mask, or a range.
pub fn networks(text: &str) -> Option<Vec<String>> {
    let (range, mask) = match text.split_once('/') {
        Some((range, mask)) => (range, Some(mask)),
        None => (text, None),
    };
    let Some((first, last)) = range.split_once('-') else {
        let network = match mask {
            None => text.parse::<std::net::IpAddr>().ok()?.to_string(),
            Some(mask) => match mask.parse::<std::net::Ipv4Addr>() {
                Ok(mask) => {
                    let length = mask.to_bits().leading_ones();
                    (mask.to_bits().count_ones() == length).then(|| format!("{range}/{length}"))?
                }
                Err(_) => text.to_owned(),
            },
        };
        let is_network = network.parse::<ipnet::IpNet>().is_ok() || mask.is_none();
        return is_network.then(|| vec![network]);
    };
    // A range may have a mask, so that each address in it stands for a network. Only a range of
    // single addresses can be converted.
    let bits = mask.map_or(Some(32), |mask| mask.parse::<u8>().ok())?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    (bits == 32 || mask.is_none()).then(|| AddressSet::range(first, last))?
}
