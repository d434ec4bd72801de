//! A list of rules, and the decisions that it makes about requests and responses.

use super::condition::{Conditions, Missed};
use super::effect::{Access, Effect, Effects, FieldChange};
use super::facts::{RequestFacts, SharedFacts, UrlFacts};
use super::index::RuleIndex;
use super::path::Rewrite;
use super::query::QueryKey;
use super::redirect::Redirect;
use super::rule::{OperatorRule, RuleError};
use super::upstream::Upstream;
use crate::fields::Fields;
use crate::freshness::Policy;
use std::collections::HashSet;
use std::fmt;

/// The result of checking the rules for a request. For each effect, it names the rule that decides.
#[derive(Clone, Debug)]
pub struct Decision<'r> {
    rules: &'r [OperatorRule],
    /// Positions of the deciding rules, in the order of [`REQUEST_EFFECTS`]. `None` if no rule
    /// decides.
    decided: [Option<u32>; REQUEST_EFFECTS.len()],
    request_changes: Vec<FieldChange<'r>>,
    /// Positions of the rules with a change in `request_changes`.
    changed_by: Vec<u32>,
}

/// The effects about which one rule decides alone. For changes to header fields, one rule decides
/// about each field.
const REQUEST_EFFECTS: [Effect; 9] = [
    Effect::Access,
    Effect::Bypass,
    Effect::Rewrite,
    Effect::Redirect,
    Effect::Upstream,
    Effect::Login,
    Effect::RateLimit,
    Effect::BandwidthLimit,
    Effect::ServerTiming,
];

impl<'r> Decision<'r> {
    /// Returns the position of the rule that decides about an effect. `None` means that no rule
    /// decided.
    pub fn position(&self, effect: Effect) -> Option<usize> {
        let slot = REQUEST_EFFECTS.iter().position(|listed| *listed == effect)?;
        self.decided[slot].map(|position| position as usize)
    }

    fn effects(&self, effect: Effect) -> Option<&'r Effects> {
        self.position(effect).map(|position| &self.rules[position].then)
    }

    /// Returns the decision on access. `None` means that no rule decided.
    pub fn access(&self) -> Option<&'r Access> {
        self.effects(Effect::Access)?.access.as_ref()
    }

    /// Returns whether the request bypasses the cache. A rule that changes request fields, or that
    /// chooses the upstream, may also demand the bypass. Then an earlier rule with `bypass = false`
    /// does not prevent the bypass.
    pub fn bypasses(&self) -> bool {
        let says = |then: &Effects| then.bypass == Some(true);
        let mut changing = self.changed_by.iter().map(|&at| &self.rules[at as usize].then);
        let [bypass, upstream] = [Effect::Bypass, Effect::Upstream].map(|it| self.effects(it));
        bypass.is_some_and(says) || upstream.is_some_and(says) || changing.any(says)
    }

    /// Returns how the path is rewritten. `None` means that no rule decided.
    pub fn rewrite(&self) -> Option<&'r Rewrite> {
        self.effects(Effect::Rewrite)?.rewrite.as_ref()
    }

    /// Returns the redirect that answers the request. `None` means that no rule decided.
    pub fn redirect(&self) -> Option<&'r Redirect> {
        self.effects(Effect::Redirect)?.redirect.as_ref()
    }

    /// Returns the upstream that receives the request. `None` means that no rule decided.
    pub fn upstream(&self) -> Option<&'r Upstream> {
        self.effects(Effect::Upstream)?.upstream.as_ref()
    }

    /// Returns whether the answer has a `Server-Timing` field. `None` means that no rule decided.
    pub fn server_timing(&self) -> Option<bool> {
        self.effects(Effect::ServerTiming)?.server_timing
    }

    /// Returns the changes that the rules make to the header fields of the request, at most one
    /// change for each name.
    pub fn request_changes(&self) -> &[FieldChange<'r>] {
        &self.request_changes
    }

    /// Returns the position of each rule that decided about an effect, without repetitions.
    pub fn positions(&self) -> Vec<usize> {
        let decided = self.decided.iter().flatten().chain(&self.changed_by);
        let mut positions: Vec<usize> = decided.map(|&position| position as usize).collect();
        positions.sort_unstable();
        positions.dedup();
        positions
    }
}

/// An effect about which a rule decides, in an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The effect about which this rule decides.
    pub effect: Effect,
    /// The header fields about which the rule decides, if the effect changes header fields.
    pub fields: Vec<String>,
}

