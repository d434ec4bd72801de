//! Many schedules over a range of seeds, on as many threads as asked; the first failure of a scheme
//! is shrunk.

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

/// What to try.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// The first seed; schedule n has seed `first_seed + n`.
    pub first_seed: u64,
    /// How many schedules.
    pub schedules: u64,
    /// On how many threads.
    pub threads: usize,
}

/// What came of a campaign against one scheme.
#[derive(Debug, Default)]
pub struct Findings {
    /// Schedules run; fewer than asked only when one failed.
    pub schedules: u64,
    /// What happened in them.
    pub tally: Tally,
    /// The failure with the lowest seed that was found, shrunk.
    pub found: Option<Found>,
}

/// A failing schedule.
#[derive(Clone, Debug)]
pub struct Found {
    /// The seed it came from.
    pub seed: u64,
    /// How many steps it had.
    pub steps: usize,
    /// What is left of it.
    pub script: Script,
    /// How that fails.
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
    /// Runs the schedules until all are done or one fails. `progress` is told now and then how many
    /// are done.
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

/// Seeds with which each smaller script is tried: what a disk does with a script that lost a step
/// is another story.
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
