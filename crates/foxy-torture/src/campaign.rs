//! Runs many random schedules against one storage scheme, on several threads. Shrinks the first
//! failure to a small script.

use crate::generate;
use crate::run::{self, Failure};
use crate::script::Script;
use crate::shrink;
use crate::subject::Subject;
use crate::tally::Tally;
use std::fmt;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The schedules (random sequences of requests, disk events and faults) to run against one storage
/// scheme.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Seed of the first schedule. Schedule n, counted from 0, has the seed `first_seed + n`.
    pub first_seed: u64,
    /// Number of schedules to run.
    pub schedules: u64,
    /// Number of threads that run schedules.
    pub threads: usize,
}

/// The result of a campaign against one storage scheme.
#[derive(Debug, Default)]
pub struct Findings {
    /// Number of schedules that ran. It is below [`Campaign::schedules`] only after a failure.
    pub schedules: u64,
    /// Counts of the events in the schedules that ran.
    pub tally: Tally,
    /// The failure with the lowest seed among the failures found, after shrinking.
    pub found: Option<Found>,
}

/// A failing schedule, after shrinking.
#[derive(Clone, Debug)]
pub struct Found {
    /// Seed of the schedule before shrinking.
    pub seed: u64,
    /// Number of steps in the schedule before shrinking.
    pub steps: usize,
    /// The shrunk script.
    pub script: Script,
    /// The failure of the shrunk script.
    pub failure: Failure,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "# {}", self.failure.violation)?;
        writeln!(
            f,
            "# seed {}, shrunk from {} steps; fails at step {}",
            self.seed,
            self.steps,
            self.failure.step + 1
        )?;
        self.script.fmt(f)
    }
}

impl Campaign {
    /// Runs the schedules until all are done or one schedule fails. Calls `progress` after every
    /// 1000 schedules with the number of schedules started.
    pub fn against(&self, subject: &Subject, progress: &(dyn Fn(u64) + Sync)) -> Findings {
        let next = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let total = Mutex::new((Findings::default(), None::<(u64, Failure)>));
        std::thread::scope(|scope| {
            for _ in 0..self.threads.max(1) {
                scope.spawn(|| {
                    let mut mine = Findings::default();
                    let mut failed = None;
                    while !stop.load(Ordering::Relaxed) {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= self.schedules {
                            break;
                        }
                        let seed = self.first_seed.wrapping_add(index);
                        let outcome = run::run(
                            &generate::script(subject.name, subject.capacity, seed),
                            subject,
                        );
                        mine.schedules += 1;
                        mine.tally += outcome.tally;
                        if let Some(failure) = outcome.failure {
                            failed = Some((seed, failure));
                            stop.store(true, Ordering::Relaxed);
                        }
                        if index % 1000 == 999 {
                            progress(index + 1);
                        }
                    }
                    let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
                    total.0.schedules += mine.schedules;
                    total.0.tally += mine.tally;
                    if let Some((seed, failure)) = failed
                        && total.1.as_ref().is_none_or(|(lowest, _)| seed < *lowest)
                    {
                        total.1 = Some((seed, failure));
                    }
                });
            }
        });
        let (mut findings, failed) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
        findings.found = failed.map(|(seed, failure)| shrunk(subject, seed, failure));
        findings
    }
}

/// Number of seeds with which the shrinker runs each smaller script. If one step is left out, the
/// same seed causes other random faults, so the script may fail only with another seed.
const SEEDS_TRIED: u64 = 12;

fn shrunk(subject: &Subject, seed: u64, failure: Failure) -> Found {
    let whole = generate::script(subject.name, subject.capacity, seed);
    let script = shrink::shrink(&whole, |candidate| {
        (0..SEEDS_TRIED).find_map(|n| {
            let script =
                Script { seed: candidate.seed.wrapping_add(n * 7919), ..candidate.clone() };
            let failed = run::run(&script, subject).failure;
            failed
                .is_some_and(|other| other.violation.same_kind(&failure.violation))
                .then_some(script)
        })
    });
    let failure = run::run(&script, subject).failure.unwrap_or(failure);
    Found { seed, steps: whole.steps.len(), script, failure }
}
