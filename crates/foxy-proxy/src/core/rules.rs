//! The operator's rules that a running proxy applies, and the caching policy that follows from the
//! rules.

use crate::core::View;
use crate::core::client_limits::{LimitedClient, Pace, RuleLimits};
use crate::core::live::Live;
use crate::core::tags;
use arc_swap::Guard;
use foxy_http::ResponseHead;
use foxy_rules::operator::{FieldChange, OperatorRules, SharedFacts};
use foxy_rules::{Policy, Role};
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The rules in force. Clones share the rules, so that [`Self::replace`] changes the rules for
/// every clone.
#[derive(Clone, Debug, Default)]
pub struct RulesInForce {
    shared: Live<CountedRules>,
}

/// The operator's rules. For each rule, also the number of requests to which the rule applied, and
/// the state of its rate limits.
#[derive(Debug, Default)]
pub(crate) struct CountedRules {
    rules: OperatorRules,
    counts: Vec<AtomicU64>,
    limits: Vec<RuleLimits>,
}

/// The rules that applied to a request, each once.
#[derive(Debug, Default)]
pub(crate) struct AppliedRules {
    positions: Vec<usize>,
    names: String,
    /// Whether rules may still apply to the response.
    awaits_response: bool,
}

impl AppliedRules {
    /// Adds a rule. Returns false if the rule was added before.
    fn add(&mut self, position: usize, name: &str) -> bool {
        let is_new = !self.positions.contains(&position);
        if is_new {
            self.names.push_str(if self.positions.is_empty() { "" } else { ", " });
            self.names.push_str(name);
            self.positions.push(position);
        }
        is_new
    }

    /// Returns the names of the rules, separated by commas. Returns `None` if no rule applied.
    pub(crate) fn names(&self) -> Option<&str> {
        (!self.positions.is_empty()).then_some(&*self.names)
    }

    /// Removes all rules.
    pub(crate) fn clear(&mut self) {
        self.positions.clear();
        self.names.clear();
        self.awaits_response = false;
    }
}

impl CountedRules {
    fn new(rules: OperatorRules) -> Self {
        let counts = rules.rules().iter().map(|_| AtomicU64::new(0)).collect();
        let limits = rules.rules().iter().map(|rule| RuleLimits::new(&rule.then)).collect();
        Self { rules, counts, limits }
    }

    /// Adds the rules at these positions to the rules that applied to a request. Counts the request
    /// for each rule that `applied` did not have.
    pub(crate) fn note(&self, positions: &[usize], applied: &mut AppliedRules) {
        for &position in positions {
            if applied.add(position, &self.rules()[position].name) {
                self.counts[position].fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Counts a request of the client against the request rate of the rule at this position. If the
    /// client has sent more requests than the rule permits, the error is the time until the next
    /// permitted request.
    pub(crate) fn admit(
        &self,
        position: Option<usize>,
        client: &LimitedClient,
    ) -> Result<(), Duration> {
        position.map_or(Ok(()), |position| self.limits[position].admit(client))
    }

    /// Returns the limit on the client's bytes per second, if the rule at this position sets a
    /// limit.
    pub(crate) fn pace(&self, position: Option<usize>, client: LimitedClient) -> Option<Pace> {
        self.limits[position?].pace(client)
    }
}

impl Deref for CountedRules {
    type Target = OperatorRules;

    fn deref(&self) -> &OperatorRules {
        &self.rules
    }
}

impl RulesInForce {
    /// Puts `rules` in force.
    pub fn new(rules: OperatorRules) -> Self {
        Self { shared: CountedRules::new(rules).into() }
    }

    /// Replaces the rules after a reload. All counts begin at 0 again, and each client may use its
    /// full rates again. Requests in progress finish with the old rules.
    pub fn replace(&self, rules: OperatorRules) {
        self.shared.replace(CountedRules::new(rules));
    }

    /// Returns the rules in force. The caller must drop the guard soon, because it can keep
    /// replaced rules in memory.
    pub(crate) fn get(&self) -> Guard<Arc<CountedRules>> {
        self.shared.get()
    }

    /// Notes the rules that decide about a response with the cache key `key`, if
    /// [`Self::key_of_request`] made this key. `length` is the length of the whole body in bytes,
    /// if known. `is_for_cache` says whether the cache may store the response, or did.
    pub(crate) fn note_response(
        &self,
        (key, head, length): (&[u8], &ResponseHead, Option<u64>),
        is_for_cache: bool,
        applied: &mut AppliedRules,
    ) {
        if !applied.awaits_response {
            return;
        }
        let rules = self.get();
        if let Some(facts) = SharedFacts::of(key, head.status, &View(&head.headers), length) {
            rules.note(&rules.deciding_about(&facts, is_for_cache), applied);
        }
    }

    /// Returns the name of each rule, and the number of requests to which it applied.
    pub fn counts(&self) -> Vec<(String, u64)> {
        let rules = self.get();
        let names = rules.rules().iter().map(|rule| rule.name.clone());
        names.zip(rules.counts.iter().map(|count| count.load(Ordering::Relaxed))).collect()
    }

    /// Returns the cache key of a URL without the query parameters that the operator's rules
    /// remove.
    pub fn key(&self, key: Vec<u8>) -> Vec<u8> {
        self.get().key(key).0
    }

    /// Returns the cache key of a requested URL, as [`Self::key`] does. Notes the rules that change
    /// the key, and whether rules may apply to the response.
    pub(crate) fn key_of_request(&self, key: Vec<u8>, applied: &mut AppliedRules) -> Vec<u8> {
        let rules = self.get();
        applied.awaits_response = rules.has_shared_rules();
        let (key, positions) = rules.key(key);
        rules.note(&positions, applied);
        key
    }

    /// Changes the fields of an origin's response as the operator's rules say. `key` is the
    /// response's cache key.
    pub(crate) fn edit_response(&self, key: &[u8], head: &mut ResponseHead, length: Option<u64>) {
        let rules = self.get();
        if !rules.has_shared_rules() {
            return;
        }
        let facts = SharedFacts::of(key, head.status, &View(&head.headers), length);
        let changes = facts.map(|facts| rules.response_changes(&facts)).unwrap_or_default();
        if changes.iter().any(|change| tags::is_field(change.name)) {
            tags::keep(&mut head.headers);
        }
        apply(&changes, &mut head.headers);
    }
}

/// Applies the changes that rules make to header fields.
pub(crate) fn apply(changes: &[FieldChange<'_>], headers: &mut foxy_http::Headers) {
    for change in changes {
        match change.value {
            Some(value) => headers.set(change.name, value),
            None => {
                headers.remove(change.name);
            }
        }
    }
}

/// The operator's caching policy, from the settings and the rules.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Lifetime in seconds of a negative answer, such as a 404, that gives no lifetime itself.
    pub negative_lifetime: Live<u64>,
    /// The rules in force.
    pub rules: RulesInForce,
}

impl Policies {
    /// Returns the caching policy for a response. `key` is its cache key, and `length` the length
    /// of the whole body in bytes, if known.
    pub fn of(&self, role: Role, key: &[u8], head: &ResponseHead, length: Option<u64>) -> Policy {
        let negative_lifetime = **self.negative_lifetime.get();
        let base = Policy { role, negative_lifetime, ..Policy::default() };
        let rules = self.rules.get();
        if !rules.has_shared_rules() {
            return base;
        }
        let facts = SharedFacts::of(key, head.status, &View(&head.headers), length);
        facts.map_or(base, |facts| rules.policy(base, &facts))
    }
}
