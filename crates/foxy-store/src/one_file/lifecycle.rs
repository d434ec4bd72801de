//! The phases of a store and the legal transitions between them. Each scheme has its own phases.

use crate::contract::{AbsentReason, RefusedReason};
use crate::observe::Observer;
use crate::status::{OpenStoreError, StatusCell, StoreStatus, Unable};
use std::fmt::Debug;
use std::sync::Arc;

/// The phases of one scheme.
pub trait StorePhase: Copy + PartialEq + Debug + 'static {
    /// Each phase, and the phases that may follow it.
    const TRANSITIONS: &'static [(Self, &'static [Self])];

    /// Before the start.
    const NEW: Self;

    /// The store could not be opened.
    const UNUSABLE: Self;

    /// What the store reports in this phase. [`Lifecycle`] replaces the status of
    /// [`StorePhase::UNUSABLE`].
    fn status(self) -> StoreStatus;

    /// Whether all records are written and requests are no longer served.
    fn is_closing(self) -> bool;

    /// Whether `next` may follow.
    fn may_become(self, next: Self) -> bool {
        Self::TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }
}

/// The current phase of a store, reported to its observer.
#[derive(Debug)]
pub struct Lifecycle<P> {
    phase: P,
    failure: OpenStoreError,
    status: Arc<StatusCell>,
}

impl<P: StorePhase> Lifecycle<P> {
    /// A store that is not started.
    pub fn new(observer: &Observer) -> Self {
        let status = Arc::clone(&observer.status);
        Self { phase: P::NEW, failure: OpenStoreError::Foreign, status }
    }

    /// The current phase.
    pub const fn phase(&self) -> P {
        self.phase
    }

    /// Moves to another phase.
    ///
    /// # Panics
    /// When [`StorePhase::TRANSITIONS`] does not allow the move.
    pub fn enter(&mut self, next: P) {
        assert!(self.phase.may_become(next), "{:?} does not lead to {next:?}", self.phase);
        self.phase = next;
        self.status.set(match next {
            unusable if unusable == P::UNUSABLE => StoreStatus::Unusable(self.failure),
            other => other.status(),
        });
    }

    /// Moves to [`StorePhase::UNUSABLE`].
    pub fn fail(&mut self, error: OpenStoreError) {
        self.failure = error;
        self.enter(P::UNUSABLE);
    }

    /// Why a get, and why a put or removal, is not served in this phase.
    pub fn unable(&self) -> (AbsentReason, RefusedReason) {
        let unable = if self.phase == P::UNUSABLE {
            Unable::Failed(self.failure)
        } else if self.phase.is_closing() {
            Unable::Closed
        } else {
            Unable::Recovering
        };
        unable.reasons()
    }
}

/// Checks that every phase has one row, and that `end` can be reached from it.
#[cfg(any(test, feature = "testing"))]
pub fn check_every_phase_reaches<P: StorePhase>(end: P) {
    let table = P::TRANSITIONS;
    for (from, _) in table {
        assert_eq!(table.iter().filter(|(other, _)| other == from).count(), 1, "{from:?}");
        let mut reached = vec![*from];
        let mut next = 0;
        while next < reached.len() {
            let row = table.iter().find(|(other, _)| *other == reached[next]);
            let (_, to) = row.expect("every phase that is reached has a row");
            let new: Vec<_> = to.iter().filter(|phase| !reached.contains(phase)).copied().collect();
            reached.extend(new);
            next += 1;
        }
        assert!(reached.contains(&end), "{from:?} does not lead to {end:?}");
    }
}
