//! The phases of a run with an injected fault, and the failed requests that the fault excuses.
//! Other modules inject the fault. For example, [`crate::load::origin::Health`] stops or slows the
//! origin.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// The phase of a run in relation to its injected fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The fault has not begun.
    Before,
    /// The fault begins or ends at this moment. The counts leave out requests that start or end in
    /// this phase.
    Turning,
    /// The fault is present.
    During,
    /// The fault is over.
    After,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Before, Self::Turning, Self::During, Self::After];
}

/// The current phase of a run with a fault. The module that injects the fault sets the phase, and
/// clients read it.
#[derive(Debug, Default)]
pub struct Fault(AtomicU8);

impl Fault {
    /// Sets the phase.
    pub fn enter(&self, phase: Phase) {
        self.0.store(phase as u8, Relaxed);
    }

    /// Returns the current phase.
    pub fn phase(&self) -> Phase {
        Phase::ALL[usize::from(self.0.load(Relaxed))]
    }
}

/// The counts of requests before, during and after an injected fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AroundFault {
    /// The number of requests that started during the fault and either failed or ended during the
    /// fault. A request that started then and was answered later is left out.
    pub begun: u64,
    /// The number of complete and correct answers to the requests in `begun`.
    pub answered: u64,
    /// The number of failed requests that ran wholly before or wholly after the fault. The fault
    /// does not excuse these failures.
    pub unexcused: u64,
}

impl AroundFault {
    pub(crate) fn count(&mut self, began: Phase, ended: Phase, failed: bool) {
        let within = began == Phase::During && (failed || ended == Phase::During);
        self.begun += u64::from(within);
        self.answered += u64::from(within && !failed);
        let untouched = began == ended && matches!(began, Phase::Before | Phase::After);
        self.unexcused += u64::from(failed && untouched);
    }

    pub(crate) const fn merge(&mut self, other: Self) {
        self.begun += other.begun;
        self.answered += other.answered;
        self.unexcused += other.unexcused;
    }
}

#[cfg(test)]
mod tests {
    use super::Phase::{After, Before, During, Turning};
    use super::*;

    #[test]
    fn a_fault_excuses_what_it_touched_and_nothing_else() {
        let unexcused = |began, ended| {
            let mut around = AroundFault::default();
            around.count(began, ended, true);
            around.unexcused == 1
        };
        for (began, ended) in [(Before, Before), (After, After)] {
            assert!(unexcused(began, ended), "{began:?} to {ended:?}");
        }
        for (began, ended) in [
            (Before, Turning),
            (Before, During),
            (Before, After),
            (Turning, Turning),
            (Turning, After),
            (During, During),
            (During, After),
        ] {
            assert!(!unexcused(began, ended), "{began:?} to {ended:?}");
        }
    }

    #[test]
    fn the_share_answered_during_a_fault_counts_requests_begun_then() {
        let mut around = AroundFault::default();
        for (began, failed) in [(Before, false), (Turning, false), (During, false), (During, true)]
        {
            around.count(began, During, failed);
        }
        assert_eq!(around, AroundFault { begun: 2, answered: 1, unexcused: 0 });
        // A request that started during the fault and ended after it counts only if it failed.
        for (ended, failed) in [(Turning, false), (After, false), (After, true)] {
            around.count(During, ended, failed);
        }
        assert_eq!(around, AroundFault { begun: 3, answered: 1, unexcused: 0 });
    }

    #[test]
    fn a_fault_is_in_the_phase_that_was_entered_last() {
        let fault = Fault::default();
        assert_eq!(fault.phase(), Before);
        for phase in Phase::ALL {
            fault.enter(phase);
            assert_eq!(fault.phase(), phase);
        }
    }
}
