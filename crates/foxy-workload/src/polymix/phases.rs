//! The phases of a PolyMix-4 run: when each ends, and the factors that change the load and the
//! kinds of requests.

use super::PolyMix4;
use std::time::Duration;

const RAMP: Duration = Duration::from_secs(20 * 60);
/// Duration of a top phase, a measured phase with full load.
pub(super) const TOP: Duration = Duration::from_secs(4 * 3600);
/// Load between the two top phases (the measured phases with full load), as a share of the peak
/// rate.
const IDLE: f64 = 0.1;
/// Factor by which the probability of repeats is multiplied while the cache is filled. So the fill
/// has 5 % hits instead of 55 %.
const FILL_RECURRENCE: f64 = 5.0 / 55.0;
/// Factor by which the share of special messages (see [`Factors::special`]) is multiplied while the
/// cache is filled.
const FILL_SPECIAL: f64 = 0.1;

/// Numbers by which the load and the shares of kinds of requests are multiplied at a moment of the
/// run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factors {
    /// Request rate at this moment, as a share of the peak request rate.
    pub load: f64,
    /// Factor of the probability that a request repeats a document.
    pub recurrence: f64,
    /// Factor by which the share of special messages is multiplied: If-Modified-Since, reload, POST
    /// and HEAD.
    pub special: f64,
}

impl Factors {
    /// Returns the factors of the phases after the fill, with this load.
    pub const fn full(load: f64) -> Self {
        Self { load, recurrence: 1.0, special: 1.0 }
    }

    const fn filling(load: f64) -> Self {
        Self { load, recurrence: FILL_RECURRENCE, special: FILL_SPECIAL }
    }

    /// Interpolates linearly between two sets of factors. Returns `self` for `part` = 0, and `end`
    /// for `part` = 1.
    fn toward(&self, end: &Self, part: f64) -> Self {
        let between = |from: f64, to: f64| from + (to - from) * part;
        Self {
            load: between(self.load, end.load),
            recurrence: between(self.recurrence, end.recurrence),
            special: between(self.special, end.special),
        }
    }
}

/// The end condition of a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Goal {
    /// The phase ends after this duration.
    After(Duration),
    /// The phase ends when the cache is filled and the working set (the documents that requests
    /// repeat) no longer grows.
    Filled,
}

/// A phase of the run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PolymixPhase {
    /// Name of the phase in reports.
    pub name: &'static str,
    /// The condition that ends the phase.
    pub goal: Goal,
    /// Factors at the start of the phase.
    pub from: Factors,
    /// Factors at the end of the phase.
    pub to: Factors,
}

impl PolymixPhase {
    /// Returns the factors at the time `elapsed` since the start of the phase. They change linearly
    /// within the phase.
    pub fn factors_at(&self, elapsed: Duration) -> Factors {
        match self.goal {
            Goal::After(time) if elapsed < time => {
                self.from.toward(&self.to, elapsed.as_secs_f64() / time.as_secs_f64())
            }
            _ => self.to,
        }
    }
}

impl PolyMix4 {
    /// Returns all phases in order, with scaled durations.
    pub fn phases(&self) -> Vec<PolymixPhase> {
        let (full, filling) = (Factors::full, Factors::filling);
        let fill = (self.fill_rate / self.peak_rate).min(1.0);
        let one_robot = 1.0 / f64::from(self.robots());
        let (ramp, top) = (RAMP / self.time_scale, TOP / self.time_scale);
        let phase = |name, goal, from, to| PolymixPhase { name, goal, from, to };
        let during = |name, time, from, to| phase(name, Goal::After(time), from, to);
        vec![
            during("framp", ramp, filling(one_robot.min(fill)), filling(fill)),
            phase("fill", Goal::Filled, filling(fill), filling(fill)),
            during("fexit", ramp, filling(fill), full(one_robot)),
            during("inc1", ramp, full(one_robot), full(1.0)),
            during("top1", top, full(1.0), full(1.0)),
            during("dec1", ramp, full(1.0), full(IDLE)),
            during("idle", ramp, full(IDLE), full(IDLE)),
            during("inc2", ramp, full(IDLE), full(1.0)),
            during("top2", top, full(1.0), full(1.0)),
            during("dec2", ramp, full(1.0), full(0.0)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phases() -> Vec<PolymixPhase> {
        let scaled = PolyMix4 {
            peak_rate: 100.0,
            fill_rate: 50.0,
            cache_size: 1 << 30,
            time_scale: 60,
            delay_scale: 1,
            servers: None,
        };
        scaled.phases()
    }

    #[test]
    fn phases_join_and_their_durations_are_scaled() {
        let phases = phases();
        assert!(phases.windows(2).all(|pair| pair[0].to == pair[1].from));
        assert_eq!(phases[4].goal, Goal::After(Duration::from_secs(240)));
        let load = |elapsed| phases[5].factors_at(Duration::from_secs(elapsed)).load;
        assert!((load(10) - 0.55).abs() < 1e-9 && (load(90) - 0.1).abs() < 1e-9);
    }

    #[test]
    fn the_fill_has_few_repeats_and_special_messages_and_its_exit_ends_that() {
        let phases = phases();
        let factors = |phase: &PolymixPhase| {
            let factors = phase.factors_at(Duration::from_secs(10));
            (factors.recurrence, factors.special)
        };
        for phase in &phases[..2] {
            assert_eq!(factors(phase), (5.0 / 55.0, 0.1), "{}", phase.name);
        }
        let (recurrence, special) = factors(&phases[2]);
        assert!((recurrence - 30.0 / 55.0).abs() < 1e-9 && (special - 0.55).abs() < 1e-9);
        for phase in &phases[3..] {
            assert_eq!(factors(phase), (1.0, 1.0), "{}", phase.name);
        }
    }
}
