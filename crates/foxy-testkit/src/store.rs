//! A map of records, on which tests build stores that fail on purpose.

use foxy_store::{AbsentReason, Answer, Key, Record};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Records in memory. The methods answer like a store that never fails.
#[derive(Default)]
pub struct Records(Mutex<HashMap<Key, Record>>);

impl Records {
    /// Returns the record of `key` as a store's answer.
    pub fn get(&self, key: Key) -> Answer {
        let found = self.all().get(&key).cloned();
        found.map_or(Answer::Absent(AbsentReason::NotIndexed), Answer::Found)
    }

    /// Stores `record`, and replaces an earlier record of `key`.
    pub fn put(&self, key: Key, record: Record) -> Answer {
        self.all().insert(key, record);
        Answer::Stored
    }

    /// Removes the record of `key`.
    pub fn remove(&self, key: Key) -> Answer {
        self.all().remove(&key);
        Answer::Removed
    }

    /// Whether a record of `key` is stored.
    pub fn has(&self, key: Key) -> bool {
        self.all().contains_key(&key)
    }

    /// Number of records.
    pub fn count(&self) -> usize {
        self.all().len()
    }

    /// Removes all records.
    pub fn clear(&self) {
        self.all().clear();
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Key, Record>> {
        self.0.lock().expect("not poisoned")
    }
}
