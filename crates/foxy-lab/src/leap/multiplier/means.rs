//! The means by which a group of copies is sent.

use crate::leap::LeapRun;
use crate::leap::exchange::kept::Kept;
use crate::leap::verdict::noise::Noise;
use crate::wire::alarm::Alarm;
use crate::wire::numbers;
use foxy_base::{Instant, clock};
use std::cell::RefCell;
use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// How long at most until a signal is noticed between two copies.
const TICK: Duration = Duration::from_millis(50);

/// What asking takes, the same for all requests of a run.
#[derive(Debug)]
pub struct Means {
    pub run: LeapRun,
    pub numbers: Numbers,
    pub noise: RefCell<Noise>,
    /// When copies and requests are due; it must be running.
    pub alarm: Alarm,
    /// The connections that wait for a request.
    pub kept: Kept,
}

impl Means {
    /// Those of a run that begins now; must be made inside a runtime.
    ///
    /// # Errors
    /// The kernel gives no timer.
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

    /// Waits until a copy is due; once the run is interrupted, what is left to send is sent at
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

/// The numbers that copies carry: no two of a run are the same.
#[derive(Clone, Copy, Debug)]
pub struct Numbers {
    first: u64,
    paths: u64,
}

impl Numbers {
    /// For a run of so many paths that begins now.
    pub fn new(paths: usize) -> Self {
        Self { first: numbers::first_of_run(), paths: paths as u64 }
    }

    /// The two that a path is probed with beforehand.
    pub const fn probes(self, path: usize) -> [u64; 2] {
        let first = self.first + 2 * path as u64;
        [first, first + 1]
    }

    /// That of request `number` on a path.
    pub const fn copy(self, number: u64, path: usize) -> u64 {
        self.second_asking(number) + 1 + path as u64
    }

    /// Which path a copy of that number is sent on; none for those of probes and of a second
    /// asking.
    pub fn path(self, number: u64) -> Option<usize> {
        let since = number.checked_sub(self.first + 2 * self.paths)?;
        usize::try_from((since % (self.paths + 1)).checked_sub(1)?).ok()
    }

    /// That of request `number` when the origin is asked a second time.
    pub(crate) const fn second_asking(self, number: u64) -> u64 {
        self.first + 2 * self.paths + number * (self.paths + 1)
    }
}
