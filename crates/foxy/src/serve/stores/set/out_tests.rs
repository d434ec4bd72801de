//! Tests sets in which stores are out of use. Such a store receives no requests, and its old
//! records are never served again.

use super::*;

const SIZES: [RangeInclusive<u64>; 3] = [ALL, ALL, 0..=50];

fn keys() -> impl Iterator<Item = Key> {
    (0..60).map(key)
}

/// Returns the range of sizes that each of the three stores accepts. All stores accept all sizes if
/// `alike`. Otherwise the third store accepts only sizes up to 50.
fn sizes(alike: bool) -> [RangeInclusive<u64>; 3] {
    if alike { [ALL, ALL, ALL] } else { SIZES }
}

/// Creates a set of three stores, and puts a record with the text `old` under each key.
fn filled(stores: &[Arc<Fake>; 3], selection: Selection, alike: bool) -> StoreSet {
    let set = set(stores, &sizes(alike), selection);
    for key in keys() {
        assert_eq!(put(&set, key, "old", 1), Answer::Stored);
    }
    assert!(stores.iter().all(|store| keys().any(|key| store.has(key))));
    set
}

/// Makes a store refuse all requests, like a failing disk. Then takes the store out of use.
fn fails(set: &StoreSet, stores: &[Arc<Fake>; 3], store: usize) {
    *stores[store].refuses.lock().expect("whole") =
        Some(RefusedReason::DeviceFailed(IoError::Device));
    set.out_of_use().take_out(store);
}

fn check_each(check: impl Fn(Selection, bool)) {
    for selection in SELECTIONS {
        check(selection, true);
        check(selection, false);
    }
}

#[test]
fn other_stores_take_the_keys_of_a_store_that_is_out() {
    check_each(|selection, alike| {
        let stores = fakes();
        let set = filled(&stores, selection, alike);
        fails(&set, &stores, 1);
        for key in keys() {
            let was_there = stores[1].has(key);
            let expected = if was_there {
                Answer::Absent(AbsentReason::NotIndexed)
            } else {
                Answer::Found(record("old"))
            };
            assert_eq!(get(&set, key), expected, "{selection:?}");
            assert_eq!(put(&set, key, "new", 1), Answer::Stored, "{selection:?}");
            assert_eq!(get(&set, key), Answer::Found(record("new")), "{selection:?}");
        }
    });
}

#[test]
fn a_removal_skips_a_store_that_is_out() {
    check_each(|selection, alike| {
        let stores = fakes();
        let set = filled(&stores, selection, alike);
        fails(&set, &stores, 1);
        for key in keys() {
            for again in [false, true] {
                assert!(!again || put(&set, key, "new", 1) == Answer::Stored);
                assert_eq!(
                    answer(|reply| set.remove(key, reply)),
                    Answer::Removed,
                    "{selection:?}"
                );
                assert_eq!(
                    get(&set, key),
                    Answer::Absent(AbsentReason::NotIndexed),
                    "{selection:?}"
                );
            }
        }
    });
}

#[test]
fn a_record_that_may_be_outdated_is_never_found() {
    check_each(|selection, alike| {
        let stores = fakes();
        let first = filled(&stores, selection, alike);
        fails(&first, &stores, 1);
        keys().for_each(|key| drop(put(&first, key, "meanwhile", 1)));
        // The next process empties the store, uses it again and puts new records. Then it takes the
        // store out of use too.
        *stores[1].refuses.lock().expect("whole") = None;
        stores[1].records.clear();
        let second = set_of_process(&stores, &sizes(alike), selection, 10);
        keys().for_each(|key| assert_eq!(put(&second, key, "new", 1), Answer::Stored));
        for store in [1, 0] {
            fails(&second, &stores, store);
            for key in keys() {
                let found = get(&second, key);
                assert_ne!(found, Answer::Found(record("old")), "{selection:?}");
                assert_ne!(found, Answer::Found(record("meanwhile")), "{selection:?}");
            }
        }
    });
}
