//! Tests a full or failing disk. Records may be lost, but every request receives a correct answer.

use super::{open, settings};
use crate::SchemeSettings;
use foxy_base::{Instant, Random};
use foxy_device::faulty::{FaultPlan, Faulty};
use foxy_device::{IoError, Memory};
use foxy_store::StoreSettings;
use foxy_store::contract::{AbsentReason, Answer, PlacementHint, RefusedReason};
use foxy_store::engine::Ask;
use foxy_store::settings::SizeWish;
use foxy_store::status::{OpenStoreError, StoreStatus};
use foxy_store::testing::{Store, content, name};
use std::time::Duration;

const BROKEN: FaultPlan = FaultPlan { errors: 1.0, ..FaultPlan::NONE };

fn store(plan: FaultPlan, seed: u64) -> Store<Faulty<Memory>> {
    open(&settings(), Faulty::new(Memory::default(), plan, seed))
}

fn set(store: &mut Store<Faulty<Memory>>, plan: FaultPlan) {
    store.driver.device().set_plan(plan);
}

#[test]
fn a_disk_without_room_makes_the_store_smaller_or_unusable() {
    let full = FaultPlan { no_space: 1.0, ..FaultPlan::NONE };
    let mut unusable = store(full, 1);
    assert_eq!(unusable.observer.status.get(), StoreStatus::Unusable(OpenStoreError::NoSpace));
    assert_eq!(unusable.put(1, 1, 10), Answer::Refused(RefusedReason::NoSpace));
    let sizes: Vec<_> = (0..20)
        .map(|seed| {
            let observed = open(
                &settings(),
                Faulty::new(
                    Memory::default(),
                    FaultPlan { no_space: 0.3, ..FaultPlan::NONE },
                    seed,
                ),
            );
            let told = observed.observer.statistics.size_bytes.get();
            (observed.observer.status.get(), observed.driver.into_device().inner().bytes(), told)
        })
        .collect();
    let half = super::SIZE / 2;
    assert!(sizes.contains(&(StoreStatus::Serving, half, half)), "{sizes:?}");
}

#[test]
fn a_size_that_must_be_exact_is_had_or_refused() {
    let exact = SchemeSettings {
        store: StoreSettings { size_wish: SizeWish::Exactly, ..settings().store },
        ..settings()
    };
    for seed in 0..20 {
        let plan = FaultPlan { no_space: 0.3, ..FaultPlan::NONE };
        let observed = open(&exact, Faulty::new(Memory::default(), plan, seed));
        let status = observed.observer.status.get();
        let size = observed.driver.into_device().inner().bytes();
        let refused = status == StoreStatus::Unusable(OpenStoreError::NoSpace) && size == 0;
        assert!(refused || size == super::SIZE, "seed {seed}: {status:?} with {size} bytes");
    }
}

#[test]
fn a_disk_that_fails_at_opening_leaves_a_store_that_answers() {
    let mut store = store(BROKEN, 1);
    let device = OpenStoreError::Device(IoError::Device);
    assert_eq!(store.observer.status.get(), StoreStatus::Unusable(device));
    let failed = Answer::Absent(AbsentReason::DeviceFailed(IoError::Device));
    assert_eq!(store.driver.get(name(1)), failed);
    assert_eq!(store.driver.close(), Answer::Closed);
}

#[test]
fn records_of_a_failed_write_are_absent_and_its_pages_given_up() {
    let mut store = store(FaultPlan::NONE, 1);
    set(&mut store, BROKEN);
    for key in 0..20 {
        assert_eq!(store.put(key, 1, 3000), Answer::Stored, "in the page buffer");
    }
    store.driver.run_until(Instant::ZERO + Duration::from_secs(5));
    set(&mut store, FaultPlan::NONE);
    assert!((0..20).all(|key| !store.holds(key, 1, 3000)));
    assert!(store.counter("retired_pages") >= 20 * 3000 / 4096);
    assert_eq!(store.put(1, 2, 3000), Answer::Stored);
    store.driver.run_until(Instant::ZERO + Duration::from_secs(10));
    assert!(store.holds(1, 2, 3000), "elsewhere");
}

#[test]
fn a_removal_that_cannot_be_made_durable_is_refused() {
    let mut store = store(FaultPlan::NONE, 1);
    store.put(1, 1, 3000);
    set(&mut store, BROKEN);
    let failed = Answer::Refused(RefusedReason::DeviceFailed(IoError::Device));
    assert_eq!(store.driver.remove(name(1)), failed);
    assert_eq!(store.put(1, 2, 100), failed);
    set(&mut store, FaultPlan::NONE);
    assert!(store.holds(1, 1, 3000), "as it was");
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
}

#[test]
fn a_read_error_is_a_miss() {
    let mut store = store(FaultPlan::NONE, 1);
    store.put(1, 1, 3000);
    store.driver.run_until(Instant::ZERO + Duration::from_secs(5));
    set(&mut store, BROKEN);
    let failed = Answer::Absent(AbsentReason::DeviceFailed(IoError::Device));
    assert_eq!(store.driver.get(name(1)), failed);
    assert_eq!(store.driver.get(name(1)), Answer::Absent(AbsentReason::NotIndexed));
}

#[test]
fn any_order_of_completions_with_any_fault_gives_right_bytes_or_none() {
    for seed in 0..30 {
        let plan = FaultPlan {
            errors: 0.02,
            short_reads: 0.02,
            short_writes: 0.02,
            flips_written: 0.02,
            flips_read: 0.02,
            lost_writes: 0.02,
            misdirected_writes: 0.02,
            latency: (Duration::from_micros(10), Duration::from_millis(3)),
            ..FaultPlan::NONE
        };
        let mut store = store(FaultPlan { latency: plan.latency, ..FaultPlan::NONE }, seed);
        set(&mut store, plan);
        let mut random = Random::new(seed);
        let mut newest = [0u64; 50];
        for version in 1..400 {
            let key = random.below(50);
            let place = usize::try_from(key).expect("small");
            if store.put(key, version, 4000) == Answer::Stored {
                newest[place] = version;
            }
            let other = random.below(50);
            let version = newest[usize::try_from(other).expect("small")];
            match store.driver.get(name(other)) {
                Answer::Found(found) => {
                    assert_eq!(found, content(other, version, 4000), "seed {seed}")
                }
                Answer::Absent(_) => {}
                answer => panic!("seed {seed}: {answer:?}"),
            }
        }
        store.driver.ask(Ask::Put(name(99), content(99, 1, 10), PlacementHint::default()));
        assert_eq!(store.driver.close(), Answer::Closed, "seed {seed}");
        assert!(store.observer.statistics.adds_up());
    }
}
