//! A rule, and a list of rules with the decisions that it makes about requests and responses.

use super::condition::{Conditions, Missed};
use super::effect::{Access, Effect, Effects, FieldEdits};
use super::facts::{RequestFacts, SharedFacts, UrlFacts};
use super::index::RuleIndex;
use super::path::Rewrite;
use crate::fields::Fields;
use crate::freshness::Policy;
use std::collections::HashSet;
use std::fmt;
use std::ops::RangeInclusive;

/// A rule of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRule {
    /// Name of the rule in logs, metrics and explanations.
    pub name: String,
    /// Conditions that must hold.
    pub when: Conditions,
    /// Exceptions. The rule does not match if all conditions of an exception hold.
    pub unless: Vec<Conditions>,
    /// Effects of the rule if it matches.
    pub then: Effects,
}

/// The reason why a list of rules is not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// The rule has no effect.
    NoEffect,
    /// An earlier rule has the same name.
    NameTaken,
    /// The effect concerns content that all clients share, but a condition is about a single
    /// request. Such a rule would let a client change the responses that other clients get.
    DependsOnClient(Effect),
    /// The effect applies before the response arrives, but a condition is about the response.
    DependsOnResponse(Effect),
    /// The rule concerns content that all clients share and depends on this query parameter. But a
    /// rule leaves the parameter out of the cache key, so requests with and without it share a
    /// response.
    ParameterNotInKey(String),
    /// The shortest freshness lifetime is longer than the longest.
    CrossedLifetimes,
    /// The smallest size is larger than the largest.
    CrossedSizes,
    /// The patterns of all rules together are too large.
    TooLarge,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEffect => f.write_str("the rule has no effect; add an effect to `then`"),
            Self::NameTaken => f.write_str("another rule has this name; choose a new name"),
            Self::DependsOnClient(Effect::RequestFields) => f.write_str(
                "all clients share a stored response, so `request-header` may not depend on the \
                 client, user, method, header or time; remove these conditions or add `bypass = \
                 true`",
            ),
            Self::DependsOnClient(effect) => write!(
                f,
                "all clients share a stored response, so `{}` may not depend on the client, user, \
                 method, header or time; remove these conditions",
                effect.name()
            ),
            Self::DependsOnResponse(Effect::ResponseFields) => f.write_str(
                "`response-header` also applies to responses without a body, such as 304, so the \
                 rule may not depend on `content-type`, `status` or `size`; remove these conditions",
            ),
            Self::DependsOnResponse(effect) => write!(
                f,
                "`{}` applies before the response arrives, so the rule may not depend on \
                 `content-type`, `status` or `size`; remove these conditions",
                effect.name()
            ),
            Self::ParameterNotInKey(name) => write!(
                f,
                "the rule changes what foxy stores for all clients and depends on the query \
                 parameter `{name}`, but another rule leaves this parameter out of the cache key; \
                 change one of these rules"
            ),
            Self::CrossedLifetimes => f.write_str(
                "`fresh-at-least` is longer than `fresh-at-most`; exchange or remove one",
            ),
            Self::CrossedSizes => f.write_str(
                "`size-at-least` is larger than `size-at-most`, so the rule never matches; \
                 exchange the sizes",
            ),
            Self::TooLarge => f.write_str("the path patterns of all rules are too large"),
        }
    }
}

