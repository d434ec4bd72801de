//! The purges in force, in a table of limited size. The table does no IO.
//!
//! A purge never expires. If the table has too many purges, it widens the oldest purges: a purge of
//! a URL or prefix becomes a purge of its whole site. A purge of a tag or site becomes a purge of
//! everything. A widened purge removes more responses than the operator requested, never fewer.

use crate::cache::purge::rule::{Order, Rule, Scope, Strength, host_of, site_of};
use crate::core::PurgeDoubt;
use foxy_base::WallTime;
use foxy_store::{Key, Site};
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use xxhash_rust::xxh3::xxh3_128;

/// The effect of all purges together on a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Untouched,
    /// The response has been stale since this time, even if its lifetime has not ended.
    Stale {
        since: WallTime,
    },
    /// This node does not know whether a purge affects the response.
    InDoubt(PurgeDoubt),
    Gone,
}

/// Largest number of purge rules of each kind. If a kind exceeds its limit, the table widens the
/// oldest rules of this kind: they then affect more responses.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub urls: usize,
    pub tags: usize,
    /// Largest number of purged prefixes. This limit is low, because a look-up computes one hash
    /// for each different length of a prefix in the table.
    pub prefixes: usize,
    pub sites: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { urls: 65_536, tags: 65_536, prefixes: 256, sites: 4096 }
    }
}

/// The number and the time of a purge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Mark {
    moment: u64,
    at: WallTime,
}

/// The newest soft purge and the newest hard purge of the same responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Marks {
    soft: Mark,
    hard: Mark,
    doubt: Mark,
}

impl Marks {
    fn one(rule: &Rule) -> Self {
        let mark = Mark { moment: rule.moment, at: rule.order.at };
        match rule.order.strength {
            Strength::Soft => Self { soft: mark, ..Self::default() },
            Strength::Hard => Self { hard: mark, ..Self::default() },
            Strength::Doubt => Self { doubt: mark, ..Self::default() },
        }
    }

    fn join(&mut self, other: Self) {
        self.soft = self.soft.max(other.soft);
        self.hard = self.hard.max(other.hard);
        self.doubt = self.doubt.max(other.doubt);
    }

    fn newest(self) -> u64 {
        self.soft.moment.max(self.hard.moment).max(self.doubt.moment)
    }

    fn rules(self, scope: Scope) -> impl Iterator<Item = Rule> {
        [(Strength::Soft, self.soft), (Strength::Hard, self.hard), (Strength::Doubt, self.doubt)]
            .into_iter()
            .filter(|(_, mark)| mark.moment > 0)
            .map(move |(strength, Mark { moment, at })| Rule {
                order: Order { scope, strength, at },
                moment,
            })
    }
}

/// The purges in memory, by the responses that they affect.
#[derive(Clone, Debug, Default)]
pub struct PurgeTable {
    limits: Limits,
    urls: HashMap<Key, (Site, Marks)>,
    tags: HashMap<u128, Marks>,
    prefixes: BTreeMap<u16, HashMap<u128, (Site, Marks)>>,
    sites: HashMap<Site, Marks>,
    all: Marks,
    newest_tag: u64,
}

