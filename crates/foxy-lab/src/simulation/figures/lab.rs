//! Runs the trials (simulated runs of a storage scheme) that figures need, on all threads. Several
//! figures share a trial, so the lab computes each trace, list of operations and result once.

use super::trial::{self, Eviction, Mix, Trial, TrialProbe, TrialResult};
use crate::parallel::run_all;
use crate::simulation::storage::operation::{LevelCounts, Levels, Operations, operations};
use crate::simulation::storage::outcome::Shortfall;
use crate::simulation::storage::sizing::paper_disk;
use foxy_device::DiskProfile;
use foxy_schemes::PolicyName;
use foxy_workload::Trace;
use foxy_workload::trace::synthetic::{TABLE1, TraceModel, generate};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The number of URL-gets (client requests) in the WebCoSM paper's trace (Table 1).
pub const GETS: f64 = 1_058_206.0;
/// The mean size in bytes of an object in the WebCoSM paper's disk operations.
const MEAN_SIZE: f64 = 10_550.0;
const MEMORY: f64 = 536_870_912.0;
const DISK: f64 = 2_147_483_648.0;

#[derive(Clone, Debug, PartialEq)]
pub struct Extent {
    /// The sizes of trace, memory and disk, divided by the sizes in the WebCoSM paper.
    pub scale: f64,
    /// The seeds of the random generator. Each seed gives its own trace and its own disk.
    pub seeds: Vec<u64>,
    pub threads: usize,
}

type OnTrialDone<'a> = &'a (dyn Fn(usize, usize) + Sync);

struct FinishedTrial {
    trial: Trial,
    follows_requests: bool,
    result: Arc<TrialResult>,
}

/// A recorded trace of real requests that replaces the synthetic trace.
#[derive(Clone, Debug)]
pub struct RecordedTrace {
    pub name: String,
    pub trace: Trace,
}

impl RecordedTrace {
    /// Returns the first part of the trace. `share` is its share of all requests.
    pub fn first(&self, share: f64) -> Self {
        let mut first = self.clone();
        first.trace.gets.truncate((self.trace.gets.len() as f64 * share) as usize);
        first
    }

    /// Returns the scale at which memory and disk have the WebCoSM paper's proportion to the
    /// requested bytes.
    pub fn scale(&self) -> f64 {
        self.trace.gets.iter().map(|get| get.size as f64).sum::<f64>() / (GETS * MEAN_SIZE)
    }
}

pub struct Lab<'a> {
    extent: Extent,
    recorded: Option<RecordedTrace>,
    progress: OnTrialDone<'a>,
    streams: Mutex<Vec<Arc<Stream>>>,
    finished: Mutex<Vec<FinishedTrial>>,
    shortfalls: Mutex<Vec<String>>,
}

#[derive(Clone, Debug)]
pub struct Stream {
    seed: u64,
    mix: Mix,
    pub operations: Operations,
    pub counts: LevelCounts,
}

impl<'a> Lab<'a> {
    /// Creates a lab with the synthetic trace. Calls `progress` with the number of finished trials
    /// (simulated runs) and their total.
    pub fn new(extent: Extent, progress: OnTrialDone<'a>) -> Self {
        Self {
            extent,
            recorded: None,
            progress,
            streams: Mutex::default(),
            finished: Mutex::default(),
            shortfalls: Mutex::default(),
        }
    }

    /// Creates a lab whose trials (simulated runs) use a recorded trace. The trace determines the
    /// scale, the sizes of memory and disk.
    pub fn of_trace(extent: &Extent, recorded: RecordedTrace, progress: OnTrialDone<'a>) -> Self {
        let extent = Extent { scale: recorded.scale(), ..extent.clone() };
        Self { recorded: Some(recorded), ..Self::new(extent, progress) }
    }

    pub(super) const fn recorded(&self) -> Option<&RecordedTrace> {
        self.recorded.as_ref()
    }

    pub const fn extent(&self) -> &Extent {
        &self.extent
    }

    pub fn profile(&self) -> DiskProfile {
        paper_disk(self.extent.scale)
    }

    /// Returns the disk operations that the trace of this seed causes. `mix` gives the number of
    /// requests as a share of the WebCoSM paper's number, the cache sizes and the share of repeats.
    pub fn stream(&self, seed: u64, mix: Mix) -> Arc<Stream> {
        let mut streams = lock(&self.streams);
        let known = streams.iter().find(|stream| stream.seed == seed && stream.mix == mix);
        if let Some(stream) = known {
            return Arc::clone(stream);
        }
        let scale = self.extent.scale;
        let model = TraceModel { repeats: mix.repeats, recent: mix.recent, ..TABLE1 };
        let trace = match &self.recorded {
            Some(recorded) => recorded.first(mix.gets).trace,
            None => generate(&model, (GETS * scale * mix.gets) as usize, seed),
        };
        let levels = Levels {
            memory: (MEMORY * scale * mix.memory) as u64,
            disk: (DISK * scale * mix.disk) as u64,
            policy: PolicyName::Lru,
            object_limit: u64::MAX,
        };
        let (operations, counts) = operations(&trace, &levels);
        let stream = Arc::new(Stream { seed, mix, operations, counts });
        streams.push(Arc::clone(&stream));
        stream
    }