impl OperatorRule {
    /// Checks that each effect may depend on the conditions of the rule.
    pub fn check(&self) -> Result<(), RuleError> {
        let effects = Effect::ALL.iter().copied().filter(|effect| self.then.has(*effect));
        let is_about_request = self.conditions().any(Conditions::is_about_request);
        let is_about_response = self.conditions().any(Conditions::is_about_response);
        let mut count = 0;
        for effect in effects {
            count += 1;
            let is_shared = match effect {
                Effect::RequestFields => self.then.bypass != Some(true),
                effect => !effect.is_of_request(),
            };
            if is_shared && is_about_request {
                return Err(RuleError::DependsOnClient(effect));
            }
            let is_early =
                effect.is_of_request() || matches!(effect, Effect::Query | Effect::ResponseFields);
            if is_about_response && is_early {
                return Err(RuleError::DependsOnResponse(effect));
            }
        }
        if count == 0 {
            return Err(RuleError::NoEffect);
        }
        let has_no_size =
            |when: &Conditions| when.size.as_ref().is_some_and(RangeInclusive::is_empty);
        if self.conditions().any(has_no_size) {
            return Err(RuleError::CrossedSizes);
        }
        match (self.then.fresh_at_least, self.then.fresh_at_most) {
            (Some(least), Some(most)) if least > most => Err(RuleError::CrossedLifetimes),
            _ => Ok(()),
        }
    }

    /// Returns whether a condition of the rule names users.
    pub fn names_users(&self) -> bool {
        self.conditions().any(|when| !when.users.is_empty())
    }

    fn conditions(&self) -> impl Iterator<Item = &Conditions> {
        std::iter::once(&self.when).chain(&self.unless)
    }

    /// Returns a query parameter on which an effect on shared content depends, although one of
    /// `rules` leaves this parameter out of the cache key.
    fn parameter_not_in_key<'r>(&'r self, rules: &[Self]) -> Option<&'r str> {
        let is_shared = |effect: &Effect| match effect {
            Effect::RequestFields => self.then.bypass != Some(true),
            // This effect itself removes parameters. It is evaluated while the key still has all
            // parameters.
            Effect::Query => false,
            effect => !effect.is_of_request(),
        };
        if !Effect::ALL.iter().any(|effect| self.then.has(*effect) && is_shared(effect)) {
            return None;
        }
        let mut names = self.conditions().flat_map(|when| &when.query).map(|wanted| &*wanted.name);
        names.find(|name| {
            let mut keys = rules.iter().filter_map(|rule| rule.then.query.as_ref());
            keys.any(|key| !key.keeps(name.as_bytes()))
        })
    }

    fn check_request<F: Fields>(&self, facts: &RequestFacts<'_, F>) -> Result<(), Missed> {
        self.when.check_request(facts)?;
        let is_exception = self.unless.iter().any(|unless| unless.check_request(facts).is_ok());
        if is_exception { Err(Missed::Unless) } else { Ok(()) }
    }

    fn check_shared(&self, facts: &SharedFacts<'_>) -> Result<(), Missed> {
        self.when.check_shared(facts)?;
        let is_exception = self.unless.iter().any(|unless| unless.check_shared(facts).is_ok());
        if is_exception { Err(Missed::Unless) } else { Ok(()) }
    }

    fn matches_url(&self, url: &UrlFacts<'_>) -> bool {
        self.when.check_url(url).is_ok()
            && !self.unless.iter().any(|unless| unless.check_url(url).is_ok())
    }
}

/// Returns whether only clients or users that the rules name are served. Either every rule that
/// allows requests names clients, or the first rule on access refuses all clients except named
/// clients.
pub fn serve_named_clients_alone(rules: &[OperatorRule]) -> bool {
    let mut access = rules.iter().filter(|rule| rule.then.access.is_some());
    let mut allows = access.clone().filter(|rule| rule.then.access == Some(Access::Allow));
    let refuses_others = |rule: &OperatorRule| {
        let names = !rule.unless.is_empty() && rule.unless.iter().all(Conditions::is_about_client);
        rule.then.access != Some(Access::Allow) && rule.when == Conditions::default() && names
    };
    let has_allows = allows.clone().next().is_some();
    (has_allows && allows.all(|rule| rule.when.is_about_client()))
        || access.next().is_some_and(refuses_others)
}

/// The rules that decide about a request: for each effect, the rule that applies.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'r> {
    rules: &'r [OperatorRule],
    /// Positions of the deciding rules, in the order of [`REQUEST_EFFECTS`]. `None` if no rule
    /// decides.
    decided: [Option<u32>; REQUEST_EFFECTS.len()],
}

