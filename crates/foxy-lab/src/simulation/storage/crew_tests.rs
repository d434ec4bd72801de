//! Tests that the workers of a storage scheme (threads or helper processes) decide how well it uses
//! several modelled disks.

use super::*;
use crate::simulation::storage::drive::{Drive, VirtualTime};
use crate::simulation::storage::operation::{Operation, OperationKind, Operations};
use crate::simulation::storage::runs::{self, SimulationPlan};
use foxy_base::Random;
use foxy_device::DiskProfile;
use foxy_schemes::UfsMapping;
use foxy_store::Observer;

/// Returns writes of new URLs, each followed by a read of an older URL. The URLs together are
/// larger than the caches of the modelled system.
fn operations() -> Operations {
    let mut random = Random::new(5);
    let mut list = Vec::new();
    for url in 0..1500u32 {
        let operation = |kind, url: u32| {
            let size = 500 + u64::from(url) * 7919 % 20_000;
            Operation { kind, url, site: url % 40, size }
        };
        list.push(operation(OperationKind::Write, url));
        if url >= 600 {
            let old = random.below(u64::from(url) - 300);
            list.push(operation(OperationKind::Read, u32::try_from(old).expect("small")));
        }
    }
    Operations { list, gets: 2400, memory_hits: 0, disk: 100 << 20 }
}

/// Returns the seconds of virtual time that a storage scheme needs on `disks` disks.
fn seconds(scheme: &str, disks: usize) -> f64 {
    seconds_with(scheme, disks, AufsWrites::Threads)
}

fn seconds_with(scheme: &str, disks: usize, writes: AufsWrites) -> f64 {
    let (scheme, operations) = (scheme.parse().expect("a scheme"), operations());
    let mut plan = SimulationPlan::of(scheme, 1);
    plan.scheme_settings.ufs_mapping = UfsMapping::RoundRobin;
    let setup = runs::setup(&plan, requests_at_once(scheme), &operations).expect("fits");
    let mut profile = DiskProfile::st15150w();
    // Every write waits for its disk, so that it matters who waits.
    profile.system.write_behind = 0;
    let device = Crew::new(Mechanical::new(profile, disks, 1), scheme, writes);
    let mut drive =
        Drive::start(setup, device, VirtualTime::default(), Observer::default()).expect("opens");
    for &operation in &operations.list {
        drive.operation(operation).expect("progress");
    }
    let (outcome, _) = drive.finish();
    assert_eq!((outcome.lost, outcome.refused), (0, 0), "{scheme}");
    outcome.took.as_secs_f64()
}

#[test]
fn threads_let_the_elevator_choose_and_a_helper_works_while_the_proxy_goes_on() {
    let [ufs, diskd, aufs] = ["ufs", "diskd", "aufs"].map(|scheme| seconds(scheme, 1));
    assert!(ufs > diskd, "the proxy waits: {ufs} s against {diskd} s");
    assert!(diskd > aufs * 1.2, "one at a time: {diskd} s against {aufs} s");
}

#[test]
fn each_disk_has_a_helper_and_a_scheme_that_waits_uses_one_disk_at_a_time() {
    let [ufs, diskd, aufs] = ["ufs", "diskd", "aufs"].map(|scheme| seconds(scheme, 3));
    assert!(ufs > diskd * 2.0, "{ufs} s against {diskd} s");
    assert!(diskd > aufs, "{diskd} s against {aufs} s");
}

#[test]
fn a_proxy_that_writes_itself_waits_for_each_write_while_its_threads_read() {
    let [threads, proxy] =
        [AufsWrites::Threads, AufsWrites::Proxy].map(|writes| seconds_with("aufs", 3, writes));
    assert!(proxy > threads * 1.2, "{proxy} s against {threads} s");
    let ufs = seconds_with("ufs", 3, AufsWrites::Proxy);
    assert!(ufs > proxy, "ufs waits for reads too: {ufs} s against {proxy} s");
}
