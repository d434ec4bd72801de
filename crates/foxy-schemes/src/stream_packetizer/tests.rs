//! Tests the storage scheme stream-packetizer on a device in memory: the cyclic use of the file,
//! reopening, and limits. Separate files test faults, damaged files and the journal.

mod faults;
mod files;
mod journal;

use crate::SchemeName;
use crate::SchemeSettings;
use foxy_base::{Instant, Random};
use foxy_device::{Device, Memory};
use foxy_store::StoreSettings;
use foxy_store::contract::{AbsentReason, Answer, PlacementHint, Record, RefusedReason};
use foxy_store::engine::Ask;
use foxy_store::observe::Observer;
use foxy_store::settings::RECORD_BODY_LIMIT;
use foxy_store::status::StoreStatus;
use foxy_store::step::StepDriver;
use foxy_store::testing::{Store, content, name};
use std::collections::HashMap;
use std::time::Duration;

const SIZE: u64 = 1 << 20;

fn open<D: Device>(settings: &SchemeSettings, device: D) -> Store<D> {
    Store::open(|observer| SchemeName::StreamPacketizer.make(settings, observer), device)
}

fn new() -> Store {
    open(&settings(), Memory::default())
}

fn settings() -> SchemeSettings {
    SchemeSettings::from(StoreSettings {
        page_buffer: 32 << 10,
        seed: 99,
        ..StoreSettings::with_size(SIZE)
    })
}

#[test]
fn records_are_returned_until_replaced_or_removed() {
    let mut store = new();
    assert!(!store.holds(1, 0, 0));
    assert_eq!(store.put(1, 1, 5000), Answer::Stored);
    assert!(store.holds(1, 1, 5000));
    assert_eq!(store.put(1, 2, 100), Answer::Stored);
    assert!(store.holds(1, 2, 100));
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
    assert!(!store.holds(1, 2, 100));
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
    assert_eq!(store.put(1, 3, 0), Answer::Stored);
    assert!(store.holds(1, 3, 0));
}

#[test]
fn puts_of_new_keys_cost_no_sync_and_write_whole_buffers() {
    let mut store = new();
    let before = store.counter("syncs");
    let writes = store.counter("writes");
    for key in 0..100 {
        assert_eq!(store.put(key, 1, 4000), Answer::Stored);
    }
    assert_eq!(store.counter("syncs"), before);
    assert!(store.counter("writes") - writes <= 100 * 4608 / (32 << 10) + 1);
}

#[test]
fn three_wraps_leave_every_record_as_it_was_put() {
    let mut store = new();
    let mut random = Random::new(21);
    let mut newest = HashMap::new();
    let mut written = 0;
    let mut version = 0;
    while written < 4 * SIZE {
        let key = random.below(400);
        let length = usize::try_from(random.below(12_000)).expect("small");
        version += 1;
        if random.chance(0.05) {
            assert_eq!(store.driver.remove(name(key)), Answer::Removed);
            newest.remove(&key);
        } else {
            assert_eq!(
                store.put(key, version, length),
                Answer::Stored,
                "seed 21, version {version}"
            );
            newest.insert(key, (version, length));
            written += length as u64;
        }
        let other = random.below(400);
        match newest.get(&other) {
            Some(&(version, length)) => drop(store.holds(other, version, length)),
            None => {
                assert!(!store.holds(other, 0, 0), "seed 21: key {other} was removed or never put")
            }
        }
    }
    let held = newest
        .iter()
        .filter(|&(&key, &(version, length))| store.holds(key, version, length))
        .count();
    assert!(held > 60, "only {held} records left");
    assert!(store.counter("live_bytes") <= store.counter("capacity_bytes") * 95 / 100);
    assert!(store.counter("evicted") > 0);
    assert!(store.observer.statistics.adds_up());
    assert_eq!(store.kill().bytes(), SIZE, "the file keeps its size");
}

#[test]
fn the_least_recently_used_go_first() {
    let mut store = new();
    assert_eq!(store.put(0, 1, 9000), Answer::Stored);
    for key in 1..300 {
        assert_eq!(store.put(key, 1, 9000), Answer::Stored);
        assert!(store.holds(0, 1, 9000), "used before each put, gone at {key}");
    }
    assert!(!store.holds(1, 1, 9000));
    assert!(store.holds(299, 1, 9000));
}

#[test]
fn after_a_crash_a_scan_finds_written_records() {
    let mut store = new();
    for key in 0..40 {
        store.put(key, 1, 3000);
    }
    store.put(7, 2, 500);
    store.driver.remove(name(8));
    store.driver.run_until(Instant::ZERO + Duration::from_secs(5));
    let mut store = open(&settings(), store.kill());
    assert_eq!(store.observer.status.get(), StoreStatus::Serving);
    assert_eq!(store.counter("recovered"), 39);
    for key in (0..40).filter(|&key| key != 8) {
        assert!(
            if key == 7 { store.holds(7, 2, 500) } else { store.holds(key, 1, 3000) },
            "key {key}"
        );
    }
    assert!(!store.holds(8, 1, 3000));
    assert_eq!(store.counter("forgets"), 0);
    assert_eq!(store.put(8, 3, 10), Answer::Stored);
    assert_eq!(store.counter("forgets"), 1, "its leftover is known");
}

