//! Decides whether a shared cache may store a response (RFC 9111 §3).

use crate::cache_control::{RequestControl, ResponseControl};
use crate::fields::{Fields, sets_cookie};
use crate::freshness::{self, Lifetime, Policy, given_lifetime};
use crate::invalidate::content_location_is_target;
use crate::key::{Vary, VaryError};
use foxy_base::WallTime;

/// The decision on storing a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storability {
    /// The response may be stored.
    Store,
    /// The response must not be stored, or would never be reused.
    DoNotStore(NotStoredReason),
}

/// A request and its response, for the decision on storing.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a, Q: Fields + ?Sized, R: Fields + ?Sized> {
    /// Method of the request.
    pub method: &'a str,
    /// Cache key of the requested URL.
    pub target: &'a [u8],
    /// Header fields of the request.
    pub request: &'a Q,
    /// Status code of the response.
    pub status: u16,
    /// Header fields of the response.
    pub response: &'a R,
    /// The time at which the response head was received.
    pub received: WallTime,
    /// The operator's settings and rules for the response.
    pub policy: Policy,
}

/// Returns whether this cache understands the status code (RFC 9111 §5.2.2.3): a final status that
/// RFC 9110 defines, except 206 and 304.
const fn is_understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// Decides whether a response may be stored, in the order of RFC 9111 §3. Uses only the heads of
/// the request and the response. The caller must not store a truncated body (§3.3).
///
/// A response with Set-Cookie is stored only with an explicit lifetime or `public`. RFC 9111 §4.2.2
/// would also allow a heuristic lifetime, but many origins do not mark private responses (§7.3).
pub fn storability<Q: Fields + ?Sized, R: Fields + ?Sized>(
    exchange: Exchange<'_, Q, R>,
) -> Storability {
    match refusal(exchange) {
        Some(reason) => Storability::DoNotStore(reason),
        None => Storability::Store,
    }
}

fn refusal<Q: Fields + ?Sized, R: Fields + ?Sized>(
    exchange: Exchange<'_, Q, R>,
) -> Option<NotStoredReason> {
    let Exchange { method, target, request, status, response, received, policy } = exchange;
    let control = policy.control(response);
    if policy.never_store {
        return Some(NotStoredReason::Rule);
    }
    // RFC 9111 §3: "the request method is understood by the cache"
    let posted = method == "POST";
    if method != "GET" && !(posted && equals_get(status, response, target)) {
        return Some(NotStoredReason::Method);
    }
    // RFC 9111 §3: "the response status code is final"
    if status < 200 || status == 304 || status > 599 {
        return Some(NotStoredReason::Status);
    }
    // RFC 9111 §3: "if the response status code is 206 or 304, or the must-understand directive is
    // present: the cache understands the response status code". Content-Range has no meaning for
    // other statuses (RFC 9110 §14.4).
    if status == 206 {
        return Some(NotStoredReason::Partial);
    }
    if control.must_understand && !is_understood(status) {
        return Some(NotStoredReason::NotUnderstood);
    }
    // The origin may have meant no-store in a malformed field, so the response is not stored.
    if control.unreadable {
        return Some(NotStoredReason::Unreadable);
    }
    // RFC 9111 §3: "the no-store cache directive is not present in the response". The directive
    // must-understand overrides no-store (§5.2.2.3).
    if control.no_store && !control.must_understand {
        return Some(NotStoredReason::ResponseNoStore);
    }
    // RFC 9111 §5.2.1.5: a request with no-store forbids storing.
    if RequestControl::of(request).no_store {
        return Some(NotStoredReason::RequestNoStore);
    }
    // RFC 9111 §3: "if the cache is shared: the private response directive is not present"
    if control.private {
        return Some(NotStoredReason::Private);
    }
    // RFC 9111 §3: "if the cache is shared: the Authorization header field is not present in the
    // request or a response directive is present that explicitly allows shared caching (§3.5)"
    let shareable = control.public || control.must_revalidate || control.s_maxage.is_some();
    if request.has("authorization") && !shareable {
        return Some(NotStoredReason::Authorization);
    }
    // RFC 9111 §4.1: a response with `Vary: *` never matches another request.
    match Vary::of(response) {
        Err(VaryError::Star) => return Some(NotStoredReason::VaryStar),
        Err(VaryError::TooLong) => return Some(NotStoredReason::VaryTooLong),
        Ok(_) => {}
    }
    let lifetime = freshness::lifetime(status, response, &control, &policy, received, target);
    let is_meant_to_be_shared = policy
        .store_set_cookie
        .unwrap_or(control.public || matches!(lifetime, Lifetime::Explicit(_)));
    if sets_cookie(response) && !is_meant_to_be_shared {
        return Some(NotStoredReason::SetCookie);
    }
    // Origins often do not mark private responses (RFC 9111 §7.3). So the URL alone makes no
    // response to a request with a cookie fresh. A rule's longest lifetime does not change this. A
    // rule's shortest lifetime does, because the operator demands it.
    let only_a_name = request.has("cookie") && !control.public && policy.fresh_at_least.is_none();
    let given = || given_lifetime(status, response, &control, &policy, received, target);
    if only_a_name && matches!(given(), Lifetime::Named(_)) {
        return Some(NotStoredReason::Cookie);
    }
    if posted && !matches!(lifetime, Lifetime::Explicit(_)) {
        return Some(NotStoredReason::NoFreshness);
    }
    freshness_refusal(status, response, lifetime, &control)
}

