//! Tests deferred records, which the store keeps only in memory because it is over its write
//! budget. A get finds such a record and causes its write to disk. The record that it replaced
//! never returns.

use super::{SIZE, open, settings};
use crate::contract::Answer;
use crate::settings::{Newcomers, StoreSettings, WriteBudget};
use crate::testing::{Store, name};
use foxy_base::Random;
use foxy_device::Memory;
use std::collections::HashMap;
use std::time::Duration;

/// Bytes in the body of a record that is much larger than the other records.
const HEAVY: usize = 20_000;
/// Bytes in the body of an ordinary record.
const LIGHT: usize = 1_000;
/// Number of ordinary records that fill a store twice.
const FULL: u64 = 2 * SIZE / LIGHT as u64;
/// Bytes of memory for deferred records: enough for two heavy records, but not for three.
const MEMORY: usize = 50_000;

fn spent(newcomers: Newcomers) -> StoreSettings {
    let budget = WriteBudget { bytes_a_day: 0, memory: MEMORY, newcomers };
    StoreSettings { write_budget: Some(budget), ..settings() }
}

/// Creates a store that was filled with light records, and that has used up its write budget.
fn full() -> Store {
    let mut store = open(&spent(Newcomers::Heavy), Memory::default());
    for key in 0..FULL {
        assert_eq!(store.put(key, 0, LIGHT), Answer::Stored);
    }
    store.flush();
    assert_eq!(store.counter("held"), 0);
    store
}

#[test]
fn a_heavy_newcomer_is_served_and_written_only_when_it_is_asked_for_again() {
    let mut store = full();
    let written = store.counter("written_bytes");
    for key in [FULL, FULL + 1] {
        assert_eq!(store.put(key, 0, HEAVY), Answer::Stored);
    }
    store.flush();
    assert_eq!((store.counter("held"), store.counter("written_bytes")), (2, written));
    let reads = store.counter("reads");
    assert!(store.holds(FULL, 0, HEAVY));
    assert_eq!(
        (store.counter("reads"), store.counter("held"), store.counter("held_written")),
        (reads, 1, 1)
    );
    store.flush();
    assert!(store.counter("written_bytes") >= written + HEAVY as u64);
    let mut store = open(&spent(Newcomers::Heavy), store.kill());
    assert!(store.holds(FULL, 0, HEAVY) && !store.holds(FULL + 1, 0, HEAVY));
}

#[test]
fn what_is_held_makes_room_in_turn_and_is_written_the_next_time_it_comes() {
    let mut store = full();
    for key in 0..20 {
        assert_eq!(store.put(FULL + key, 0, HEAVY), Answer::Stored);
        assert!(store.counter("held_bytes") <= MEMORY as u64);
    }
    assert_eq!((store.counter("held"), store.counter("held_dropped")), (2, 18));
    assert!((0..18).all(|key| !store.holds(FULL + key, 0, HEAVY)));
    assert_eq!(store.put(FULL + 17, 1, HEAVY), Answer::Stored);
    store.flush();
    let mut store = open(&spent(Newcomers::Heavy), store.kill());
    assert!(store.holds(FULL + 17, 1, HEAVY));
}

#[test]
fn what_is_light_or_too_large_to_hold_is_written_as_ever() {
    let mut store = full();
    for (key, length) in [(FULL, LIGHT), (FULL + 1, MEMORY)] {
        assert_eq!(store.put(key, 0, length), Answer::Stored);
        assert_eq!(store.counter("held"), 0, "{length}");
    }
}

#[test]
fn within_the_budget_everything_is_written() {
    let budget = WriteBudget { bytes_a_day: 100 << 20, memory: MEMORY, newcomers: Newcomers::All };
    let settings = StoreSettings { write_budget: Some(budget), ..settings() };
    let mut store = open(&settings, Memory::default());
    let mut key = 0;
    while store.counter("written_bytes") < 90 << 20 {
        assert_eq!(store.put(key, 0, HEAVY), Answer::Stored);
        key += 1;
    }
    assert_eq!(store.counter("held"), 0);
    while store.counter("held") == 0 && store.counter("written_bytes") < 110 << 20 {
        assert_eq!(store.put(key, 0, HEAVY), Answer::Stored);
        key += 1;
    }
    assert!(store.counter("written_bytes") >= 100 << 20);
    store.driver.run_until(store.driver.now() + Duration::from_secs(3_600));
    assert_eq!(store.put(key, 0, HEAVY), Answer::Stored);
    assert_eq!(store.counter("held"), 1, "an hour later one more is written");
}

#[test]
fn records_replaced_or_removed_while_deferred_never_come_back() {
    let mut random = Random::new(7);
    let mut device = full().close();
    let mut expected: HashMap<u64, Option<u64>> = HashMap::new();
    let (mut held, mut written) = (0, 0);
    for round in 0..40 {
        let mut store = open(&spent(Newcomers::All), device);
        for step in 0..60 {
            let key = random.below(20);
            let version = round * 100 + step;
            match random.below(4) {
                0 => {
                    assert_eq!(store.driver.remove(name(key)), Answer::Removed);
                    expected.insert(key, None);
                }
                1 => drop(store.driver.get(name(key))),
                _ => {
                    assert_eq!(store.put(key, version, LIGHT), Answer::Stored);
                    expected.insert(key, Some(version));
                }
            }
            held += store.counter("held");
        }
        written += store.counter("held_written");
        device = if round % 2 == 0 { store.close() } else { store.kill() };
        let mut store = open(&spent(Newcomers::All), device);
        for (&key, &version) in &expected {
            assert!(
                version.is_some() || !matches!(store.driver.get(name(key)), Answer::Found(_)),
                "{key}"
            );
            version.map(|version| store.holds(key, version, LIGHT));
        }
        device = store.kill();
    }
    assert!(held > 1_000 && written > 100, "{held} {written}");
}
