//! The threads or processes (workers) that carry out a storage scheme's operations on the modelled
//! disks. A scheme with threads has at most one operation per thread in progress. A scheme with a
//! helper process for each disk has one operation per disk in progress, in order. Further
//! operations wait.

use foxy_base::Instant;
use foxy_device::{Device, IoDone, IoId, IoOp, Mechanical};
use foxy_schemes::{AufsWrites, PreferredDevice, SchemeName};
use std::collections::{HashMap, VecDeque};

/// The number of threads of the storage scheme `aufs` for all disks, as in *Squid: The Definitive
/// Guide*. Also the number of objects that a proxy reads or writes at the same time, if its scheme
/// does not wait for the disk.
pub const THREADS: usize = 32;

/// Returns how many objects a proxy reads or writes at the same time with this storage scheme. With
/// a scheme without threads or helpers, the proxy waits for each object.
pub fn requests_at_once(scheme: SchemeName) -> usize {
    match scheme.row().device {
        PreferredDevice::Threads | PreferredDevice::Helper => THREADS,
        PreferredDevice::Any | PreferredDevice::Blocking => 1,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Workers {
    /// There are no workers: each operation starts when the storage scheme submits it.
    Caller,
    /// Threads that all serve one queue.
    Threads,
    /// A process for each disk, with its own queue.
    Helpers,
}

/// The operations that wait for the same workers, and the number in progress.
#[derive(Debug, Default)]
struct WorkQueue {
    waiting: VecDeque<(IoId, IoOp)>,
    in_service: usize,
}

/// Modelled disks, and the workers through which a storage scheme uses them.
#[derive(Debug)]
pub struct Crew {
    disks: Mechanical,
    workers: Workers,
    queues: HashMap<usize, WorkQueue>,
    /// The queue to which each operation in progress belongs.
    queue_of: HashMap<IoId, usize>,
    writes: AufsWrites,
    /// The operation for which the proxy itself waits. Until it ends, the proxy neither submits an
    /// operation nor sees the end of another operation.
    proxy_waits: Option<IoId>,
    /// Operations that the storage scheme submitted while the proxy waits.
    held_back: VecDeque<(IoId, IoOp)>,
    /// Results of the operations that ended while the proxy waits.
    unseen: Vec<IoDone>,
}

impl Crew {
    pub fn new(disks: Mechanical, scheme: SchemeName, writes: AufsWrites) -> Self {
        let workers = match scheme.row().device {
            PreferredDevice::Threads => Workers::Threads,
            PreferredDevice::Helper => Workers::Helpers,
            PreferredDevice::Any | PreferredDevice::Blocking => Workers::Caller,
        };
        Self {
            disks,
            workers,
            queues: HashMap::new(),
            queue_of: HashMap::new(),
            writes,
            proxy_waits: None,
            held_back: VecDeque::new(),
            unseen: Vec::new(),
        }
    }

    fn is_of_proxy(&self, op: &IoOp) -> bool {
        self.workers == Workers::Threads
            && self.writes == AufsWrites::Proxy
            && matches!(op, IoOp::Write { .. } | IoOp::Close { .. })
    }

    /// Submits what was held back, until the proxy waits again.
    fn submit_held_back(&mut self, now: Instant) {
        while self.proxy_waits.is_none()
            && let Some((id, op)) = self.held_back.pop_front()
        {
            self.submit(id, op, now);
        }
    }

    pub const fn disks(&mut self) -> &mut Mechanical {
        &mut self.disks
    }

    /// Starts waiting operations of a queue as long as a worker is free.
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
        if self.proxy_waits.is_some() {
            return self.held_back.push_back((id, op));
        }
        if self.is_of_proxy(&op) {
            self.proxy_waits = Some(id);
            return self.disks.submit(id, op, now);
        }
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
            let mut ended = Vec::new();
            self.disks.reap(now, &mut ended);
            if ended.is_empty() {
                return;
            }
            for finished in &ended {
                if self.proxy_waits == Some(finished.id) {
                    self.proxy_waits = None;
                }
                if let Some(number) = self.queue_of.remove(&finished.id) {
                    self.queues.entry(number).or_default().in_service -= 1;
                    self.start(number, now);
                }
            }
            self.unseen.append(&mut ended);
            if self.proxy_waits.is_none() {
                done.append(&mut self.unseen);
                self.submit_held_back(now);
            }
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        self.disks.next_completion()
    }

    fn in_flight(&self) -> usize {
        let waiting: usize = self.queues.values().map(|queue| queue.waiting.len()).sum();
        self.disks.in_flight() + waiting + self.held_back.len() + self.unseen.len()
    }
}

#[cfg(test)]
#[path = "crew_tests.rs"]
mod tests;
