//! Finds the rules that may match a URL and a client, without checking every rule. The index lists
//! a rule under its hosts or under the folders of its paths, whichever list has fewer other rules.
//! If both lists are long, the rule's path patterns go into a set that matches all patterns in one
//! pass. A rule without host names and paths is listed under its clients. Any other rule is always
//! checked.

use super::condition::Conditions;
use super::facts::UrlFacts;
use super::host::HostCondition;
use super::pattern::Pattern;
use foxy_base::{Cidr, HostPattern};
use globset::{Candidate, GlobSet};
use std::collections::HashMap;
use std::net::IpAddr;

/// If a list under a host or folder has at most this number of rules, the rules are checked one by
/// one. For more rules, matching all path patterns in a single pass is faster.
const MAX_NEIGHBOURS: usize = 16;

/// Positions of rules in the operator's list, found by host, path or client.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleIndex {
    always: Vec<u32>,
    domains: HashMap<Vec<u8>, Vec<u32>>,
    /// Rules by the folder of their path patterns: the literal beginning of a pattern up to its
    /// last slash.
    folders: HashMap<Vec<u8>, Vec<u32>>,
    clients: HashMap<Cidr, Vec<u32>>,
    /// Prefix lengths of the networks in `clients`. The flag is true for IPv6.
    lengths: Vec<(bool, u8)>,
    paths: GlobSet,
    /// For each pattern in `paths`, the position of its rule in the operator's list.
    path_rules: Vec<u32>,
}

impl RuleIndex {
    /// Builds the index. Each rule is given by its position in the list and its conditions.
    pub(super) fn new<'r>(
        rules: impl Iterator<Item = (u32, &'r Conditions)> + Clone,
    ) -> Result<Self, globset::Error> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for (_, when) in rules.clone() {
            for name in host_names(when).chain(folders(when)) {
                *counts.entry(name).or_default() += 1;
            }
        }
        let neighbours = |names: &mut dyn Iterator<Item = &'r str>| {
            names.map(|name| counts.get(name).copied().unwrap_or(0)).max().unwrap_or(usize::MAX)
        };
        let mut index = Self::default();
        let mut globs = GlobSet::builder();
        for (rule, when) in rules {
            let has_hosts = has_domains_alone(when);
            let by_host = if has_hosts { neighbours(&mut host_names(when)) } else { usize::MAX };
            let by_folder = neighbours(&mut folders(when));
            let fewest = by_host.min(by_folder);
            let has_paths = !when.paths.is_empty();
            if has_paths && fewest > MAX_NEIGHBOURS {
                for path in &when.paths {
                    globs.add(path.glob().clone());
                    index.path_rules.push(rule);
                }
            } else if has_paths && by_folder == fewest {
                add(&mut index.folders, folders(when), rule);
            } else if has_hosts {
                add(&mut index.domains, host_names(when), rule);
            } else if !when.clients.is_empty() {
                index.add_clients(rule, &when.clients);
            } else {
                index.always.push(rule);
            }
        }
        index.paths = globs.build()?;
        Ok(index)
    }

    fn add_clients(&mut self, rule: u32, clients: &[Cidr]) {
        for block in clients {
            self.clients.entry(*block).or_default().push(rule);
            let length = (block.network().is_ipv6(), block.prefix());
            if !self.lengths.contains(&length) {
                self.lengths.push(length);
            }
        }
    }

    /// Returns the positions of all rules that may match, ascending. The caller must still check
    /// their conditions.
    pub(super) fn candidates(&self, url: &UrlFacts<'_>, client: Option<IpAddr>) -> Vec<u32> {
        let mut found = self.always.clone();
        if !self.domains.is_empty() {
            let mut name = url.host.as_str();
            loop {
                found.extend(self.domains.get(name.as_bytes()).into_iter().flatten());
                let Some((_, parent)) = name.split_once('.') else { break };
                name = parent;
            }
        }
        for path in url.paths() {
            if !self.folders.is_empty() {
                let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
                let folders = slashes.map(|(at, _)| &path[..=at]);
                found.extend(folders.filter_map(|folder| self.folders.get(folder)).flatten());
            }
            if !self.path_rules.is_empty() {
                let matches = self.paths.matches_candidate(&Candidate::from_bytes(path));
                found.extend(matches.into_iter().map(|pattern| self.path_rules[pattern]));
            }
        }
        if let Some(client) = client {
            for &(_, length) in self.lengths.iter().filter(|(is_v6, _)| *is_v6 == client.is_ipv6())
            {
                let rules = self.clients.get(&Cidr::new(client, length));
                found.extend(rules.into_iter().flatten());
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

/// Returns whether every host condition is a name, so that the map `domains` can find the rule.
fn has_domains_alone(when: &Conditions) -> bool {
    !when.hosts.is_empty() && when.hosts.iter().all(|host| host_name(host).is_some())
}

fn add<'n>(
    places: &mut HashMap<Vec<u8>, Vec<u32>>,
    names: impl Iterator<Item = &'n str>,
    rule: u32,
) {
    for name in names {
        places.entry(name.as_bytes().to_vec()).or_default().push(rule);
    }
}

fn host_names(when: &Conditions) -> impl Iterator<Item = &str> {
    when.hosts.iter().filter_map(host_name)
}

fn host_name(host: &HostCondition) -> Option<&str> {
    match host {
        HostCondition::Exactly(name)
        | HostCondition::Pattern(HostPattern::Within(name) | HostPattern::Below(name)) => {
            Some(name)
        }
        HostCondition::Any | HostCondition::Pattern(HostPattern::Addresses(_)) => None,
    }
}

/// Returns the folder of each path pattern: the text before the first wildcard, up to its last
/// slash. Returns nothing if a pattern begins with a wildcard or ignores case.
fn folders(when: &Conditions) -> impl Iterator<Item = &str> {
    let all: Option<Vec<&str>> = when.paths.iter().map(folder).collect();
    all.into_iter().flatten()
}

fn folder(path: &Pattern) -> Option<&str> {
    if path.ignores_case() {
        return None;
    }
    let text = path.glob().glob();
    let literal = &text[..text.find(['*', '?', '[', '{', '\\']).unwrap_or(text.len())];
    literal.rfind('/').map(|slash| &text[..=slash])
}
