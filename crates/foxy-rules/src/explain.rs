//! Explains step by step why a stored response may or may not be reused, for `foxy explain`. A test
//! compares the steps with the rules in `reuse` and `freshness`.

use crate::cache_control::RequestControl;
use crate::fields::Fields;
use crate::freshness::{Lifetime, Policy, lifetime};
use crate::reuse::{Failure, Permit, Reuse, Stored, may_reuse, may_reuse_after};
use foxy_base::WallTime;
use std::fmt;

/// A step of the explanation: a rule for reuse, and the result of applying this rule. Times are in
/// seconds. `is_met` is true if the response satisfies the limit of the rule.
#[expect(missing_docs, reason = "`Display` says what each step means")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Lifetime { source: LifetimeSource, targeted: bool, seconds: u64 },
    Age { initial: u64, seconds: u64 },
    ResponseNoCache,
    RequestNoCache,
    RequestMaxAge { limit: u64, is_met: bool },
    Fresh { left: u64 },
    MinFresh { wanted: u64, is_met: bool },
    Expired { by: u64 },
    NeverStale,
    Permit { permit: Permit, limit: Option<u64>, is_met: bool },
    IfUnreachable { permit: Option<Permit> },
    Therefore(Reuse),
}

impl Step {
    /// Returns the RFC section that contains the rule of this step.
    pub const fn section(self) -> &'static str {
        match self {
            Self::Lifetime {
                source:
                    LifetimeSource::Heuristic
                    | LifetimeSource::Package
                    | LifetimeSource::Operator
                    | LifetimeSource::Rule,
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

    /// Returns the stable name of the step for JSON and logs.
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
        let verdict = |is_met: bool| {
            if is_met { "which the response meets" } else { "which the response does not meet" }
        };
        match *self {
            Self::Lifetime { source: LifetimeSource::Nothing, .. } => {
                f.write_str("the response states no freshness lifetime, so it is never fresh")
            }
            Self::Lifetime { source, targeted, seconds } => {
                let field = if targeted { " of CDN-Cache-Control" } else { "" };
                write!(f, "the freshness lifetime is {seconds} s, from {}{field}", source.name())
            }
            Self::Age { initial, seconds } => {
                write!(f, "the response is {seconds} s old; on arrival it was {initial} s old")
            }
            Self::ResponseNoCache => {
                f.write_str("the response says no-cache, so it needs validation before each use")
            }
            Self::RequestNoCache => {
                f.write_str("the request says no-cache, so the response needs validation")
            }
            Self::RequestMaxAge { limit, is_met } => {
                write!(f, "the request demands an age of at most {limit} s, {}", verdict(is_met))
            }
            Self::Fresh { left } => write!(f, "the response stays fresh for {left} s"),
            Self::MinFresh { wanted, is_met } => {
                write!(
                    f,
                    "the request demands freshness for another {wanted} s, {}",
                    verdict(is_met)
                )
            }
            Self::Expired { by } => write!(f, "the response has been stale for {by} s"),
            Self::NeverStale => f.write_str("the response forbids foxy to serve it stale"),
            Self::Permit { permit, limit: Some(limit), is_met } => {
                write!(f, "{} allows staleness of {limit} s, {}", permit.name(), verdict(is_met))
            }
            Self::Permit { permit, .. } => write!(f, "{} allows any staleness", permit.name()),
            Self::IfUnreachable { permit: Some(permit) } => {
                write!(
                    f,
                    "if the origin gives no answer, {} permits the stored response",
                    permit.name()
                )
            }
            Self::IfUnreachable { permit: None } => f.write_str(
                "if the origin gives no answer, foxy may not use the stored response either",
            ),
            Self::Therefore(Reuse::Fresh { .. }) => {
                f.write_str("foxy may use the stored response without validation")
            }
            Self::Therefore(Reuse::Stale { permit, .. }) => {
                write!(f, "foxy may use the stale response, because {} allows it", permit.name())
            }
            Self::Therefore(Reuse::Revalidate(reason)) => {
                write!(f, "the origin must first validate the stored response ({})", reason.name())
            }
        }
    }
}

/// A stored response, as far as an explanation needs it.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a, R: Fields + ?Sized> {
    /// Status code of the stored response.
    pub status: u16,
    /// Header fields of the stored response.
    pub fields: &'a R,
    /// Cache key of the stored response.
    pub target: &'a [u8],
    /// The operator's settings and rules for the response.
    pub policy: Policy,
}

