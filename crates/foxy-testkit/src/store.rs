//! Records in memory, for stores that a test makes fail in its own way.

use foxy_store::{AbsentReason, Answer, Key, Record};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

/// Records in memory that answer as a willing store does.
#[derive(Default)]
pub struct Records(Mutex<HashMap<Key, Record>>);

impl Records {
    /// Answers a request for a record.
    pub fn get(&self, key: Key) -> Answer {
        let found = self.all().get(&key).cloned();
        found.map_or(Answer::Absent(AbsentReason::NotIndexed), Answer::Found)
    }

    /// Stores a record.
    pub fn put(&self, key: Key, record: Record) -> Answer {
        self.all().insert(key, record);
        Answer::Stored
    }

    /// Removes a record.
    pub fn remove(&self, key: Key) -> Answer {
        self.all().remove(&key);
        Answer::Removed
    }

    /// Whether there is a record of this key.
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
