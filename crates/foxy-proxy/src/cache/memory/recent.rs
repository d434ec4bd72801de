//! Which parts were read of late, by their keys alone.

use crate::cache::storage::PART;
use foxy_store::{Key, KeySet};
use std::collections::VecDeque;

/// How many times as many parts are remembered as could be held.
const TIMES_HELD: u64 = 4;

/// Keys of parts, the oldest forgotten first.
#[derive(Debug)]
pub(super) struct Recent {
    keys: KeySet,
    /// May name a key that was forgotten since.
    order: VecDeque<Key>,
    limit: usize,
}

impl Recent {
    /// None yet, for a share of `bytes` in which parts are held.
    pub(super) fn beside(bytes: u64) -> Self {
        let limit = usize::try_from(TIMES_HELD * bytes / PART as u64).unwrap_or(usize::MAX);
        Self { keys: KeySet::default(), order: VecDeque::new(), limit }
    }

    /// Whether `key` was read of late. It is remembered if it was not, else forgotten.
    pub(super) fn again(&mut self, key: Key) -> bool {
        if self.keys.remove(&key) {
            return true;
        }
        self.keys.insert(key);
        self.order.push_back(key);
        if self.order.len() > self.limit
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        false
    }
}
