//! The `Cache-Status` field (RFC 9211): what this cache did with a request, as a value and as text.

use crate::reason::ForwardReason;
use std::fmt;

/// Where a hit came from. Not in the field, but in logs and counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HitSource {
    /// The memory tier.
    Memory,
    /// The store.
    Disk,
    /// An origin that said nothing had changed.
    Revalidated,
}

/// What was done with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStatus {
    /// Answered from the cache.
    Hit {
        /// From where.
        source: HitSource,
        /// Freshness left in seconds; negative when served stale.
        ttl: i64,
    },
    /// Sent on.
    Forwarded {
        /// Why.
        reason: ForwardReason,
        /// The origin's status, once known.
        status: Option<u16>,
        /// Whether the response will be stored.
        stored: bool,
        /// Whether another request's flight answered this one.
        collapsed: bool,
        /// Why it is not stored, where that has a reason.
        detail: Option<&'static str>,
    },
    /// Answered by the proxy itself.
    Local {
        /// Why.
        detail: &'static str,
    },
}

impl fmt::Display for CacheStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("foxy")?;
        match self {
            Self::Hit { source: HitSource::Revalidated, ttl } => {
                write!(f, "; fwd=stale; fwd-status=304; ttl={ttl}")
            }
            Self::Hit { ttl, .. } => write!(f, "; hit; ttl={ttl}"),
            Self::Forwarded { reason, status, stored, collapsed, detail } => {
                write!(f, "; fwd={}", reason.token())?;
                if let Some(status) = status {
                    write!(f, "; fwd-status={status}")?;
                }
                if *stored {
                    f.write_str("; stored")?;
                }
                if *collapsed {
                    f.write_str("; collapsed")?;
                }
                detail.map_or(Ok(()), |detail| write!(f, "; detail={detail}"))
            }
            Self::Local { detail } => write!(f, "; detail={detail}"),
        }
    }
}

impl CacheStatus {
    /// The result code of Squid's access log.
    #[must_use]
    pub const fn squid_code(self) -> &'static str {
        match self {
            Self::Hit { source: HitSource::Memory, .. } => "TCP_MEM_HIT",
            Self::Hit { source: HitSource::Disk, .. } => "TCP_HIT",
            Self::Hit { source: HitSource::Revalidated, .. } => "TCP_REFRESH_UNMODIFIED",
            Self::Forwarded { collapsed: true, .. } => "TCP_CF_MISS",
            Self::Forwarded { reason: ForwardReason::Stale, .. } => "TCP_REFRESH_MODIFIED",
            Self::Forwarded { reason: ForwardReason::Request, .. } => "TCP_CLIENT_REFRESH_MISS",
            Self::Forwarded { .. } => "TCP_MISS",
            Self::Local { .. } => "NONE",
        }
    }

    /// How the response was reached, in Squid's words.
    #[must_use]
    pub const fn hierarchy(self) -> &'static str {
        match self {
            Self::Forwarded { .. } | Self::Hit { source: HitSource::Revalidated, .. } => "HIER_DIRECT",
            _ => "HIER_NONE",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_field_says_what_rfc_9211_says() {
        let forwarded = |stored, collapsed, detail| CacheStatus::Forwarded {
            reason: ForwardReason::UriMiss,
            status: Some(200),
            stored,
            collapsed,
            detail,
        };
        let cases = [
            (CacheStatus::Hit { source: HitSource::Memory, ttl: 30 }, "foxy; hit; ttl=30"),
            (CacheStatus::Hit { source: HitSource::Disk, ttl: -5 }, "foxy; hit; ttl=-5"),
            (
                CacheStatus::Hit { source: HitSource::Revalidated, ttl: 9 },
                "foxy; fwd=stale; fwd-status=304; ttl=9",
            ),
            (forwarded(true, false, None), "foxy; fwd=uri-miss; fwd-status=200; stored"),
            (forwarded(false, true, None), "foxy; fwd=uri-miss; fwd-status=200; collapsed"),
            (forwarded(false, false, Some("private")), "foxy; fwd=uri-miss; fwd-status=200; detail=private"),
            (CacheStatus::Local { detail: "loop" }, "foxy; detail=loop"),
        ];
        for (status, text) in cases {
            assert_eq!(status.to_string(), text);
        }
    }
}