impl fmt::Display for Decided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.effect.name())?;
        if self.fields.is_empty() { Ok(()) } else { write!(f, " {}", self.fields.join(" ")) }
    }
}

/// A rule in the explanation of a request, with the result of checking the rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Name of the rule.
    pub name: String,
    /// The effects about which this rule decides, or the first condition that does not hold.
    pub result: Result<Vec<Decided>, Missed>,
}

/// The rules of the operator, compiled for fast decisions.
#[derive(Clone, Debug, Default)]
pub struct OperatorRules {
    rules: Vec<OperatorRule>,
    /// Index of the rules with an effect on a single request.
    of_request: RuleIndex,
    /// Index of the rules with an effect on content that all clients share.
    of_shared: RuleIndex,
    has_request_rules: bool,
    has_shared_rules: bool,
    has_query_rules: bool,
    has_login_rules: bool,
    is_allow_list: bool,
    /// Names, in lower case, of the request fields that a rule sets or removes.
    edited_request_fields: HashSet<String>,
}

impl OperatorRules {
    /// Compiles the rules.
    ///
    /// # Errors
    /// Returns the position of the first rule that is refused, and the reason.
    pub fn new(rules: Vec<OperatorRule>) -> Result<Self, (usize, RuleError)> {
        let mut names = HashSet::new();
        for (position, rule) in rules.iter().enumerate() {
            rule.check().map_err(|error| (position, error))?;
            if let Some(name) = rule.parameter_not_in_key(&rules) {
                return Err((position, RuleError::ParameterNotInKey(name.to_owned())));
            }
            if !names.insert(rule.name.as_str()) {
                return Err((position, RuleError::NameTaken));
            }
        }
        let has = |rule: &OperatorRule, is_of_request: bool| {
            let mut effects = Effect::ALL.iter().filter(|effect| rule.then.has(**effect));
            effects.any(|effect| effect.is_of_request() == is_of_request)
        };
        let index = |is_of_request: bool| {
            let chosen = (0u32..).zip(&rules).filter(move |(_, rule)| has(rule, is_of_request));
            RuleIndex::new(chosen.map(|(position, rule)| (position, &rule.when)))
                .map_err(|_| (rules.len().saturating_sub(1), RuleError::TooLarge))
        };
        Ok(Self {
            of_request: index(true)?,
            of_shared: index(false)?,
            has_request_rules: rules.iter().any(|rule| has(rule, true)),
            has_shared_rules: rules.iter().any(|rule| has(rule, false)),
            is_allow_list: rules.iter().any(|rule| rule.then.access == Some(Access::Allow)),
            has_query_rules: rules.iter().any(|rule| QueryKey::is_in(&rule.then)),
            has_login_rules: rules.iter().any(|rule| rule.then.login.is_some()),
            edited_request_fields: edited_request_fields(&rules),
            rules,
        })
    }

    /// Returns all rules in the operator's order.
    pub fn rules(&self) -> &[OperatorRule] {
        &self.rules
    }

    /// Returns whether a rule may allow, refuse or change a request.
    pub const fn has_request_rules(&self) -> bool {
        self.has_request_rules
    }

    /// Returns whether a rule has an effect on stored content, which all clients share.
    pub const fn has_shared_rules(&self) -> bool {
        self.has_shared_rules
    }

    /// Returns whether a rule sets or removes this field of requests, also if the name has `_` for
    /// `-`. A trailer of this name would evade the rule.
    pub fn edits_request_field(&self, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let is_edited = |name: &str| self.edited_request_fields.contains(name);
        is_edited(&name) || is_edited(&name.replace('_', "-"))
    }

    /// Returns whether some rule allows requests. Then each request that no rule allows is refused.
    pub const fn is_allow_list(&self) -> bool {
        self.is_allow_list
    }

