//! A device that injects planned faults into a wrapped device. The faults fail, shorten, corrupt,
//! lose, delay and reorder operations. If the wrapped device is a volatile [`Memory`], it also
//! simulates crashes. A random seed determines all faults. [`FaultPlan`] describes each fault.
//! [`crate::memory`] describes the effect of a crash.

mod plan;

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::memory::{CrashPolicy, Memory};
use crate::park::{BlockingDevice, Waker};
use foxy_base::{Instant, Random};
use plan::Target;
pub use plan::{FaultCounts, FaultKind, FaultPlan};
use std::collections::BTreeMap;
use std::time::Duration;

/// Size of a disk sector in bytes.
const SECTOR: u64 = 512;

/// Maximum distance in sectors between the requested place of a misdirected write and its actual
/// place.
const MAX_MISDIRECTION: u64 = 64;

/// Wraps a device and injects faults into its operations.
#[derive(Debug)]
pub struct Faulty<D> {
    inner: D,
    plan: FaultPlan,
    random: Random,
    counts: FaultCounts,
    submissions: u64,
    in_flight: usize,
    /// Delayed operations that the wrapped device receives only at the end of their delay.
    deferred: BTreeMap<Due, (IoId, IoOp)>,
    /// How a fault changes the result of each operation. Contains the operations that the wrapped
    /// device received or will receive.
    expected: BTreeMap<IoId, Expected>,
    /// Results of the wrapped device that `reap` returns only at the end of their delay.
    waiting: BTreeMap<Due, IoDone>,
    seen: Instant,
}

/// An operation whose fault was chosen. `passed` is the operation for the wrapped device, if the
/// wrapped device receives one. `buffer` is the submitter's buffer, if `passed` does not contain
/// it. `outcome` is the change to the result.
struct Planned {
    passed: Option<IoOp>,
    buffer: Option<IoBuffer>,
    outcome: Outcome,
}

impl<D: Device> Faulty<D> {
    /// Wraps `inner` and injects the faults of `plan`. Random choices come from `seed`.
    pub fn new(inner: D, plan: FaultPlan, seed: u64) -> Self {
        Self {
            inner,
            plan,
            random: Random::new(seed),
            counts: FaultCounts::default(),
            submissions: 0,
            in_flight: 0,
            deferred: BTreeMap::new(),
            expected: BTreeMap::new(),
            waiting: BTreeMap::new(),
            seen: Instant::ZERO,
        }
    }

    /// Sets the fault plan for operations that are submitted later.
    pub const fn set_plan(&mut self, plan: FaultPlan) {
        self.plan = plan;
    }

    /// Returns the number of injected faults of each kind.
    pub const fn counts(&self) -> FaultCounts {
        self.counts
    }

    /// Returns the wrapped device.
    pub const fn inner(&self) -> &D {
        &self.inner
    }

    fn apply(&mut self, kind: Option<FaultKind>, op: IoOp) -> Planned {
        let plain = |passed, outcome| Planned { passed: Some(passed), buffer: None, outcome };
        let Some(kind) = kind else { return plain(op, Outcome::AsItIs) };
        self.counts.add(kind);
        match op {
            IoOp::Write { file, offset, buffer } => self.spoil_write(kind, file, offset, buffer),
            IoOp::Read { file, offset, buffer } => {
                let outcome = match kind {
                    FaultKind::ShortRead => Outcome::ReadsShort(self.below(buffer.len())),
                    FaultKind::FlipRead => Outcome::Flips(self.random.next_u64()),
                    _ => {
                        return Planned {
                            passed: None,
                            buffer: Some(buffer),
                            outcome: failure(kind),
                        };
                    }
                };
                plain(IoOp::Read { file, offset, buffer }, outcome)
            }
            _ => Planned { passed: None, buffer: None, outcome: failure(kind) },
        }
    }

    fn spoil_write(
        &mut self,
        kind: FaultKind,
        file: FileId,
        offset: u64,
        buffer: IoBuffer,
    ) -> Planned {
        let write =
            |offset, bytes: &[u8]| IoOp::Write { file, offset, buffer: IoBuffer::copy_of(bytes) };
        let length = buffer.len();
        let (passed, outcome) = match kind {
            FaultKind::ShortWrite => {
                let kept = self.below(length);
                (Some(write(offset, &buffer.as_ref()[..kept])), Outcome::AsItIs)
            }
            FaultKind::FlipWritten => {
                let mut flipped = IoBuffer::copy_of(buffer.as_ref());
                flip(flipped.as_mut(), self.random.next_u64());
                (Some(IoOp::Write { file, offset, buffer: flipped }), Outcome::AsItIs)
            }
            FaultKind::LostWrite => (None, Outcome::AsItIs),
            FaultKind::MisdirectedWrite => {
                let distance = SECTOR * (1 + self.random.below(MAX_MISDIRECTION));
                let back = self.random.chance(0.5) && offset >= distance;
                let place = if back { offset - distance } else { offset.saturating_add(distance) };
                (Some(write(place, buffer.as_ref())), Outcome::AsItIs)
            }
            _ => {
                let kept = self.below(length + 1);
                (Some(write(offset, &buffer.as_ref()[..kept])), failure(kind))
            }
        };
        Planned { passed, buffer: Some(buffer), outcome }
    }

    /// Draws a random delay and returns the time at which the operation finishes. `closes` is true
    /// for a `Close`, which finishes after all delayed operations that were submitted earlier.
    fn due(&mut self, closes: bool, now: Instant) -> Due {
        let latency = self.plan.draw_latency(&mut self.random);
        let last_late = self.deferred.last_key_value().map_or(now, |(due, _)| due.at);
        let start = if closes { now.max(last_late) } else { now };
        self.submissions += 1;
        Due { at: start + latency, number: self.submissions }
    }