impl PurgeTable {
    #[cfg(test)]
    fn with_limits(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a purge. The caller may add purges in any order, and more than once.
    pub fn add(&mut self, rule: &Rule) {
        let marks = Marks::one(rule);
        match rule.order.scope {
            Scope::Url { key, site } => {
                self.urls.entry(key).or_insert((site, Marks::default())).1.join(marks);
                self.bound_urls();
            }
            Scope::Tag(tag) => {
                self.tags.entry(tag).or_default().join(marks);
                self.newest_tag = self.newest_tag.max(rule.moment);
                let half = oldest_half(&mut self.tags, self.limits.tags, |marks| marks.newest());
                half.into_iter().for_each(|(_, marks)| self.all.join(marks));
            }
            Scope::Prefix { length, hash, site } => {
                let known = self.prefixes.entry(length).or_default();
                known.entry(hash).or_insert((site, Marks::default())).1.join(marks);
                self.bound_prefixes();
            }
            Scope::Site(site) => {
                self.sites.entry(site).or_default().join(marks);
                self.bound_sites();
            }
            Scope::All => {
                self.all.join(marks);
                if self.all.hard.moment == rule.moment {
                    self.drop_older_than(rule.moment);
                }
            }
        }
    }

    /// Drops the purges before the purge number `moment`. They are superfluous, because the purge
    /// `moment` is a hard purge of everything.
    fn drop_older_than(&mut self, moment: u64) {
        self.urls.retain(|_, (_, marks)| marks.newest() > moment);
        self.tags.retain(|_, marks| marks.newest() > moment);
        self.sites.retain(|_, marks| marks.newest() > moment);
        for known in self.prefixes.values_mut() {
            known.retain(|_, (_, marks)| marks.newest() > moment);
        }
        self.prefixes.retain(|_, known| !known.is_empty());
    }

    fn bound_urls(&mut self) {
        let half = oldest_half(&mut self.urls, self.limits.urls, |(_, marks)| marks.newest());
        for (_, (site, marks)) in half {
            self.sites.entry(site).or_default().join(marks);
        }
        self.bound_sites();
    }

    fn bound_prefixes(&mut self) {
        if self.prefixes.values().map(HashMap::len).sum::<usize>() <= self.limits.prefixes {
            return;
        }
        let mut all: Vec<_> = std::mem::take(&mut self.prefixes)
            .into_iter()
            .flat_map(|(length, known)| {
                known.into_iter().map(move |(hash, found)| (length, hash, found))
            })
            .collect();
        all.sort_unstable_by_key(|(_, _, (_, marks))| marks.newest());
        let kept = all.split_off(all.len() - self.limits.prefixes / 2);
        for (_, _, (site, marks)) in all {
            self.sites.entry(site).or_default().join(marks);
        }
        for (length, hash, found) in kept {
            self.prefixes.entry(length).or_default().insert(hash, found);
        }
        self.bound_sites();
    }

    fn bound_sites(&mut self) {
        let half = oldest_half(&mut self.sites, self.limits.sites, |marks| marks.newest());
        half.into_iter().for_each(|(_, marks)| self.all.join(marks));
    }

    /// Returns the newest soft and hard purge that apply to a URL. Ignores purges of tags.
    fn of_url(&self, url: &[u8]) -> Marks {
        let mut marks = self.all;
        if !self.sites.is_empty() {
            let sites = [site_of(url), host_of(url)];
            sites
                .iter()
                .filter_map(|site| self.sites.get(site))
                .for_each(|found| marks.join(*found));
        }
        if !self.urls.is_empty()
            && let Some((_, found)) = self.urls.get(&Key(xxh3_128(url).to_le_bytes()))
        {
            marks.join(*found);
        }
        for (length, known) in &self.prefixes {
            let Some(beginning) = url.get(..usize::from(*length)) else { break };
            if let Some((_, found)) = known.get(&xxh3_128(beginning)) {
                marks.join(*found);
            }
        }
        marks
    }

    /// Decides how the purges with numbers above `begun` affect a response of `url` with `tags`.
    pub fn judge(&self, url: &[u8], tags: impl IntoIterator<Item = u128>, begun: u64) -> Verdict {
        let mut marks = self.of_url(url);
        if self.newest_tag > begun {
            for found in tags.into_iter().filter_map(|tag| self.tags.get(&tag)) {
                marks.join(*found);
            }
        }
        match marks {
            Marks { hard, .. } if hard.moment > begun => Verdict::Gone,
            Marks { doubt, .. } if doubt.moment > begun => {
                Verdict::InDoubt(PurgeDoubt::BrokenChain)
            }
            Marks { soft, .. } if soft.moment > begun => Verdict::Stale { since: soft.at },
            _ => Verdict::Untouched,
        }
    }

    /// Returns true if a purge with a number above `begun` may affect the response of a fetch of
    /// `url` that is in progress. The tags of this response are not known yet.
    pub fn may_touch(&self, url: &[u8], begun: u64) -> bool {
        self.newest_tag > begun || self.of_url(url).newest() > begun
    }

    pub fn rules(&self) -> Vec<Rule> {
        let mut rules: Vec<Rule> = self.all.rules(Scope::All).collect();
        for (key, (site, marks)) in &self.urls {
            rules.extend(marks.rules(Scope::Url { key: *key, site: *site }));
        }
        for (tag, marks) in &self.tags {
            rules.extend(marks.rules(Scope::Tag(*tag)));
        }
        for (length, known) in &self.prefixes {
            for (hash, (site, marks)) in known {
                rules.extend(marks.rules(Scope::Prefix {
                    length: *length,
                    hash: *hash,
                    site: *site,
                }));
            }
        }
        for (site, marks) in &self.sites {
            rules.extend(marks.rules(Scope::Site(*site)));
        }
        rules
    }
}

/// If a map has more than `limit` entries, removes the oldest entries and keeps `limit / 2`.
/// Returns the removed entries.
fn oldest_half<K: Copy + Eq + Hash, V: Copy>(
    map: &mut HashMap<K, V>,
    limit: usize,
    moment: impl Fn(&V) -> u64,
) -> Vec<(K, V)> {
    if map.len() <= limit {
        return Vec::new();
    }
    let mut all: Vec<(K, V)> = map.iter().map(|(key, value)| (*key, *value)).collect();
    all.sort_unstable_by_key(|(_, value)| moment(value));
    all.truncate(all.len() - limit / 2);
    for (key, _) in &all {
        map.remove(key);
    }
    all
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
