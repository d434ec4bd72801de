//! Whether a request was forwarded and why, or where its answer was found.

use crate::core::counters::Counter;

/// The `fwd` parameter of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// A condition, a body, an upgrade or a range that only the origin can answer.
    Bypass,
    /// Caches do not answer this method.
    Method,
    /// Nothing is stored under the URL.
    UriMiss,
    /// The requested bytes are not stored, but other bytes of the object are.
    Partial,
    /// Responses to the URL are stored, but for other request headers.
    VaryMiss,
    /// A fresh response is stored, but the request asked for a newer one.
    Request,
    /// The stored response is stale.
    Stale,
}

impl ForwardReason {
    /// Token in `Cache-Status`.
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

/// Where a hit came from, for logs and counters. `Cache-Status` does not tell it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitSource {
    /// The memory tier.
    Memory,
    /// The store.
    Disk,
    /// An origin confirmed the stored response. The reason is why the origin was asked.
    Revalidated(ForwardReason),
    /// The stored response, after the origin failed with this status or without an answer.
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
