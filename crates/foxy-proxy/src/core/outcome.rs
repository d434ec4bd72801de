//! How a request was answered: why it was forwarded, or where its answer was found.

use crate::core::counters::Counter;

/// Why a request was forwarded: the `fwd` parameter of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// The request has a condition, body, upgrade or range that only the origin can answer.
    Bypass,
    /// Caches do not answer this method.
    Method,
    /// Nothing is stored for the URL.
    UriMiss,
    /// The requested bytes are not stored, but other bytes of the object are.
    Partial,
    /// The stored responses of the URL do not match the request headers (Vary).
    VaryMiss,
    /// A fresh response is stored, but the request asked for a newer one.
    Request,
    /// The stored response is stale.
    Stale,
}

impl ForwardReason {
    /// The token in `Cache-Status`.
    pub const fn token(self) -> &'static str {
        match self {
            Self::Bypass => "bypass",
            Self::Method => "method",
            Self::UriMiss => "uri-miss",
            Self::Partial => "partial",
            Self::VaryMiss => "vary-miss",
            Self::Request => "request",
            Self::Stale => "stale",
        }
    }
}

/// Where a hit came from. This is for logs and counters, because `Cache-Status` has no field for
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitSource {
    /// The memory tier.
    Memory,
    /// The store.
    Disk,
    /// An origin confirmed the stored response. The reason says why the origin was contacted.
    Revalidated(ForwardReason),
    /// The stored response was served because the origin failed with this status or did not answer.
    Fallback(Option<u16>),
}

impl HitSource {
    pub(crate) const fn counter(self) -> Counter {
        match self {
            Self::Memory => Counter::MemoryHits,
            Self::Disk => Counter::DiskHits,
            Self::Revalidated(_) => Counter::Revalidated,
            Self::Fallback(_) => Counter::StaleAnswers,
        }
    }
}