    /// Returns the results of trials (simulated runs), in the same order. Runs the trials that have
    /// no result yet, on all threads. If `follow_requests` is true, the results also contain the
    /// distances between reads and the positions of the disk head. Panics if a store breaks its
    /// contract.
    pub fn results(&self, trials: &[Trial], follow_requests: bool) -> Vec<Arc<TrialResult>> {
        let todo: Vec<&Trial> =
            trials.iter().filter(|trial| self.find(trial, follow_requests).is_none()).collect();
        self.all(&todo, |trial| self.run(trial, follow_requests));
        let found = trials.iter().map(|trial| self.find(trial, follow_requests));
        let found: Vec<Arc<TrialResult>> =
            found.collect::<Option<_>>().expect("every trial was run");
        let mut shortfalls = lock(&self.shortfalls);
        for (trial, result) in trials.iter().zip(&found) {
            // A store that evicts by itself may fail to find some objects and may refuse some
            // writes. Only a large share of such failures counts.
            let counts = |shortfall: &Shortfall| match trial.eviction {
                Eviction::AsTold => true,
                Eviction::ByItself => Shortfall { lost: 0, ..*shortfall }.is_failure(),
            };
            let shortfall = result.outcome.shortfall().filter(counts);
            shortfalls.extend(shortfall.map(|shortfall| format!("{}: {shortfall}", trial.scheme)));
        }
        found
    }

    /// Returns descriptions of the work that stores failed to do in the trials (simulated runs)
    /// since the last call, and forgets them.
    pub fn take_shortfalls(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shortfalls))
    }

    /// Runs tasks on all threads. Returns the results in the order of the tasks.
    pub fn all<T: Sync, R: Send>(&self, tasks: &[T], run: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let done = AtomicUsize::new(0);
        let counted = |task: &T| {
            let result = run(task);
            (self.progress)(done.fetch_add(1, SeqCst) + 1, tasks.len());
            result
        };
        run_all(tasks, self.extent.threads, &counted, &mut || {})
    }

    /// Returns the results of a trial (simulated run), one for each seed.
    pub fn over_seeds(&self, trial: Trial) -> Vec<Arc<TrialResult>> {
        let trials: Vec<_> =
            self.extent.seeds.iter().map(|&seed| Trial { seed, ..trial }).collect();
        self.results(&trials, false)
    }

    fn find(&self, trial: &Trial, follow_requests: bool) -> Option<Arc<TrialResult>> {
        let finished = lock(&self.finished);
        let fits = |finished: &&FinishedTrial| {
            finished.trial == *trial && (finished.follows_requests || !follow_requests)
        };
        finished.iter().find(fits).map(|finished| Arc::clone(&finished.result))
    }

    fn run(&self, trial: &Trial, follow_requests: bool) {
        let stream = self.stream(trial.seed, trial.mix);
        let probe =
            if follow_requests { TrialProbe::following_requests() } else { TrialProbe::default() };
        let result = trial::run(trial, &self.profile(), &stream.operations, probe);
        let result = result.unwrap_or_else(|error| panic!("{trial:?}: {error}"));
        lock(&self.finished).push(FinishedTrial {
            trial: *trial,
            follows_requests: follow_requests,
            result: Arc::new(result),
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_workload::Get;

    #[test]
    fn a_recorded_trace_gives_the_scale_and_the_operations() {
        let gets = vec![Get { time: 0, client: 0, url: 0, size: 1_058_206 }; 1000];
        let trace = Trace { gets, sites: vec![0], ..Trace::default() };
        let recorded = RecordedTrace { name: "t".into(), trace };
        assert!((recorded.scale() - 1000.0 / MEAN_SIZE).abs() < 1e-9);
        assert!((recorded.first(0.5).scale() - 500.0 / MEAN_SIZE).abs() < 1e-9);
        let extent = Extent { scale: 1.0, seeds: vec![1], threads: 1 };
        let lab = Lab::of_trace(&extent, recorded, &|_, _| {});
        assert_eq!(lab.stream(1, Mix::PAPER).operations.gets, 1000);
        assert!(lab.extent().scale < 1.0);
    }
}
