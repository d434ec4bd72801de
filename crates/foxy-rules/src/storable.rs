//! Whether a response may be stored by a shared cache (RFC 9111 §3).

use crate::cache_control::{RequestControl, ResponseControl};
use crate::fields::Fields;
use crate::freshness::{self, Lifetime};
use crate::invalidate::content_location_is_target;
use crate::not_stored::NotStoredReason;
use crate::policy::Policy;
use crate::vary::Vary;
use foxy_base::WallTime;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Storability {
    /// It may be stored.
    Store,
    /// It may not, or it would be of no use.
    DoNotStore(NotStoredReason),
}

/// What §3 needs to know of an exchange.
#[derive(Clone, Copy, Debug)]
pub struct Exchange<'a, Q: Fields + ?Sized, R: Fields + ?Sized> {
    /// The request's method.
    pub method: &'a str,
    /// The target's cache key, which a heuristic may look at.
    pub target: &'a [u8],
    /// The request's fields.
    pub request: &'a Q,
    /// The response's status.
    pub status: u16,
    /// The response's fields.
    pub response: &'a R,
    /// When the response's head was received.
    pub received: WallTime,
    /// What the operator decides.
    pub policy: Policy,
}

/// Statuses whose caching requirements we know (§5.2.2.3): the final ones of RFC 9110 but 206 and
/// 304.
const fn understood(status: u16) -> bool {
    matches!(status, 200..=205 | 300..=303 | 305 | 307 | 308 | 400..=417 | 421 | 422 | 426 | 500..=505)
}

/// Decides, in the order of §3. It sees heads only: a body that ends before its length is the
/// caller's to drop (§3.3).
///
/// Cookies: §7.3 leaves it to the origin to mark what is one user's. A response with Set-Cookie is
/// stored when it says how long it may be reused or is `public`; without a word of that it is not,
/// although §4.2.2 would allow a guess.
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
    let control = ResponseControl::for_role(response, policy.role);
    // "the request method is understood by the cache"
    let posted = method == "POST";
    if method != "GET" && !(posted && is_what_get_gives(status, response, target)) {
        return Some(NotStoredReason::Method);
    }
    // "the response status code is final"
    if status < 200 || status == 304 || status > 599 {
        return Some(NotStoredReason::Status);
    }
    // "if the response status code is 206 or 304, or the must-understand directive is present: the
    // cache understands the response status code". Content-Range means nothing elsewhere (RFC 9110
    // §14.4).
    if status == 206 {
        return Some(NotStoredReason::Partial);
    }
    if control.must_understand && !understood(status) {
        return Some(NotStoredReason::NotUnderstood);
    }
    // What cannot be read is read in the direction that caches less.
    if control.unreadable {
        return Some(NotStoredReason::Unreadable);
    }
    // "the no-store cache directive is not present in the response"; must-understand overrides it
    // (§5.2.2.3)
    if control.no_store && !control.must_understand {
        return Some(NotStoredReason::ResponseNoStore);
    }
    // §5.2.1.5
    if RequestControl::of(request).no_store {
        return Some(NotStoredReason::RequestNoStore);
    }
    // "if the cache is shared: the private response directive is not present"
    if control.private {
        return Some(NotStoredReason::Private);
    }
    // "if the cache is shared: the Authorization header field is not present in the request or a
    // response directive is present that explicitly allows shared caching (§3.5)"
    let shareable = control.public || control.must_revalidate || control.s_maxage.is_some();
    if request.has("authorization") && !shareable {
        return Some(NotStoredReason::Authorization);
    }
    // §4.1: it could never match another request
    match Vary::of(response) {
        Err(crate::vary::VaryError::Star) => return Some(NotStoredReason::VaryStar),
        Err(crate::vary::VaryError::TooLong) => return Some(NotStoredReason::VaryTooLong),
        Ok(_) => {}
    }
    let lifetime =
        freshness::lifetime(status, response, &control, policy.negative_lifetime, received, target);
    let said = control.public || matches!(lifetime, Lifetime::Explicit(_));
    if response.has("set-cookie") && !said {
        return Some(NotStoredReason::SetCookie);
    }
    if posted && !matches!(lifetime, Lifetime::Explicit(_)) {
        return Some(NotStoredReason::NoFreshness);
    }
    worth_storing(status, response, lifetime, &control)
}

/// Whether a response to POST is what a GET of the target would give (RFC 9110 §9.3.3), which its
/// Content-Location says.
fn is_what_get_gives(status: u16, response: &(impl Fields + ?Sized), target: &[u8]) -> bool {
    let target = std::str::from_utf8(target).ok();
    status == 200 && target.is_some_and(|target| content_location_is_target(response, target))
}

/// "the response contains at least one of …": public, Expires, max-age, s-maxage, or a status with
/// a heuristic. Beyond the RFC's "may", what has neither a lifetime nor a validator is left out, as
/// it could never answer anything.
fn worth_storing(
    status: u16,
    response: &(impl Fields + ?Sized),
    lifetime: Lifetime,
    control: &ResponseControl,
) -> Option<NotStoredReason> {
    let validator = response.has("etag") || response.has("last-modified");
    let useful = match lifetime {
        Lifetime::Explicit(0) | Lifetime::Heuristic(0) => validator,
        Lifetime::Explicit(_) | Lifetime::Heuristic(_) | Lifetime::Negative(_) => true,
        Lifetime::None => {
            validator && (freshness::heuristically_cacheable(status) || control.public)
        }
    };
    (!useful).then_some(NotStoredReason::NoFreshness)
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
        let cases: [(&str, Lines<'_>, u16, Lines<'_>, No); 21] = [
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
