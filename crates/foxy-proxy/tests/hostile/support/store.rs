//! Stores for tests. Some fail in different ways, some answer late, and one forgets records when
//! the test says so. Another counts the bytes of its answers that are still in memory.

use bytes::Bytes;
use foxy_proxy::cache::storage::{ObjectStore, Reply};
use foxy_store::{AbsentReason, Answer, Key, PlacementHint, Record, RefusedReason};
use foxy_testkit::store::Records;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How a store fails.
#[derive(Clone, Copy, Debug)]
pub enum Broken {
    /// Refuses to store any record, like a store on a full disk.
    Refuses,
    /// Drops every request and never answers.
    Ends,
    /// Keeps every request and never answers.
    Hangs,
    /// Answers each read with "no record", and never answers other requests.
    HangsOnPuts,
    /// Returns bytes that were never stored.
    FindsGarbage,
    /// Returns the record that was stored last, whatever the key is.
    MixesUp,
}

pub const BROKEN: [Broken; 6] = [
    Broken::Refuses,
    Broken::Ends,
    Broken::Hangs,
    Broken::HangsOnPuts,
    Broken::FindsGarbage,
    Broken::MixesUp,
];

/// A store that fails in the way that the test chooses.
pub struct BrokenStore {
    how: Broken,
    last: Mutex<Option<Record>>,
    unanswered: Mutex<Vec<Reply>>,
}

impl BrokenStore {
    /// Creates a store that fails in the way `how`.
    pub fn new(how: Broken) -> Arc<Self> {
        Arc::new(Self { how, last: Mutex::default(), unanswered: Mutex::default() })
    }

    fn answer(&self, reply: Reply, answer: Answer) {
        match self.how {
            Broken::Ends => drop(reply),
            Broken::HangsOnPuts if matches!(answer, Answer::Absent(_)) => reply(answer),
            Broken::Hangs | Broken::HangsOnPuts => {
                self.unanswered.lock().expect("no test panics within").push(reply);
            }
            Broken::Refuses | Broken::FindsGarbage | Broken::MixesUp => reply(answer),
        }
    }
}

impl ObjectStore for BrokenStore {
    fn get(&self, _: Key, reply: Reply) {
        let found = match self.how {
            Broken::FindsGarbage => Some(Record {
                head: Bytes::from_static(&[1; 99]),
                body: Bytes::from_static(b"wrong"),
            }),
            Broken::MixesUp => self.last.lock().expect("no test panics within").clone(),
            _ => None,
        };
        self.answer(reply, found.map_or(Answer::Absent(AbsentReason::Busy), Answer::Found));
    }

    fn put(&self, _: Key, record: Record, _: PlacementHint, reply: Reply) {
        *self.last.lock().expect("no test panics within") = Some(record);
        self.answer(reply, Answer::Refused(RefusedReason::NoSpace));
    }

    fn remove(&self, _: Key, reply: Reply) {
        self.answer(reply, Answer::Refused(RefusedReason::NoSpace));
    }
}

/// A store in memory. A test can make it forget a part of a body, or delay its answers about a
/// part.
#[derive(Default)]
pub struct ForgetfulStore {
    records: Records,
    parts: Mutex<Vec<Key>>,
    late: Mutex<Option<(Key, Duration)>>,
}

impl ForgetfulStore {
    /// From now on, delays all answers about the n-th part that was stored.
    pub fn delay_part(&self, number: usize, by: Duration) {
        let key = self.parts.lock().expect("no test panics within")[number];
        *self.late.lock().expect("no test panics within") = Some((key, by));
    }

    /// Forgets the n-th part of a body that was stored. In this store, a record without a head is a
    /// part.
    pub fn forget_part(&self, number: usize) {
        let key = self.parts.lock().expect("no test panics within")[number];
        self.records.remove(key);
    }

    /// Returns the number of parts of bodies that were stored so far.
    pub fn parts(&self) -> usize {
        self.parts.lock().expect("no test panics within").len()
    }
}

impl ObjectStore for ForgetfulStore {
    fn lacks(&self, key: Key) -> bool {
        matches!(self.records.get(key), Answer::Absent(_))
    }

    fn get(&self, key: Key, reply: Reply) {
        let answer = self.records.get(key);
        match *self.late.lock().expect("no test panics within") {
            Some((late, by)) if late == key => {
                std::thread::spawn(move || {
                    std::thread::sleep(by);
                    reply(answer);
                });
            }
            _ => reply(answer),
        }
    }

