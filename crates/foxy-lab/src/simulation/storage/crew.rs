//! The threads or processes that carry out a scheme's operations on the modelled disks. A scheme
//! with threads has as many operations in service as threads. A scheme with a helper process for
//! each disk has one operation of each disk in service, in order. Further operations wait.

use foxy_base::Instant;
use foxy_device::{Device, IoDone, IoId, IoOp, Mechanical};
use foxy_schemes::{PreferredDevice, SchemeName};
use std::collections::{HashMap, VecDeque};

/// The number of threads of `aufs` for all disks, as in seed 000 (R80). Also the number of URL
/// operations in flight of a scheme that does not wait for its disk.
pub const THREADS: usize = 32;

/// Returns the number of URL operations that a proxy has in flight with this scheme. A scheme
/// without threads or helper blocks the proxy.
pub fn requests_at_once(scheme: SchemeName) -> usize {
    match scheme.row().device {
        PreferredDevice::Threads | PreferredDevice::Helper => THREADS,
        PreferredDevice::Any | PreferredDevice::Blocking => 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// Each operation starts when the scheme submits it.
    Caller,
    /// All threads serve one queue.
    Threads,
    /// Each disk has a process with its own queue.
    Helpers,
}

/// Operations that wait for the same workers.
#[derive(Debug, Default)]
struct WorkQueue {
    waiting: VecDeque<(IoId, IoOp)>,
    in_service: usize,
}

/// Modelled disks, and the workers between a scheme and these disks.
#[derive(Debug)]
pub struct Crew {
    disks: Mechanical,
    workers: Workers,
    queues: HashMap<usize, WorkQueue>,
    /// The queue of each operation in service.
    queue_of: HashMap<IoId, usize>,
}

impl Crew {
    pub fn new(disks: Mechanical, scheme: SchemeName) -> Self {
        let workers = match scheme.row().device {
            PreferredDevice::Threads => Workers::Threads,
            PreferredDevice::Helper => Workers::Helpers,
            PreferredDevice::Any | PreferredDevice::Blocking => Workers::Caller,
        };
        Self { disks, workers, queues: HashMap::new(), queue_of: HashMap::new() }
    }

    pub const fn disks(&mut self) -> &mut Mechanical {
        &mut self.disks
    }

    /// Starts waiting operations of a queue while workers are free.
    fn start(&mut self, number: usize, now: Instant) {
        let most = if self.workers == Workers::Helpers { 1 } else { THREADS };
        let queue = self.queues.entry(number).or_default();
        while queue.in_service < most
            && let Some((id, op)) = queue.waiting.pop_front()
        {
            queue.in_service += 1;
            self.queue_of.insert(id, number);
            self.disks.submit(id, op, now);
        }
    }
}

impl Device for Crew {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        let number = match self.workers {
            Workers::Caller => return self.disks.submit(id, op, now),
            Workers::Threads => 0,
            Workers::Helpers => self.disks.disk_of(&op),
        };
        self.queues.entry(number).or_default().waiting.push_back((id, op));
        self.start(number, now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        loop {
            let before = done.len();
            self.disks.reap(now, done);
            if done.len() == before {
                return;
            }
            for finished in &done[before..] {
                if let Some(number) = self.queue_of.remove(&finished.id) {
                    self.queues.entry(number).or_default().in_service -= 1;
                    self.start(number, now);
                }
            }
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        self.disks.next_completion()
    }

    fn in_flight(&self) -> usize {
        let waiting: usize = self.queues.values().map(|queue| queue.waiting.len()).sum();
        self.disks.in_flight() + waiting
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
