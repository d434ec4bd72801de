//! Runs writes and syncs in a fixed order, and tracks how a failed sync affects later syncs.

use crate::one_file::superblock::Superblock;
use foxy_device::{IoBuffer, IoError};
use std::collections::VecDeque;
use std::convert::Infallible;

/// One step of a sequence. `T` names a write whose failure does not end the sequence.
#[derive(Debug)]
pub enum IoStep<T = Infallible> {
    /// Writes a buffer at a byte offset.
    Write(u64, IoBuffer),
    /// Writes a buffer at a byte offset. If the write fails, the scheme handles the failure.
    Optional(T, u64, IoBuffer),
    /// Makes all completed writes durable.
    Sync,
}

/// Writes both copies of a superblock. The first copy is durable before the write of the second
/// copy starts.
pub fn superblock_steps<T>(superblock: &Superblock) -> [IoStep<T>; 4] {
    let page = superblock.encode();
    let copy = |place: u64| IoStep::Write(place * page.len() as u64, IoBuffer::copy_of(&page));
    [copy(0), IoStep::Sync, copy(1), IoStep::Sync]
}

/// What to do after a step.
#[derive(Debug)]
pub enum Advance<A, T = Infallible> {
    /// Run the next step of the sequence.
    Step(IoStep<T>),
    /// The sequence ended, with the value that was passed to `start`.
    Ended(A),
    /// There is no running sequence.
    Idle,
}

/// Runs one sequence of steps at a time. `A` names the action after the sequence.
#[derive(Debug)]
pub struct IoSequence<A, T = Infallible> {
    running: Option<(VecDeque<IoStep<T>>, A)>,
}

impl<A, T> Default for IoSequence<A, T> {
    fn default() -> Self {
        Self { running: None }
    }
}

impl<A, T> IoSequence<A, T> {
    /// Whether no sequence runs.
    pub const fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Starts a sequence; [`IoSequence::advance`] returns its first step.
    ///
    /// # Panics
    /// If a sequence is already running.
    pub fn start(&mut self, steps: Vec<IoStep<T>>, after: A) {
        assert!(self.is_idle(), "one sequence at a time");
        self.running = Some((steps.into(), after));
    }

    /// Processes the result of the last step. An error ends the sequence.
    pub fn advance(&mut self, result: Result<(), IoError>) -> Advance<A, T> {
        let Some((steps, _)) = &mut self.running else { return Advance::Idle };
        if result.is_ok()
            && let Some(step) = steps.pop_front()
        {
            return Advance::Step(step);
        }
        self.abandon().map_or(Advance::Idle, Advance::Ended)
    }

    /// Stops the running sequence.
    pub fn abandon(&mut self) -> Option<A> {
        self.running.take().map(|(_, after)| after)
    }
}

/// Counts failed syncs. After a failed sync the operating system may drop written pages, and no
/// later sync makes them durable.
#[derive(Debug, Default)]
pub struct SyncFailures(u32);

/// The number of failed syncs when an operation was submitted.
#[derive(Clone, Copy, Debug)]
pub struct FailuresBefore(u32);

impl SyncFailures {
    /// Whether every sync succeeded.
    pub const fn is_intact(&self) -> bool {
        self.0 == 0
    }

    /// The value to store with a sync that is submitted now.
    pub const fn before(&self) -> FailuresBefore {
        FailuresBefore(self.0)
    }

    /// The result of a sync. It also fails if another sync failed while this sync was in flight,
    /// because the written pages may be lost.
    pub fn judge(
        &mut self,
        before: FailuresBefore,
        result: Result<(), IoError>,
    ) -> Result<(), IoError> {
        let result = if before.0 == self.0 { result } else { result.and(Err(IoError::Device)) };
        self.0 += u32::from(result.is_err());
        result
    }
}
