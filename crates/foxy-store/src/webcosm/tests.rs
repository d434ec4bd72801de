//! Tests the webcosm storage scheme on a device in memory: full logs, reopening, replacing and
//! limits. The torture tests cover failures of the device.

mod block_device;
mod held;
mod large;
mod restart;
mod slots;
mod steps;
mod view;

use crate::contract::{Answer, RefusedReason};
use crate::settings::StoreSettings;
use crate::status::StoreStatus;
use crate::testing::{Store, content, name};
use foxy_base::Random;
use foxy_device::Memory;
use std::collections::HashMap;

const SIZE: u64 = 4 << 20;

fn open(settings: &StoreSettings, device: Memory) -> Store {
    let store = Store::webcosm(settings, device);
    assert_eq!(store.observer.status.get(), StoreStatus::Serving);
    store
}

fn new() -> Store {
    open(&settings(), Memory::default())
}

fn settings() -> StoreSettings {
    StoreSettings { page_buffer: 32 << 10, seed: 99, ..StoreSettings::with_size(SIZE) }
}

fn length(key: u64) -> usize {
    [300, 2_100, 5_000, 40_000][key as usize % 4]
}

#[test]
fn the_newest_records_survive_many_turns_of_the_log() {
    let mut store = new();
    for key in 0..2_000 {
        assert_eq!(store.put(key, 0, length(key)), Answer::Stored, "{key}");
    }
    let (large, small): (Vec<_>, Vec<_>) = (1_900..2_000).partition(|&key| length(key) > 3_000);
    let held = |store: &mut Store, keys: &[u64]| {
        keys.iter().filter(|&&key| store.holds(key, 0, length(key))).count()
    };
    assert_eq!(held(&mut store, &small), small.len());
    assert!(held(&mut store, &large) > 8, "large ones have a log of their own");
    assert!(store.counter("evicted") > 500, "{}", store.counter("evicted"));
    assert!(store.observer.statistics.adds_up());
}

#[test]
fn a_closed_store_comes_back_whole_and_a_killed_one_with_all_that_was_written() {
    for closed in [true, false] {
        let mut store = new();
        for key in 0..120 {
            assert_eq!(store.put(key, 0, length(key)), Answer::Stored);
        }
        store.flush();
        let device = if closed { store.close() } else { store.kill() };
        let mut store = open(&settings(), device);
        let back = (0..120).filter(|&key| store.holds(key, 0, length(key))).count();
        assert_eq!((back, store.counter("recovered")), (120, 120), "closed: {closed}");
    }
}

#[test]
fn a_small_record_costs_one_read_of_one_page() {
    let mut store = new();
    for key in 0..400 {
        assert_eq!(store.put(key, 0, 250), Answer::Stored);
    }
    store.flush();
    let (reads, bytes) = (store.counter("reads"), store.counter("read_bytes"));
    assert!((0..400).all(|key| store.holds(key, 0, 250)));
    assert_eq!(
        (store.counter("reads") - reads, store.counter("read_bytes") - bytes),
        (400, 400 * 4096)
    );
}

#[test]
fn records_below_a_page_cost_one_read_of_one_page_and_little_space() {
    let settings = StoreSettings { seed: 4, ..StoreSettings::with_size(64 << 20) };
    let mut store = open(&settings, Memory::default());
    let mut random = Random::new(3);
    let lengths: Vec<_> = (0..16_000).map(|_| 100 + random.below(3_900) as usize).collect();
    for (key, &length) in (0..).zip(&lengths) {
        assert_eq!(store.put(key, 0, length), Answer::Stored);
    }
    store.flush();
    let admitted: usize = lengths.iter().map(|length| length + 16).sum();
    let space = store.counter("written_bytes") as f64 / admitted as f64;
    let before = store.counter("read_bytes");
    let mut found = |key| matches!(store.driver.get(name(key)), Answer::Found(_));
    let held = (0..16_000).filter(|&key| found(key)).count() as u64;
    let pages = (store.counter("read_bytes") - before) as f64 / (16_000 * 4096) as f64;
    assert!(space < 1.05 && pages <= 1.0 && held > 15_990, "{space} {pages} {held}");
}

