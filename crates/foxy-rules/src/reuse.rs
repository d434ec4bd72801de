//! Decides whether a stored response may answer a request (RFC 9111 §4). The caller has found the
//! response by the request's cache key and secondary key.

use crate::cache_control::{RequestControl, ResponseControl};
use crate::freshness::StoredTimes;
use foxy_base::WallTime;

/// The decision on reuse of a stored response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// The response is fresh and may answer.
    Fresh {
        /// Time in seconds for which the response remains fresh.
        left: u64,
    },
    /// The response is stale, but may still answer.
    Stale {
        /// Seconds since the freshness lifetime ended.
        by: u64,
        /// The rule that allows the stale response.
        permit: Permit,
    },
    /// The response must be validated before it may answer.
    Revalidate(RevalidateReason),
}

/// The reason why a stale response may answer. No such reason applies if the response itself
/// forbids stale answers (RFC 9111 §4.2.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Permit {
    /// The request contains `max-stale` (RFC 9111 §5.2.1.2).
    MaxStale,
    /// The response contains `stale-while-revalidate` (RFC 5861 §3). The caller must validate the
    /// response while the client already receives it.
    WhileRevalidate,
    /// The request or response contains `stale-if-error` (RFC 5861 §4), and the origin failed.
    IfError,
    /// The origin is unreachable, and RFC 9111 §4.2.4 permits a "disconnected" cache to answer.
    Disconnected,
}

impl Permit {
    /// Returns the stable name of the permit in `Cache-Status` details and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MaxStale => "max-stale",
            Self::WhileRevalidate => "stale-while-revalidate",
            Self::IfError => "stale-if-error",
            Self::Disconnected => "disconnected",
        }
    }
}

/// The way in which an origin failed to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The origin sent no response.
    Unreachable,
    /// The origin sent a response with this status.
    Status(u16),
}

impl Failure {
    /// Returns whether the failure permits `stale-if-error` (RFC 5861 §4).
    pub const fn is_error(self) -> bool {
        matches!(self, Self::Unreachable | Self::Status(500 | 502..=504))
    }
}

/// Longest staleness in seconds (one week) that is permitted while the origin is unreachable. A
/// `stale-if-error` directive replaces this limit.
pub const DISCONNECTED_LIMIT: u64 = 604_800;

/// The reason why a stored response must be validated before it may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RevalidateReason {
    /// The response contains `no-cache`.
    ResponseNoCache,
    /// The request contains `no-cache` or `Pragma: no-cache`.
    RequestNoCache,
    /// The response's age exceeds the request's `max-age`.
    RequestMaxAge,
    /// The response's remaining freshness is below the request's `min-fresh`.
    RequestMinFresh,
    /// The response's age exceeds its freshness lifetime.
    Stale,
}

impl RevalidateReason {
    /// Returns whether the request demands the validation (`fwd=request` in RFC 9211). Otherwise
    /// the response does (`fwd=stale`).
    pub const fn is_the_requests(self) -> bool {
        matches!(self, Self::RequestNoCache | Self::RequestMaxAge | Self::RequestMinFresh)
    }

    /// Returns the stable name of the reason in logs and `Cache-Status` details.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ResponseNoCache => "response-no-cache",
            Self::RequestNoCache => "request-no-cache",
            Self::RequestMaxAge => "request-max-age",
            Self::RequestMinFresh => "request-min-fresh",
            Self::Stale => "stale",
        }
    }
}

/// The facts about a stored response that the decision on its reuse needs.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// The Cache-Control of the response.
    pub control: &'a ResponseControl,
    /// Freshness lifetime of the response in seconds.
    pub lifetime: u64,
    /// The times from which the age of the response is computed.
    pub times: StoredTimes,
}

