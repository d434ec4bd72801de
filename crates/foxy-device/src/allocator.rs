//! Memory that a thread has freed goes back to the system. mimalloc gives a thread's memory back
//! only when that thread works on, so one that waits after a peak would keep it.

use foxy_base::clock;
use std::time::Duration;

/// How long after one call the next is worth it, at the least and at the most.
const AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// How many times as long as it took a thread goes without it.
const REST: u32 = 500;

/// Gives what the calling thread has freed back to the system, and says after what time that is
/// worth doing again. It takes microseconds for each 64 KiB that the thread uses. Where mimalloc is
/// not the program's allocator it does nothing.
#[must_use]
pub fn give_back() -> Duration {
    let begun = clock::monotonic();
    // SAFETY: the function takes no pointer, may be called by any thread at any time, and touches
    // nothing but free memory of mimalloc's own: blocks in use stay where they are.
    unsafe { libmimalloc_sys::mi_collect(true) };
    (clock::monotonic().since(begun) * REST).clamp(AGAIN.0, AGAIN.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_use_stays_and_the_next_call_is_seconds_away() {
        let in_use = vec![7_u8; 1 << 20];
        assert!((AGAIN.0..=AGAIN.1).contains(&give_back()));
        assert!(in_use.iter().all(|byte| *byte == 7));
    }
}
