//! How much of a body each flight may hold: a share of a budget that all flights under way divide, so that a thousand
//! large responses take no more memory than ten.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes a flight may always hold: two reads from the origin.
const LEAST: usize = 64 << 10;
/// Bytes that are enough for any flight.
const MOST: usize = 1 << 20;

/// The budget and who divides it.
#[derive(Debug)]
pub(crate) struct Windows {
    budget: usize,
    flights: AtomicUsize,
}

impl Windows {
    /// Nobody divides it yet.
    pub(crate) const fn new(budget: usize) -> Self {
        Self { budget, flights: AtomicUsize::new(0) }
    }

    /// One flight more.
    pub(crate) fn open(&self) {
        self.flights.fetch_add(1, Relaxed);
    }

    /// One flight less.
    pub(crate) fn close(&self) {
        self.flights.fetch_sub(1, Relaxed);
    }

    /// Bytes each may hold now.
    pub(crate) fn share(&self) -> usize {
        (self.budget / self.flights.load(Relaxed).max(1)).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_divided_and_each_has_enough_to_go_on() {
        let windows = Windows::new(8 << 20);
        assert_eq!(windows.share(), MOST);
        for _ in 0..16 {
            windows.open();
        }
        assert_eq!(windows.share(), 512 << 10);
        for _ in 0..10_000 {
            windows.open();
        }
        assert_eq!(windows.share(), LEAST);
        for _ in 0..10_008 {
            windows.close();
        }
        assert_eq!(windows.share(), MOST);
    }
}
