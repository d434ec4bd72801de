//! Drives the production code of a scheme with a stream of URL operations, as the paper's
//! file-space simulator did (R9, R14): on a modelled disk in virtual time, or on real files. One
//! process works through the stream; it waits for each answer, except that schemes which gather
//! reads are asked for several at once.

use super::operation::{Operation, OperationKind};
pub use super::outcome::{DriveError, Outcome};
use super::pace::TimeSource;
use super::sizing::pieces_of;
use bytes::Bytes;
use foxy_base::Instant;
use foxy_device::Device;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::engine::{Engine, Wake};
use foxy_store::status::StoreStatus;
use foxy_store::{
    AbsentReason, Answer, Ask, Key, Observer, PlacementHint, Record, RefusedReason, Scheme, Site,
};
use std::time::Duration;

/// The largest piece of a URL that is one record; what is larger is written as several.
pub const PIECE: u64 = 1 << 20;

/// A scheme to drive.
#[derive(Clone, Debug)]
pub struct Subject {
    /// Which.
    pub scheme: SchemeName,
    /// As it is made.
    pub settings: SchemeSettings,
    /// URL-reads asked for before the first is answered; 1 for a process that waits for each.
    pub reads_at_once: usize,
    /// URL-writes under way at once; 1 for a process that waits for each.
    pub writes_at_once: usize,
}

struct WaitingOperation {
    kind: OperationKind,
    asked: Instant,
}

/// A run under way.
pub struct Drive<D, P> {
    engine: Engine<D, WaitingOperation>,
    pace: P,
    subject: Subject,
    reads: usize,
    writes: usize,
    busy: bool,
    outcome: Outcome,
    body: Bytes,
    opening: Duration,
    began: Instant,
}

