//! The state that all requests of a run share: options, request numbers, noise (fields that change
//! by themselves), timer and idle connections.

use super::LeapRun;
use super::exchange::kept::Kept;
use super::verdict::noise::Noise;
use crate::wire;
use crate::wire::alarm::Alarm;
use foxy_base::{Instant, clock};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const TICK: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct RunContext {
    pub run: LeapRun,
    pub numbers: Numbers,
    pub noise: RefCell<Noise>,
    /// The timer for the start times of requests and copies. The caller must poll `alarm.run()`,
    /// because the timer advances only during this call.
    pub alarm: Alarm,
    pub kept: Kept,
}

impl RunContext {
    pub fn new(run: &LeapRun) -> io::Result<Self> {
        let paths = run.paths.len();
        Ok(Self {
            run: run.clone(),
            numbers: run.numbers.unwrap_or_else(|| Numbers::new(paths)),
            noise: RefCell::new(Noise::new(paths)),
            alarm: Alarm::new()?,
            kept: Kept::new(paths, run.most_in_flight),
        })
    }

    /// Waits until the start time of a copy of a request. After an interrupt, the wait ends at
    /// once.
    pub(crate) async fn pause(&self, due: Instant) {
        loop {
            let now = clock::monotonic();
            let left = due.since(now);
            if left.is_zero() || self.run.interrupted.load(Relaxed) {
                break;
            }
            self.alarm.until(now + left.min(TICK)).await;
        }
    }
}

/// Unique numbers for the copies of requests in a run. Each copy carries its number in a header
/// field, and foxy's own origin repeats the number.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    first: u64,
    paths: u64,
}

impl Numbers {
    /// Creates the numbers of a new run. `paths` is the number of servers that receive copies
    /// (proxies and origin).
    pub fn new(paths: usize) -> Self {
        Self { first: wire::first_of_run(), paths: paths as u64 }
    }

    /// Returns the numbers of the two probe requests to a path (proxy or origin). The probes come
    /// before all other requests and show which fields vary by themselves.
    pub const fn probes(self, path: usize) -> [u64; 2] {
        let first = self.first + 2 * path as u64;
        [first, first + 1]
    }

    /// Returns the number of the copy of request `number` that goes to a path (proxy or origin).
    pub const fn copy(self, number: u64, path: usize) -> u64 {
        self.second_asking(number) + 1 + path as u64
    }

    /// Returns the path (proxy or origin) that received the copy with this number. Returns `None`
    /// if the number belongs to a probe or to a second request to the origin.
    pub fn path(self, number: u64) -> Option<usize> {
        let since = number.checked_sub(self.first + 2 * self.paths)?;
        usize::try_from((since % (self.paths + 1)).checked_sub(1)?).ok()
    }

    /// Returns the number of the second copy of request `number` that the origin receives. LEAP
    /// sends the second copy if a proxy's answer differs from the origin's.
    pub(crate) const fn second_asking(self, number: u64) -> u64 {
        self.first + 2 * self.paths + number * (self.paths + 1)
    }
}
