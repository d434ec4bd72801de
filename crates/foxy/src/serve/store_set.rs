//! All stores as one: each key belongs to one of them, by the key alone.

use foxy_proxy::storage::{ObjectStore, Reply};
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record, RefusedReason, StoreHandle};

/// The stores. With none, nothing is ever stored.
pub struct StoreSet(Vec<StoreHandle>);

impl StoreSet {
    /// A set of these; their order decides which key belongs where.
    pub fn new(stores: Vec<StoreHandle>) -> Self {
        Self(stores)
    }

    fn of(&self, key: Key) -> Option<&StoreHandle> {
        let [.., a, b, c, d] = key.0;
        let number = u32::from_le_bytes([a, b, c, d]) as usize;
        self.0.get(number.checked_rem(self.0.len())?)
    }
}

impl ObjectStore for StoreSet {
    fn get(&self, key: Key, reply: Reply) {
        match self.of(key) {
            Some(store) => store.get(key, reply),
            None => reply(Answer::Absent(AbsentReason::NotIndexed)),
        }
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        match self.of(key) {
            Some(store) => store.put(key, record, hint, reply),
            None => reply(Answer::Refused(RefusedReason::StoresNothing)),
        }
    }

    fn remove(&self, key: Key, reply: Reply) {
        match self.of(key) {
            Some(store) => store.remove(key, reply),
            None => reply(Answer::Removed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn without_stores_every_request_is_answered() {
        let set = StoreSet::new(Vec::new());
        let (answers, answered) = channel();
        let reply = || -> Reply {
            let answers = answers.clone();
            Box::new(move |answer| answers.send(answer).expect("the test listens"))
        };
        let key = Key([7; 16]);
        set.get(key, reply());
        set.put(key, Record::default(), PlacementHint::default(), reply());
        set.remove(key, reply());
        let expected = [
            Answer::Absent(AbsentReason::NotIndexed),
            Answer::Refused(RefusedReason::StoresNothing),
            Answer::Removed,
        ];
        for answer in expected {
            assert_eq!(answered.recv(), Ok(answer));
        }
    }
}
