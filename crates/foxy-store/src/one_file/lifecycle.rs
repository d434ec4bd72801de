//! Tracks the phase of a store, from opening to closed. Each storage scheme defines its own phases.

use crate::contract::{AbsentReason, RefusedReason};
use crate::observe::Observer;
use crate::status::{OpenStoreError, StatusCell, StoreStatus, Unable};
use std::fmt::Debug;
use std::sync::Arc;

/// The phases of the stores of one storage scheme.
pub trait StorePhase: Copy + PartialEq + Debug + 'static {
    /// All phases, each with the phases that may follow.
    const TRANSITIONS: &'static [(Self, &'static [Self])];

    /// The phase before the store is opened.
    const NEW: Self;

    /// The phase of a store that could not be opened.
    const UNUSABLE: Self;

    /// Returns the status to report in this phase. For [`StorePhase::UNUSABLE`], [`Lifecycle`]
    /// reports the error instead.
    fn status(self) -> StoreStatus;

    /// Returns whether the store no longer serves requests because it closes.
    fn is_closing(self) -> bool;

    /// Returns whether the phase `next` may follow this phase.
    fn may_become(self, next: Self) -> bool {
        Self::TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }
}

/// The current phase of a store. Each change is also reported as a status.
#[derive(Debug)]
pub struct Lifecycle<P> {
    phase: P,
    failure: OpenStoreError,
    status: Arc<StatusCell>,
}

impl<P: StorePhase> Lifecycle<P> {
    /// Returns the lifecycle of a store that is not opened yet.
    pub fn new(observer: &Observer) -> Self {
        let status = Arc::clone(&observer.status);
        Self { phase: P::NEW, failure: OpenStoreError::Foreign, status }
    }

    /// Returns the current phase of the store.
    pub const fn phase(&self) -> P {
        self.phase
    }

    /// Changes to the phase `next`.
    ///
    /// # Panics
    /// If [`StorePhase::TRANSITIONS`] does not allow the change.
    pub fn enter(&mut self, next: P) {
        assert!(self.phase.may_become(next), "{:?} does not lead to {next:?}", self.phase);
        self.phase = next;
        self.status.set(match next {
            unusable if unusable == P::UNUSABLE => StoreStatus::Unusable(self.failure),
            other => other.status(),
        });
    }

    /// Changes to [`StorePhase::UNUSABLE`], because the store failed with `error`.
    pub fn fail(&mut self, error: OpenStoreError) {
        self.failure = error;
        self.enter(P::UNUSABLE);
    }

    /// Returns why the store does not serve requests in this phase: the reason for a get, and the
    /// reason for a put or removal.
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

/// Checks the table of allowed changes of phase. Every phase must have exactly one row, and must
/// lead to the phase `end`, directly or through other phases.
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