const REQUEST_EFFECTS: [Effect; 6] = [
    Effect::Access,
    Effect::Bypass,
    Effect::Rewrite,
    Effect::RequestFields,
    Effect::RateLimit,
    Effect::BandwidthLimit,
];

impl<'r> Decision<'r> {
    /// Returns the position of the rule that decides about an effect.
    pub fn position(self, effect: Effect) -> Option<usize> {
        let slot = REQUEST_EFFECTS.iter().position(|listed| *listed == effect)?;
        self.decided[slot].map(|position| position as usize)
    }

    fn effects(self, effect: Effect) -> Option<&'r Effects> {
        self.position(effect).map(|position| &self.rules[position].then)
    }

    /// Returns the decision on access. `None` means that no rule decided.
    pub fn access(self) -> Option<&'r Access> {
        self.effects(Effect::Access)?.access.as_ref()
    }

    /// Returns whether the request bypasses the cache. A rule that changes request fields may also
    /// demand the bypass. Then an earlier rule with `bypass = false` does not prevent the bypass.
    pub fn bypasses(self) -> bool {
        let says = |effect| self.effects(effect).is_some_and(|then| then.bypass == Some(true));
        says(Effect::Bypass) || says(Effect::RequestFields)
    }

    /// Returns the rewriting of the path.
    pub fn rewrite(self) -> Option<&'r Rewrite> {
        self.effects(Effect::Rewrite)?.rewrite.as_ref()
    }

    /// Returns the changes to the fields of the request.
    pub fn request_fields(self) -> Option<&'r FieldEdits> {
        self.effects(Effect::RequestFields)?.request_fields.as_ref()
    }

    /// Returns the position of each rule that decided about an effect, without repetitions.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        let mut positions = self.decided;
        positions.sort_unstable();
        let mut last = None;
        positions.into_iter().flatten().filter_map(move |position| {
            (last.replace(position) != Some(position)).then_some(position as usize)
        })
    }
}

/// A rule in an explanation, with the result of checking it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Name of the rule.
    pub name: String,
    /// The effects about which this rule decides, or the first condition that does not hold.
    pub result: Result<Vec<Effect>, Missed>,
}

/// The rules of the operator, compiled for fast decisions.
#[derive(Clone, Debug, Default)]
pub struct OperatorRules {
    rules: Vec<OperatorRule>,
    /// Rules with an effect on a single request.
    of_request: RuleIndex,
    /// Rules with an effect on shared content.
    of_shared: RuleIndex,
    has_request_rules: bool,
    has_shared_rules: bool,
    has_query_rules: bool,
    is_allow_list: bool,
    /// Names, in lower case, of the request fields that a rule sets or removes.
    edited_request_fields: HashSet<String>,
}

