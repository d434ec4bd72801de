//! The lease of a node in a fleet. While a node has a lease, the other nodes wait until it has
//! applied a purge. So only a node with a lease may serve stored responses without validation.

use foxy_base::{Instant, clock};
use std::sync::atomic::{AtomicU64, Ordering};

const NO_FLEET: u64 = u64::MAX;

/// The end of a node's lease, on a clock that starts at boot. A node without `fleet.engine` (a
/// purge log that all nodes share) needs no lease.
#[derive(Debug)]
pub struct PurgeLease(AtomicU64);

impl Default for PurgeLease {
    fn default() -> Self {
        Self(AtomicU64::new(NO_FLEET))
    }
}

impl PurgeLease {
    /// Sets the end of the lease. From the first call on, the node needs a lease.
    pub fn set(&self, until: Instant) {
        self.0.store(until.0.min(NO_FLEET - 1), Ordering::Release);
    }

    /// Returns true if the node has a lease now, or needs none.
    pub fn holds(&self) -> bool {
        let until = self.0.load(Ordering::Acquire);
        until == NO_FLEET || clock::since_boot().0 < until
    }
}