/// Decides whether a stored response may answer a request, in the order of RFC 9111 §4.
pub fn may_reuse(request: &RequestControl, stored: Stored<'_>, now: WallTime) -> Reuse {
    let age = stored.times.known_age(now);
    // RFC 9111 §4: "the stored response does not contain the no-cache directive, unless it is
    // successfully validated"
    if stored.control.no_cache {
        return Reuse::Revalidate(RevalidateReason::ResponseNoCache);
    }
    // RFC 9111 §5.2.1.4: a request with no-cache requires validation.
    if request.no_cache {
        return Reuse::Revalidate(RevalidateReason::RequestNoCache);
    }
    let stale_allowance = if stored.control.forbids_stale() { None } else { request.max_stale };
    // RFC 9111 §5.2.1.1: an age above max-age counts as staleness. The request's max-stale may
    // allow this staleness, unless the response forbids it.
    if request
        .max_age
        .is_some_and(|limit| age > limit && stale_allowance.is_none_or(|more| age - limit > more))
    {
        return Reuse::Revalidate(RevalidateReason::RequestMaxAge);
    }
    // RFC 9111 §4: "the stored response is one of: fresh, allowed to be served stale, successfully
    // validated"
    if age < stored.lifetime {
        let left = stored.lifetime - age;
        return match request.min_fresh {
            Some(wanted) if left < wanted => Reuse::Revalidate(RevalidateReason::RequestMinFresh),
            _ => Reuse::Fresh { left },
        };
    }
    let by = age - stored.lifetime;
    let within =
        |limit: Option<u64>| limit.is_some_and(|limit| by <= limit) && request.min_fresh.is_none();
    if within(stale_allowance) {
        return Reuse::Stale { by, permit: Permit::MaxStale };
    }
    // RFC 5861 §3 allows the response to answer stale during a validation.
    if within(stored.control.stale_while_revalidate) && !stored.control.forbids_stale() {
        return Reuse::Stale { by, permit: Permit::WhileRevalidate };
    }
    Reuse::Revalidate(RevalidateReason::Stale)
}