/// Returns whether a response to POST may also answer a GET of the URL. For this, the
/// Content-Location of the response must name the URL (RFC 9110 §9.3.3).
fn equals_get(status: u16, response: &(impl Fields + ?Sized), target: &[u8]) -> bool {
    let target = std::str::from_utf8(target).ok();
    status == 200 && target.is_some_and(|target| content_location_is_target(response, target))
}

/// Returns the reason for not storing a response that has neither a lifetime nor a validator. Such
/// a response could never answer a request. RFC 9111 §3 demands public, Expires, max-age, s-maxage,
/// or a heuristically cacheable status.
fn freshness_refusal(
    status: u16,
    response: &(impl Fields + ?Sized),
    lifetime: Lifetime,
    control: &ResponseControl,
) -> Option<NotStoredReason> {
    let validator = response.has("etag") || response.has("last-modified");
    let useful = match lifetime {
        Lifetime::Explicit(0) | Lifetime::Heuristic(0) | Lifetime::Rule(0) => validator,
        Lifetime::Explicit(_)
        | Lifetime::Heuristic(_)
        | Lifetime::Named(_)
        | Lifetime::Negative(_)
        | Lifetime::Rule(_) => true,
        Lifetime::None => {
            validator && (freshness::is_heuristically_cacheable(status) || control.public)
        }
    };
    (!useful).then_some(NotStoredReason::NoFreshness)
}

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotStoredReason {
    /// A rule of the operator forbids storing.
    Rule,
    /// The method is neither GET, nor POST with a response that may also answer a GET.
    Method,
    /// The response is partial content (206). The module `partial` has the rules for parts.
    Partial,
    /// The status is not final, or is 304.
    Status,
    /// The response contains `must-understand`, and this cache does not understand its status.
    NotUnderstood,
    /// Cache-Control is malformed, and may have meant `no-store`.
    Unreadable,
    /// The response contains `no-store`.
    ResponseNoStore,
    /// The request contains `no-store`.
    RequestNoStore,
    /// The response contains `private`.
    Private,
    /// The request contains Authorization, and the response does not allow shared caching (RFC 9111
    /// §3.5).
    Authorization,
    /// Vary contains `*`, so the response matches no other request.
    VaryStar,
    /// Vary names more fields than this cache accepts.
    VaryTooLong,
    /// The response sets a cookie, and neither `public` nor an explicit lifetime allows storing it.
    SetCookie,
    /// The request contains Cookie, and only the URL (such as a package's name) gives the response
    /// a lifetime.
    Cookie,
    /// The response has no lifetime and no validator, so it could never be reused.
    NoFreshness,
}

