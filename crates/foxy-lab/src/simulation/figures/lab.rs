//! The trials that figures share, each run once: traces and URL operations by seed, results by
//! trial, on all cores.

use super::observe::Observer;
use super::trial::{self, Eviction, Mix, Trial, TrialResult};
use crate::parallel::run_all;
use crate::simulation::storage::disk::paper_disk;
use crate::simulation::storage::levels::{LevelCounts, Levels, operations};
use crate::simulation::storage::operation::Operations;
use crate::simulation::storage::outcome::Shortfall;
use foxy_device::DiskProfile;
use foxy_schemes::PolicyName;
use foxy_workload::trace::synthetic::{TABLE1, TraceModel, generate};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// URL-gets of the paper's trace (Table 1).
pub const GETS: f64 = 1_058_206.0;
/// Bytes of the paper's memory and disk caches.
const MEMORY: f64 = 536_870_912.0;
const DISK: f64 = 2_147_483_648.0;

/// How much is run.
#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// By what factor trace, memory and disk are scaled (R8); 1 is the paper's.
    pub scale: f64,
    /// The seeds, each of which gives a trace and a disk of its own.
    pub seeds: Vec<u64>,
    /// Threads.
    pub threads: usize,
}

type Progress<'a> = &'a (dyn Fn(usize, usize) + Sync);

/// A trial that was run, and what it came to.
type Known = (Trial, bool, Arc<TrialResult>);

/// Seed and mix.
type StreamKey = (u64, Mix);

/// The shared trials.
pub struct Lab<'a> {
    extent: Extent,
    progress: Progress<'a>,
    streams: Mutex<Vec<(StreamKey, Arc<Stream>)>>,
    known: Mutex<Vec<Known>>,
    shortfalls: Mutex<Vec<String>>,
}

/// URL operations, and what went by at each cache level.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The operations.
    pub operations: Operations,
    /// The levels' counts.
    pub counts: LevelCounts,
}

impl<'a> Lab<'a> {
    /// Nothing run yet. `progress` is told how many trials of how many asked for are done.
    pub fn new(extent: Extent, progress: Progress<'a>) -> Self {
        Self {
            extent,
            progress,
            streams: Mutex::default(),
            known: Mutex::default(),
            shortfalls: Mutex::default(),
        }
    }

    /// How much is run.
    pub const fn extent(&self) -> &Extent {
        &self.extent
    }

    /// The model disk, scaled.
    pub fn profile(&self) -> DiskProfile {
        paper_disk(self.extent.scale)
    }

    /// The URL operations of the paper's trace, or of one that differs from it in size or mix.
    pub fn stream(&self, seed: u64, mix: Mix) -> Arc<Stream> {
        let key = (seed, mix);
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, stream)) = streams.iter().find(|(other, _)| *other == key) {
            return Arc::clone(stream);
        }
        let scale = self.extent.scale;
        let model = TraceModel { repeats: mix.repeats, recent: mix.recent, ..TABLE1 };
        let trace = generate(&model, (GETS * scale * mix.gets) as usize, seed);
        let levels = Levels {
            memory: (MEMORY * scale * mix.memory) as u64,
            disk: (DISK * scale * mix.disk) as u64,
            policy: PolicyName::Lru,
            object_limit: u64::MAX,
        };
        let (operations, counts) = operations(&trace, &levels);
        let stream = Arc::new(Stream { operations, counts });
        streams.push((key, Arc::clone(&stream)));
        stream
    }

    /// The results of these trials, in order; those not known yet are run on all threads.
    ///
    /// # Panics
    /// When a store breaks its contract in a trial.
    pub fn results(&self, trials: &[Trial], follow_requests: bool) -> Vec<Arc<TrialResult>> {
        let todo: Vec<&Trial> =
            trials.iter().filter(|trial| self.find(trial, follow_requests).is_none()).collect();
        self.all(&todo, |trial| self.run(trial, follow_requests));
        let found = trials.iter().map(|trial| self.find(trial, follow_requests));
        let found: Vec<Arc<TrialResult>> =
            found.collect::<Option<_>>().expect("every trial was run");
        let mut shortfalls = self.shortfalls.lock().unwrap_or_else(PoisonError::into_inner);
        for (trial, result) in trials.iter().zip(&found) {
            // What a store evicted by itself, or is too small a part of its work, is none left
            // undone.
            let counts = |shortfall: &Shortfall| match trial.eviction {
                Eviction::AsTold => true,
                Eviction::ByItself => Shortfall { lost: 0, ..*shortfall }.is_failure(),
            };
            let shortfall = result.outcome.shortfall().filter(counts);
            shortfalls.extend(shortfall.map(|shortfall| format!("{}: {shortfall}", trial.scheme)));
        }
        found
    }

    /// What stores did not do of their work in the trials asked for since this was last asked.
    pub fn take_shortfalls(&self) -> Vec<String> {
        std::mem::take(&mut self.shortfalls.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What these tasks come to, in order, on all threads.
    pub fn all<T: Sync, R: Send>(&self, tasks: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let done = AtomicUsize::new(0);
        let counted = |task: &T| {
            let result = run(task);
            (self.progress)(done.fetch_add(1, SeqCst) + 1, tasks.len());
            result
        };
        run_all(tasks, self.extent.threads, &counted, &mut || {})
    }

    /// The results of a trial for every seed.
    pub fn over_seeds(&self, trial: Trial) -> Vec<Arc<TrialResult>> {
        let trials: Vec<_> =
            self.extent.seeds.iter().map(|&seed| Trial { seed, ..trial }).collect();
        self.results(&trials, false)
    }

    fn find(&self, trial: &Trial, follow_requests: bool) -> Option<Arc<TrialResult>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &&Known| known.0 == *trial && (known.1 || !follow_requests);
        known.iter().find(fits).map(|(_, _, result)| Arc::clone(result))
    }

    fn run(&self, trial: &Trial, follow_requests: bool) {
        let stream = self.stream(trial.seed, trial.mix);
        let eye =
            if follow_requests { Observer::following_requests() } else { Observer::default() };
        let result = trial::run(trial, &self.profile(), &stream.operations, eye);
        let result = result.unwrap_or_else(|error| panic!("{trial:?}: {error}"));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((*trial, follow_requests, Arc::new(result)));
    }
}