impl OperatorRules {
    /// Compiles the rules.
    ///
    /// # Errors
    /// The position of the rule that is refused, and the reason.
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
            has_query_rules: rules.iter().any(|rule| rule.then.query.is_some()),
            edited_request_fields: edited_request_fields(&rules),
            rules,
        })
    }

    /// Returns all rules, in order.
    pub fn rules(&self) -> &[OperatorRule] {
        &self.rules
    }

    /// Returns whether a rule may allow, refuse or change a request.
    pub const fn has_request_rules(&self) -> bool {
        self.has_request_rules
    }

    /// Returns whether a rule has an effect on stored content.
    pub const fn has_shared_rules(&self) -> bool {
        self.has_shared_rules
    }

    /// Returns whether a rule sets or removes this field of requests. A trailer of this name would
    /// evade the rule.
    pub fn edits_request_field(&self, name: &str) -> bool {
        self.edited_request_fields.contains(&name.to_ascii_lowercase())
    }

    /// Returns whether some rule allows requests. Then each request that no rule allows is refused.
    pub const fn is_allow_list(&self) -> bool {
        self.is_allow_list
    }

    /// Finds the rules that decide about a request.
    pub fn decide<F: Fields>(&self, facts: &RequestFacts<'_, F>) -> Decision<'_> {
        let mut decided = [None; REQUEST_EFFECTS.len()];
        if self.has_request_rules {
            for position in self.of_request.candidates(&facts.url, facts.client) {
                let rule = &self.rules[position as usize];
                let mut open = decided
                    .iter_mut()
                    .zip(REQUEST_EFFECTS)
                    .filter(|(slot, effect)| slot.is_none() && rule.then.has(*effect))
                    .peekable();
                if open.peek().is_some() && rule.check_request(facts).is_ok() {
                    open.for_each(|(slot, _)| *slot = Some(position));
                }
            }
        }
        Decision { rules: &self.rules, decided }
    }

    /// Returns `key`, the cache key of a URL, without the query parameters that a rule removes.
    pub fn key(&self, key: Vec<u8>) -> Vec<u8> {
        if !self.has_query_rules {
            return key;
        }
        let Some(url) = UrlFacts::of_key(&key) else { return key };
        let mut candidates = self.of_shared.candidates(&url, None).into_iter();
        let deciding = candidates.find_map(|position| {
            let rule = &self.rules[position as usize];
            rule.then.query.as_ref().filter(|_| rule.matches_url(&url))
        });
        deciding.map_or_else(|| key.clone(), |query| query.apply(&key))
    }

    /// Returns the policy for a response: the policy `base`, changed by the rules that match.
    pub fn policy(&self, base: Policy, facts: &SharedFacts<'_>) -> Policy {
        let rules = self.matching_shared(facts);
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

    /// Returns the changes to the header fields of a response.
    pub fn response_fields(&self, facts: &SharedFacts<'_>) -> Option<&FieldEdits> {
        let rules = self.matching_shared(facts);
        rules.into_iter().find_map(|rule| rule.then.response_fields.as_ref())
    }

    fn matching_shared(&self, facts: &SharedFacts<'_>) -> Vec<&OperatorRule> {
        if !self.has_shared_rules {
            return Vec::new();
        }
        let candidates = self.of_shared.candidates(&facts.url, None).into_iter();
        let rules = candidates.map(|position| &self.rules[position as usize]);
        rules.filter(|rule| rule.check_shared(facts).is_ok()).collect()
    }

    /// Checks every rule, in order, against a request and its response if there is one. For each
    /// rule that matches, lists the effects about which it decides.
    pub fn explain<F: Fields>(
        &self,
        request: &RequestFacts<'_, F>,
        response: Option<&SharedFacts<'_>>,
    ) -> Vec<Tried> {
        let mut decided: Vec<Effect> = Vec::new();
        let tried = self.rules.iter().map(|rule| {
            let mut conditions = rule.conditions();
            let is_about_response = conditions.any(Conditions::is_about_response);
            let result = match response {
                Some(response) if is_about_response => rule.check_shared(response),
                None if is_about_response => Err(Missed::Response),
                _ => rule.check_request(request),
            };
            let result = result.map(|()| {
                let effects = Effect::ALL.iter().copied();
                let new: Vec<Effect> = effects
                    .filter(|effect| rule.then.has(*effect) && !decided.contains(effect))
                    .collect();
                decided.extend(&new);
                new
            });
            Tried { name: rule.name.clone(), result }
        });
        tried.collect()
    }
}

/// Returns the names, in lower case, of the request fields that a rule sets or removes.
fn edited_request_fields(rules: &[OperatorRule]) -> HashSet<String> {
    let edits = rules.iter().filter_map(|rule| rule.then.request_fields.as_ref());
    let names = edits.flat_map(|edits| edits.remove.iter().chain(edits.set.iter().map(|(n, _)| n)));
    names.map(|name| name.to_ascii_lowercase()).collect()
}