/// Returns the steps that lead to the decision on reuse, in order. The decision is the last step.
/// If the response needs validation, a further step says what happens if the origin does not
/// answer.
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
    let therefore = may_reuse(request, stored, now);
    steps.push(Step::Therefore(therefore));
    if let Reuse::Revalidate(_) = therefore {
        let permit =
            may_reuse_after(Failure::Unreachable, request, stored, now).map(|(_, permit)| permit);
        steps.push(Step::IfUnreachable { permit });
    }
    steps
}

fn lifetime_step(response: Response<'_, impl Fields + ?Sized>, stored: Stored<'_>) -> Step {
    let Response { status, fields, target, policy } = response;
    let control = stored.control;
    let says = lifetime(status, fields, control, &policy, stored.times.received, target);
    let source = match says {
        _ if says.seconds() != stored.lifetime => LifetimeSource::Purge,
        Lifetime::Explicit(_) if control.s_maxage.is_some() => LifetimeSource::SharedMaxAge,
        Lifetime::Explicit(_) if control.max_age.is_some() => LifetimeSource::MaxAge,
        Lifetime::Explicit(_) => LifetimeSource::Expires,
        Lifetime::Heuristic(_) => LifetimeSource::Heuristic,
        Lifetime::Named(_) => LifetimeSource::Package,
        Lifetime::Negative(_) => LifetimeSource::Operator,
        Lifetime::Rule(_) => LifetimeSource::Rule,
        Lifetime::None => LifetimeSource::Nothing,
    };
    Step::Lifetime { source, targeted: control.targeted, seconds: stored.lifetime }
}

/// Adds the steps of [`may_reuse`], up to the first rule that decides.
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
        let is_met = age <= limit || allowance.is_some_and(|more| age - limit <= more);
        steps.push(Step::RequestMaxAge { limit, is_met });
        if !is_met {
            return;
        }
    }
    if age < stored.lifetime {
        let left = stored.lifetime - age;
        steps.push(Step::Fresh { left });
        steps.extend(
            request.min_fresh.map(|wanted| Step::MinFresh { wanted, is_met: left >= wanted }),
        );
        return;
    }
    let by = age - stored.lifetime;
    steps.push(Step::Expired { by });
    if never {
        return steps.push(Step::NeverStale);
    }
    if let Some(wanted) = request.min_fresh {
        return steps.push(Step::MinFresh { wanted, is_met: false });
    }
    let permits = [
        (Permit::MaxStale, request.max_stale),
        (Permit::WhileRevalidate, stored.control.stale_while_revalidate),
    ];
    for (permit, limit) in permits {
        let Some(limit) = limit else { continue };
        let is_met = by <= limit;
        steps.push(Step::Permit { permit, limit: (limit != u64::MAX).then_some(limit), is_met });
        if is_met {
            return;
        }
    }
}

/// The source that determined a freshness lifetime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LifetimeSource {
    /// The lifetime comes from the directive `s-maxage`.
    SharedMaxAge,
    /// The lifetime comes from the directive `max-age`.
    MaxAge,
    /// The lifetime comes from the header field Expires.
    Expires,
    /// The lifetime comes from a heuristic: it is a fraction of the time between Last-Modified and
    /// Date.
    Heuristic,
    /// The URL names a package file or has a digest of the content, so the content never changes.
    Package,
    /// The lifetime comes from the operator's setting for negative responses, such as 404.
    Operator,
    /// The lifetime comes from a rule of the operator.
    Rule,
    /// No source gives a lifetime, so the response is never fresh.
    Nothing,
    /// A purge ended the lifetime early.
    Purge,
}

impl LifetimeSource {
    /// Returns the stable name of the source in log records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMaxAge => "s-maxage",
            Self::MaxAge => "max-age",
            Self::Expires => "expires",
            Self::Heuristic => "last-modified",
            Self::Package => "package-file",
            Self::Operator => "negative-lifetime",
            Self::Rule => "rule",
            Self::Nothing => "nothing",
            Self::Purge => "purge",
        }
    }
}

#[cfg(test)]
#[path = "explain_tests.rs"]
mod tests;
