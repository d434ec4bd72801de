//! The memory budget in bytes of all flights together. A *flight* is a fetch that several requests
//! share. Each flight may use an equal share of the budget for bytes that its readers have not
//! read. Bodies that are collected for the cache may use the same number of bytes again. So a
//! thousand large responses use hardly more memory than ten large responses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes that each flight (shared fetch) may always use, in addition to its last read from the
/// origin.
const MIN_FLIGHT_BYTES: usize = 16 << 10;
/// Largest number of bytes that one flight may use.
const MAX_FLIGHT_BYTES: usize = 1 << 20;

pub(crate) struct MemoryBudget {
    budget: usize,
    flights: AtomicUsize,
    held: AtomicUsize,
    collected: AtomicUsize,
}

/// The bytes of one body that stay in memory until the store has them. Dropping this value gives
/// the bytes back to the budget.
pub(crate) struct Collected {
    memory_budget: Arc<MemoryBudget>,
    bytes: usize,
}

impl Collected {
    pub(crate) const fn new(memory_budget: Arc<MemoryBudget>) -> Self {
        Self { memory_budget, bytes: 0 }
    }

    /// Counts `bytes` more. Returns false if all collected bodies together now exceed the budget.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.bytes += bytes;
        self.memory_budget.collected.fetch_add(bytes, Relaxed);
        self.is_within_budget()
    }

    pub(crate) fn is_within_budget(&self) -> bool {
        self.memory_budget.collected.load(Relaxed) <= self.memory_budget.budget
    }

    pub(crate) fn give_back(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.memory_budget.collected.fetch_sub(bytes, Relaxed);
    }
}

impl Drop for Collected {
    fn drop(&mut self) {
        self.memory_budget.collected.fetch_sub(self.bytes, Relaxed);
    }
}

impl MemoryBudget {
    pub(crate) const fn new(budget: usize) -> Self {
        let (flights, held, collected) =
            (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Self { budget, flights, held, collected }
    }

    pub(crate) fn open(&self) {
        self.flights.fetch_add(1, Relaxed);
    }

    pub(crate) fn close(&self) {
        self.flights.fetch_sub(1, Relaxed);
    }

    /// Notes that one flight now uses `now` bytes of memory instead of `before` bytes.
    pub(crate) fn moved(&self, before: usize, now: usize) {
        if now >= before {
            self.held.fetch_add(now - before, Relaxed);
        } else {
            self.held.fetch_sub(before - now, Relaxed);
        }
    }

    /// Returns the number of bytes that one flight may use: an equal share of the budget. If other
    /// flights use more, the number is smaller. It is at least [`MIN_FLIGHT_BYTES`] and at most
    /// [`MAX_FLIGHT_BYTES`]. The flight already uses `own` bytes.
    pub(crate) fn share(&self, own: usize) -> usize {
        let others = self.held.load(Relaxed).saturating_sub(own);
        let free = self.budget.saturating_sub(others);
        (self.budget / self.flights.load(Relaxed).max(1))
            .min(free)
            .clamp(MIN_FLIGHT_BYTES, MAX_FLIGHT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_divided_and_each_has_enough_to_go_on() {
        let memory_budget = MemoryBudget::new(8 << 20);
        assert_eq!(memory_budget.share(0), MAX_FLIGHT_BYTES);
        for _ in 0..16 {
            memory_budget.open();
        }
        assert_eq!(memory_budget.share(0), 512 << 10);
        for _ in 0..10_000 {
            memory_budget.open();
        }
        assert_eq!(memory_budget.share(0), MIN_FLIGHT_BYTES);
        for _ in 0..10_008 {
            memory_budget.close();
        }
        assert_eq!(memory_budget.share(0), MAX_FLIGHT_BYTES);
    }

    #[test]
    fn flights_that_come_one_after_another_hold_no_more_than_the_budget() {
        const READ: usize = 32 << 10;
        let memory_budget = MemoryBudget::new(32 << 20);
        let mut all = 0;
        for _ in 0..1500 {
            memory_budget.open();
            let share = memory_budget.share(0);
            memory_budget.moved(0, share);
            all += share;
        }
        assert!(all <= (32 << 20) + 1500 * (MIN_FLIGHT_BYTES + READ), "{all} bytes are held");
        memory_budget.moved(all, 0);
        (1..1500).for_each(|_| memory_budget.close());
        assert_eq!(memory_budget.share(0), MAX_FLIGHT_BYTES);
    }

    #[test]
    fn what_is_collected_stays_within_the_budget_and_is_given_back() {
        let memory_budget = Arc::new(MemoryBudget::new(1000));
        let mut first = Collected::new(Arc::clone(&memory_budget));
        let mut second = Collected::new(Arc::clone(&memory_budget));
        assert!(first.take(600) && second.take(400) && !second.take(1));
        first.give_back(500);
        assert!(second.take(499));
        drop(second);
        assert!(first.take(900));
        drop(first);
        assert_eq!(memory_budget.collected.load(Relaxed), 0);
    }
}
