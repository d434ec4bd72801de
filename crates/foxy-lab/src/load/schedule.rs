//! The phases of PolyMix-4 as a plan of robots.

use crate::load::live::Seen;
use crate::load::plan::{Plan, Step};
use foxy_workload::polymix::PolyMix4;
use foxy_workload::polymix::phases::{Goal, PolymixPhase};
use std::time::Duration;

/// The phases of PolyMix-4. A request counts in the phase of its start.
#[derive(Clone, Debug)]
pub struct Schedule {
    phases: Vec<PolymixPhase>,
    fill_bytes: u64,
    current: usize,
    since: Duration,
    filled_before: u64,
}

impl Schedule {
    /// The phases of this model.
    pub fn new(knobs: &PolyMix4) -> Self {
        let (phases, fill_bytes) = (knobs.phases(), knobs.fill_bytes());
        Self { phases, fill_bytes, current: 0, since: Duration::ZERO, filled_before: 0 }
    }

    /// Names of the phases.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.phases.iter().map(|phase| phase.name)
    }
}

impl Plan for Schedule {
    fn sections(&self) -> usize {
        self.phases.len()
    }

    fn step(&mut self, elapsed: Duration, seen: &Seen) -> Option<Step> {
        loop {
            let phase = self.phases.get(self.current)?;
            let within = elapsed.saturating_sub(self.since);
            let over = match phase.goal {
                Goal::After(time) => within >= time,
                Goal::Filled => {
                    seen.frozen && seen.fill_bytes - self.filled_before >= self.fill_bytes
                }
            };
            if !over {
                return Some(Step { share: phase.share_at(within), section: self.current });
            }
            self.current += 1;
            (self.since, self.filled_before) = (elapsed, seen.fill_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::{Model, Workload};

    #[test]
    fn the_fill_ends_when_enough_is_filled_and_the_working_set_is_frozen() {
        let Model::PolyMix4(knobs) = Workload::find("polymix-4").expect("known").model else {
            panic!("another model")
        };
        let knobs = PolyMix4 { time_scale: 60, ..knobs };
        let mut schedule = Schedule::new(&knobs);
        let second = Duration::from_secs;
        let mut section = |at, fill_bytes, frozen| {
            let seen = Seen { fill_bytes, frozen, ..Seen::default() };
            schedule.step(second(at), &seen).map(|step| step.section)
        };
        let enough = knobs.fill_bytes();
        assert_eq!(section(19, 5, false), Some(0));
        assert_eq!(section(20, 5, false), Some(1));
        assert_eq!(section(5000, 5 + enough, false), Some(1));
        assert_eq!(section(5000, 4 + enough, true), Some(1));
        assert_eq!(section(5001, 5 + enough, true), Some(2));
        assert_eq!(section(5021, 5 + enough, true), Some(3));
        assert_eq!(section(9000, 5 + enough, true), Some(4));
    }
}
