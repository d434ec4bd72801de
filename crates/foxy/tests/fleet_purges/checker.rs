//! The checker of a random run. It knows every acknowledgement, and compares each later answer
//! with the acknowledgements that came before the request.

use crate::plan::{Fault, Phase};
use crate::support::Response;
use crate::versions::version;
use foxy_base::{Instant, clock};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts of a run.
#[derive(Default)]
pub struct Counts {
    pub hits: AtomicU64,
    pub validated: AtomicU64,
    pub fetched: AtomicU64,
    pub without_version: AtomicU64,
    pub cut_answers: AtomicU64,
    pub stale: AtomicU64,
    pub refused: AtomicU64,
    pub unknown: AtomicU64,
    pub removed_entries: AtomicU64,
}

pub fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

/// An acknowledged purge.
#[derive(Clone, Copy)]
pub struct Acknowledged {
    pub phase: Phase,
    pub took: Duration,
}

/// The purges, answers and faults of a run, with their times.
pub struct Checker {
    started: Instant,
    /// The newest version of each object whose purge was acknowledged.
    newest: Mutex<BTreeMap<String, u64>>,
    purges: Mutex<Vec<Acknowledged>>,
    faults: Mutex<BTreeMap<Fault, u64>>,
    journal: Mutex<Vec<String>>,
    findings: Mutex<Vec<String>>,
    pub counts: Counts,
}

impl Checker {
    pub fn new() -> Self {
        Self {
            started: clock::monotonic(),
            newest: Mutex::default(),
            purges: Mutex::default(),
            faults: Mutex::default(),
            journal: Mutex::default(),
            findings: Mutex::default(),
            counts: Counts::default(),
        }
    }

    fn stamp(&self, text: &str) -> String {
        let at = clock::monotonic().since(self.started).as_secs_f64();
        format!("{at:>9.3} s  {text}")
    }

    /// Notes an event for the report of a stale answer.
    pub fn note(&self, text: &str) {
        let line = self.stamp(text);
        self.journal.lock().expect("sound").push(line);
    }

    /// Notes the begin of a fault.
    pub fn begin(&self, fault: Fault, text: &str) {
        *self.faults.lock().expect("sound").entry(fault).or_default() += 1;
        self.note(text);
    }

    /// Returns how often a fault has begun.
    pub fn faults(&self, fault: Fault) -> u64 {
        self.faults.lock().expect("sound").get(&fault).copied().unwrap_or(0)
    }

    /// Returns the version that an answer must have if its request begins now.
    pub fn known(&self, path: &str) -> u64 {
        self.newest.lock().expect("sound").get(path).copied().unwrap_or(0)
    }

    pub fn acknowledge(&self, objects: &[(String, u64)], purge: Acknowledged, node: &str) {
        let mut newest = self.newest.lock().expect("sound");
        for (path, version) in objects {
            let known = newest.entry(path.clone()).or_default();
            *known = (*version).max(*known);
        }
        drop(newest);
        self.note(&format!("{node} acknowledged {objects:?} after {:?}", purge.took));
        self.purges.lock().expect("sound").push(purge);
    }

    /// Checks an answer of a node. `known` is the version that the answer must have.
    pub fn check(&self, answer: &Response, path: &str, known: u64, node: &str) {
        let counts = &self.counts;
        let (status, Some(got)) = (answer.cache_status(), version(answer)) else {
            if answer.status == 200 {
                self.find(&format!("{node} answered {path} with a mixed body"));
            }
            return add(&counts.without_version, 1);
        };
        if got < known {
            add(&counts.stale, 1);
            self.find(&format!("{node} answered {path} with version {got} < {known}: {status}"));
        }
        let counter = match status {
            status if status.contains("; hit") => &counts.hits,
            status if status.contains("fwd-status=304") => &counts.validated,
            _ => &counts.fetched,
        };
        add(counter, 1);
    }

    fn find(&self, text: &str) {
        self.note(&format!("FOUND: {text}"));
        let mut findings = self.findings.lock().expect("sound");
        if findings.len() < 5 {
            let journal = self.journal.lock().expect("sound");
            let recent = journal.iter().rev().take(80).rev().cloned().collect::<Vec<_>>();
            findings.push(format!("{text}\n{}", recent.join("\n")));
        }
    }

    pub fn findings(&self) -> String {
        self.findings.lock().expect("sound").join("\n\n")
    }

    pub fn acknowledged(&self) -> usize {
        self.purges.lock().expect("sound").len()
    }

    /// Returns the sorted times of acknowledgements in phases of a kind.
    pub fn times(&self, phase: Phase) -> Vec<Duration> {
        let purges = self.purges.lock().expect("sound");
        let of_phase = purges.iter().filter(|purge| purge.phase == phase);
        let mut times: Vec<_> = of_phase.map(|purge| purge.took).collect();
        times.sort_unstable();
        times
    }
}

/// Returns the time that a share of the sorted times does not exceed, in milliseconds.
pub fn percentile(times: &[Duration], share: usize) -> f64 {
    let place = (times.len() * share).div_ceil(100).saturating_sub(1);
    times.get(place).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
