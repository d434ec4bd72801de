//! Counts finished requests by outcome and status class, and measures their durations. The worker
//! that answers a request does this without a lock.

use crate::core::metrics::exemplar::{Exemplar, Exemplars, TraceId};
use crate::core::metrics::timing::{BUCKETS, Timing};
use foxy_base::Instant;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

macro_rules! outcomes {
    ($($(#[doc = $help:literal])+ $variant:ident = $name:literal,)+) => {
        /// How a request ended, for metrics.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum RequestOutcome {
            $($(#[doc = $help])+ $variant,)+
        }

        impl RequestOutcome {
            /// Every outcome, in the order of declaration.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the value of the label `outcome` in metrics.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)+ }
            }
        }
    };
}

outcomes! {
    /// The response came from memory.
    MemoryHit = "memory-hit",
    /// The response came from the store on disk.
    DiskHit = "disk-hit",
    /// The response came from the cold tier.
    ColdHit = "cold-hit",
    /// The origin confirmed the stored response.
    Revalidated = "revalidated",
    /// The origin failed, so the proxy sent the stored response.
    StaleIfError = "stale-if-error",
    /// The response came from a fetch that another request had started.
    Collapsed = "collapsed",
    /// The proxy fetched the response, because no stored response could answer.
    Miss = "miss",
    /// The request went past the cache, because of its method, its fields or a rule.
    Bypass = "bypass",
    /// The request opened a tunnel, or foxy decrypts its TLS.
    Tunnel = "tunnel",
    /// The origin gave no usable answer, so the proxy answered with an error.
    OriginFailed = "origin-failed",
    /// The proxy refused the request.
    Refused = "refused",
    /// The proxy itself answered, for example a purge.
    Local = "local",
    /// The client received only a part of the answer, or nothing.
    Cut = "cut",
}

impl RequestOutcome {
    /// Returns true if the answer came from the cache.
    pub const fn is_hit(self) -> bool {
        matches!(
            self,
            Self::MemoryHit
                | Self::DiskHit
                | Self::ColdHit
                | Self::Revalidated
                | Self::StaleIfError
        )
    }

    /// Returns true if the cache could have answered the request. The hit ratio counts these
    /// requests alone.
    pub const fn is_cacheable(self) -> bool {
        self.is_hit() || matches!(self, Self::Collapsed | Self::Miss | Self::OriginFailed)
    }

    /// Returns true if the cache gave the body, or could have given it. foxy makes the body of
    /// `OriginFailed` itself.
    pub const fn has_cacheable_body(self) -> bool {
        self.is_cacheable() && !matches!(self, Self::OriginFailed)
    }
}

const OUTCOMES: usize = RequestOutcome::ALL.len();

/// Status classes, as values of the label `class`. Class `none` means that no status was sent.
pub const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The requests with one outcome.
#[derive(Default)]
struct RequestCells {
    /// The durations of the requests of each class in [`CLASSES`].
    classes: [Timing; CLASSES.len()],
    /// The bytes of all bodies that clients received.
    bytes: AtomicU64,
    exemplars: Exemplars,
}

/// The finished requests of one worker.
pub struct RequestMetrics {
    cells: [RequestCells; OUTCOMES],
    /// Requests with another method than GET whose origin failed, and the bytes of their bodies.
    failed_changes: [AtomicU64; 2],
}

impl Default for RequestMetrics {
    fn default() -> Self {
        let cells = std::array::from_fn(|_| RequestCells::default());
        Self { cells, failed_changes: Default::default() }
    }
}

impl RequestMetrics {
    /// Counts a request. `trace` finds the trace id that the client sent.
    pub(crate) fn count(
        &self,
        outcome: RequestOutcome,
        status: u16,
        (elapsed, now): (Duration, Instant),
        trace: impl FnOnce() -> Option<TraceId>,
    ) {
        let cells = &self.cells[outcome as usize];
        let class = usize::from(status / 100);
        let class = cells.classes.get(class).unwrap_or(&cells.classes[0]);
        cells.exemplars.offer(class.add(elapsed), now, trace);
    }

    /// Adds the bytes of the body that the client of a request received.
    pub(crate) fn count_bytes(&self, outcome: RequestOutcome, body: u64) {
        self.cells[outcome as usize].bytes.fetch_add(body, Ordering::Relaxed);
    }

    /// Counts a request with another method than GET whose origin failed.
    pub(crate) fn count_failed_change(&self, body: u64) {
        let [requests, bytes] = &self.failed_changes;
        requests.fetch_add(1, Ordering::Relaxed);
        bytes.fetch_add(body, Ordering::Relaxed);
    }

    /// Returns the requests that `count_failed_change` has counted, and the bytes of their bodies.
    pub(crate) fn failed_changes(&self) -> [u64; 2] {
        self.failed_changes.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns the bytes of all bodies.
    pub(crate) fn bytes(&self, outcome: RequestOutcome) -> u64 {
        self.cells[outcome as usize].bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of requests of each class in [`CLASSES`].
    pub(crate) fn classes(&self, outcome: RequestOutcome) -> [u64; CLASSES.len()] {
        self.cells[outcome as usize].classes.each_ref().map(Timing::count)
    }

    pub(crate) fn timings(&self, outcome: RequestOutcome) -> impl Iterator<Item = &Timing> {
        self.cells[outcome as usize].classes.iter()
    }

    pub(crate) fn exemplars(&self, outcome: RequestOutcome) -> [Option<Exemplar>; BUCKETS] {
        self.cells[outcome as usize].exemplars.found()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::metrics::timing::Durations;

    #[test]
    fn a_request_counts_under_its_outcome_and_class() {
        let metrics = RequestMetrics::default();
        let took = (Duration::from_micros(20), Instant(1));
        for status in [200, 299, 404, 0, 999] {
            metrics.count(RequestOutcome::Miss, status, took, || None);
        }
        assert_eq!(metrics.classes(RequestOutcome::Miss), [2, 0, 2, 0, 1, 0]);
        assert_eq!(metrics.classes(RequestOutcome::Cut), [0; 6]);
        let timings = metrics.timings(RequestOutcome::Miss);
        assert_eq!(Durations::sum(timings).count(), 5);
    }
}
