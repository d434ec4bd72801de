//! Stores a large object in parts (one record each) in a store that is full of small records. A get
//! must find all parts.

use super::{open, settings};
use crate::contract::{Answer, PlacementHint, RefusedReason};
use crate::settings::{RECORD_BODY_LIMIT, StoreSettings};
use crate::testing::{Store, content, name};
use crate::webcosm::format::geometry::Geometry;
use foxy_device::Memory;

const SIZE: u64 = 64 << 20;
const SMALL: usize = 40_000;
const PART: usize = RECORD_BODY_LIMIT;

/// Creates a store that is full and has already discarded small records.
fn full() -> Store {
    let settings = StoreSettings { page_buffer: 256 << 10, ..StoreSettings::with_size(SIZE) };
    let mut store = open(&StoreSettings { seed: 99, ..settings }, Memory::default());
    let mut key = 0;
    while store.counter("evicted") == 0 {
        assert_eq!(store.put(key, 0, SMALL), Answer::Stored);
        key += 1;
    }
    store
}

/// Stores an object of `parts` parts. Returns the number of parts that a get finds afterwards.
fn stored(store: &mut Store, object: u64, parts: u64) -> u64 {
    let hint = PlacementHint { size: parts * PART as u64, ..PlacementHint::default() };
    let keys = (0..parts).map(|part| (1 << 32) + (object << 16) + part);
    for key in keys.clone() {
        assert_eq!(
            store.driver.put(name(key), content(key, 0, PART), hint),
            Answer::Stored,
            "{key}"
        );
    }
    store.flush();
    keys.filter(|&key| store.holds(key, 0, PART)).count() as u64
}

#[test]
fn parts_of_one_object_do_not_displace_each_other() {
    let mut store = full();
    for (object, parts) in [8, 8, 2, 16, 3, 8].into_iter().enumerate() {
        assert_eq!(stored(&mut store, object as u64, parts), parts, "object {object}");
    }
}

#[test]
fn an_object_that_the_store_cannot_hold_is_refused_from_its_first_part_on() {
    let mut store = full();
    let largest = Geometry::of(SIZE).largest_object();
    assert!((SIZE / 4..SIZE / 2).contains(&largest), "{largest}");
    let mut put = |size| {
        let hint = PlacementHint { size, ..PlacementHint::default() };
        store.driver.put(name(1 << 40), content(1 << 40, 0, PART), hint)
    };
    assert_eq!(put(largest + 1), Answer::Refused(RefusedReason::TooLarge));
    assert_eq!(put(largest), Answer::Stored);
    let parts = largest / PART as u64;
    assert_eq!(stored(&mut store, 9, parts), parts, "the largest");
}

#[test]
fn a_large_record_that_is_a_whole_object_must_prove_itself_as_ever() {
    let mut store = open(&settings(), Memory::default());
    for key in 0..2_000 {
        assert_eq!(store.put(key, 0, 2_000), Answer::Stored);
    }
    store.flush();
    let small = |store: &mut Store| (0..2_000).filter(|&key| store.holds(key, 0, 2_000)).count();
    let before = small(&mut store);
    for key in 5_000..5_100 {
        assert_eq!(store.put(key, 0, 200_000), Answer::Stored);
    }
    store.flush();
    assert_eq!(small(&mut store), before, "large newcomers displaced small records");
}
