//! One line of an explanation: what a rule says of a request, where the rule is written, and its
//! name.

use crate::cache::purge::Verdict;
use crate::cache::refusals::Refused;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::request::reason::ErrorReason;
use crate::worker::http_date;
use bytes::Bytes;
use foxy_base::clock;
use foxy_rules::Permit;
use foxy_rules::explain::Step as RuleStep;
use std::fmt;

/// What one rule says of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The proxy would answer with an error of its own.
    Refused(ErrorReason),
    /// The cache is not asked.
    NotAsked(ForwardReason),
    /// The request is one that foxy answers without cache and origin.
    AnsweredHere,
    /// The cache is asked under this key.
    Key(Bytes),
    /// Several responses are stored for the URL, chosen by these request fields.
    Varies(Vec<String>),
    /// Nothing that fits is stored.
    NotStored,
    /// The last answer to the URL was not kept.
    LastNotKept(Refused),
    /// A response that fits is stored there.
    Found(HitSource),
    /// What purges make of it.
    Purged(Verdict),
    /// What a rule of reuse says of it.
    Rule(RuleStep),
    /// What follows.
    Therefore(Outcome),
}

/// What a request would come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An answer from the cache, with the seconds of freshness left, negative when stale.
    Hit {
        /// Freshness left.
        ttl: i64,
        /// What allows it to answer stale.
        permit: Option<Permit>,
    },
    /// The origin would be asked whether the stored response is still good.
    Validate(ForwardReason),
    /// The origin would be asked for it.
    Fetch(ForwardReason),
    /// The request would be refused.
    Refuse(ErrorReason),
    /// foxy would answer by itself.
    AnswerHere,
}

impl Outcome {
    /// A stable name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hit { .. } => "hit",
            Self::Validate(_) => "validate",
            Self::Fetch(_) => "fetch",
            Self::Refuse(_) => "refuse",
            Self::AnswerHere => "answer-here",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hit { ttl, permit: None } => {
                write!(f, "answered from the cache, fresh for {ttl} s more")
            }
            Self::Hit { ttl, permit: Some(permit) } => {
                write!(
                    f,
                    "answered from the cache, stale by {} s ({})",
                    ttl.unsigned_abs(),
                    permit.name()
                )
            }
            Self::Validate(reason) => {
                write!(f, "the origin is asked whether it is still good (fwd={})", reason.token())
            }
            Self::Fetch(reason) => write!(f, "fetched from the origin (fwd={})", reason.token()),
            Self::Refuse(reason) => {
                write!(f, "answered {}: {}", reason.status(), reason.description())
            }
            Self::AnswerHere => f.write_str("answered by foxy itself"),
        }
    }
}

impl Step {
    /// Where the rule is written.
    pub fn section(&self) -> &'static str {
        match self {
            Self::Refused(ErrorReason::Loop) => "RFC 9110 §7.6.3",
            Self::Refused(_) => "docs/errors.md",
            Self::NotAsked(ForwardReason::Method) => "RFC 9110 §9.2.3",
            Self::NotAsked(_) => "RFC 9110 §13.1",
            Self::AnsweredHere => "RFC 9110 §7.6.2",
            Self::Key(_) => "RFC 9111 §2",
            Self::Varies(_) => "RFC 9111 §4.1",
            Self::LastNotKept(refused) => refused.why.section(),
            Self::NotStored | Self::Found(_) => "RFC 9111 §4",
            Self::Purged(_) => "docs/operation.md",
            Self::Rule(step) => step.section(),
            Self::Therefore(_) => "RFC 9211 §2",
        }
    }

    /// A stable name.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Refused(reason) => reason.name(),
            Self::NotAsked(reason) => reason.token(),
            Self::AnsweredHere => "answered-here",
            Self::Key(_) => "key",
            Self::Varies(_) => "vary",
            Self::NotStored => "not-stored",
            Self::LastNotKept(refused) => refused.why.name(),
            Self::Found(_) => "stored",
            Self::Purged(Verdict::Untouched) => "not-purged",
            Self::Purged(Verdict::Stale { .. }) => "purged-softly",
            Self::Purged(Verdict::Gone) => "purged",
            Self::Rule(step) => step.name(),
            Self::Therefore(outcome) => outcome.name(),
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(reason) => f.write_str(reason.description()),
            Self::NotAsked(ForwardReason::Method) => {
                f.write_str("its method is not one a cache answers")
            }
            Self::NotAsked(_) => {
                f.write_str("its fields or body make it one that only the origin can answer")
            }
            Self::AnsweredHere => f.write_str("it goes no further"),
            Self::Key(key) => write!(f, "the cache is asked for {}", key.escape_ascii()),
            Self::Varies(names) => {
                write!(f, "the responses to this URL are chosen by {}", names.join(", "))
            }
            Self::NotStored => f.write_str("nothing that fits is stored"),
            Self::LastNotKept(Refused { status, at, why }) => {
                write!(
                    f,
                    "the last answer ({status}, {}) was not kept: {why}",
                    http_date(clock::civil(*at))
                )
            }
            Self::Found(HitSource::Memory) => f.write_str("a response that fits is in memory"),
            Self::Found(_) => f.write_str("a response that fits is in the store"),
            Self::Purged(Verdict::Untouched) => f.write_str("no purge is about it"),
            Self::Purged(Verdict::Stale { .. }) => {
                f.write_str("it was purged softly, so it is stale")
            }
            Self::Purged(Verdict::Gone) => f.write_str("it was purged for good, so it is not used"),
            Self::Rule(step) => step.fmt(f),
            Self::Therefore(outcome) => outcome.fmt(f),
        }
    }
}
