//! The effects of an operator's rule on requests, on the cache key and on stored responses.

use super::limit::{Bandwidth, RequestRate};
use super::path::Rewrite;
use super::pattern::Pattern;
use super::redirect::Redirect;
use super::upstream::Upstream;
use crate::freshness::Heuristic;

/// Whether the proxy serves a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Access {
    /// The proxy serves the request.
    Allow,
    /// The proxy refuses the request with status 403 and this message.
    Deny {
        /// Text for the client, or `None` for the proxy's own text.
        message: Option<String>,
    },
}

/// A rule's changes to header fields. If a name is in both lists, the field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldEdits {
    /// Names of the header fields to remove.
    pub remove: Vec<String>,
    /// Names and values of the fields to set. A value replaces all fields with its name.
    pub set: Vec<(String, String)>,
}

/// A change to all header fields with a certain name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldChange<'r> {
    /// Name of the header fields to change.
    pub name: &'r str,
    /// The new value. `None` removes the fields.
    pub value: Option<&'r str>,
}

impl FieldEdits {
    fn changes(&self) -> impl Iterator<Item = FieldChange<'_>> {
        let set = self.set.iter().map(|(name, value)| FieldChange { name, value: Some(value) });
        set.chain(self.remove.iter().map(|name| FieldChange { name, value: None }))
    }

    /// Appends this rule's changes to the changes of earlier rules. Leaves out each field that an
    /// earlier rule changes. Returns the number of appended changes.
    pub(super) fn add_to<'r>(&'r self, earlier: &mut Vec<FieldChange<'r>>) -> usize {
        let before = earlier.len();
        for change in self.changes() {
            if !earlier.iter().any(|known| known.name.eq_ignore_ascii_case(change.name)) {
                earlier.push(change);
            }
        }
        earlier.len() - before
    }
}

/// The effects of a rule. `None` means that the rule does not have this effect. Times are in
/// seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// Whether the client may send the request.
    pub access: Option<Access>,
    /// Whether the request goes to the origin without the cache: without a look-up, and without
    /// storing the response.
    pub bypass: Option<bool>,
    /// How the rule rewrites the path of the URL.
    pub rewrite: Option<Rewrite>,
    /// The redirect with which the proxy answers the request.
    pub redirect: Option<Redirect>,
    /// The upstream that receives the request.
    pub upstream: Option<Upstream>,
    /// Whether the client must log in, if the proxy has users.
    pub login: Option<bool>,
    /// Highest rate of requests of each client.
    pub rate_limit: Option<RequestRate>,
    /// Highest rate of bytes that foxy sends to each client.
    pub bandwidth_limit: Option<Bandwidth>,
    /// Whether the answer has a `Server-Timing` field.
    pub server_timing: Option<bool>,
    /// Patterns for names of query parameters that the cache key leaves out.
    pub query_ignore: Option<Vec<Pattern>>,
    /// Patterns for names of the only query parameters that the cache key keeps.
    pub query_keep: Option<Vec<Pattern>>,
    /// Whether the cache key sorts the query parameters by name and value.
    pub query_sort: Option<bool>,
    /// Changes to the header fields that the origin receives.
    pub request_fields: Option<FieldEdits>,
    /// Changes to the header fields of the origin's response, before the cache sees them.
    pub response_fields: Option<FieldEdits>,
    /// Whether the response may be stored.
    pub store: Option<bool>,
    /// Whether a response with Set-Cookie may be stored.
    pub store_set_cookie: Option<bool>,
    /// Shortest freshness lifetime in seconds, even if the response gives a shorter lifetime.
    pub fresh_at_least: Option<u64>,
    /// Longest freshness lifetime in seconds, even if the response gives a longer lifetime.
    pub fresh_at_most: Option<u64>,
    /// Lifetime of a response that gives no lifetime.
    pub heuristic: Option<Heuristic>,
    /// Lifetime in seconds of a negative response, such as 404, that gives no lifetime.
    pub negative_fresh: Option<u64>,
    /// Number of seconds for which a stale response may answer while the proxy validates it (RFC
    /// 5861 §3).
    pub stale_while_revalidate: Option<u64>,
    /// Number of seconds for which a stale response may answer if the origin fails (RFC 5861 §4).
    pub stale_if_error: Option<u64>,
}

