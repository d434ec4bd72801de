//! Who says, while robots run, how many of them are active and when the run is over.

use crate::load::live::Seen;
use crate::load::options::Stop;
use std::time::Duration;

/// A plan's state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Share of the robots that are active.
    pub share: f64,
    /// Section of the run that counts new requests.
    pub section: usize,
}

/// Decides the number of active robots. `elapsed` only rises.
pub trait Plan {
    /// Number of sections.
    fn sections(&self) -> usize;

    /// The current step; `None` ends the run.
    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step>;
}

/// All robots active until a count or a time.
pub struct Steady(Stop);

impl Steady {
    /// Runs until `stop`.
    pub const fn new(stop: Stop) -> Self {
        Self(stop)
    }
}

impl Plan for Steady {
    fn sections(&self) -> usize {
        1
    }

    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step> {
        let over = match self.0 {
            Stop::Requests(count) => seen.begun >= count,
            Stop::After(time) => elapsed >= time,
        };
        (!over).then_some(Step { share: 1.0, section: 0 })
    }
}
