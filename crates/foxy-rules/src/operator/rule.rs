//! A rule of the operator, and the checks that it must pass.

use super::condition::{Conditions, Matching, Missed};
use super::effect::{Access, Effect, Effects};
use super::facts::{RequestFacts, SharedFacts, UrlFacts};
use super::query::QueryKey;
use super::readings::Readings;
use crate::fields::Fields;
use std::fmt;
use std::ops::RangeInclusive;

/// A rule of the operator: conditions, exceptions and effects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatorRule {
    /// Name of the rule in logs, metrics and explanations.
    pub name: String,
    /// Conditions that must hold for the rule to match.
    pub when: Conditions,
    /// Exceptions. The rule does not match if all conditions of an exception hold.
    pub unless: Vec<Conditions>,
    /// Effects of the rule if it matches.
    pub then: Effects,
}

/// The reason why foxy refuses a list of rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// The rule has no effect.
    NoEffect,
    /// An earlier rule has the same name.
    NameTaken,
    /// The rule decides whether a login is needed, but has a condition on the user. The user is
    /// known only after the login.
    LoginDependsOnUser,
    /// The effect concerns content that all clients share, but a condition is about a single
    /// request. Such a rule would let a client change the responses that other clients get.
    DependsOnClient(Effect),
    /// The effect applies before the response arrives, but a condition is about the response.
    DependsOnResponse(Effect),
    /// The rule concerns content that all clients share and depends on this query parameter. But a
    /// rule leaves the parameter out of the cache key, so requests with and without it share a
    /// response.
    ParameterNotInKey(String),
    /// The rule's shortest freshness lifetime is longer than its longest freshness lifetime.
    CrossedLifetimes,
    /// The smallest size in a condition is larger than the largest size.
    CrossedSizes,
    /// The patterns of all rules together are too large.
    TooLarge,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEffect => f.write_str("the rule has no effect; add an effect to `then`"),
            Self::NameTaken => f.write_str("another rule has this name; choose a new name"),
            Self::LoginDependsOnUser => f.write_str(
                "`login` applies before foxy knows the user, so the rule may not depend on `user`; \
                 remove this condition",
            ),
            Self::DependsOnClient(effect) => write!(
                f,
                "all clients share a stored response, so `{}` may not depend on the client, user, \
                 method, header or time; remove these conditions{}",
                effect.name(),
                if effect.changes_response() { " or add `bypass = true`" } else { "" }
            ),
            Self::DependsOnResponse(Effect::ResponseFields) => f.write_str(
                "`response-header` also applies to responses without a body, such as 304, so the \
                 rule may not depend on `content-type`, `status` or `size`; remove these \
                 conditions",
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
                "`fresh-at-least` is longer than `fresh-at-most`; exchange the times, or remove \
                 one of them",
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
            if self.is_shared(effect) && is_about_request {
                return Err(RuleError::DependsOnClient(effect));
            }
            let is_early = effect.is_of_request()
                || effect.is_of_key()
                || matches!(effect, Effect::ResponseFields);
            if is_about_response && is_early {
                return Err(RuleError::DependsOnResponse(effect));
            }
        }
        if count == 0 {
            return Err(RuleError::NoEffect);
        }
        if self.then.login.is_some() && self.names_users() {
            return Err(RuleError::LoginDependsOnUser);
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

    pub(super) fn conditions(&self) -> impl Iterator<Item = &Conditions> {
        std::iter::once(&self.when).chain(&self.unless)
    }

    /// Returns whether all clients share the consequences of an effect of this rule.
    fn is_shared(&self, effect: Effect) -> bool {
        if effect.changes_response() {
            self.then.bypass != Some(true)
        } else {
            !effect.is_of_request()
        }
    }

    /// Returns a query parameter on which an effect on shared content depends, although one of
    /// `rules` leaves this parameter out of the cache key.
    pub(super) fn parameter_not_in_key<'r>(&'r self, rules: &[Self]) -> Option<&'r str> {
        // The effects on the key are evaluated while the key still has all parameters.
        let is_shared = |effect: Effect| self.is_shared(effect) && !effect.is_of_key();
        if !Effect::ALL.iter().any(|effect| self.then.has(*effect) && is_shared(*effect)) {
            return None;
        }
        let mut names = self.conditions().flat_map(|when| &when.query).map(|wanted| &*wanted.name);
        names.find(|name| {
            let mut keys = rules.iter().map(|rule| QueryKey::of(&rule.then));
            keys.any(|key| !key.keeps(name.as_bytes()))
        })
    }

    /// Returns whether the rule grants something (true) or refuses something (false). `None` means
    /// that it does neither.
    fn grants(&self) -> Option<bool> {
        match (&self.then.access, self.then.login) {
            (Some(Access::Allow), _) => Some(true),
            (Some(Access::Deny { .. }), _) => Some(false),
            (None, login) => login.map(|login| !login),
        }
    }

    pub(super) fn check_request<F: Fields>(
        &self,
        facts: &RequestFacts<'_, F>,
    ) -> Result<(), Missed> {
        self.check_as(self.grants(), facts)
    }

    /// Checks the conditions. A rule that grants something (`Some(true)`) must match every reading
    /// of the request's path. For a rule that refuses (`Some(false)`), one matching reading is
    /// enough. Any other rule must match the normal form.
    pub(super) fn check_as<F: Fields>(
        &self,
        grants: Option<bool>,
        facts: &RequestFacts<'_, F>,
    ) -> Result<(), Missed> {
        self.when.check_request(facts, Matching::condition(grants))?;
        let matching = Matching::exception(grants);
        let is_exception =
            self.unless.iter().any(|unless| unless.check_request(facts, matching).is_ok());
        if is_exception { Err(Missed::Unless) } else { Ok(()) }
    }

    pub(super) fn check_shared(&self, facts: &SharedFacts<'_>) -> Result<(), Missed> {
        self.when.check_shared(facts)?;
        let is_exception = self.unless.iter().any(|unless| unless.check_shared(facts).is_ok());
        if is_exception { Err(Missed::Unless) } else { Ok(()) }
    }

    pub(super) fn matches_url(&self, url: &UrlFacts<'_>) -> bool {
        let meets = |when: &Conditions| when.check_url(url, Readings::Normal).is_ok();
        meets(&self.when) && !self.unless.iter().any(meets)
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

/// Returns whether each rule that frees requests from the login names the addresses of clients.
/// Otherwise some requests of all clients need no login.
pub fn logins_name_clients(rules: &[OperatorRule]) -> bool {
    let mut free = rules.iter().filter(|rule| rule.then.login == Some(false));
    free.all(|rule| !rule.when.clients.is_empty())
}