/// Decides whether a stale response may answer after the origin failed. Returns the staleness in
/// seconds and the reason that permits it, or `None`. The request's `no-cache`, `max-age` and
/// `min-fresh` still apply.
pub fn may_reuse_after(
    failure: Failure,
    request: &RequestControl,
    stored: Stored<'_>,
    now: WallTime,
) -> Option<(u64, Permit)> {
    if !failure.is_error() || stored.control.forbids_stale() {
        return None;
    }
    match may_reuse(request, stored, now) {
        Reuse::Stale { by, permit } => return Some((by, permit)),
        Reuse::Revalidate(RevalidateReason::Stale) if request.min_fresh.is_none() => {}
        Reuse::Fresh { .. } | Reuse::Revalidate(_) => return None,
    }
    let by = stored.times.known_age(now).saturating_sub(stored.lifetime);
    match (stored.control.stale_if_error.max(request.stale_if_error), failure) {
        (Some(limit), _) => (by <= limit).then_some((by, Permit::IfError)),
        (None, Failure::Unreachable) => {
            (by <= DISCONNECTED_LIMIT).then_some((by, Permit::Disconnected))
        }
        (None, Failure::Status(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reuse::{Fresh, Revalidate, Stale};
    use RevalidateReason as Why;

    /// Decides on a response with an age of `age` seconds and a lifetime of 100 seconds.
    fn decide(request: &str, response: &str, age: u64) -> Reuse {
        let control = ResponseControl::of(&[("Cache-Control", response)][..]);
        let times = StoredTimes { received: WallTime::from_seconds(1000), initial_age: 0 };
        let stored = Stored { control: &control, lifetime: 100, times };
        let request = RequestControl::of(&[("Cache-Control", request)][..]);
        may_reuse(&request, stored, WallTime::from_seconds(1000 + age))
    }

    #[test]
    fn freshness_ends_when_age_reaches_the_lifetime() {
        assert_eq!(decide("", "max-age=100", 99), Fresh { left: 1 });
        assert_eq!(decide("", "max-age=100", 100), Revalidate(Why::Stale));
    }

    #[test]
    fn what_was_received_later_than_now_is_not_fresh() {
        let at = |now| {
            let control = ResponseControl::of(&[("Cache-Control", "stale-while-revalidate=9")][..]);
            let times = StoredTimes { received: WallTime(100_000), initial_age: 0 };
            let stored = Stored { control: &control, lifetime: 100, times };
            let after = may_reuse_after(
                Failure::Unreachable,
                &RequestControl::default(),
                stored,
                WallTime(now),
            );
            (may_reuse(&RequestControl::default(), stored, WallTime(now)), after)
        };
        assert_eq!(at(100_000), (Fresh { left: 100 }, None));
        assert_eq!(at(99_500), (Fresh { left: 100 }, None), "another thread read the clock");
        for now in [0, 90_000, 98_999] {
            assert_eq!(at(now), (Revalidate(Why::Stale), None), "{now}");
        }
    }

    #[test]
    fn the_request_can_ask_for_more_or_accept_less() {
        let cases = [
            ("no-cache", "", 1, Revalidate(Why::RequestNoCache)),
            ("max-age=10", "", 10, Fresh { left: 90 }),
            ("max-age=10", "", 11, Revalidate(Why::RequestMaxAge)),
            ("max-age=0", "", 1, Revalidate(Why::RequestMaxAge)),
            ("max-age=10, max-stale=5", "", 15, Fresh { left: 85 }),
            ("max-age=10, max-stale=5", "", 16, Revalidate(Why::RequestMaxAge)),
            ("max-age=10, max-stale", "must-revalidate", 11, Revalidate(Why::RequestMaxAge)),
            ("min-fresh=30", "", 70, Fresh { left: 30 }),
            ("min-fresh=30", "", 71, Revalidate(Why::RequestMinFresh)),
            ("max-stale", "", 5000, Stale { by: 4900, permit: Permit::MaxStale }),
            ("max-stale=50", "", 150, Stale { by: 50, permit: Permit::MaxStale }),
            ("max-stale=50", "", 151, Revalidate(Why::Stale)),
            ("max-stale", "must-revalidate", 101, Revalidate(Why::Stale)),
            ("max-stale", "proxy-revalidate", 101, Revalidate(Why::Stale)),
            ("max-stale", "s-maxage=100", 101, Revalidate(Why::Stale)),
            ("", "stale-while-revalidate=9", 109, Stale { by: 9, permit: Permit::WhileRevalidate }),
            ("", "stale-while-revalidate=9", 110, Revalidate(Why::Stale)),
            ("", "stale-while-revalidate=9, must-revalidate", 101, Revalidate(Why::Stale)),
            ("", "stale-while-revalidate=9, s-maxage=100", 101, Revalidate(Why::Stale)),
            ("min-fresh=1", "stale-while-revalidate=9", 101, Revalidate(Why::Stale)),
            ("max-age=50", "stale-while-revalidate=9", 101, Revalidate(Why::RequestMaxAge)),
            ("no-cache", "stale-while-revalidate=9", 101, Revalidate(Why::RequestNoCache)),
            ("", "no-cache", 1, Revalidate(Why::ResponseNoCache)),
            ("max-stale", "no-cache", 1, Revalidate(Why::ResponseNoCache)),
        ];
        for (request, response, age, expected) in cases {
            assert_eq!(decide(request, response, age), expected, "{request} / {response} at {age}");
        }
    }

    #[test]
    fn after_an_error_only_a_permit_lets_a_stale_response_answer() {
        let after = |failure, request: &str, response: &str, age| {
            let control = ResponseControl::of(&[("Cache-Control", response)][..]);
            let times = StoredTimes { received: WallTime::from_seconds(1000), initial_age: 0 };
            let stored = Stored { control: &control, lifetime: 100, times };
            let request = RequestControl::of(&[("Cache-Control", request)][..]);
            may_reuse_after(failure, &request, stored, WallTime::from_seconds(1000 + age))
        };
        let (gone, down) = (Failure::Unreachable, Failure::Status(503));
        let cases = [
            (gone, "", "max-age=100", 101, Some((1, Permit::Disconnected))),
            (gone, "", "max-age=100", 101 + DISCONNECTED_LIMIT, None),
            (gone, "", "stale-if-error=5", 105, Some((5, Permit::IfError))),
            (gone, "", "stale-if-error=5", 106, None),
            (down, "", "stale-if-error=5", 105, Some((5, Permit::IfError))),
            (down, "stale-if-error=9", "stale-if-error=5", 109, Some((9, Permit::IfError))),
            (Failure::Status(500), "", "stale-if-error=5", 105, Some((5, Permit::IfError))),
            (Failure::Status(502), "", "stale-if-error=5", 105, Some((5, Permit::IfError))),
            (Failure::Status(504), "", "stale-if-error=5", 105, Some((5, Permit::IfError))),
            (down, "", "max-age=100", 101, None),
            (down, "max-stale", "max-age=100", 101, Some((1, Permit::MaxStale))),
            (Failure::Status(404), "", "stale-if-error=5", 101, None),
            (Failure::Status(501), "", "stale-if-error=5", 101, None),
            (gone, "no-cache", "stale-if-error=5", 101, None),
            (gone, "max-age=50", "stale-if-error=5", 101, None),
            (gone, "min-fresh=1", "stale-if-error=5", 101, None),
            (gone, "min-fresh=90", "max-age=100", 50, None),
        ];
        for (failure, request, response, age, expected) in cases {
            assert_eq!(
                after(failure, request, response, age),
                expected,
                "{request} / {response} at {age}"
            );
        }
        for forbids in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=100"] {
            let response = format!("{forbids}, stale-if-error=60, stale-while-revalidate=60");
            assert_eq!(
                after(gone, "max-stale, stale-if-error=60", &response, 101),
                None,
                "{forbids}"
            );
        }
    }
}
