//! Least frequently used with dynamic aging, as Squid's `heap LFUDA`: key = age + frequency.
//! Popular objects stay whatever their size: more bytes served, fewer hits.

use super::ranked::Use;

/// The key.
pub(super) fn key(used: &Use) -> f64 {
    used.age + f64::from(used.frequency)
}
