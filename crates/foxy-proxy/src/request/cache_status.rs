//! How the cache handled a request, and the `Cache-Status` field (RFC 9211) that tells this to
//! clients.

use crate::cache::Stored;
use crate::core::metrics::request_metrics::RequestOutcome;
use crate::core::{ForwardReason, HitSource};
use crate::request::reason::ErrorReason;
use foxy_base::WallTime;
use foxy_rules::Permit;
use foxy_rules::coding::Coding;
use std::fmt;

/// The detail of [`CacheStatus::Local`] for a redirect that a rule of the operator demands.
pub(crate) const REDIRECTED: &str = "redirected-by-rule";

/// How the cache handled a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheStatus {
    /// The answer came from the cache.
    Hit {
        /// Where the response was found.
        source: HitSource,
        /// Number of seconds until the response becomes stale. The number is negative if the
        /// response was served stale.
        ttl: i64,
        /// The caching rule that permits a stale answer, if the answer is stale.
        permit: Option<Permit>,
        /// The coding that the proxy has applied to the response.
        coding: Option<Coding>,
    },
    /// The request was sent to the origin.
    Forwarded {
        /// The reason why the cache did not answer the request.
        reason: ForwardReason,
        /// The status from the origin, once it is known.
        status: Option<u16>,
        /// True if the proxy stores the response. The client receives this value before the store
        /// has confirmed the body, so storing may still fail.
        stored: bool,
        /// True if the answer comes from a fetch that another request started.
        collapsed: bool,
        /// The reason why the response is not stored.
        detail: Option<&'static str>,
    },
    /// The proxy itself answered the request, without cache and origin.
    Local {
        /// One word that says why the proxy itself answered.
        detail: &'static str,
    },
    /// The proxy answered with an error of its own.
    Error(ErrorReason),
}

/// The part of the `Cache-Status` field that a cache adds. `Display` writes it.
pub(crate) struct NamedStatus {
    /// The name of the cache.
    pub(crate) name: &'static str,
    pub(crate) status: CacheStatus,
}

impl fmt::Display for NamedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        match &self.status {
            CacheStatus::Hit { source, ttl, permit, coding } => {
                match source {
                    HitSource::Memory | HitSource::Disk | HitSource::Cold => {
                        f.write_str("; hit")?
                    }
                    HitSource::Revalidated(reason) => {
                        write!(f, "; fwd={}; fwd-status=304", reason.token())?
                    }
                    HitSource::Fallback(Some(status)) => {
                        write!(f, "; fwd=stale; fwd-status={status}")?
                    }
                    HitSource::Fallback(None) => f.write_str("; fwd=stale")?,
                }
                f.write_str("; ttl=")?;
                f.write_str(itoa::Buffer::new().format(*ttl))?;
                let doubt = match source {
                    HitSource::Revalidated(reason) => reason.detail(),
                    HitSource::Cold => Some("cold"),
                    _ => None,
                };
                let detail = permit.map(Permit::name).or(doubt).or(coding.map(Coding::name));
                detail.map_or(Ok(()), |detail| write!(f, "; detail={detail}"))
            }
            CacheStatus::Forwarded { reason, status, stored, collapsed, detail } => {
                f.write_str("; fwd=")?;
                f.write_str(reason.token())?;
                if let Some(status) = status {
                    f.write_str("; fwd-status=")?;
                    f.write_str(itoa::Buffer::new().format(*status))?;
                }
                if *stored {
                    f.write_str("; stored")?;
                }
                if *collapsed {
                    f.write_str("; collapsed")?;
                }
                let detail = detail.or(reason.detail());
                detail.map_or(Ok(()), |detail| write!(f, "; detail={detail}"))
            }
            CacheStatus::Local { detail } => write!(f, "; detail={detail}"),
            CacheStatus::Error(reason) => write!(f, "; detail={}", reason.name()),
        }
    }
}

impl fmt::Display for CacheStatus {
    /// Writes the status with the usual name of the cache, for logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.of_cache("foxy").fmt(f)
    }
}

impl CacheStatus {
    /// Returns the part of the `Cache-Status` field that the cache `name` adds.
    pub(crate) const fn of_cache(self, name: &'static str) -> NamedStatus {
        NamedStatus { name, status: self }
    }

