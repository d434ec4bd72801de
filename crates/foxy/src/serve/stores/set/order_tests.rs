//! Tests a set of stores whose answers arrive in any order. Only the last record of each key may
//! remain.

use super::*;

/// A store that handles requests in order. The test decides when, and in which order, its answers
/// arrive.
#[derive(Default)]
struct Queued {
    store: Fake,
    asked: Mutex<VecDeque<Request>>,
    answers: Arc<Mutex<Vec<Delivery>>>,
}

type Request = Box<dyn FnOnce(&Fake) + Send>;
type Delivery = Box<dyn FnOnce() + Send>;

impl Queued {
    /// Handles one request or sends one answer. Returns false if nothing remains to do.
    fn step(&self, random: &mut Random) -> bool {
        let count = self.answers.lock().expect("whole").len();
        if count > 0 && random.chance(0.5) {
            let which = usize::try_from(random.below(count as u64)).expect("small");
            let delivery = self.answers.lock().expect("whole").swap_remove(which);
            delivery();
            return true;
        }
        let next = self.asked.lock().expect("whole").pop_front();
        next.map(|request| request(&self.store)).is_some() || count > 0
    }

    fn queue(&self, reply: Reply, request: impl FnOnce(&Fake, Reply) + Send + 'static) {
        let answers = Arc::clone(&self.answers);
        let reply = Box::new(move |answer| {
            answers.lock().expect("whole").push(Box::new(move || reply(answer)));
        });
        self.asked.lock().expect("whole").push_back(Box::new(move |store| request(store, reply)));
    }
}

impl ObjectStore for Queued {
    fn get(&self, key: Key, reply: Reply) {
        self.queue(reply, move |store, reply| store.get(key, reply));
    }

    fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        self.queue(reply, move |store, reply| store.put(key, record, hint, reply));
    }

    fn remove(&self, key: Key, reply: Reply) {
        self.queue(reply, move |store, reply| store.remove(key, reply));
    }
}

/// Sends random requests for more keys than the directory (map from keys to stores) can remember,
/// and delivers the answers in random order.
fn check_random(seed: u64, selection: Selection) {
    let mut random = Random::new(seed);
    let stores: [Arc<Queued>; 3] = [(); 3].map(|()| Arc::default());
    let sizes = [0..=8, 0..=12, 6..=20];
    let member = |(store, sizes): (&Arc<Queued>, &RangeInclusive<u64>)| Member {
        store: Arc::clone(store) as Arc<dyn ObjectStore>,
        sizes: sizes.clone(),
    };
    let mut set = StoreSet::new(stores.iter().zip(&sizes).map(member).collect(), selection, 9);
    Arc::get_mut(&mut set.0).expect("nobody else has it").directory = Some(Directory::new(0));
    let mut key = || {
        let number = u8::try_from(random.below(16)).expect("small");
        Key([0, 0, 0, 0, 0, number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
    };
    let keys: Vec<Key> = (0..400).map(|_| key()).collect();
    let finished: Arc<Mutex<HashMap<Key, Option<u64>>>> = Arc::default();
    for (number, key) in (0..).zip(keys.iter().copied()) {
        let done = Arc::clone(&finished);
        match random.below(4) {
            0 => set.get(key, Box::new(|_| {})),
            1 => set.remove(
                key,
                Box::new(move |answer| {
                    assert_eq!(answer, Answer::Removed);
                    done.lock().expect("whole").insert(key, None);
                }),
            ),
            _ => {
                let record = numbered(number);
                let hint = PlacementHint { size: random.below(21), ..PlacementHint::default() };
                set.put(
                    key,
                    record,
                    hint,
                    Box::new(move |answer| {
                        assert_eq!(answer, Answer::Stored);
                        done.lock().expect("whole").insert(key, Some(number));
                    }),
                );
            }
        }
        for _ in 0..random.below(12) {
            stores[usize::try_from(random.below(3)).expect("small")].step(&mut random);
        }
    }
    while stores.iter().any(|store| store.step(&mut random)) {}
    for (key, number) in &*finished.lock().expect("whole") {
        let held: Vec<_> = stores
            .iter()
            .filter_map(|store| match store.store.records.get(*key) {
                Answer::Found(record) => Some(record),
                _ => None,
            })
            .collect();
        let expected: Vec<_> = number.iter().copied().map(numbered).collect();
        assert_eq!(held, expected, "seed {seed} {selection:?} {key:?}");
    }
}

fn numbered(number: u64) -> Record {
    Record { body: number.to_string().into(), ..Record::default() }
}

#[test]
fn only_the_last_record_of_a_key_remains_in_any_order_of_answers() {
    for selection in SELECTIONS {
        for seed in 0..20 {
            check_random(seed, selection);
        }
    }
}
