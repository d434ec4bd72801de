//! What each rule of reuse says of a stored response, in the order in which they are asked, for
//! people. The rules themselves are in `reuse` and `freshness`; a test compares.

mod lifetime_source;

pub use lifetime_source::LifetimeSource;

use crate::cache_control::RequestControl;
use crate::fields::Fields;
use crate::freshness::{Lifetime, lifetime};
use crate::package::is_named_by_digest;
use crate::reuse::{Failure, Permit, Reuse, Stored, may_reuse_after, may_reuse_under};
use foxy_base::WallTime;
use std::fmt;

/// What one rule says. Times are seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// How long the response is fresh.
    Lifetime {
        /// Who says so.
        source: LifetimeSource,
        /// Whether that is in a field for caches like this one only (RFC 9213).
        targeted: bool,
        /// For how long.
        seconds: u64,
    },
    /// How old it is.
    Age {
        /// How old it was when it came.
        initial: u64,
        /// In all.
        seconds: u64,
    },
    /// It says `no-cache`: it must be validated.
    ResponseNoCache,
    /// The request says `no-cache`: it must be validated.
    RequestNoCache,
    /// The request's `max-age`.
    RequestMaxAge {
        /// The oldest it takes.
        limit: u64,
        /// Whether the response will do.
        met: bool,
    },
    /// It is fresh.
    Fresh {
        /// For that much longer.
        left: u64,
    },
    /// The request's `min-fresh`.
    MinFresh {
        /// How much longer it must be fresh.
        wanted: u64,
        /// Whether it is.
        met: bool,
    },
    /// It is stale.
    Expired {
        /// For so long.
        by: u64,
    },
    /// It says `must-revalidate`, `proxy-revalidate`, `s-maxage` or the like: it is never served
    /// stale.
    NeverStale,
    /// A permit to answer stale.
    Permit {
        /// Which.
        permit: Permit,
        /// For how long; none for however long.
        limit: Option<u64>,
        /// Whether it suffices.
        met: bool,
    },
    /// What may be done when the origin gives no answer.
    IfUnreachable {
        /// What allows the stored response to answer, if anything does.
        permit: Option<Permit>,
    },
    /// What follows.
    Therefore(Reuse),
}

impl Step {
    /// Where the rule is written.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Lifetime {
                source:
                    LifetimeSource::Heuristic | LifetimeSource::Package | LifetimeSource::Operator,
                ..
            } => "RFC 9111 §4.2.2",
            Self::Lifetime { targeted: true, .. } => "RFC 9213 §2.2",
            Self::Lifetime { .. } => "RFC 9111 §4.2.1",
            Self::Age { .. } => "RFC 9111 §4.2.3",
            Self::ResponseNoCache => "RFC 9111 §5.2.2.4",
            Self::RequestNoCache => "RFC 9111 §5.2.1.4",
            Self::RequestMaxAge { .. } => "RFC 9111 §5.2.1.1",
            Self::Fresh { .. } | Self::Expired { .. } => "RFC 9111 §4.2",
            Self::MinFresh { .. } => "RFC 9111 §5.2.1.3",
            Self::NeverStale | Self::IfUnreachable { .. } => "RFC 9111 §4.2.4",
            Self::Permit { permit: Permit::MaxStale, .. } => "RFC 9111 §5.2.1.2",
            Self::Permit { permit: Permit::WhileRevalidate, .. } => "RFC 5861 §3",
            Self::Permit { permit: Permit::IfError, .. } => "RFC 5861 §4",
            Self::Permit { permit: Permit::Disconnected, .. } => "RFC 9111 §4.2.4",
            Self::Therefore(_) => "RFC 9111 §4",
        }
    }

    /// A stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lifetime { .. } => "lifetime",
            Self::Age { .. } => "age",
            Self::ResponseNoCache => "response-no-cache",
            Self::RequestNoCache => "request-no-cache",
            Self::RequestMaxAge { .. } => "request-max-age",
            Self::Fresh { .. } => "fresh",
            Self::MinFresh { .. } => "request-min-fresh",
            Self::Expired { .. } => "stale",
            Self::NeverStale => "never-stale",
            Self::Permit { permit, .. } => permit.name(),
            Self::IfUnreachable { .. } => "if-unreachable",
            Self::Therefore(Reuse::Fresh { .. } | Reuse::Stale { .. }) => "reuse",
            Self::Therefore(Reuse::Revalidate(reason)) => reason.name(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let met = |met: bool| if met { "which it meets" } else { "which it does not meet" };
        match *self {
            Self::Lifetime { source: LifetimeSource::Nothing, .. } => {
                f.write_str("nothing says how long it is fresh, so it never is")
            }
            Self::Lifetime { source, targeted, seconds } => {
                let field = if targeted { " of CDN-Cache-Control" } else { "" };
                write!(f, "it is fresh for {seconds} s, says {}{field}", source.name())
            }
            Self::Age { initial, seconds } => {
                write!(f, "it is {seconds} s old; it was {initial} s old when it came")
            }
            Self::ResponseNoCache => {
                f.write_str("the response says no-cache: never without validation")
            }
            Self::RequestNoCache => {
                f.write_str("the request says no-cache: not without validation")
            }
            Self::RequestMaxAge { limit, met: is } => {
                write!(f, "the request takes what is at most {limit} s old, {}", met(is))
            }
            Self::Fresh { left } => write!(f, "it is fresh for {left} s more"),
            Self::MinFresh { wanted, met: is } => {
                write!(f, "the request wants it fresh for {wanted} s more, {}", met(is))
            }
            Self::Expired { by } => write!(f, "it has been stale for {by} s"),
            Self::NeverStale => f.write_str("the response forbids that it is served stale"),
            Self::Permit { permit, limit: Some(limit), met: is } => {
                write!(f, "{} allows staleness of {limit} s, {}", permit.name(), met(is))
            }
            Self::Permit { permit, .. } => write!(f, "{} allows any staleness", permit.name()),
            Self::IfUnreachable { permit: Some(permit) } => {
                write!(f, "if the origin gives no answer, {} lets it answer", permit.name())
            }
            Self::IfUnreachable { permit: None } => {
                f.write_str("if the origin gives no answer, it may not answer either")
            }
            Self::Therefore(Reuse::Fresh { .. }) => f.write_str("so it may answer"),
            Self::Therefore(Reuse::Stale { permit, .. }) => {
                write!(f, "so it may answer, stale, as {} allows", permit.name())
            }
            Self::Therefore(Reuse::Revalidate(reason)) => {
                write!(f, "so it must be validated first ({})", reason.name())
            }
        }
    }
}

