//! Who says, while robots run, how many of them are active and when the run is over.

use crate::load::live::Seen;
use crate::load::options::Stop;
use std::time::Duration;

/// What a plan says about now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Share of the robots that are active.
    pub share: f64,
    /// To which part of the run what begins now is counted.
    pub section: usize,
}

/// Who says how many robots are active. `elapsed` only rises.
pub trait Plan {
    /// How many parts the run has.
    fn sections(&self) -> usize;

    /// What is to be done now; `None` ends the run.
    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step>;
}

/// All robots active until a count or a time.
pub struct Steady(Stop);

impl Steady {
    /// Until then.
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