    /// Finds the rules that decide about a request.
    pub fn decide<F: Fields>(&self, facts: &RequestFacts<'_, F>) -> Decision<'_> {
        let mut decided = [None; REQUEST_EFFECTS.len()];
        let (mut request_changes, mut changed_by) = (Vec::new(), Vec::new());
        if self.has_request_rules {
            for position in self.of_request.candidates(&facts.url, facts.client) {
                let rule = &self.rules[position as usize];
                let mut open = decided
                    .iter_mut()
                    .zip(REQUEST_EFFECTS)
                    .filter(|(slot, effect)| slot.is_none() && rule.then.has(*effect))
                    .peekable();
                let edits = rule.then.request_fields.as_ref();
                let may_decide = edits.is_some() || open.peek().is_some();
                if may_decide && rule.check_request(facts).is_ok() {
                    open.for_each(|(slot, _)| *slot = Some(position));
                    if edits.is_some_and(|edits| edits.add_to(&mut request_changes) > 0) {
                        changed_by.push(position);
                    }
                }
            }
        }
        Decision { rules: &self.rules, decided, request_changes, changed_by }
    }

    /// Returns whether the client must log in, if the proxy has users. `facts` has no user yet,
    /// because the login comes later.
    pub fn needs_login<F: Fields>(&self, facts: &RequestFacts<'_, F>) -> bool {
        if !self.has_login_rules {
            return true;
        }
        let mut candidates = self.of_request.candidates(&facts.url, facts.client).into_iter();
        let deciding = candidates.find_map(|position| {
            let rule = &self.rules[position as usize];
            rule.then.login.filter(|login| rule.check_as(Some(!login), facts).is_ok())
        });
        deciding.unwrap_or(true)
    }

    /// Returns `key`, the cache key of a URL, with the query parameters changed by the rules that
    /// match: some removed, or all sorted. Also returns the positions of these rules.
    pub fn key(&self, key: Vec<u8>) -> (Vec<u8>, Vec<usize>) {
        if !self.has_query_rules {
            return (key, Vec::new());
        }
        let Some(url) = UrlFacts::of_key(&key) else { return (key, Vec::new()) };
        let candidates = self.of_shared.candidates(&url, None).into_iter();
        let matching = candidates.map(|position| position as usize).filter(|&position| {
            let rule = &self.rules[position];
            QueryKey::is_in(&rule.then) && rule.matches_url(&url)
        });
        let mut open = Open::default();
        let deciding: Vec<usize> = matching
            .filter(|&position| open.decide(&self.rules[position].then, Effect::is_of_key))
            .collect();
        if deciding.is_empty() {
            return (key, deciding);
        }
        let effects = deciding.iter().map(|&position| &self.rules[position].then);
        (QueryKey::of_first(effects).apply(&key), deciding)
    }

    /// Returns the positions of the rules that decide about a response: about its header fields
    /// and, if `is_for_cache`, about its storage and freshness.
    pub fn deciding_about(&self, facts: &SharedFacts<'_>, is_for_cache: bool) -> Vec<usize> {
        let concerns = |effect: Effect| match effect {
            Effect::ResponseFields => true,
            effect => is_for_cache && !effect.is_of_request() && !effect.is_of_key(),
        };
        let mut open = Open::default();
        let matching = self.matching_shared(facts);
        matching.filter(|&position| open.decide(&self.rules[position].then, concerns)).collect()
    }

    /// Returns the policy for a response: the policy `base`, changed by the rules that match.
    pub fn policy(&self, base: Policy, facts: &SharedFacts<'_>) -> Policy {
        let matching = self.matching_shared(facts);
        let rules: Vec<&OperatorRule> = matching.map(|position| &self.rules[position]).collect();
        let first = |effect| rules.iter().find(|rule| rule.then.has(effect)).map(|rule| &rule.then);
        let seconds = |effect, field: fn(&Effects) -> Option<u64>| first(effect).and_then(field);
        Policy {
            role: base.role,
            negative_lifetime: seconds(Effect::NegativeFresh, |then| then.negative_fresh)
                .unwrap_or(base.negative_lifetime),
            never_store: first(Effect::Store).is_some_and(|then| then.store == Some(false)),
            store_set_cookie: first(Effect::StoreSetCookie).and_then(|then| then.store_set_cookie),
            fresh_at_least: seconds(Effect::FreshAtLeast, |then| then.fresh_at_least),
            fresh_at_most: seconds(Effect::FreshAtMost, |then| then.fresh_at_most),
            heuristic: first(Effect::Heuristic).and_then(|then| then.heuristic),
            stale_while_revalidate: seconds(Effect::StaleWhileRevalidate, |then| {
                then.stale_while_revalidate
            }),
            stale_if_error: seconds(Effect::StaleIfError, |then| then.stale_if_error),
        }
    }

    /// Returns the changes that the rules make to the header fields of a response, at most one
    /// change for each name.
    pub fn response_changes(&self, facts: &SharedFacts<'_>) -> Vec<FieldChange<'_>> {
        let mut changes = Vec::new();
        for position in self.matching_shared(facts) {
            if let Some(edits) = &self.rules[position].then.response_fields {
                edits.add_to(&mut changes);
            }
        }
        changes
    }

    /// Returns the positions of the rules about shared content that match a response.
    fn matching_shared(&self, facts: &SharedFacts<'_>) -> impl Iterator<Item = usize> {
        let candidates = match self.has_shared_rules {
            true => self.of_shared.candidates(&facts.url, None),
            false => Vec::new(),
        };
        let positions = candidates.into_iter().map(|position| position as usize);
        positions.filter(|&position| self.rules[position].check_shared(facts).is_ok())
    }

    /// Checks every rule, in order, against a request and its response, if any. For each rule that
    /// matches, lists the effects about which it decides.
    pub fn explain<F: Fields>(
        &self,
        request: &RequestFacts<'_, F>,
        response: Option<&SharedFacts<'_>>,
    ) -> Vec<Tried> {
        let mut open = Open::default();
        let tried = self.rules.iter().map(|rule| {
            let mut conditions = rule.conditions();
            let is_about_response = conditions.any(Conditions::is_about_response);
            let result = match response {
                Some(response) if is_about_response => rule.check_shared(response),
                None if is_about_response => Err(Missed::Response),
                _ => rule.check_request(request),
            };
            Tried { name: rule.name.clone(), result: result.map(|()| open.decided_by(&rule.then)) }
        });
        tried.collect()
    }
}

/// The effects about which earlier rules have decided.
#[derive(Default)]
struct Open<'r> {
    decided: Vec<Effect>,
    request_changes: Vec<FieldChange<'r>>,
    response_changes: Vec<FieldChange<'r>>,
}

impl<'r> Open<'r> {
    /// Returns the effects of a rule (`then`) about which no earlier rule has decided, and notes
    /// them as decided.
    fn decided_by(&mut self, then: &'r Effects) -> Vec<Decided> {
        let decide = |effect: Effect| {
            let before = self.changes(effect).len();
            let is_new = self.take(then, effect);
            let changes = &self.changes(effect)[before..];
            let fields = changes.iter().map(|change| change.name.to_owned()).collect();
            is_new.then_some(Decided { effect, fields })
        };
        Effect::ALL.iter().copied().filter_map(decide).collect()
    }