    fn put(&self, key: Key, record: Record, _: PlacementHint, reply: Reply) {
        if record.head.is_empty() {
            self.parts.lock().expect("no test panics within").push(key);
        }
        reply(self.records.put(key, record));
    }

    fn remove(&self, key: Key, reply: Reply) {
        reply(self.records.remove(key));
    }
}

/// A store in memory that answers "busy" to the first three attempts to write a part of a body.
#[derive(Default)]
pub struct BusyStore {
    inner: ForgetfulStore,
    turned_away: Mutex<HashMap<Key, usize>>,
}

impl ObjectStore for BusyStore {
    fn get(&self, key: Key, reply: Reply) {
        self.inner.get(key, reply);
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        let mut turned_away = self.turned_away.lock().expect("no test panics within");
        let times = turned_away.entry(key).or_default();
        *times += 1;
        if record.head.is_empty() && *times <= 3 {
            return reply(Answer::Refused(RefusedReason::Busy));
        }
        drop(turned_away);
        self.inner.put(key, record, hint, reply);
    }

    fn remove(&self, key: Key, reply: Reply) {
        self.inner.remove(key, reply);
    }
}

/// A store in memory. It answers the writes of the first two parts of a body. It does not answer
/// the writes of further parts until the test permits it.
#[derive(Default)]
pub struct SilentStore {
    inner: ForgetfulStore,
    silent: Mutex<Option<Vec<Reply>>>,
}

impl SilentStore {
    /// Creates a store that does not answer.
    pub fn new() -> Arc<Self> {
        Arc::new(Self { inner: ForgetfulStore::default(), silent: Mutex::new(Some(Vec::new())) })
    }

    /// Sends the answers that the store has held back. From now on, answers at once.
    pub fn speak(&self) {
        let unsaid = self.silent.lock().expect("no test panics within").take();
        unsaid.into_iter().flatten().for_each(|reply| reply(Answer::Stored));
    }
}

impl ObjectStore for SilentStore {
    fn get(&self, key: Key, reply: Reply) {
        self.inner.get(key, reply);
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        let part = record.head.is_empty();
        let held = part && self.inner.parts() >= 2;
        let mut silent = self.silent.lock().expect("no test panics within");
        match &mut *silent {
            Some(unsaid) if held => {
                unsaid.push(reply);
                self.inner.put(key, record, hint, Box::new(drop));
            }
            _ => self.inner.put(key, record, hint, reply),
        }
    }

    fn remove(&self, key: Key, reply: Reply) {
        self.inner.remove(key, reply);
    }
}

/// A store in memory. It counts the body bytes of its answers that are still in memory, and
/// remembers the highest count.
#[derive(Default)]
pub struct CountingStore {
    inner: ForgetfulStore,
    held: Arc<Held>,
}

#[derive(Default)]
struct Held {
    now: AtomicUsize,
    most: AtomicUsize,
}

/// A body in an answer of the store. The bytes of the body count until the proxy drops the body.
struct Lent {
    body: Bytes,
    held: Arc<Held>,
}

impl CountingStore {
    /// Returns the number of body bytes that the proxy has not dropped yet.
    pub fn held(&self) -> usize {
        self.held.now.load(Ordering::SeqCst)
    }

    /// Returns the highest number of body bytes that the proxy held at the same time.
    pub fn most_held(&self) -> usize {
        self.held.most.load(Ordering::SeqCst)
    }
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.held.now.fetch_sub(self.body.len(), Ordering::SeqCst);
    }
}

impl ObjectStore for CountingStore {
    fn get(&self, key: Key, reply: Reply) {
        let held = Arc::clone(&self.held);
        let counted = move |answer| match answer {
            Answer::Found(Record { head, body }) => {
                let now = held.now.fetch_add(body.len(), Ordering::SeqCst) + body.len();
                held.most.fetch_max(now, Ordering::SeqCst);
                reply(Answer::Found(Record { head, body: Bytes::from_owner(Lent { body, held }) }));
            }
            other => reply(other),
        };
        self.inner.get(key, Box::new(counted));
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        self.inner.put(key, record, hint, reply);
    }

    fn remove(&self, key: Key, reply: Reply) {
        self.inner.remove(key, reply);
    }
}
