//! Settings that a reload replaces while the proxy runs.

use arc_swap::{ArcSwap, Guard};
use std::sync::Arc;

/// A value that a reload can replace. Clones share the value.
#[derive(Debug, Default)]
pub struct Live<T>(Arc<ArcSwap<T>>);

impl<T> Live<T> {
    /// Returns the current value. The caller must drop the guard soon, because it can keep a
    /// replaced value in memory.
    pub fn get(&self) -> Guard<Arc<T>> {
        self.0.load()
    }

    /// Returns the current value. The caller may keep it for a long time.
    pub fn get_whole(&self) -> Arc<T> {
        self.0.load_full()
    }

    /// Replaces the value.
    pub fn replace(&self, value: T) {
        self.0.store(Arc::new(value));
    }
}

impl<T> Clone for Live<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> From<T> for Live<T> {
    fn from(value: T) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(value)))
    }
}
