//! Squid's heap LRU: the key is the last use and nothing ages. It names the same victims as the
//! list, in O(log n); it is here to tell what the heap costs from what a heap policy gains.

use super::ranked::Use;

/// The key.
pub(super) fn key(used: &Use) -> f64 {
    used.number as f64
}
