//! The memory that waits for clients, over all workers: one budget. What does not fit is dropped
//! and read again, or refused; it is never waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// A holder may have this part of the free bytes. A few greedy holders then leave a third to all
/// others.
const SHARE: usize = 8;

/// The budget. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Waiting(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    limit: usize,
    taken: AtomicUsize,
}

/// Bytes taken from the budget; dropping gives them back.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Waiting {
    /// A budget of `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Budget { limit, taken: AtomicUsize::new(0) }))
    }

    /// Takes `bytes`, if they are free.
    pub(crate) fn take(&self, bytes: usize) -> Option<HeldBytes> {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.0.limit);
        self.0.taken.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(HeldBytes { budget: Arc::clone(&self.0), bytes })
    }

    /// Takes `bytes` for a holder that has `own` bytes already, if they are within its share of
    /// what is free.
    pub(crate) fn take_share(&self, own: usize, bytes: usize) -> Option<HeldBytes> {
        (own + bytes <= self.free() / SHARE).then(|| self.take(bytes)).flatten()
    }

    /// Bytes that nobody holds.
    pub(crate) fn free(&self) -> usize {
        self.0.limit.saturating_sub(self.0.taken.load(Relaxed))
    }

    /// Whether more than half is held.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.0.limit / 2
    }
}

impl HeldBytes {
    /// Bytes held.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.budget.taken.fetch_sub(self.bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_than_the_limit_is_held_and_what_is_dropped_is_free_again() {
        let waiting = Waiting::new(100);
        let first = waiting.take(60).expect("free");
        assert!(waiting.take(41).is_none() && waiting.is_scarce());
        let second = waiting.take(40).expect("free");
        assert_eq!((second.bytes(), waiting.free()), (40, 0));
        drop(first);
        assert_eq!(waiting.free(), 60);
        assert!(!waiting.is_scarce());
        drop(second);
        assert_eq!(waiting.free(), 100);
    }

    #[test]
    fn greedy_holders_leave_a_share_to_a_modest_one() {
        let waiting = Waiting::new(1 << 20);
        let mut greedy: Vec<Vec<HeldBytes>> = (0..15).map(|_| Vec::new()).collect();
        for _ in 0..1000 {
            for holder in &mut greedy {
                let own = holder.iter().map(HeldBytes::bytes).sum();
                holder.extend(waiting.take_share(own, 1 << 10));
            }
        }
        assert!(waiting.free() > (1 << 20) / 3, "{} bytes are free", waiting.free());
        let modest: Vec<HeldBytes> =
            (0..20).filter_map(|count| waiting.take_share(count << 10, 1 << 10)).collect();
        assert_eq!(modest.len(), 20);
    }
}
