//! Tests a set of stores in memory. Two sets that share the same stores stand for two runs of foxy.

#[path = "order_tests.rs"]
mod order;
#[path = "out_tests.rs"]
mod out;

use super::*;
use foxy_base::Random;
use foxy_device::IoError;
use foxy_testkit::store::Records;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc::channel;

#[derive(Default)]
struct Fake {
    records: Records,
    /// The reason with which the store refuses every put and removal. `None` if it refuses nothing.
    refuses: Mutex<Option<RefusedReason>>,
    /// Replies that the store holds back. `None` if it answers at once.
    held: Mutex<Option<Vec<Reply>>>,
}

impl Fake {
    fn has(&self, key: Key) -> bool {
        self.records.has(key)
    }

    fn refusal(&self) -> Option<Answer> {
        self.refuses.lock().expect("whole").map(Answer::Refused)
    }
}

impl ObjectStore for Fake {
    fn get(&self, key: Key, reply: Reply) {
        if let Some(held) = &mut *self.held.lock().expect("whole") {
            return held.push(reply);
        }
        reply(self.records.get(key));
    }

    fn put(&self, key: Key, record: Record, _: PlacementHint, reply: Reply) {
        reply(self.refusal().unwrap_or_else(|| self.records.put(key, record)));
    }

    fn remove(&self, key: Key, reply: Reply) {
        if let Some(held) = &mut *self.held.lock().expect("whole") {
            self.records.remove(key);
            return held.push(reply);
        }
        reply(self.refusal().unwrap_or_else(|| self.records.remove(key)));
    }
}

const SELECTIONS: [Selection; 3] = [Selection::Key, Selection::RoundRobin, Selection::LeastLoad];

fn set(stores: &[Arc<Fake>], sizes: &[RangeInclusive<u64>], selection: Selection) -> StoreSet {
    set_of_process(stores, sizes, selection, 9)
}

/// Creates the store set of a process whose hash of keys uses this secret.
fn set_of_process(
    stores: &[Arc<Fake>],
    sizes: &[RangeInclusive<u64>],
    selection: Selection,
    secret: u64,
) -> StoreSet {
    let member = |(store, sizes): (&Arc<Fake>, &RangeInclusive<u64>)| Member {
        store: Arc::clone(store) as Arc<dyn ObjectStore>,
        sizes: sizes.clone(),
    };
    StoreSet::new(stores.iter().zip(sizes).map(member).collect(), selection, secret)
}

fn fakes() -> [Arc<Fake>; 3] {
    [(); 3].map(|()| Arc::default())
}

const ALL: RangeInclusive<u64> = 0..=u64::MAX;

fn key(number: u8) -> Key {
    Key([number; 16])
}

fn record(text: &'static str) -> Record {
    Record { body: text.into(), ..Record::default() }
}

fn answer(ask: impl FnOnce(Reply)) -> Answer {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| sender.send(answer).expect("the test listens")));
    receiver.try_recv().expect("answered at once")
}

fn put(set: &StoreSet, key: Key, text: &'static str, size: u64) -> Answer {
    let hint = PlacementHint { size, ..PlacementHint::default() };
    answer(|reply| set.put(key, record(text), hint, reply))
}

fn get(set: &StoreSet, key: Key) -> Answer {
    answer(|reply| set.get(key, reply))
}

#[test]
fn without_stores_every_request_is_answered() {
    let set = StoreSet::new(Vec::new(), Selection::LeastLoad, 9);
    assert_eq!(get(&set, key(7)), Answer::Absent(AbsentReason::NotIndexed));
    assert_eq!(put(&set, key(7), "a", 1), Answer::Refused(RefusedReason::StoresNothing));
    assert_eq!(answer(|reply| set.remove(key(7), reply)), Answer::Removed);
}

#[test]
fn a_record_is_found_under_every_selection_and_after_a_restart() {
    for selection in SELECTIONS {
        let stores = fakes();
        let sizes = [0..=10, ALL, 11..=u64::MAX];
        let first = set(&stores, &sizes, selection);
        for number in 0..60 {
            assert_eq!(put(&first, key(number), "a", u64::from(number % 20)), Answer::Stored);
        }
        let again = set(&stores, &sizes, Selection::RoundRobin);
        for number in 0..60 {
            for set in [&first, &again] {
                assert_eq!(get(set, key(number)), Answer::Found(record("a")), "{selection:?}");
            }
            assert_eq!(answer(|reply| again.remove(key(number), reply)), Answer::Removed);
            assert!(!stores.iter().any(|store| store.has(key(number))));
        }
    }
}

