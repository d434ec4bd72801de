//! Whether a stored response may answer a request now (RFC 9111 §4), given that its key and variant match.

use crate::cache_control::{RequestControl, ResponseControl};
use crate::fields::Fields;
use crate::freshness::StoredTimes;
use foxy_base::WallTime;

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuse {
    /// It is fresh, for that many seconds more.
    Fresh {
        /// Seconds of freshness left.
        left: u64,
    },
    /// It is stale by that many seconds, and the request allows it (`max-stale`).
    Stale {
        /// Seconds past its freshness.
        by: u64,
    },
    /// It must be validated first.
    Revalidate(RevalidateReason),
}

/// Why a stored response must be validated before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RevalidateReason {
    /// The response says `no-cache`.
    ResponseNoCache,
    /// The request says `no-cache` (or `Pragma: no-cache`).
    RequestNoCache,
    /// Older than the request's `max-age`.
    RequestMaxAge,
    /// Not fresh for as long as the request's `min-fresh`.
    RequestMinFresh,
    /// Past its freshness lifetime.
    Stale,
}

impl RevalidateReason {
    /// Whether the request asked for it (`fwd=request` in RFC 9211) rather than the response's staleness (`fwd=stale`).
    #[must_use]
    pub const fn is_the_requests(self) -> bool {
        matches!(self, Self::RequestNoCache | Self::RequestMaxAge | Self::RequestMinFresh)
    }

    /// A stable name.
    #[must_use]
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

/// What is known of a stored response.
#[derive(Clone, Copy, Debug)]
pub struct Stored<'a> {
    /// What its Cache-Control says.
    pub control: &'a ResponseControl,
    /// Its freshness lifetime in seconds.
    pub lifetime: u64,
    /// When it was received and how old it was then.
    pub times: StoredTimes,
}

/// Decides.
#[must_use]
pub fn may_reuse(request: &(impl Fields + ?Sized), stored: Stored<'_>, now: WallTime) -> Reuse {
    may_reuse_under(&RequestControl::of(request), stored, now)
}

/// Decides for a request whose Cache-Control has been read.
#[must_use]
pub fn may_reuse_under(request: &RequestControl, stored: Stored<'_>, now: WallTime) -> Reuse {
    let age = stored.times.age(now);
    // "the stored response does not contain the no-cache directive, unless it is successfully validated"
    if stored.control.no_cache {
        return Reuse::Revalidate(RevalidateReason::ResponseNoCache);
    }
    // §5.2.1.4
    if request.no_cache {
        return Reuse::Revalidate(RevalidateReason::RequestNoCache);
    }
    let stale_allowance = if stored.control.forbids_stale() { None } else { request.max_stale };
    // §5.2.1.1: an age above max-age counts as staleness, which max-stale may allow where the response does not forbid it
    if request
        .max_age
        .is_some_and(|limit| age > limit && stale_allowance.is_none_or(|more| age - limit > more))
    {
        return Reuse::Revalidate(RevalidateReason::RequestMaxAge);
    }
    // "the stored response is one of: fresh, allowed to be served stale, successfully validated"
    if age < stored.lifetime {
        let left = stored.lifetime - age;
        return match request.min_fresh {
            Some(wanted) if left < wanted => Reuse::Revalidate(RevalidateReason::RequestMinFresh),
            _ => Reuse::Fresh { left },
        };
    }
    let by = age - stored.lifetime;
    match stale_allowance {
        Some(allowed) if by <= allowed && request.min_fresh.is_none() => Reuse::Stale { by },
        _ => Reuse::Revalidate(RevalidateReason::Stale),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Reuse::{Fresh, Revalidate, Stale};
    use RevalidateReason as Why;

    /// A response with a lifetime of 100 s, `age` seconds old.
    fn decide(request: &str, response: &str, age: u64) -> Reuse {
        let control = ResponseControl::of(&[("Cache-Control", response)][..]);
        let times = StoredTimes { received: WallTime::from_seconds(1000), initial_age: 0 };
        let stored = Stored { control: &control, lifetime: 100, times };
        may_reuse(&[("Cache-Control", request)][..], stored, WallTime::from_seconds(1000 + age))
    }

    #[test]
    fn freshness_ends_when_age_reaches_the_lifetime() {
        assert_eq!(decide("", "max-age=100", 99), Fresh { left: 1 });
        assert_eq!(decide("", "max-age=100", 100), Revalidate(Why::Stale));
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
            ("max-stale", "", 5000, Stale { by: 4900 }),
            ("max-stale=50", "", 150, Stale { by: 50 }),
            ("max-stale=50", "", 151, Revalidate(Why::Stale)),
            ("max-stale", "must-revalidate", 101, Revalidate(Why::Stale)),
            ("max-stale", "proxy-revalidate", 101, Revalidate(Why::Stale)),
            ("max-stale", "s-maxage=100", 101, Revalidate(Why::Stale)),
            ("", "no-cache", 1, Revalidate(Why::ResponseNoCache)),
            ("max-stale", "no-cache", 1, Revalidate(Why::ResponseNoCache)),
        ];
        for (request, response, age, expected) in cases {
            assert_eq!(decide(request, response, age), expected, "{request} / {response} at {age}");
        }
    }
}
