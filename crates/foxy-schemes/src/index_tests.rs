//! Tests the index of records: look-up by key and by position on disk, and the order of eviction.

use super::*;
use crate::policy::{PolicyName, PolicySettings};

fn entry(key: u8, sequence: u64, slot: u32, state: EntryState) -> Entry {
    Entry::new(Key([key; 16]), sequence, slot, 4, state)
}

#[test]
fn a_key_can_have_one_live_record_and_several_leftovers() {
    let mut index = Index::new(
        1,
        PolicyName::Lru.make(&PolicySettings { capacity: 1 << 20, object_limit: 1 << 20 }),
    );
    let old = index.insert(entry(1, 1, 0, EntryState::Live));
    index.set_state(old, EntryState::Leftover);
    let new = index.insert(entry(1, 2, 8, EntryState::Live));
    assert_eq!(index.live_of(Key([1; 16])), Some(new));
    assert_eq!(index.of_key(Key([1; 16])).count(), 2);
    assert_eq!((index.live(), index.live_slots(), index.len()), (1, 4, 2));
    index.remove(old);
    assert_eq!(index.of_key(Key([1; 16])).collect::<Vec<_>>(), [new]);
}

#[test]
fn records_in_a_range_are_found_even_if_they_begin_before_it() {
    let mut index = Index::new(
        1,
        PolicyName::Lru.make(&PolicySettings { capacity: 1 << 20, object_limit: 1 << 20 }),
    );
    let a = index.insert(entry(1, 1, 0, EntryState::Live));
    let b = index.insert(entry(2, 2, 4, EntryState::Live));
    assert_eq!(index.live_in(3, 4).collect::<Vec<_>>(), [a]);
    assert_eq!(index.live_in(3, 5).collect::<Vec<_>>(), [b, a]);
    assert_eq!(index.beginning_in(1, 9).collect::<Vec<_>>(), [b]);
}

#[test]
fn the_least_recently_used_goes_first() {
    let mut index = Index::new(
        1,
        PolicyName::Lru.make(&PolicySettings { capacity: 1 << 20, object_limit: 1 << 20 }),
    );
    let a = index.insert(entry(1, 1, 0, EntryState::Live));
    let b = index.insert(entry(2, 2, 4, EntryState::Live));
    assert_eq!(index.victim(), Some(a));
    index.touch(a);
    assert_eq!(index.victim(), Some(b));
    assert_eq!(index.coldest_first(), [b, a]);
}

#[test]
fn an_entry_stays_small() {
    assert!(size_of::<Entry>() <= 40, "{}", size_of::<Entry>());
}