    /// Notes the effects of a rule (`then`) that `concerns` accepts as decided. Returns whether no
    /// earlier rule has decided about one of them.
    fn decide(&mut self, then: &'r Effects, concerns: impl Fn(Effect) -> bool) -> bool {
        let mut is_new = false;
        for &effect in Effect::ALL.iter().filter(|&&effect| concerns(effect)) {
            is_new |= self.take(then, effect);
        }
        is_new
    }

    /// Notes one effect of a rule (`then`) as decided. Returns whether the rule has this effect,
    /// and no earlier rule has decided about it.
    fn take(&mut self, then: &'r Effects, effect: Effect) -> bool {
        let (edits, earlier) = match effect {
            Effect::RequestFields => (&then.request_fields, &mut self.request_changes),
            Effect::ResponseFields => (&then.response_fields, &mut self.response_changes),
            effect => {
                let is_new = then.has(effect) && !self.decided.contains(&effect);
                self.decided.extend(is_new.then_some(effect));
                return is_new;
            }
        };
        edits.as_ref().is_some_and(|edits| edits.add_to(earlier) > 0)
    }

    /// Returns the changes to header fields about which rules have decided.
    fn changes(&self, effect: Effect) -> &[FieldChange<'r>] {
        match effect {
            Effect::RequestFields => &self.request_changes,
            Effect::ResponseFields => &self.response_changes,
            _ => &[],
        }
    }
}

/// Returns the names, in lower case, of the request fields that a rule sets or removes.
fn edited_request_fields(rules: &[OperatorRule]) -> HashSet<String> {
    let edits = rules.iter().filter_map(|rule| rule.then.request_fields.as_ref());
    let names = edits.flat_map(|edits| edits.remove.iter().chain(edits.set.iter().map(|(n, _)| n)));
    names.map(|name| name.to_ascii_lowercase()).collect()
}
