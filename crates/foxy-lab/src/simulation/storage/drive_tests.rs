//! Tests the exact number of file system operations that each technique needs for a list of reads,
//! writes and deletions of objects.

use super::*;
use crate::simulation::storage::operation::{Levels, Operations, operations};
use foxy_base::Random;
use foxy_device::Memory;
use foxy_schemes::{PolicyName, SchemeSettings};
use foxy_store::{Recovery, StoreSettings};
use foxy_workload::{Get, Trace};

/// Generates a list of operations that fills its disk several times.
fn stream() -> Operations {
    let mut random = Random::new(3);
    let gets = (0..4000).map(|_| {
        let url = 2000f64.powf(random.unit()) as u32 + 2000 * u32::from(random.chance(0.3));
        Get { time: 0, client: 0, url, size: 100 + u64::from(url) * 7 % 30_000 }
    });
    let sites = (0..5000).map(|url| url % 40).collect();
    let trace = Trace { gets: gets.collect(), sites, ..Trace::default() };
    let levels = Levels {
        memory: 200 << 10,
        disk: 2 << 20,
        policy: PolicyName::Lru,
        object_limit: u64::MAX,
    };
    operations(&trace, &levels).0
}

fn run(text: &str, operations: &Operations) -> (Outcome, Observer) {
    let settings = SchemeSettings {
        high_watermark: 100,
        low_watermark: 100,
        ..SchemeSettings::from(StoreSettings {
            recovery: Recovery::AfterCleanStop,
            flush_after: Duration::from_secs(3600),
            record_limit: 100_000,
            ..StoreSettings::with_size(8 << 20)
        })
    };
    let scheme = text.parse().expect("a scheme");
    let setup = StoreSetup { scheme, settings, reads_at_once: 1, writes_at_once: 1 };
    let observer = Observer::default();
    let device = Memory::default();
    let mut drive = Drive::start(setup, device, VirtualTime::default(), observer.clone())
        .expect("a store that opens");
    for &operation in &operations.list {
        drive.operation(operation).unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    (drive.finish().0, observer)
}

#[test]
fn every_stored_url_is_found() {
    let operations = stream();
    let reads = operations.count(OperationKind::Read);
    assert!(reads > 100 && operations.count(OperationKind::Delete) > 1000);
    for scheme in ["stream", "packetizer", "lazy-reads", "lazy-reads-loc", "buddy", "ufs"] {
        let (outcome, _) = run(scheme, &operations);
        assert_eq!((outcome.found, outcome.lost, outcome.refused), (reads, 0, 0), "{scheme}");
        assert_eq!(outcome.operations, operations.list.len() as u64);
    }
}

#[test]
fn ufs_creates_a_file_for_each_write_and_unlinks_it_for_each_delete() {
    let operations = stream();
    let (_, observer) = run("ufs", &operations);
    let statistics = observer.statistics;
    let writes = operations.count(OperationKind::Write);
    assert!(statistics.creates.get() >= writes && statistics.creates.get() < writes + 1000);
    assert_eq!(statistics.unlinks.get(), operations.count(OperationKind::Delete));
}

#[test]
fn slots_in_one_file_cost_no_create_and_no_unlink() {
    let operations = stream();
    for scheme in ["stream", "packetizer", "lazy-reads", "lazy-reads-loc"] {
        let (_, observer) = run(scheme, &operations);
        let statistics = observer.statistics;
        assert_eq!(
            (statistics.creates.get(), statistics.unlinks.get()),
            (2, 0),
            "{scheme}: control and data"
        );
    }
    let (_, observer) = run("buddy", &operations);
    assert_eq!(observer.statistics.unlinks.get(), 0, "nothing is above the threshold");
    assert!(observer.statistics.creates.get() < 62, "a file a size");
}

#[test]
fn each_technique_seeks_less_than_the_one_before() {
    let operations = stream();
    let seeks = |scheme| run(scheme, &operations).1.statistics.seeks.get();
    let (buddy, stream, packetizer) = (seeks("buddy"), seeks("stream"), seeks("packetizer"));
    assert!(stream < buddy * 3 / 4, "{stream} against {buddy}");
    assert!(packetizer <= stream, "{packetizer} against {stream}");
}

#[test]
fn removals_that_a_full_journal_refuses_are_counted_without_a_wait() {
    let operation = |kind| move |url| Operation { kind, url, site: 0, size: 600 };
    let written = (0..2001).map(operation(OperationKind::Write));
    let list = written.chain((0..2000).map(operation(OperationKind::Delete))).collect();
    let (outcome, _) = run("stream-packetizer", &Operations { list, ..stream() });
    assert!(outcome.refused > 0, "the journal holds fewer");
    assert!(outcome.took < Duration::from_secs(60), "{:?}", outcome.took);
}