#[test]
fn each_store_takes_the_sizes_it_is_for() {
    for selection in SELECTIONS {
        let stores = fakes();
        let set = set(&stores[..2], &[0..=8, 9..=100], selection);
        for number in 0..20 {
            assert_eq!(put(&set, key(number), "small", 8), Answer::Stored);
            assert_eq!(put(&set, key(number + 20), "large", 9), Answer::Stored);
            assert!(stores[0].has(key(number)) && stores[1].has(key(number + 20)));
        }
        assert_eq!(put(&set, key(99), "huge", 101), Answer::Refused(RefusedReason::TooLarge));
    }
}

#[test]
fn a_replaced_record_is_gone_even_when_its_store_was_unknown() {
    for selection in SELECTIONS {
        for restart in [false, true] {
            let stores = fakes();
            let sizes = [0..=8, 0..=8, 9..=u64::MAX];
            let first = set(&stores, &sizes, selection);
            for number in 0..30 {
                assert_eq!(put(&first, key(number), "old", u64::from(number % 17)), Answer::Stored);
            }
            let next = if restart { set(&stores, &sizes, selection) } else { first };
            for number in 0..30 {
                assert_eq!(put(&next, key(number), "new", u64::from(number % 16)), Answer::Stored);
                let holding = stores.iter().filter(|store| store.has(key(number))).count();
                assert_eq!(holding, 1, "{selection:?} {number}");
                assert_eq!(get(&next, key(number)), Answer::Found(record("new")));
            }
        }
    }
}

#[test]
fn nothing_is_stored_while_the_old_record_cannot_be_removed() {
    let stores = fakes();
    let set = set(&stores, &[0..=8, 9..=20, 9..=20], Selection::Key);
    assert_eq!(put(&set, key(1), "old", 1), Answer::Stored);
    *stores[0].refuses.lock().expect("whole") = Some(RefusedReason::Busy);
    assert_eq!(put(&set, key(1), "new", 9), Answer::Refused(RefusedReason::Busy));
    assert_eq!(get(&set, key(1)), Answer::Found(record("old")));
    *stores[0].refuses.lock().expect("whole") = None;
    assert_eq!(put(&set, key(1), "new", 9), Answer::Stored);
    assert_eq!(get(&set, key(1)), Answer::Found(record("new")));
    assert!(!stores[0].has(key(1)));
}

#[test]
fn round_robin_takes_turns_and_least_load_takes_the_idlest_store() {
    let stores = fakes();
    let robin = set(&stores, &[ALL, ALL, ALL], Selection::RoundRobin);
    for number in 0..9 {
        assert_eq!(put(&robin, key(number), "a", 1), Answer::Stored);
    }
    assert!(stores.iter().all(|store| store.records.count() == 3));
    let least = set(&stores, &[ALL, ALL, ALL], Selection::LeastLoad);
    for store in &stores[..2] {
        *store.held.lock().expect("whole") = Some(Vec::new());
    }
    for number in [0, 1, 3, 4] {
        least.0.get_from(usize::from(number % 3), key(number), Box::new(|_| {}));
    }
    assert_eq!([0, 1, 2].map(|store| least.0.waiting[store].load(Ordering::Relaxed)), [2, 2, 0]);
    assert_eq!(least.0.choose(key(0), 1), Some(2));
    stores[0].held.lock().expect("whole").take();
    assert_eq!(least.0.waiting[0].load(Ordering::Relaxed), 0);
}

#[test]
fn changes_of_one_key_keep_their_order() {
    let stores = fakes();
    let set = set(&stores[..2], &[0..=8, 9..=20], Selection::Key);
    assert_eq!(put(&set, key(1), "small", 1), Answer::Stored);
    *stores[0].held.lock().expect("whole") = Some(Vec::new());
    let (answers, answered) = channel();
    for (text, size) in [("large", 9), ("larger", 10)] {
        let answers = answers.clone();
        let hint = PlacementHint { size, ..PlacementHint::default() };
        set.put(
            key(1),
            record(text),
            hint,
            Box::new(move |answer| answers.send((text, answer)).expect("room")),
        );
    }
    assert!(answered.try_recv().is_err());
    let held = stores[0].held.lock().expect("whole").take().expect("held");
    held.into_iter().for_each(|reply| reply(Answer::Removed));
    let order: Vec<_> = answered.try_iter().collect();
    assert_eq!(order.len(), 2);
    assert!(order.iter().all(|(_, answer)| *answer == Answer::Stored));
    assert_eq!(get(&set, key(1)), Answer::Found(record("larger")));
}