    /// Takes finished operations from the wrapped device, and changes their results as the faults
    /// demand.
    fn collect(&mut self, now: Instant) {
        let mut done = Vec::new();
        self.inner.reap(now, &mut done);
        for done in done {
            if let Some(expected) = self.expected.remove(&done.id) {
                self.waiting.insert(expected.due, expected.settle(done));
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.below(bound as u64)).unwrap_or(0)
    }

    fn next_due(&self) -> Option<Instant> {
        let deferred = self.deferred.first_key_value().map(|(due, _)| due.at);
        let waiting = self.waiting.first_key_value().map(|(due, _)| due.at);
        deferred.into_iter().chain(waiting).min()
    }
}

impl Faulty<Memory> {
    /// Simulates a crash of the machine. Each delayed operation takes effect with probability one
    /// half. Operations in flight never return a result. Then [`Memory::crash`] decides which
    /// changes survive. The fault plan stays active after the crash.
    pub fn crash(&mut self, policy: &CrashPolicy) {
        for (due, (id, op)) in std::mem::take(&mut self.deferred) {
            if self.random.chance(0.5) {
                self.inner.submit(id, op, due.at);
            }
        }
        self.expected.clear();
        self.waiting.clear();
        self.in_flight = 0;
        self.inner.crash(policy, &mut self.random);
    }
}

fn failure(kind: FaultKind) -> Outcome {
    Outcome::Fails(if kind == FaultKind::NoSpace { IoError::NoSpace } else { IoError::Device })
}

fn target(op: &IoOp) -> Target {
    match op {
        IoOp::Read { buffer, .. } if !buffer.is_empty() => Target::Read,
        IoOp::Write { buffer, .. } if !buffer.is_empty() => Target::Write,
        IoOp::Create { .. } => Target::Create,
        IoOp::Close { .. } => Target::Close,
        _ => Target::Other,
    }
}

impl<D: Device> Device for Faulty<D> {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        let target = target(&op);
        let due = self.due(target == Target::Close, now);
        let at_end = self.random.chance(0.5) && !matches!(op, IoOp::Sync { .. });
        let kind = self.plan.draw(target, &mut self.random);
        let Planned { passed, buffer, outcome } = self.apply(kind, op);
        self.in_flight += 1;
        self.seen = now;
        let expected = Expected { due, buffer, outcome };
        let Some(op) = passed else {
            let count = expected.buffer.as_ref().map_or(0, IoBuffer::len);
            let done = IoDone { id, result: Ok(IoOutput::Moved { count }), buffer: None };
            self.waiting.insert(due, expected.settle(done));
            return;
        };
        self.expected.insert(id, expected);
        if at_end || target == Target::Close {
            self.deferred.insert(due, (id, op));
        } else {
            self.inner.submit(id, op, now);
            self.collect(now);
        }
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.seen = now;
        while let Some(entry) = self.deferred.first_entry()
            && entry.key().at <= now
        {
            let (id, op) = entry.remove();
            self.inner.submit(id, op, now);
        }
        self.collect(now);
        while let Some(entry) = self.waiting.first_entry()
            && entry.key().at <= now
        {
            done.push(entry.remove());
            self.in_flight -= 1;
        }
    }

    fn next_completion(&self) -> Option<Instant> {
        self.next_due().into_iter().chain(self.inner.next_completion()).min()
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl<D: BlockingDevice> BlockingDevice for Faulty<D> {
    fn wait(&mut self, timeout: Option<Duration>) {
        let left = self.next_due().map(|due| due.since(self.seen));
        self.inner.wait(left.into_iter().chain(timeout).min());
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }
}

/// Value of the bytes at the end of a buffer that a short read did not fill.
const GARBAGE: u8 = 0xdb;

/// The time at which an operation or result is due. `number` keeps events with equal times in the
/// order of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Instant,
    number: u64,
}

/// An operation that the wrapped device received or will receive, and the change to its result.
#[derive(Debug)]
struct Expected {
    due: Due,
    /// The submitter's buffer, if the wrapped device received a different buffer. The result must
    /// return the submitter's buffer.
    buffer: Option<IoBuffer>,
    outcome: Outcome,
}

/// How the fault injection changes the result of an operation.
#[derive(Clone, Copy, Debug)]
enum Outcome {
    AsItIs,
    Fails(IoError),
    /// The read returns at most this number of bytes.
    ReadsShort(usize),
    /// The read returns one flipped bit: the bit with this index, modulo the number of bits in the
    /// buffer.
    Flips(u64),
}

impl Expected {
    fn settle(self, done: IoDone) -> IoDone {
        let mut buffer = self.buffer.or(done.buffer);
        let result = match (self.outcome, done.result) {
            (Outcome::Fails(error), _) => Err(error),
            (Outcome::ReadsShort(most), Ok(IoOutput::Moved { count })) => {
                Ok(IoOutput::Moved { count: count.min(most) })
            }
            (_, result) => result,
        };
        if let (Ok(IoOutput::Moved { count }), Some(buffer)) = (&result, &mut buffer) {
            match self.outcome {
                Outcome::Flips(at) => flip(&mut buffer.as_mut()[..*count], at),
                Outcome::ReadsShort(_) => buffer.as_mut()[*count..].fill(GARBAGE),
                Outcome::AsItIs | Outcome::Fails(_) => {}
            }
        }
        IoDone { id: done.id, result, buffer }
    }
}

fn flip(bytes: &mut [u8], at: u64) {
    if !bytes.is_empty() {
        let bit = at % (bytes.len() as u64 * 8);
        let byte = usize::try_from(bit / 8).expect("within a slice");
        bytes[byte] ^= 1 << (bit % 8);
    }
}
