//! Describes how the proxy answered a request: why it forwarded the request, or where it found the
//! stored response.

use crate::core::counters::Counter;

/// The reason why a request was forwarded: the `fwd` parameter of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// The request has a condition, body, upgrade or range that only the origin can answer.
    Bypass,
    /// A rule of the operator sends the request past the cache.
    Rule,
    /// The method is neither GET nor HEAD, so the cache cannot answer the request.
    Method,
    /// Nothing is stored for the URL.
    UriMiss,
    /// The requested bytes are not stored, but other bytes of the object are.
    Partial,
    /// The stored responses of the URL do not match the request headers (Vary).
    VaryMiss,
    /// A fresh response is stored, but the request asked for a newer response.
    Request,
    /// The stored response is stale.
    Stale,
    /// This node may have missed a purge of the stored response.
    InDoubt(PurgeDoubt),
    /// The cold tier may have a response, but did not give it.
    NotCold(ColdMiss),
}

/// The reason why the cold tier did not give a response that it may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColdMiss {
    /// The store did not answer within the time limit.
    Slow,
    /// The store answered with an error, or the connection failed.
    Failed,
    /// The store failed several times in a row, so foxy did not ask it.
    Away,
    /// Too many requests wait for the store.
    Busy,
    /// The record is damaged or has another format.
    Damaged,
    /// The store no longer has the segment of the record.
    Lost,
    /// A purge removed the response.
    Purged,
}

impl ColdMiss {
    /// Returns the reason as one word, for `Cache-Status` and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "cold-slow",
            Self::Failed => "cold-failed",
            Self::Away => "cold-away",
            Self::Busy => "cold-busy",
            Self::Damaged => "cold-damaged",
            Self::Lost => "cold-lost",
            Self::Purged => "cold-purged",
        }
    }
}

/// The reason why a node of a fleet may have missed a purge, so that it must validate a stored
/// response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PurgeDoubt {
    /// The node has no lease, so other nodes no longer wait until it has applied a purge.
    NoLease,
    /// The fleet may have lost purges before this node applied them. The response was stored before
    /// the loss.
    BrokenChain,
    /// The response comes from the cold tier, and another process stored it. A newer response may
    /// exist.
    ColdTier,
}

impl PurgeDoubt {
    /// Returns the reason as one word, for `Cache-Status` and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoLease => "no-lease",
            Self::BrokenChain => "broken-chain",
            Self::ColdTier => "cold-unconfirmed",
        }
    }
}

impl ForwardReason {
    /// Returns the word that explains this reason further in `Cache-Status`.
    pub const fn detail(self) -> Option<&'static str> {
        match self {
            Self::InDoubt(doubt) => Some(doubt.name()),
            Self::NotCold(miss) => Some(miss.name()),
            _ => None,
        }
    }

    /// Returns the text of this reason in the `Cache-Status` header.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Bypass | Self::Rule => "bypass",
            Self::Method => "method",
            Self::UriMiss | Self::NotCold(_) => "uri-miss",
            Self::Partial => "partial",
            Self::VaryMiss => "vary-miss",
            Self::Request => "request",
            Self::Stale | Self::InDoubt(_) => "stale",
        }
    }
}

/// Source of a cache hit. Logs and counters show the source. `Cache-Status` has no parameter for
/// it, and tells only of the cold tier, as a detail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitSource {
    /// The response came from the memory tier.
    Memory,
    /// The response came from the disk store.
    Disk,
    /// The response came from the cold tier.
    Cold,
    /// An origin confirmed that the stored response is still valid. The reason says why the origin
    /// was asked.
    Revalidated(ForwardReason),
    /// The origin failed, so the stored response was served. The value is the origin's status, or
    /// `None` if the origin did not answer.
    Fallback(Option<u16>),
}

impl HitSource {
    pub(crate) const fn counter(self) -> Counter {
        match self {
            Self::Memory => Counter::MemoryHits,
            Self::Disk => Counter::DiskHits,
            Self::Cold => Counter::ColdHits,
            Self::Revalidated(_) => Counter::Revalidated,
            Self::Fallback(_) => Counter::StaleAnswers,
        }
    }
}
