//! A store in memory, and answers that arrive through a callback.

use foxy_store::{AbsentReason, Answer, Key, Record, Reply};
use std::collections::HashMap;
use std::sync::mpsc::channel;
use std::sync::{Mutex, MutexGuard};

/// Makes a request whose answer goes to a callback, and waits for the answer.
pub fn answer(ask: impl FnOnce(Reply)) -> Answer {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("every request is answered")
}

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