#[test]
fn what_was_replaced_or_removed_stays_away_across_openings() {
    let mut random = Random::new(7);
    let mut device = Memory::default();
    let mut expected: HashMap<u64, Option<u64>> = HashMap::new();
    for round in 0..30 {
        let mut store = open(&settings(), device);
        for step in 0..60 {
            let key = random.below(40);
            if random.below(4) == 0 {
                assert_eq!(store.driver.remove(name(key)), Answer::Removed);
                expected.insert(key, None);
            } else {
                let version = round * 100 + step;
                assert_eq!(store.put(key, version, length(key)), Answer::Stored);
                expected.insert(key, Some(version));
            }
        }
        for (&key, &version) in &expected {
            let found = store.driver.get(name(key));
            match version {
                Some(version) if found == Answer::Found(content(key, version, length(key))) => {}
                _ => assert!(matches!(found, Answer::Absent(_)), "{key} {version:?}: {found:?}"),
            }
        }
        device = if round % 2 == 0 { store.close() } else { store.kill() };
    }
}

#[test]
fn records_in_use_are_carried_over() {
    let mut store = new();
    for key in 0..10 {
        assert_eq!(store.put(key, 0, 600), Answer::Stored);
    }
    for key in 1_000..1_400 {
        assert_eq!(store.put(key, 0, 30_000), Answer::Stored);
        if key % 10 == 0 {
            assert!((0..10).all(|key| store.holds(key, 0, 600)), "after {key}");
        }
    }
    assert!(store.counter("carried_over") >= 20, "{}", store.counter("carried_over"));
}

#[test]
fn what_is_too_large_or_too_much_is_refused_by_name() {
    let mut store = new();
    assert_eq!(store.put(1, 0, 2 << 20), Answer::Refused(RefusedReason::TooLarge));
    let few = StoreSettings { record_limit: 20, ..settings() };
    let mut store = open(&few, Memory::default());
    let stored = (0..200).filter(|&key| store.put(key, 0, 300) == Answer::Stored).count();
    assert!(stored >= 20, "{stored}");
    assert!(store.counter("records") <= 20);
}

#[test]
fn what_waits_can_be_replaced_and_removed_without_a_sync() {
    let mut store = new();
    let syncs = store.counter("syncs");
    assert_eq!(store.put(1, 0, 100), Answer::Stored);
    assert_eq!(store.put(1, 1, 200), Answer::Stored);
    assert!(store.holds(1, 1, 200));
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
    assert_eq!(store.driver.remove(name(2)), Answer::Removed);
    assert!(!store.holds(1, 1, 200));
    assert_eq!(store.counter("syncs"), syncs);
}

#[test]
fn more_is_forgotten_than_the_journal_holds() {
    let mut store = new();
    for key in 0..800 {
        assert_eq!(store.put(key, 0, 300), Answer::Stored);
    }
    store.flush();
    let mut refused = 0;
    for version in 1..4 {
        for key in 0..800 {
            match store.put(key, version, 300) {
                Answer::Stored => assert!(store.holds(key, version, 300)),
                Answer::Refused(RefusedReason::Busy) => refused += 1,
                other => panic!("{key}: {other:?}"),
            }
        }
    }
    assert!(store.counter("forgets") > 2_000 && refused == 0, "{refused} refused");
    let device = store.kill();
    let mut store = open(&settings(), device);
    assert!((0..800).all(
        |key| !matches!(store.driver.get(name(key)), Answer::Found(old) if old == content(key, 0, 300))
    ));
}

#[test]
fn a_single_small_record_survives_a_kill_in_a_store_of_any_size() {
    for size in [1 << 20, 16 << 20, 64 << 20, 300 << 20] {
        let settings = StoreSettings { size, seed: 3, ..settings() };
        let mut store = open(&settings, Memory::default());
        assert_eq!(store.put(1, 0, 300), Answer::Stored);
        store.flush();
        let mut store = open(&settings, store.kill());
        assert!(store.holds(1, 0, 300), "{size}");
    }
}