impl<D: Device, P: TimeSource<D>> Drive<D, P> {
    /// Opens the store.
    ///
    /// # Errors
    /// When it cannot be used.
    pub fn start(
        subject: Subject,
        device: D,
        pace: P,
        observer: Observer,
    ) -> Result<Self, DriveError> {
        let scheme = subject.scheme.make(&subject.settings, observer.clone());
        let outcome = Outcome {
            took: Duration::ZERO,
            operations: 0,
            found: 0,
            lost: 0,
            refused: 0,
            first_refusal: None,
            disk_full: false,
            latencies: Vec::new(),
        };
        let body = Bytes::from(vec![0x5a; PIECE as usize]);
        let engine = Engine::new(scheme, device, observer.clone());
        let (began, opening) = (pace.now(), Duration::ZERO);
        let mut drive = Self {
            engine,
            pace,
            subject,
            reads: 0,
            writes: 0,
            busy: false,
            outcome,
            body,
            opening,
            began,
        };
        let now = drive.pace.now();
        drive.engine.start(now, &mut |_, _| {});
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

    /// Waits until the store serves, or will not.
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

    /// How long the store took from its start until it served.
    pub const fn opening(&self) -> Duration {
        self.opening
    }

    /// Carries one operation out; returns when the next may follow.
    ///
    /// # Errors
    /// When the store does not answer.
    pub fn operation(&mut self, operation: Operation) -> Result<(), DriveError> {
        self.outcome.operations += 1;
        let Operation { kind, url, site, size } = operation;
        let pieces = pieces_of(size);
        for piece in 0..pieces {
            let key = key_of(url, piece);
            loop {
                self.busy = false;
                let length = (size - piece * PIECE).min(PIECE) as usize;
                let ask = match kind {
                    OperationKind::Read => Ask::Get(key),
                    OperationKind::Delete => Ask::Remove(key),
                    OperationKind::Write => {
                        let record = Record { head: Bytes::new(), body: self.body.slice(..length) };
                        let hint = PlacementHint {
                            site: Site(u64::from(site)),
                            size,
                            ..PlacementHint::default()
                        };
                        Ask::Put(key, record, hint)
                    }
                };
                self.ask(kind, ask);
                let progress = self.make_progress()?;
                if !self.busy {
                    break;
                }
                // A removal is turned away by a journal that is full; what is due later does not
                // empty it.
                let deletes = kind == OperationKind::Delete;
                let deadline = if deletes { None } else { self.engine.deadline() };
                if !progress && !self.wait(deadline) {
                    self.refuse(RefusedReason::Busy);
                    break;
                }
            }
        }
        Ok(())
    }

    fn ask(&mut self, kind: OperationKind, ask: Ask) {
        match kind {
            OperationKind::Read => self.reads += 1,
            OperationKind::Write | OperationKind::Delete => self.writes += 1,
        }
        let waiting = WaitingOperation { kind, asked: self.pace.now() };
        self.wake(Wake::Request(ask, waiting));
    }

    fn wake(&mut self, wake: Wake<WaitingOperation>) {
        let now = self.pace.now();
        let mut answers = Vec::new();
        self.engine.wake(wake, now, &mut |who, answer| answers.push((who, answer)));
        self.take(answers);
    }

    /// Waits until no more is under way than may be. Says whether anything happened.
    fn make_progress(&mut self) -> Result<bool, DriveError> {
        let mut progress = false;
        while self.reads >= self.subject.reads_at_once || self.writes >= self.subject.writes_at_once
        {
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
        let anything = self.engine.turn(now, &mut |who, answer| answers.push((who, answer)));
        self.take(answers);
        anything
    }

    fn wait(&mut self, deadline: Option<Instant>) -> bool {
        self.pace.wait(self.engine.device(), deadline)
    }

    fn take(&mut self, answers: Vec<(WaitingOperation, Answer)>) {
        for (WaitingOperation { kind, asked }, answer) in answers {
            match kind {
                OperationKind::Read => self.reads -= 1,
                OperationKind::Write | OperationKind::Delete => self.writes -= 1,
            }
            match answer {
                Answer::Absent(AbsentReason::Busy) | Answer::Refused(RefusedReason::Busy) => {
                    self.busy = true;
                    continue;
                }
                Answer::Found(_) => self.outcome.found += 1,
                Answer::Absent(_) => self.outcome.lost += 1,
                Answer::Refused(reason) => self.refuse(reason),
                Answer::Stored | Answer::Removed | Answer::Closed => {}
            }
            if kind != OperationKind::Delete {
                let took = self.pace.now().since(asked).as_micros();
                self.outcome.latencies.push(u32::try_from(took).unwrap_or(u32::MAX));
            }
        }
    }

    fn refuse(&mut self, reason: RefusedReason) {
        self.outcome.refused += 1;
        self.outcome.first_refusal.get_or_insert(reason);
    }

    /// Waits until nothing is under way.
    fn settle(&mut self) {
        loop {
            while self.turn() {}
            let deadline = if self.engine.waiting() > 0 { self.engine.deadline() } else { None };
            if !self.wait(deadline) {
                return;
            }
        }
    }

    /// The scheme, to look at it.
    pub fn scheme(&self) -> &dyn Scheme {
        self.engine.scheme()
    }

    /// The device.
    pub const fn device(&mut self) -> &mut D {
        self.engine.device()
    }

    /// Time since the first operation.
    pub fn elapsed(&self) -> Duration {
        self.pace.now().since(self.began)
    }

    /// Waits until nothing is under way, and gives what the run came to, and the device.
    pub fn finish(mut self) -> (Outcome, D) {
        self.settle();
        (self.outcome(), self.engine.into_device())
    }

    /// The same, with what the store does to be opened again: what it has buffered is written too.
    /// `before_close` is called when nothing is under way any more.
    pub fn close(mut self, before_close: impl FnOnce()) -> (Outcome, D) {
        self.settle();
        before_close();
        self.writes += 1;
        let asked = self.pace.now();
        self.wake(Wake::Shutdown(WaitingOperation { kind: OperationKind::Delete, asked }));
        self.settle();
        (self.outcome(), self.engine.into_device())
    }

    fn outcome(&mut self) -> Outcome {
        self.outcome.took = self.elapsed();
        self.outcome.disk_full = self.engine.observer().statistics.no_room.get() > 0;
        self.outcome.latencies.sort_unstable();
        self.outcome.clone()
    }
}

/// The key of a piece of a URL.
pub fn key_of(url: u32, piece: u64) -> Key {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&url.to_le_bytes());
    key[4..12].copy_from_slice(&piece.to_le_bytes());
    let mut seed = u64::from(url) ^ piece << 32;
    key[8..].copy_from_slice(&foxy_base::random::split_mix(&mut seed).to_le_bytes());
    Key(key)
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
