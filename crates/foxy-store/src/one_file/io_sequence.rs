//! A list of writes and syncs, which the caller executes in a fixed order, one after another. Also
//! counts failed syncs: if another sync fails while a sync is in flight, both count as failed.

use crate::one_file::superblock::Superblock;
use foxy_device::{IoBuffer, IoError};
use std::collections::VecDeque;
use std::convert::Infallible;

/// A step of a sequence of writes and syncs. `T` identifies a write whose failure does not end the
/// sequence.
#[derive(Debug)]
pub enum IoStep<T = Infallible> {
    /// Writes the buffer at this byte offset of the file.
    Write(u64, IoBuffer),
    /// Writes the buffer at this byte offset of the file. If the write fails, the sequence
    /// continues.
    Optional(T, u64, IoBuffer),
    /// Makes all completed writes durable.
    Sync,
}

/// Returns the steps that write both copies of a superblock (the page that describes the store).
/// The first copy is durable before the second copy is written.
pub fn superblock_steps<T>(superblock: &Superblock) -> [IoStep<T>; 4] {
    let page = superblock.encode();
    let copy = |place: u64| IoStep::Write(place * page.len() as u64, IoBuffer::copy_of(&page));
    [copy(0), IoStep::Sync, copy(1), IoStep::Sync]
}

/// Tells the caller what to do after a step of the sequence has finished.
#[derive(Debug)]
pub enum Advance<A, T = Infallible> {
    /// The caller must run this next step of the sequence.
    Step(IoStep<T>),
    /// The sequence has ended. Contains the value `after` that the caller passed to `start`.
    Ended(A),
    /// No sequence is running.
    Idle,
}

/// Runs one sequence of writes and syncs at a time. The value `A` tells the caller what to do after
/// the sequence.
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
    /// Returns whether no sequence is running.
    pub const fn is_idle(&self) -> bool {
        self.running.is_none()
    }

    /// Starts a sequence. [`IoSequence::advance`] then returns its first step.
    ///
    /// # Panics
    /// If a sequence is already running.
    pub fn start(&mut self, steps: Vec<IoStep<T>>, after: A) {
        assert!(self.is_idle(), "one sequence at a time");
        self.running = Some((steps.into(), after));
    }

    /// Processes the result of the last step and returns the next action. An error ends the
    /// sequence.
    pub fn advance(&mut self, result: Result<(), IoError>) -> Advance<A, T> {
        let Some((steps, _)) = &mut self.running else { return Advance::Idle };
        if result.is_ok()
            && let Some(step) = steps.pop_front()
        {
            return Advance::Step(step);
        }
        self.abandon().map_or(Advance::Idle, Advance::Ended)
    }

    /// Gives up the running sequence and returns the value `after` that the caller passed to
    /// `start`.
    pub fn abandon(&mut self) -> Option<A> {
        self.running.take().map(|(_, after)| after)
    }
}

/// Counts failed syncs. After a failed sync, the operating system may drop written pages without
/// writing them. A later sync that succeeds does not make these pages durable.
#[derive(Debug, Default)]
pub struct SyncFailures(u32);

/// The number of syncs that had failed when a sync was submitted.
#[derive(Clone, Copy, Debug)]
pub struct FailuresBefore(u32);

impl SyncFailures {
    /// Returns whether no sync has failed so far.
    pub const fn is_intact(&self) -> bool {
        self.0 == 0
    }

    /// Returns the number of failed syncs. Store the result with each sync that you submit, and
    /// pass it to [`SyncFailures::judge`] when the sync has ended.
    pub const fn before(&self) -> FailuresBefore {
        FailuresBefore(self.0)
    }

    /// Judges the result of a sync. If another sync failed while this sync was in flight, written
    /// pages may be lost, so this sync also counts as failed.
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
