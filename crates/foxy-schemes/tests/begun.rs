//! Tests that a store can be created after power failures during its first opening. Files from an
//! unfinished attempt must not count as files of another program.

use foxy_base::{Instant, Random};
use foxy_device::memory::CrashPolicy;
use foxy_device::{FaultPlan, Faulty, Memory, StorePath};
use foxy_schemes::{SCHEMES, SchemeName, SchemeSettings};
use foxy_store::webcosm;
use foxy_store::{Observer, Recovery, StepDriver, StoreSettings, StoreStatus};
use std::time::Duration;

const NANOS_IN_A_MILLISECOND: u64 = 1_000_000;

fn open(
    scheme: SchemeName,
    recovery: Recovery,
    device: Faulty<Memory>,
) -> (StepDriver<Faulty<Memory>>, Observer) {
    let observer = Observer::default();
    let settings =
        SchemeSettings::from(StoreSettings { recovery, ..StoreSettings::with_size(1 << 20) });
    let driver = StepDriver::start(
        scheme.make(&settings, observer.clone()),
        device,
        observer.clone(),
        Instant::ZERO,
    );
    (driver, observer)
}

fn check(scheme: SchemeName, recovery: Recovery, disk: Memory, seed: u64) {
    let mut random = Random::new(seed);
    let plan =
        FaultPlan { latency: (Duration::ZERO, Duration::from_millis(2)), ..FaultPlan::default() };
    let mut device = Faulty::new(disk, plan, seed);
    for _ in 0..random.below(4) {
        let (mut driver, _) = open(scheme, recovery, device);
        driver.run_until(Instant(random.below(12 * NANOS_IN_A_MILLISECOND)));
        device = driver.into_device();
        device.crash(&CrashPolicy::MIXED);
    }
    let (mut driver, observer) = open(scheme, recovery, device);
    driver.run_until_idle();
    assert_eq!(observer.status.get(), StoreStatus::Serving, "{scheme}, {recovery:?}, seed {seed}");
}

#[test]
fn an_interrupted_first_opening_begins_anew() {
    for scheme in SCHEMES.iter().filter(|scheme| scheme.control.is_some()) {
        for recovery in [Recovery::AfterCrash, Recovery::AfterCleanStop] {
            for seed in 0..150 {
                check(scheme.name, recovery, Memory::volatile(), seed);
            }
        }
    }
}

#[test]
fn an_interrupted_opening_on_a_block_device_begins_anew() {
    for seed in 0..150 {
        let mut disk = Memory::volatile();
        disk.add_block_device(StorePath::new(webcosm::FILE_NAME), 2 << 20);
        check(SchemeName::Webcosm, Recovery::AfterCrash, disk, seed);
    }
}