    /// Returns the result code that Squid's access log would contain, such as `TCP_HIT`.
    pub fn squid_code(self) -> &'static str {
        match self {
            Self::Hit { source: HitSource::Memory, .. } => "TCP_MEM_HIT",
            Self::Hit { source: HitSource::Disk | HitSource::Cold, .. } => "TCP_HIT",
            Self::Hit { source: HitSource::Revalidated(_), .. } => "TCP_REFRESH_UNMODIFIED",
            Self::Hit { source: HitSource::Fallback(_), .. } => "TCP_REFRESH_FAIL_OLD",
            Self::Forwarded { collapsed: true, .. } => "TCP_CF_MISS",
            Self::Forwarded {
                reason: ForwardReason::Stale | ForwardReason::InDoubt(_), ..
            } => "TCP_REFRESH_MODIFIED",
            Self::Forwarded { reason: ForwardReason::Request, .. } => "TCP_CLIENT_REFRESH_MISS",
            Self::Forwarded { .. } => "TCP_MISS",
            Self::Error(ErrorReason::OnlyIfCached) => "TCP_MISS",
            Self::Error(reason) if reason.is_denial() => "TCP_DENIED",
            Self::Local { detail: REDIRECTED } => "TCP_REDIRECT",
            Self::Local { .. } | Self::Error(_) => "NONE",
        }
    }

    /// Returns the outcome under which metrics count a request with a complete answer.
    pub const fn request_outcome(self) -> RequestOutcome {
        match self {
            Self::Hit { source: HitSource::Memory, .. } => RequestOutcome::MemoryHit,
            Self::Hit { source: HitSource::Disk, .. } => RequestOutcome::DiskHit,
            Self::Hit { source: HitSource::Cold, .. } => RequestOutcome::ColdHit,
            Self::Hit { source: HitSource::Revalidated(_), .. } => RequestOutcome::Revalidated,
            Self::Hit { source: HitSource::Fallback(_), .. } => RequestOutcome::StaleIfError,
            Self::Forwarded { collapsed: true, .. } => RequestOutcome::Collapsed,
            Self::Forwarded { reason, .. } => match reason {
                ForwardReason::Bypass | ForwardReason::Rule | ForwardReason::Method => {
                    RequestOutcome::Bypass
                }
                _ => RequestOutcome::Miss,
            },
            Self::Local { .. } => RequestOutcome::Local,
            Self::Error(ErrorReason::Upstream(error)) if error.is_the_origins() => {
                RequestOutcome::OriginFailed
            }
            Self::Error(_) => RequestOutcome::Refused,
        }
    }

    /// Returns the hierarchy code that Squid's access log would contain. It tells where the
    /// response was fetched.
    pub const fn hierarchy(self) -> &'static str {
        match self {
            Self::Forwarded { .. }
            | Self::Hit { source: HitSource::Revalidated(_) | HitSource::Fallback(_), .. } => {
                "HIER_DIRECT"
            }
            _ => "HIER_NONE",
        }
    }
}

/// Describes how a stored response may answer a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Hit {
    pub(crate) source: HitSource,
    pub(crate) ttl: i64,
    pub(crate) permit: Option<Permit>,
}

impl Hit {
    /// Creates a hit on a stored response that the origin has just confirmed.
    pub(crate) fn revalidated(stored: &Stored, reason: ForwardReason, now: WallTime) -> Self {
        let ttl = signed(stored.lifetime) - signed(stored.times.age(now));
        Self { source: HitSource::Revalidated(reason), ttl, permit: None }
    }

    /// Creates a hit on a stale response that is served because the origin failed. `status` is the
    /// status of the failure, if the origin answered. The response has been stale for `stale_by`
    /// seconds.
    pub(crate) fn fallback(status: Option<u16>, stale_by: u64, permit: Permit) -> Self {
        let source = HitSource::Fallback(status);
        Self { source, ttl: -signed(stale_by), permit: Some(permit) }
    }

    /// Returns the outcome of a request that this hit answers after the proxy has applied `coding`.
    pub(crate) fn coded(self, coding: Coding) -> CacheStatus {
        let Self { source, ttl, permit } = self;
        CacheStatus::Hit { source, ttl, permit, coding: Some(coding) }
    }
}

impl From<Hit> for CacheStatus {
    fn from(Hit { source, ttl, permit }: Hit) -> Self {
        Self::Hit { source, ttl, permit, coding: None }
    }
}

pub(crate) fn signed(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::PurgeDoubt;
    use crate::core::outcome::ColdMiss;

    #[test]
    fn the_field_says_what_rfc_9211_says() {
        let forwarded = |stored, collapsed, detail| CacheStatus::Forwarded {
            reason: ForwardReason::UriMiss,
            status: Some(200),
            stored,
            collapsed,
            detail,
        };
        let hit = |source, ttl, permit| Hit { source, ttl, permit }.into();
        let cases = [
            (hit(HitSource::Memory, 30, None), "foxy; hit; ttl=30"),
            (
                Hit { source: HitSource::Disk, ttl: 30, permit: None }.coded(Coding::Brotli),
                "foxy; hit; ttl=30; detail=br",
            ),
            (hit(HitSource::Cold, 30, None), "foxy; hit; ttl=30; detail=cold"),
            (
                hit(HitSource::Disk, -5, Some(Permit::MaxStale)),
                "foxy; hit; ttl=-5; detail=max-stale",
            ),
            (
                hit(HitSource::Revalidated(ForwardReason::Stale), 9, None),
                "foxy; fwd=stale; fwd-status=304; ttl=9",
            ),
            (
                hit(HitSource::Revalidated(ForwardReason::InDoubt(PurgeDoubt::NoLease)), 9, None),
                "foxy; fwd=stale; fwd-status=304; ttl=9; detail=no-lease",
            ),
            (
                hit(HitSource::Fallback(Some(503)), -5, Some(Permit::IfError)),
                "foxy; fwd=stale; fwd-status=503; ttl=-5; detail=stale-if-error",
            ),
            (
                hit(HitSource::Fallback(None), -5, Some(Permit::Disconnected)),
                "foxy; fwd=stale; ttl=-5; detail=disconnected",
            ),
            (
                CacheStatus::Forwarded {
                    reason: ForwardReason::NotCold(ColdMiss::Slow),
                    status: Some(200),
                    stored: true,
                    collapsed: false,
                    detail: None,
                },
                "foxy; fwd=uri-miss; fwd-status=200; stored; detail=cold-slow",
            ),
            (forwarded(true, false, None), "foxy; fwd=uri-miss; fwd-status=200; stored"),
            (forwarded(false, true, None), "foxy; fwd=uri-miss; fwd-status=200; collapsed"),
            (
                forwarded(false, false, Some("private")),
                "foxy; fwd=uri-miss; fwd-status=200; detail=private",
            ),
            (CacheStatus::Local { detail: "trace" }, "foxy; detail=trace"),
            (CacheStatus::Error(ErrorReason::Loop), "foxy; detail=loop"),
        ];
        for (status, text) in cases {
            assert_eq!(status.of_cache("foxy").to_string(), text);
        }
    }
}
