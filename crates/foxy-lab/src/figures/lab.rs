//! The trials that figures share, each run once: traces and URL operations by seed, results by trial, on all cores.

use super::observe::Observer;
use super::trial::{self, Trial, TrialResult};
use crate::sim::levels::{LevelCounts, Levels, operations};
use crate::sim::operation::Operations;
use foxy_device::DiskProfile;
use foxy_device::mechanical::SystemProfile;
use foxy_store::PolicyName;
use foxy_workload::trace::synthetic::{TABLE1, generate};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

/// URL-gets of the paper's trace (Table 1).
pub const GETS: f64 = 1_058_206.0;
/// Bytes of the paper's memory and disk caches.
const MEMORY: f64 = 536_870_912.0;
const DISK: f64 = 2_147_483_648.0;

/// Cylinders that Squid's 4,096 directories take; they do not shrink with the cache.
const DIRECTORY_CYLINDERS: u32 = 48;
/// Bytes of inode and directory blocks that the paper's machine kept: 2 % of its 384 MB, Solaris' default.
const METADATA_CACHE: u64 = 8 << 20;

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

/// Seed, and the bits of the shares of gets and disk.
type StreamKey = (u64, u64, u64);

/// The shared trials.
pub struct Lab<'a> {
    extent: Extent,
    progress: Progress<'a>,
    streams: Mutex<HashMap<StreamKey, Arc<Stream>>>,
    known: Mutex<Vec<Known>>,
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
    #[must_use]
    pub fn new(extent: Extent, progress: Progress<'a>) -> Self {
        Self { extent, progress, streams: Mutex::default(), known: Mutex::default() }
    }

    /// How much is run.
    #[must_use]
    pub const fn extent(&self) -> &Extent {
        &self.extent
    }

    /// The model disk, scaled: a smaller disk has fewer cylinders, and its arm takes as long from end to end. The
    /// system's caches shrink with it.
    #[must_use]
    pub fn profile(&self) -> DiskProfile {
        let profile = DiskProfile::st15150w();
        let scale = self.extent.scale;
        let cylinders = |count: u32| ((f64::from(count) * scale) as u32).max(64);
        let bytes = |count: u64| ((count as f64 * scale) as u64).max(64 << 10);
        let system = SystemProfile {
            page_cache: bytes(profile.system.page_cache),
            metadata_cache: bytes(METADATA_CACHE),
            ..profile.system
        };
        DiskProfile {
            cylinders: (cylinders(profile.cylinders) + DIRECTORY_CYLINDERS).min(profile.cylinders),
            seek_bend: cylinders(profile.seek_bend),
            system,
            ..profile
        }
    }

    /// The URL operations of the paper's trace, or of a share of its gets on a share of its disk.
    #[must_use]
    pub fn stream(&self, seed: u64, gets_share: f64, disk_share: f64) -> Arc<Stream> {
        let key = (seed, gets_share.to_bits(), disk_share.to_bits());
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stream) = streams.get(&key) {
            return Arc::clone(stream);
        }
        let scale = self.extent.scale;
        let trace = generate(&TABLE1, (GETS * scale * gets_share) as usize, seed);
        let levels = Levels {
            memory: (MEMORY * scale) as u64,
            disk: (DISK * scale * disk_share) as u64,
            policy: PolicyName::Lru,
            object_limit: u64::MAX,
        };
        let (operations, counts) = operations(&trace, &levels);
        let stream = Arc::new(Stream { operations, counts });
        streams.insert(key, Arc::clone(&stream));
        stream
    }

    /// The results of these trials, in order; those not known yet are run on all threads.
    ///
    /// # Panics
    /// When a store breaks its contract in a trial.
    #[must_use]
    pub fn results(&self, trials: &[Trial], follow_requests: bool) -> Vec<Arc<TrialResult>> {
        let todo: Vec<&Trial> =
            trials.iter().filter(|trial| self.find(trial, follow_requests).is_none()).collect();
        let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            for _ in 0..self.extent.threads.min(todo.len()) {
                scope.spawn(|| {
                    while let Some(trial) = todo.get(next.fetch_add(1, SeqCst)) {
                        self.run(trial, follow_requests);
                        (self.progress)(done.fetch_add(1, SeqCst) + 1, todo.len());
                    }
                });
            }
        });
        let found = trials.iter().map(|trial| self.find(trial, follow_requests));
        found.collect::<Option<_>>().expect("every trial was run")
    }

    /// The results of a trial for every seed.
    #[must_use]
    pub fn over_seeds(&self, trial: Trial) -> Vec<Arc<TrialResult>> {
        let trials: Vec<_> = self.extent.seeds.iter().map(|&seed| Trial { seed, ..trial }).collect();
        self.results(&trials, false)
    }

    fn find(&self, trial: &Trial, follow_requests: bool) -> Option<Arc<TrialResult>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |known: &&Known| known.0 == *trial && (known.1 || !follow_requests);
        known.iter().find(fits).map(|(_, _, result)| Arc::clone(result))
    }

    fn run(&self, trial: &Trial, follow_requests: bool) {
        let stream = self.stream(trial.seed, trial.gets_share, trial.disk_share);
        let eye = if follow_requests { Observer::following_requests() } else { Observer::default() };
        let result = trial::run(trial, &self.profile(), &stream.operations, eye);
        let result = result.unwrap_or_else(|error| panic!("{trial:?}: {error}"));
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.push((*trial, follow_requests, Arc::new(result)));
    }
}
