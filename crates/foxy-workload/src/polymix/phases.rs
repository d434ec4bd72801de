//! The phases of PolyMix-4: how much of the peak is asked for when, and what ends a phase.

use super::PolyMix4;
use std::time::Duration;

const RAMP: Duration = Duration::from_secs(20 * 60);
/// How long a top phase lasts.
pub(crate) const TOP: Duration = Duration::from_secs(4 * 3600);
/// Share of the peak below which no ramp begins or ends.
const LEAST: f64 = 0.1;

/// What ends a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// Its time is over.
    After(Duration),
    /// Enough was filled and the working set is frozen.
    Filled,
}

/// A part of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolymixPhase {
    /// Its name.
    pub name: &'static str,
    /// What ends it.
    pub goal: Goal,
    /// Share of the peak at its beginning.
    pub from: f64,
    /// Share of the peak at its end.
    pub to: f64,
}

impl PolymixPhase {
    /// The share of the peak `elapsed` after its beginning; ramps are linear.
    pub fn share_at(&self, elapsed: Duration) -> f64 {
        match self.goal {
            Goal::After(time) if elapsed < time => {
                self.from + (self.to - self.from) * elapsed.as_secs_f64() / time.as_secs_f64()
            }
            _ => self.to,
        }
    }
}

impl PolyMix4 {
    /// The phases, their durations divided by the time scale.
    pub fn phases(&self) -> Vec<PolymixPhase> {
        let scaled = |time: Duration| Goal::After(time / self.time_scale);
        let fill = (self.fill_rate / self.peak_rate).min(1.0);
        let (ramp, top) = (scaled(RAMP), scaled(TOP));
        let phase = |name, goal, from, to| PolymixPhase { name, goal, from, to };
        vec![
            phase("framp", ramp, LEAST.min(fill), fill),
            phase("fill", Goal::Filled, fill, fill),
            phase("fexit", ramp, fill, LEAST),
            phase("inc1", ramp, LEAST, 1.0),
            phase("top1", top, 1.0, 1.0),
            phase("dec1", ramp, 1.0, LEAST),
            phase("idle", ramp, LEAST, LEAST),
            phase("inc2", ramp, LEAST, 1.0),
            phase("top2", top, 1.0, 1.0),
            phase("dec2", ramp, 1.0, LEAST),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Model, Workload};

    #[test]
    fn phases_join_and_their_durations_are_scaled() {
        let Model::PolyMix4(knobs) = Workload::find("polymix-4").expect("known").model else {
            panic!("another model")
        };
        let phases = PolyMix4 { time_scale: 60, ..knobs }.phases();
        assert!(phases.windows(2).all(|pair| (pair[0].to - pair[1].from).abs() < 1e-9));
        assert_eq!(phases[4].goal, Goal::After(Duration::from_secs(240)));
        let ramp = phases[3];
        assert!((ramp.share_at(Duration::from_secs(10)) - 0.55).abs() < 1e-9);
        assert!((ramp.share_at(Duration::from_secs(90)) - 1.0).abs() < 1e-9);
    }
}
