//! Runs a storage scheme with the disk operations of a trace, like the file-space simulator of the
//! WebCoSM paper (paper 001 in docs/figures.md). The disk is a modelled disk in virtual time, or a
//! real device. One process sends the operations in order and waits for each answer. A scheme that
//! gathers reads gets several requests at once.

use super::operation::{Operation, OperationKind};
pub use super::outcome::{DriveError, Outcome};
use super::sizing::pieces_of;
use bytes::Bytes;
use foxy_base::{Instant, clock};
use foxy_device::{BlockingDevice, Device};
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::engine::{Engine, Wake};
use foxy_store::status::StoreStatus;
use foxy_store::{
    AbsentReason, Answer, Ask, Key, Observer, PlacementHint, Record, RefusedReason, Site,
};
use std::time::Duration;

/// The largest body of a record in bytes. The object of a URL may have several records.
pub const PIECE_BYTES: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub struct StoreSetup {
    pub scheme: SchemeName,
    pub settings: SchemeSettings,
    /// The largest number of reads in progress. With 1, the process waits for each read.
    pub reads_at_once: usize,
    /// The largest number of writes and deletions in progress. With 1, the process waits for each.
    pub writes_at_once: usize,
}

pub(crate) struct WaitingOperation {
    kind: OperationKind,
    asked: Instant,
}

pub struct Drive<D, P> {
    engine: Engine<D, WaitingOperation>,
    pace: P,
    setup: StoreSetup,
    reads: usize,
    writes: usize,
    is_busy: bool,
    outcome: Outcome,
    body: Bytes,
    opening: Duration,
    began: Instant,
}

impl<D: Device, P: TimeSource<D>> Drive<D, P> {
    pub fn start(
        setup: StoreSetup,
        device: D,
        pace: P,
        observer: Observer,
    ) -> Result<Self, DriveError> {
        let scheme = setup.scheme.make(&setup.settings, observer.clone());
        let began = pace.now();
        let mut drive = Self {
            engine: Engine::new(scheme, device, observer.clone()),
            pace,
            setup,
            reads: 0,
            writes: 0,
            is_busy: false,
            outcome: Outcome::default(),
            body: Bytes::from(vec![0x5a; PIECE_BYTES as usize]),
            opening: Duration::ZERO,
            began,
        };
        drive.engine.start(began, &mut |_, _| {});
        drive.open(&observer);
        drive.settle();
        drive.ask(OperationKind::Delete, Ask::Remove(Key([0xff; 16])));
        drive.settle();
        if drive.outcome.refused > 0 {
            return Err(DriveError::Unusable(RefusedReason::Closed));
        }
        drive.began = drive.pace.now();
        Ok(drive)
    }

    fn open(&mut self, observer: &Observer) {
        loop {
            while self.turn() {}
            let opening =
                matches!(observer.status.get(), StoreStatus::Opening | StoreStatus::Rebuilding);
            if !opening || !self.wait(self.engine.deadline()) {
                self.opening = self.elapsed();
                return;
            }
        }
    }

    /// Returns the time from the start of the store until it accepted requests.
    pub const fn opening(&self) -> Duration {
        self.opening
    }

    /// Carries out one operation. Returns as soon as the next operation may start.
    pub fn operation(&mut self, operation: Operation) -> Result<(), DriveError> {
        self.outcome.operations += 1;
        for piece in 0..pieces_of(operation.size) {
            loop {
                self.is_busy = false;
                self.ask(operation.kind, self.request(operation, piece));
                let progress = self.make_progress()?;
                if !self.is_busy {
                    break;
                }
                // The store refuses removals while its journal is full. Waiting until a deadline of
                // the store would not change this.
                let deletes = operation.kind == OperationKind::Delete;
                let deadline = if deletes { None } else { self.engine.deadline() };
                if !progress && !self.wait(deadline) {
                    self.refuse(RefusedReason::Busy);
                    break;
                }
            }
        }
        Ok(())
    }

    fn request(&self, Operation { kind, url, site, size }: Operation, piece: u64) -> Ask {
        let key = key_of(url, piece);
        match kind {
            OperationKind::Read => Ask::Get(key),
            OperationKind::Delete => Ask::Remove(key),
            OperationKind::Write => {
                let length = (size - piece * PIECE_BYTES).min(PIECE_BYTES) as usize;
                let record = Record { head: Bytes::new(), body: self.body.slice(..length) };
                let site = Site(u64::from(site));
                Ask::Put(key, record, PlacementHint { site, size, ..PlacementHint::default() })
            }
        }
    }

    fn ask(&mut self, kind: OperationKind, ask: Ask) {
        *self.in_flight(kind) += 1;
        let waiting = WaitingOperation { kind, asked: self.pace.now() };
        self.wake(Wake::Request(ask, waiting));
    }

    const fn in_flight(&mut self, kind: OperationKind) -> &mut usize {
        match kind {
            OperationKind::Read => &mut self.reads,
            OperationKind::Write | OperationKind::Delete => &mut self.writes,
        }
    }

    fn wake(&mut self, wake: Wake<WaitingOperation>) {
        let now = self.pace.now();
        let mut answers = Vec::new();
        self.engine.wake(wake, now, &mut |request, answer| answers.push((request, answer)));
        self.take(answers);
    }