/// What is known of a stored response besides what reuse asks for.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a, R: Fields + ?Sized> {
    /// Its status.
    pub status: u16,
    /// Its fields.
    pub fields: &'a R,
    /// The cache key it is stored under.
    pub target: &'a [u8],
}

/// What each rule says of the reuse of a stored response, ending with what follows.
pub fn explain_reuse(
    request: &RequestControl,
    response: Response<'_, impl Fields + ?Sized>,
    stored: Stored<'_>,
    now: WallTime,
) -> Vec<Step> {
    let age = stored.times.known_age(now);
    let mut steps = vec![
        lifetime_step(response, stored),
        Step::Age { initial: stored.times.initial_age, seconds: age },
    ];
    reuse_steps(request, stored, age, &mut steps);
    let therefore = may_reuse_under(request, stored, now);
    steps.push(Step::Therefore(therefore));
    if let Reuse::Revalidate(_) = therefore {
        let permit =
            may_reuse_after(Failure::Unreachable, request, stored, now).map(|(_, permit)| permit);
        steps.push(Step::IfUnreachable { permit });
    }
    steps
}

fn lifetime_step(response: Response<'_, impl Fields + ?Sized>, stored: Stored<'_>) -> Step {
    let Response { status, fields, target } = response;
    let control = stored.control;
    let says = lifetime(status, fields, control, 0, stored.times.received, target);
    let source = match says {
        Lifetime::None if stored.lifetime > 0 => LifetimeSource::Operator,
        _ if says.seconds() != stored.lifetime => LifetimeSource::Purge,
        Lifetime::Explicit(_) if control.s_maxage.is_some() => LifetimeSource::SharedMaxAge,
        Lifetime::Explicit(_) if control.max_age.is_some() => LifetimeSource::MaxAge,
        Lifetime::Explicit(_) => LifetimeSource::Expires,
        Lifetime::Heuristic(_) if fields.has("last-modified") && !is_named_by_digest(target) => {
            LifetimeSource::Heuristic
        }
        Lifetime::Heuristic(_) => LifetimeSource::Package,
        Lifetime::Negative(_) | Lifetime::None => LifetimeSource::Nothing,
    };
    Step::Lifetime { source, targeted: control.targeted, seconds: stored.lifetime }
}

/// The rules of `may_reuse_under`, each until one settles it.
fn reuse_steps(request: &RequestControl, stored: Stored<'_>, age: u64, steps: &mut Vec<Step>) {
    if stored.control.no_cache {
        return steps.push(Step::ResponseNoCache);
    }
    if request.no_cache {
        return steps.push(Step::RequestNoCache);
    }
    let never = stored.control.forbids_stale();
    let allowance = if never { None } else { request.max_stale };
    if let Some(limit) = request.max_age {
        let met = age <= limit || allowance.is_some_and(|more| age - limit <= more);
        steps.push(Step::RequestMaxAge { limit, met });
        if !met {
            return;
        }
    }
    if age < stored.lifetime {
        let left = stored.lifetime - age;
        steps.push(Step::Fresh { left });
        steps
            .extend(request.min_fresh.map(|wanted| Step::MinFresh { wanted, met: left >= wanted }));
        return;
    }
    let by = age - stored.lifetime;
    steps.push(Step::Expired { by });
    if never {
        return steps.push(Step::NeverStale);
    }
    if let Some(wanted) = request.min_fresh {
        return steps.push(Step::MinFresh { wanted, met: false });
    }
    let permits = [
        (Permit::MaxStale, request.max_stale),
        (Permit::WhileRevalidate, stored.control.stale_while_revalidate),
    ];
    for (permit, limit) in permits {
        let Some(limit) = limit else { continue };
        let met = by <= limit;
        steps.push(Step::Permit { permit, limit: (limit != u64::MAX).then_some(limit), met });
        if met {
            return;
        }
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