/// Defines [`Effect`], its names in the configuration file, and [`Effects::has`].
macro_rules! effects {
    ($($(#[doc = $doc:literal])+ $variant:ident = $field:ident, $name:literal;)+) => {
        /// An effect that a rule can have.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Effect {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl Effect {
            /// All effects.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the key of the effect in the configuration file.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }

        impl Effects {
            /// Returns whether the rule has the effect.
            pub const fn has(&self, effect: Effect) -> bool {
                match effect { $(Effect::$variant => self.$field.is_some(),)+ }
            }
        }
    };
}

effects! {
    /// Allows or refuses the request.
    Access = access, "access";
    /// Sends the request to the origin without the cache.
    Bypass = bypass, "bypass";
    /// Rewrites the path of the URL.
    Rewrite = rewrite, "rewrite";
    /// Answers with a redirect to another URL.
    Redirect = redirect, "redirect";
    /// Chooses the upstream that receives the request.
    Upstream = upstream, "upstream";
    /// Says whether the client must log in.
    Login = login, "login";
    /// Limits the requests of each client.
    RateLimit = rate_limit, "rate-limit";
    /// Limits the bytes per second that each client receives.
    BandwidthLimit = bandwidth_limit, "bandwidth-limit";
    /// Adds a `Server-Timing` field to the answer, or leaves it out.
    ServerTiming = server_timing, "server-timing";
    /// Leaves query parameters out of the cache key.
    QueryIgnore = query_ignore, "query-ignore";
    /// Keeps only certain query parameters in the cache key.
    QueryKeep = query_keep, "query-keep";
    /// Sorts the query parameters in the cache key.
    QuerySort = query_sort, "query-sort";
    /// Changes the header fields that the origin receives.
    RequestFields = request_fields, "request-header";
    /// Changes the header fields of the response.
    ResponseFields = response_fields, "response-header";
    /// Allows or forbids storing the response.
    Store = store, "store";
    /// Allows or forbids storing a response with Set-Cookie.
    StoreSetCookie = store_set_cookie, "store-set-cookie";
    /// Sets the shortest freshness lifetime of responses.
    FreshAtLeast = fresh_at_least, "fresh-at-least";
    /// Sets the longest freshness lifetime of responses.
    FreshAtMost = fresh_at_most, "fresh-at-most";
    /// Sets the lifetime of responses that give no lifetime.
    Heuristic = heuristic, "heuristic";
    /// Sets the lifetime of negative responses, such as 404.
    NegativeFresh = negative_fresh, "negative-fresh";
    /// Permits stale responses while the proxy validates them.
    StaleWhileRevalidate = stale_while_revalidate, "stale-while-revalidate";
    /// Permits stale responses if the origin fails.
    StaleIfError = stale_if_error, "stale-if-error";
}

impl Effect {
    /// Returns whether the effect concerns a single request. Other effects concern content that all
    /// clients share.
    pub const fn is_of_request(self) -> bool {
        matches!(
            self,
            Self::Access
                | Self::Bypass
                | Self::Rewrite
                | Self::Redirect
                | Self::Upstream
                | Self::RequestFields
                | Self::Login
                | Self::RateLimit
                | Self::BandwidthLimit
                | Self::ServerTiming
        )
    }

    /// Returns whether the effect concerns a single request, but may change the response. All
    /// clients share cached responses. So a rule with such an effect must bypass the cache if it
    /// has conditions on the client or on the single request.
    pub(super) const fn changes_response(self) -> bool {
        matches!(self, Self::RequestFields | Self::Upstream)
    }

    /// Returns whether the effect chooses or sorts the query parameters of the cache key.
    pub(super) const fn is_of_key(self) -> bool {
        matches!(self, Self::QueryIgnore | Self::QueryKeep | Self::QuerySort)
    }
}
