//! Writes and syncs that must follow each other, and what a failed sync means for later ones.

use crate::one_file::superblock::Superblock;
use foxy_device::{IoBuffer, IoError};
use std::collections::VecDeque;
use std::convert::Infallible;

/// One step of a sequence. `T` names a write that may fail without ending the sequence.
#[derive(Debug)]
pub enum IoStep<T = Infallible> {
    /// Writes a buffer at a byte offset.
    Write(u64, IoBuffer),
    /// Writes a buffer at a byte offset; the scheme handles a failure.
    Optional(T, u64, IoBuffer),
    /// Makes completed writes durable.
    Sync,
}

/// Writes both copies of a superblock. The first is durable before the second is touched.
pub fn superblock_steps<T>(superblock: &Superblock) -> [IoStep<T>; 4] {
    let page = superblock.encode();
    let copy = |place: u64| IoStep::Write(place * page.len() as u64, IoBuffer::copy_of(&page));
    [copy(0), IoStep::Sync, copy(1), IoStep::Sync]
}

/// What follows a step.
#[derive(Debug)]
pub enum Advance<A, T = Infallible> {
    /// The next step of the sequence.
    Step(IoStep<T>),
    /// The sequence ended with the result that was given.
    Ended(A),
    /// No sequence runs.
    Idle,
}

/// Runs one sequence at a time. `A` says what follows its end.
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

    /// Starts a sequence; [`IoSequence::advance`] gives its first step.
    ///
    /// # Panics
    /// When a sequence runs.
    pub fn start(&mut self, steps: Vec<IoStep<T>>, after: A) {
        assert!(self.is_idle(), "one sequence at a time");
        self.running = Some((steps.into(), after));
    }

    /// Takes the result of the last step. An error ends the sequence.
    pub fn advance(&mut self, result: Result<(), IoError>) -> Advance<A, T> {
        let Some((steps, _)) = &mut self.running else { return Advance::Idle };
        if result.is_ok()
            && let Some(step) = steps.pop_front()
        {
            return Advance::Step(step);
        }
        self.abandon().map_or(Advance::Idle, Advance::Ended)
    }

    /// Gives up the sequence that runs.
    pub fn abandon(&mut self) -> Option<A> {
        self.running.take().map(|(_, after)| after)
    }
}

/// Counts failed syncs. After a failed sync the system may drop written pages, and no later sync
/// makes them durable.
#[derive(Debug, Default)]
pub struct SyncFailures(u32);

/// How many syncs had failed when one was submitted.
#[derive(Clone, Copy, Debug)]
pub struct FailuresBefore(u32);

impl SyncFailures {
    /// Whether every sync succeeded.
    pub const fn is_intact(&self) -> bool {
        self.0 == 0
    }

    /// To be kept with a sync that is submitted now.
    pub const fn before(&self) -> FailuresBefore {
        FailuresBefore(self.0)
    }

    /// The result of a sync. It fails, too, when another sync failed while it was in flight: the
    /// writes it was meant for may be lost.
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
