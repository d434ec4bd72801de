//! The phases of a store and the allowed changes between them. Each scheme defines its own phases.

use crate::contract::{AbsentReason, RefusedReason};
use crate::observe::Observer;
use crate::status::{OpenStoreError, StatusCell, StoreStatus, Unable};
use std::fmt::Debug;
use std::sync::Arc;

/// The phases of one scheme.
pub trait StorePhase: Copy + PartialEq + Debug + 'static {
    /// Each phase, with the phases that may follow.
    const TRANSITIONS: &'static [(Self, &'static [Self])];

    /// The phase before the start.
    const NEW: Self;

    /// The phase of a store that could not be opened.
    const UNUSABLE: Self;

    /// The status to report in this phase. For [`StorePhase::UNUSABLE`], [`Lifecycle`] reports the
    /// failure instead.
    fn status(self) -> StoreStatus;

    /// Whether the store has stopped serving requests because it closes.
    fn is_closing(self) -> bool;

    /// Whether the phase `next` may follow this phase.
    fn may_become(self, next: Self) -> bool {
        Self::TRANSITIONS.iter().any(|(from, to)| *from == self && to.contains(&next))
    }
}

/// The current phase of a store. Each change is reported to the observer.
#[derive(Debug)]
pub struct Lifecycle<P> {
    phase: P,
    failure: OpenStoreError,
    status: Arc<StatusCell>,
}

impl<P: StorePhase> Lifecycle<P> {
    /// The lifecycle of a store before its start.
    pub fn new(observer: &Observer) -> Self {
        let status = Arc::clone(&observer.status);
        Self { phase: P::NEW, failure: OpenStoreError::Foreign, status }
    }

    /// The current phase.
    pub const fn phase(&self) -> P {
        self.phase
    }

    /// Changes to another phase.
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

    /// Changes to [`StorePhase::UNUSABLE`].
    pub fn fail(&mut self, error: OpenStoreError) {
        self.failure = error;
        self.enter(P::UNUSABLE);
    }

    /// Why the store does not serve requests in this phase: the reason for a get, and the reason
    /// for a put or removal.
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

/// Checks that every phase has one row and leads to the phase `end`.
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
