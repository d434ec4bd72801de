//! A memory budget in bytes that all workers share. A user of the budget is, for example, a
//! response that keeps bytes for a slow client. If the budget has no space for a user's bytes, the
//! user drops the bytes and reads them again later, or refuses its request. No user ever waits for
//! the budget.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// One user may reserve at most 1/`HOLDER_PART` of the free bytes. So even if 15 users reserve as
/// much as they may, more than a third of the budget stays free.
const HOLDER_PART: usize = 8;

/// A memory budget in bytes. Clones share the same budget.
#[derive(Clone, Debug)]
pub(crate) struct ByteBudget(Arc<Budget>);

#[derive(Debug)]
struct Budget {
    limit: usize,
    taken: AtomicUsize,
}

/// A reservation of bytes in the budget. Dropping this value frees the bytes.
#[derive(Debug)]
pub(crate) struct HeldBytes {
    budget: Arc<Budget>,
    bytes: usize,
}

impl ByteBudget {
    pub(crate) fn new(limit: usize) -> Self {
        Self(Arc::new(Budget { limit, taken: AtomicUsize::new(0) }))
    }

    /// Reserves `bytes` bytes. Returns `None` if not enough bytes are free.
    pub(crate) fn take(&self, bytes: usize) -> Option<HeldBytes> {
        let fits = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= self.0.limit);
        self.0.taken.fetch_update(Relaxed, Relaxed, fits).ok()?;
        Some(HeldBytes { budget: Arc::clone(&self.0), bytes })
    }

    /// Reserves `bytes` bytes for a user that has already reserved `own` bytes. Returns `None` if
    /// the sum exceeds the share of the free bytes that one user may reserve.
    pub(crate) fn take_share(&self, own: usize, bytes: usize) -> Option<HeldBytes> {
        (own + bytes <= self.free() / HOLDER_PART).then(|| self.take(bytes)).flatten()
    }

    pub(crate) fn free(&self) -> usize {
        self.0.limit.saturating_sub(self.0.taken.load(Relaxed))
    }

    /// Returns true if more than half of the budget is reserved.
    pub(crate) fn is_scarce(&self) -> bool {
        self.free() < self.0.limit / 2
    }
}

impl HeldBytes {
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
        let waiting = ByteBudget::new(100);
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
        let waiting = ByteBudget::new(1 << 20);
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