    /// Waits until fewer requests are in progress than the limits allow. Returns whether the engine
    /// did any work, and fails if it cannot go on.
    fn make_progress(&mut self) -> Result<bool, DriveError> {
        let mut progress = false;
        while self.reads >= self.setup.reads_at_once || self.writes >= self.setup.writes_at_once {
            progress = true;
            if !self.turn() && !self.wait(self.engine.deadline()) {
                return Err(DriveError::Stalled);
            }
        }
        while self.turn() {
            progress = true;
        }
        Ok(progress)
    }

    fn turn(&mut self) -> bool {
        let now = self.pace.now();
        let mut answers = Vec::new();
        let anything =
            self.engine.turn(now, &mut |request, answer| answers.push((request, answer)));
        self.take(answers);
        anything
    }

    fn wait(&mut self, deadline: Option<Instant>) -> bool {
        self.pace.wait(self.engine.device(), deadline)
    }

    fn take(&mut self, answers: Vec<(WaitingOperation, Answer)>) {
        for (WaitingOperation { kind, asked }, answer) in answers {
            *self.in_flight(kind) -= 1;
            match answer {
                Answer::Absent(AbsentReason::Busy) | Answer::Refused(RefusedReason::Busy) => {
                    self.is_busy = true;
                    continue;
                }
                Answer::Found(_) => self.outcome.found += 1,
                Answer::Absent(_) => self.outcome.lost += 1,
                Answer::Refused(reason) => self.refuse(reason),
                Answer::Stored | Answer::Removed | Answer::Closed => {}
            }
            if kind != OperationKind::Delete {
                let took = self.pace.now().since(asked).as_micros();
                let took = u32::try_from(took).unwrap_or(u32::MAX);
                self.outcome.latencies.push(took);
                if kind == OperationKind::Read {
                    self.outcome.read_latencies.push(took);
                }
            }
        }
    }

    fn refuse(&mut self, reason: RefusedReason) {
        self.outcome.refused += 1;
        self.outcome.first_refusal.get_or_insert(reason);
    }

    fn settle(&mut self) {
        loop {
            while self.turn() {}
            let deadline = if self.engine.waiting() > 0 { self.engine.deadline() } else { None };
            if !self.wait(deadline) {
                return;
            }
        }
    }

    pub(crate) const fn engine(&mut self) -> &mut Engine<D, WaitingOperation> {
        &mut self.engine
    }

    /// Returns the time since the start of the first operation.
    pub fn elapsed(&self) -> Duration {
        self.pace.now().since(self.began)
    }

    /// Waits until no request is in progress. Returns the outcome and the device.
    pub fn finish(mut self) -> (Outcome, D) {
        self.settle();
        (self.outcome(), self.engine.into_device())
    }

    /// Closes the store and returns the outcome and the device. The closing store writes its
    /// buffers, so it can be opened again. Calls `before_close` once no request is in progress.
    pub fn close(mut self, before_close: impl FnOnce()) -> (Outcome, D) {
        self.settle();
        before_close();
        self.writes += 1;
        let closing = WaitingOperation { kind: OperationKind::Delete, asked: self.pace.now() };
        self.wake(Wake::Shutdown(closing));
        self.settle();
        (self.outcome(), self.engine.into_device())
    }

    fn outcome(&mut self) -> Outcome {
        self.outcome.took = self.elapsed();
        self.outcome.disk_full = self.engine.observer().statistics.no_room.get() > 0;
        self.outcome.latencies.sort_unstable();
        self.outcome.read_latencies.sort_unstable();
        self.outcome.clone()
    }
}

pub fn key_of(url: u32, piece: u64) -> Key {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&url.to_le_bytes());
    key[4..12].copy_from_slice(&piece.to_le_bytes());
    let mut seed = u64::from(url) ^ piece << 32;
    key[8..].copy_from_slice(&foxy_base::random::split_mix(&mut seed).to_le_bytes());
    Key(key)
}

/// The longest time to wait for the next completed operation of a real device.
const PATIENCE: Duration = Duration::from_secs(60);

pub trait TimeSource<D> {
    fn now(&self) -> Instant;
    /// Lets time pass until the device completes an operation, or until `deadline`. Returns false
    /// if neither will happen.
    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct VirtualTime(pub Instant);

impl<D: Device> TimeSource<D> for VirtualTime {
    fn now(&self) -> Instant {
        self.0
    }

    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool {
        let next = device.next_completion().into_iter().chain(deadline).min();
        self.0 = self.0.max(next.unwrap_or(self.0));
        next.is_some()
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub struct RealTime;

impl<D: BlockingDevice> TimeSource<D> for RealTime {
    fn now(&self) -> Instant {
        clock::monotonic()
    }

    fn wait(&mut self, device: &mut D, deadline: Option<Instant>) -> bool {
        let busy = device.in_flight() > 0;
        if busy || deadline.is_some() {
            let now = clock::monotonic();
            device.wait(deadline.map(|deadline| deadline.since(now)).or(Some(PATIENCE)));
        }
        busy || deadline.is_some()
    }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
