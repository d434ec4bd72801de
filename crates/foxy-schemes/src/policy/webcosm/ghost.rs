//! The ghost: fingerprints of entries that probation evicted.

use hashbrown::HashTable;
use std::collections::VecDeque;

/// Spreads the bits of a fingerprint for the hash table.
fn hash(fingerprint: u32) -> u64 {
    u64::from(fingerprint).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The fingerprints of the last entries that probation evicted. Each takes its share of the limit.
#[derive(Default)]
pub(super) struct RecentlyEvicted {
    /// Fingerprints with their shares and numbers, oldest first. A fingerprint that was taken stays
    /// until it is the oldest.
    queue: VecDeque<(u32, u32, u32)>,
    /// The fingerprints that were not taken, with the number of their place in `queue`.
    known: HashTable<(u32, u32)>,
    shares: u64,
    limit: u64,
    next: u32,
}

impl RecentlyEvicted {
    pub(super) fn resize(&mut self, limit: u64) {
        self.limit = limit;
        self.shrink();
    }

    pub(super) fn push(&mut self, fingerprint: u32, share: u64) {
        self.take(fingerprint);
        self.known
            .insert_unique(hash(fingerprint), (fingerprint, self.next), |known| hash(known.0));
        self.queue.push_back((fingerprint, share as u32, self.next));
        self.shares += share;
        self.next = self.next.wrapping_add(1);
        self.shrink();
    }

    fn shrink(&mut self) {
        while self.shares > self.limit
            && let Some((fingerprint, share, number)) = self.queue.pop_front()
        {
            self.shares -= u64::from(share);
            let same = |known: &(u32, u32)| *known == (fingerprint, number);
            if let Ok(found) = self.known.find_entry(hash(fingerprint), same) {
                found.remove();
            }
        }
    }

    /// Removes a fingerprint. Returns whether it was known.
    pub(super) fn take(&mut self, fingerprint: u32) -> bool {
        let found = self.known.find_entry(hash(fingerprint), |known| known.0 == fingerprint);
        found.map(|found| found.remove()).is_ok()
    }

    /// Halves the shares, because the fingerprints now stand for half as many entries of a
    /// miniature.
    pub(super) fn halve(&mut self) {
        self.shares = 0;
        for (_, share, _) in &mut self.queue {
            *share /= 2;
            self.shares += u64::from(*share);
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.queue.capacity() * size_of::<(u32, u32, u32)>()
            + self.known.capacity() * (size_of::<(u32, u32)>() + 1)
    }
}