#[test]
fn after_closing_a_checkpoint_makes_the_scan_unnecessary() {
    let mut store = new();
    for key in 0..40 {
        store.put(key, 1, 3000);
    }
    store.driver.remove(name(8));
    let device = store.close();
    let mut store = open(&settings(), device);
    assert_eq!(store.counter("recovered"), 39);
    assert_eq!(store.counter("recovered_from_checkpoint"), 39);
    assert!(store.counter("read_bytes") < 100_000, "{} bytes read", store.counter("read_bytes"));
    assert!(store.holds(3, 1, 3000));
    assert!(!store.holds(8, 1, 3000));
    let mut store = open(&settings(), store.kill());
    assert!(store.counter("read_bytes") > SIZE / 2, "that checkpoint is complete no more");
    assert!(store.holds(3, 1, 3000));
}

#[test]
fn a_periodic_checkpoint_is_served_before_the_scan_has_ended() {
    let mut store = new();
    for key in 0..40 {
        store.put(key, 1, 3000);
    }
    store.driver.run_until(Instant::ZERO + Duration::from_secs(100));
    assert_eq!(store.counter("checkpoints"), 1);
    store.put(3, 2, 100);
    let store = open(&settings(), store.kill());
    assert_eq!(store.counter("recovered_from_checkpoint"), 39, "key 3 is forgotten by the journal");
}

#[test]
fn a_forgotten_record_stays_forgotten_through_many_openings_and_journal_moves() {
    let mut store = new();
    store.put(1, 1, 2000);
    store.driver.run_until(Instant::ZERO + Duration::from_secs(5));
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
    for round in 0..50 {
        store.put(1000 + round % 3, round, 100);
        store.driver.run_until_idle();
    }
    for _ in 0..6 {
        store = open(&settings(), store.kill());
        assert!(!store.holds(1, 1, 2000));
    }
}

#[test]
fn too_large_records_are_refused_and_change_nothing() {
    let mut store = open(
        &SchemeSettings {
            store: StoreSettings { object_limit: 50_000, ..settings().store },
            ..settings()
        },
        Memory::default(),
    );
    store.put(1, 1, 100);
    let too_large = Answer::Refused(RefusedReason::TooLarge);
    assert_eq!(store.put(1, 2, 50_001), too_large);
    assert_eq!(store.put(1, 2, RECORD_BODY_LIMIT + 41), too_large);
    let hint = PlacementHint { size: 60_000, ..PlacementHint::default() };
    assert_eq!(store.driver.put(name(1), content(1, 2, 10), hint), too_large);
    assert!(store.holds(1, 1, 100));
    assert_eq!(store.put(1, 2, 50_000), Answer::Stored);
}

#[test]
fn another_size_begins_the_store_anew_within_the_new_limit() {
    let mut store = new();
    store.put(1, 1, 500);
    let smaller = SchemeSettings {
        store: StoreSettings { size: SIZE / 2, ..settings().store },
        ..settings()
    };
    let mut store = open(&smaller, store.close());
    assert!(!store.holds(1, 1, 500));
    assert_eq!(store.put(1, 2, 500), Answer::Stored);
    assert_eq!(store.kill().bytes(), SIZE / 2);
}

#[test]
fn requests_before_the_store_is_open_are_answered_as_recovering() {
    let observer = Observer::default();
    let scheme = SchemeName::StreamPacketizer.make(&settings(), observer.clone());
    let mut driver = StepDriver::start(scheme, Memory::default(), observer, Instant::ZERO);
    let get = driver.ask(Ask::Get(name(1)));
    let put = driver.ask(Ask::Put(name(1), Record::default(), PlacementHint::default()));
    let answers = driver.take_answers();
    assert_eq!(answers[0], (get, Answer::Absent(AbsentReason::Recovering)));
    assert_eq!(answers[1], (put, Answer::Refused(RefusedReason::Recovering)));
}

#[test]
fn buffered_records_are_written_when_no_more_may_wait() {
    let settings = SchemeSettings {
        store: StoreSettings { waiting_bytes: 64 << 10, ..settings().store },
        ..settings()
    };
    let mut store = open(&settings, Memory::default());
    let ask = |store: &mut Store, key| {
        store.driver.ask(Ask::Put(name(key), content(key, 1, 50_000), PlacementHint::default()))
    };
    ask(&mut store, 1);
    let again = ask(&mut store, 2);
    assert!(store.driver.take_answers().contains(&(again, Answer::Refused(RefusedReason::Busy))));
    store.driver.run_until_idle();
    assert_eq!(
        store.put(2, 1, 50_000),
        Answer::Stored,
        "it does not wait for the page buffer's time"
    );
}

#[test]
fn too_much_at_once_is_refused_as_busy() {
    let settings = SchemeSettings {
        store: StoreSettings { waiting_bytes: 64 << 10, waiting_reads: 3, ..settings().store },
        ..settings()
    };
    let mut store = open(&settings, Memory::default());
    for key in 0..40 {
        store.driver.ask(Ask::Put(name(key), content(key, 1, 8000), PlacementHint::default()));
    }
    let answers = store.driver.take_answers();
    let busy = answers
        .iter()
        .filter(|(_, answer)| *answer == Answer::Refused(RefusedReason::Busy))
        .count();
    assert_eq!((answers.len(), busy), (40, 40 - 8));
    store.driver.run_until(Instant::ZERO + Duration::from_secs(5));
    for key in 0..5 {
        store.driver.ask(Ask::Get(name(key)));
    }
    let answers = store.driver.take_answers();
    let busy = (answers.len(), Answer::Absent(AbsentReason::Busy));
    assert_eq!(busy, (2, answers.into_iter().next().expect("two").1));
}