impl NotStoredReason {
    /// Returns the stable name of the reason in `Cache-Status` details, logs and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Method => "method",
            Self::Partial => "partial",
            Self::Status => "status",
            Self::NotUnderstood => "not-understood",
            Self::Unreadable => "unreadable-cache-control",
            Self::ResponseNoStore => "response-no-store",
            Self::RequestNoStore => "request-no-store",
            Self::Private => "private",
            Self::Authorization => "authorization",
            Self::VaryStar => "vary-star",
            Self::VaryTooLong => "vary-too-long",
            Self::SetCookie => "set-cookie",
            Self::Cookie => "cookie",
            Self::NoFreshness => "no-freshness",
        }
    }

    /// Returns the RFC section that forbids storing the response. If a rule of the operator forbids
    /// it, returns the document that describes such rules.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Rule => "docs/configuration.md",
            Self::Method | Self::Status | Self::NoFreshness => "RFC 9111 §3",
            Self::Partial => "RFC 9111 §3.3",
            Self::NotUnderstood => "RFC 9111 §5.2.2.3",
            Self::Unreadable => "RFC 9111 §5.2",
            Self::ResponseNoStore => "RFC 9111 §5.2.2.5",
            Self::RequestNoStore => "RFC 9111 §5.2.1.5",
            Self::Private => "RFC 9111 §5.2.2.7",
            Self::Authorization => "RFC 9111 §3.5",
            Self::VaryStar | Self::VaryTooLong => "RFC 9111 §4.1",
            Self::SetCookie | Self::Cookie => "RFC 9111 §7.3",
        }
    }

    /// Describes the reason in a sentence about the response.
    pub const fn description(self) -> &'static str {
        match self {
            Self::Rule => "a rule of the operator forbids storage",
            Self::Method => "foxy stores no responses to this request method",
            Self::Partial => "the response is partial (206)",
            Self::Status => "a response with this status cannot answer a later request",
            Self::NotUnderstood => {
                "the response says must-understand, and foxy does not know its status"
            }
            Self::Unreadable => "foxy cannot read Cache-Control, which may mean no-store",
            Self::ResponseNoStore => "the response says no-store",
            Self::RequestNoStore => "the request said no-store",
            Self::Private => "the response says private",
            Self::Authorization => {
                "the request has Authorization, and the response says neither public, \
                 must-revalidate nor s-maxage"
            }
            Self::VaryStar => "the response says Vary: *, so it fits no other request",
            Self::VaryTooLong => "Vary names more request fields than foxy compares",
            Self::SetCookie => {
                "the response sets a cookie, and neither public nor an explicit lifetime permits \
                 storage"
            }
            Self::Cookie => {
                "the request has a cookie, and only the name of the file gives the response a \
                 lifetime"
            }
            Self::NoFreshness => {
                "the response has neither a freshness lifetime nor a validator (ETag, \
                 Last-Modified)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NotStoredReason as No;

    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn decide(method: &str, request: Lines<'_>, status: u16, response: Lines<'_>) -> Storability {
        storability(Exchange {
            method,
            target: b"http://a/",
            request,
            status,
            response,
            received: WallTime::from_seconds(784_111_777),
            policy: Policy::default(),
        })
    }

    #[test]
    fn the_name_of_a_file_does_not_make_a_response_to_a_cookie_fresh() {
        let within = |request: Lines<'_>, response: Lines<'_>, policy: Policy| {
            storability(Exchange {
                method: "GET",
                target: b"http://a/account/x.zip",
                request,
                status: 200,
                response,
                received: WallTime::from_seconds(784_111_777),
                policy,
            })
        };
        let decide = |request, response| within(request, response, Policy::default());
        let cookie = [("Cookie", "sid=alice")];
        assert_eq!(decide(&[], &[]), Storability::Store);
        assert_eq!(decide(&cookie, &[]), Storability::DoNotStore(No::Cookie));
        assert_eq!(
            decide(&cookie, &[("ETag", "\"a\"")]),
            Storability::DoNotStore(No::Cookie),
            "a stored copy would be fresh for other clients"
        );
        assert_eq!(decide(&cookie, &[("Cache-Control", "max-age=9")]), Storability::Store);
        let at_most = Policy { fresh_at_most: Some(3600), ..Policy::default() };
        assert_eq!(within(&cookie, &[], at_most), Storability::DoNotStore(No::Cookie));
        let at_least = Policy { fresh_at_least: Some(60), ..Policy::default() };
        assert_eq!(within(&cookie, &[], at_least), Storability::Store, "the operator's decision");
    }

    #[test]
    fn what_a_shared_cache_may_store() {
        let cases: [(Lines<'_>, u16, Lines<'_>); 13] = [
            (&[], 200, &[("Cache-Control", "max-age=60")]),
            (&[], 200, &[("Cache-Control", "s-maxage=60")]),
            (&[], 200, &[("Expires", "Mon, 07 Nov 1994 08:49:37 GMT")]),
            (&[], 200, &[("Last-Modified", "Mon, 07 Nov 1988 08:49:37 GMT")]),
            (&[], 404, &[("Cache-Control", "max-age=60")]),
            (&[], 599, &[("Cache-Control", "max-age=60")]),
            (&[], 200, &[("Cache-Control", "no-cache"), ("ETag", "\"a\"")]),
            (&[("Authorization", "x")], 200, &[("Cache-Control", "public, max-age=60")]),
            (&[("Authorization", "x")], 200, &[("Cache-Control", "must-revalidate, max-age=60")]),
            (&[], 200, &[("Cache-Control", "no-store, must-understand, max-age=60")]),
            (&[], 200, &[("Cache-Control", "max-age=60"), ("Set-Cookie", "a=b")]),
            (&[], 200, &[("Cache-Control", "max-age=60"), ("Content-Range", "bytes 0-1/2")]),
            (&[], 200, &[("Cache-Control", "public"), ("ETag", "\"a\""), ("Set-Cookie", "a=b")]),
        ];
        for (request, status, response) in cases {
            assert_eq!(
                decide("GET", request, status, response),
                Storability::Store,
                "{status} {response:?}"
            );
        }
    }

    #[test]
    fn an_answer_to_post_that_is_what_a_get_would_give() {
        let response: Lines<'_> =
            &[("Cache-Control", "max-age=60"), ("Content-Location", "http://a/")];
        assert_eq!(decide("POST", &[], 200, response), Storability::Store);
    }

    #[test]
    fn what_it_may_not_and_why() {
        let fresh = ("Cache-Control", "max-age=60");
        let cases: [(&str, Lines<'_>, u16, Lines<'_>, No); 22] = [
            ("POST", &[], 200, &[fresh], No::Method),
            ("POST", &[], 200, &[fresh, ("Content-Location", "/other")], No::Method),
            ("POST", &[], 201, &[fresh, ("Content-Location", "/")], No::Method),
            ("PUT", &[], 200, &[fresh, ("Content-Location", "/")], No::Method),
            ("POST", &[], 200, &[("ETag", "\"a\""), ("Content-Location", "/")], No::NoFreshness),
            ("HEAD", &[], 200, &[fresh], No::Method),
            ("GET", &[], 206, &[fresh], No::Partial),
            ("GET", &[], 304, &[fresh], No::Status),
            ("GET", &[], 199, &[fresh], No::Status),
            ("GET", &[], 599, &[fresh, ("Cache-Control", "must-understand")], No::NotUnderstood),
            ("GET", &[], 200, &[fresh, ("Cache-Control", "no store")], No::Unreadable),
            (
                "GET",
                &[],
                200,
                &[fresh, ("Cache-Control", "must-understand, no-store=\"")],
                No::Unreadable,
            ),
            ("GET", &[], 200, &[fresh, ("Cache-Control", "no-store")], No::ResponseNoStore),
            ("GET", &[("Cache-Control", "no-store")], 200, &[fresh], No::RequestNoStore),
            ("GET", &[], 200, &[fresh, ("Cache-Control", "private")], No::Private),
            ("GET", &[("Authorization", "x")], 200, &[fresh], No::Authorization),
            ("GET", &[], 200, &[fresh, ("Vary", "*")], No::VaryStar),
            (
                "GET",
                &[],
                200,
                &[("Last-Modified", "Mon, 07 Nov 1988 08:49:37 GMT"), ("Set-Cookie", "a=b")],
                No::SetCookie,
            ),
            (
                "GET",
                &[],
                200,
                &[("Last-Modified", "Mon, 07 Nov 1988 08:49:37 GMT"), ("Set-Cookie2", "a=b")],
                No::SetCookie,
            ),
            ("GET", &[], 200, &[], No::NoFreshness),
            ("GET", &[], 200, &[("Expires", "0")], No::NoFreshness),
            (
                "GET",
                &[],
                302,
                &[("Last-Modified", "Mon, 07 Nov 1988 08:49:37 GMT")],
                No::NoFreshness,
            ),
        ];
        for (method, request, status, response, reason) in cases {
            let expected = Storability::DoNotStore(reason);
            assert_eq!(
                decide(method, request, status, response),
                expected,
                "{method} {status} {response:?}"
            );
        }
    }
}
