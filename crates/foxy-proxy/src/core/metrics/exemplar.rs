//! Exemplars: examples of requests in the buckets of a histogram, for OpenMetrics. An exemplar
//! names the trace of its request, if the client takes part in distributed tracing (W3C Trace
//! Context).

use crate::core::metrics::timing::BUCKETS;
use crate::core::metrics::trace_context::Traceparent;
use foxy_base::{Instant, WallTime, clock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Minimum time in nanoseconds for which a bucket keeps its exemplar.
const PAUSE_AFTER_EXEMPLAR: u64 = 1_000_000_000;
/// Pause in nanoseconds after a request that had no trace. During the pause, the proxy does not
/// search other requests of the same bucket for a trace.
const PAUSE_AFTER_SEARCH: u64 = 1_000_000;

/// The id of a trace: 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId([u8; 32]);

impl TraceId {
    /// Reads the trace id from the value of the request field `traceparent`. Returns `None` if the
    /// value is malformed, or if its sender does not record the trace.
    pub fn of(traceparent: &[u8]) -> Option<Self> {
        let parent = Traceparent::of(traceparent).filter(|parent| parent.flags() & 1 == 1)?;
        parent.trace_digits().as_bytes().try_into().map(Self).ok()
    }

    /// Returns the trace id as 32 hexadecimal digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// One request as an example of all requests in a histogram bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exemplar {
    /// The trace of the request.
    pub trace: TraceId,
    /// The duration of the request in µs.
    pub micros: u64,
    /// Time when the request ended.
    pub at: WallTime,
}

/// The newest exemplar of each bucket of a histogram.
pub(crate) struct Exemplars {
    /// For each bucket, the earliest time at which the proxy searches a request for a trace id
    /// again.
    due: [AtomicU64; BUCKETS],
    found: Mutex<[Option<Exemplar>; BUCKETS]>,
}

impl Default for Exemplars {
    fn default() -> Self {
        let due = std::array::from_fn(|_| AtomicU64::new(0));
        Self { due, found: Mutex::new([None; BUCKETS]) }
    }
}

impl Exemplars {
    /// Keeps the request as the exemplar of its bucket, if `trace` finds a trace id. Calls `trace`
    /// rarely, because the search costs time.
    pub(crate) fn offer(
        &self,
        (bucket, micros): (usize, u64),
        now: Instant,
        trace: impl FnOnce() -> Option<TraceId>,
    ) {
        if now.0 < self.due[bucket].load(Ordering::Relaxed) {
            return;
        }
        let found = trace().map(|trace| Exemplar { trace, micros, at: clock::wall() });
        let pause = if found.is_some() { PAUSE_AFTER_EXEMPLAR } else { PAUSE_AFTER_SEARCH };
        self.due[bucket].store(now.0.saturating_add(pause), Ordering::Relaxed);
        if found.is_some() {
            self.found.lock().unwrap_or_else(PoisonError::into_inner)[bucket] = found;
        }
    }

    pub(crate) fn found(&self) -> [Option<Exemplar>; BUCKETS] {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDED: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn only_a_recorded_trace_has_an_id() {
        let id = TraceId::of(RECORDED).expect("an id");
        assert_eq!(id.as_str(), "4bf92f3577b34da6a3ce929d0e0e4736");
        let unrecorded = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
        for field in [&unrecorded[..], b""] {
            assert_eq!(TraceId::of(field), None, "{}", field.escape_ascii());
        }
    }

    #[test]
    fn a_bucket_is_searched_only_after_a_pause() {
        let (exemplars, trace) = (Exemplars::default(), TraceId::of(RECORDED));
        let micros = || exemplars.found()[3].map(|exemplar| exemplar.micros);
        let found = Instant(5 + PAUSE_AFTER_SEARCH);
        exemplars.offer((3, 100), Instant(5), || None);
        exemplars.offer((3, 101), Instant(found.0 - 1), || unreachable!("too early"));
        exemplars.offer((3, 102), found, || trace);
        assert_eq!(micros(), Some(102));
        let next = Instant(found.0 + PAUSE_AFTER_EXEMPLAR);
        exemplars.offer((3, 103), Instant(next.0 - 1), || unreachable!("too early"));
        exemplars.offer((3, 104), next, || trace);
        assert_eq!(micros(), Some(104));
        assert_eq!(exemplars.found()[4], None);
    }
}
