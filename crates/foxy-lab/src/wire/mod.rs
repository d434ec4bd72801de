//! Connection code that load tests and LEAP share: TLS, HTTP/2, short answers of the lab itself,
//! and timers. Also the header fields that identify requests and objects.

pub(crate) mod alarm;
pub(crate) mod http2;
pub(crate) mod key;
pub(crate) mod out;
pub(crate) mod patience;
pub mod tls;

use foxy_base::clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The request field with the number of the request. foxy's own origin repeats the number in its
/// answer. So an answer with another number came from a cache.
pub const REQUEST_ID: &str = "X-Foxy-Request";

/// The response field in which foxy's own origin names the object and its version as `KEY.VERSION`.
pub const OBJECT_ID: &str = "X-Foxy-Object";

/// The number of low bits in a request number. The high bits are the start of the run in
/// milliseconds. The low bits count requests, and are enough for all requests within a millisecond.
const BITS: u32 = 20;

static LAST: AtomicU64 = AtomicU64::new(0);

/// Returns the number of a run's first request. It is larger than all numbers of earlier runs on
/// this machine. A proxy may still store answers of earlier runs, so their numbers must not occur
/// again.
pub(crate) fn first_of_run() -> u64 {
    let now = clock::wall().0 << BITS;
    let next = |last: u64| now.max(last + (1 << BITS));
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last)));
    next(last.unwrap_or_else(|last| last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_that_begin_within_a_millisecond_number_their_requests_differently() {
        let firsts: Vec<u64> = (0..100).map(|_| first_of_run()).collect();
        assert!(firsts.windows(2).all(|two| two[1] >= two[0] + (1 << BITS)), "{firsts:?}");
    }
}
