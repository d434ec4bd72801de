//! GreedyDual-Size with frequency, as Squid's `heap GDSF`: key = age + frequency / size. Small
//! popular objects stay: the most hits, at the price of fewer bytes.

use super::ranked::Use;

/// The key.
pub(super) fn key(used: &Use) -> f64 {
    used.age + f64::from(used.frequency) / used.size as f64
}
