//! The numbers that requests carry, so that an answer with another request's number is known to
//! have been stored.

use foxy_base::clock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bits below the milliseconds: more than the requests that start within one.
const BITS: u32 = 20;

static LAST: AtomicU64 = AtomicU64::new(0);

/// Number of a run's first request, above those of every earlier run on this machine. A cache may
/// hold answers of earlier runs, whose numbers must not recur.
pub fn first_of_run() -> u64 {
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
