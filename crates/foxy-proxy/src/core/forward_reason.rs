//! Why a request went to the origin: a closed list, each reason with its token.

/// Why a request was sent on: the `fwd` parameter of RFC 9211 §2.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForwardReason {
    /// The cache was not asked: a condition, a body, an upgrade or a range that only the origin can
    /// answer.
    Bypass,
    /// The method is not one that is answered from a cache.
    Method,
    /// Nothing is stored under the URL.
    UriMiss,
    /// Something of it is, but not the bytes that were asked for.
    Partial,
    /// Something is, but for other request headers.
    VaryMiss,
    /// Something fresh is, but the request asked for more.
    Request,
    /// Something is, but it is stale.
    Stale,
}

impl ForwardReason {
    /// Its token in `Cache-Status`.
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
