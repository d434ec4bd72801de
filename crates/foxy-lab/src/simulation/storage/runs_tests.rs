//! Tests of runs in memory, on the modelled disk and on a device. The counts of operations are
//! equal in every place. Only some places measure time.

use super::*;
use crate::simulation::storage::operation::{Levels, left_on_disk, operations};
use crate::simulation::storage::sizing::paper_disk;
use foxy_base::Random;
use foxy_device::{Blocking, DirectIo, FaultPlan, Faulty, Root};
use foxy_schemes::PolicyName;
use foxy_workload::{Get, Trace};

fn stream() -> Operations {
    let mut random = Random::new(7);
    let gets = (0..1500).map(|_| {
        let url = 600f64.powf(random.unit()) as u32;
        Get { time: 0, client: 0, url, size: 200 + u64::from(url) * 31 % 20_000 }
    });
    let sites = (0..600).map(|url| url % 9).collect();
    let trace = Trace { gets: gets.collect(), sites, ..Trace::default() };
    let levels = Levels {
        memory: 100 << 10,
        disk: 1 << 20,
        policy: PolicyName::Lru,
        object_limit: u64::MAX,
    };
    operations(&trace, &levels).0
}

fn plan(scheme: &str) -> SimulationPlan {
    SimulationPlan::of(scheme.parse().expect("a scheme"), 1)
}

#[test]
fn every_scheme_finds_its_records_and_counts_only_the_operations() {
    let operations = stream();
    let reads = operations.count(OperationKind::Read);
    assert!(reads > 50 && operations.count(OperationKind::Delete) > 50);
    for scheme in
        ["single-directory", "ufs", "buddy", "stream", "packetizer", "lazy-reads", "lazy-reads-loc"]
    {
        let watch = Watch::default();
        let result = run(&plan(scheme), &operations, Place::Memory, &watch);
        let result = result.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert_eq!((result.outcome.found, result.outcome.refused), (reads, 0), "{scheme}");
        assert_eq!(watch.done.load(Relaxed), operations.list.len() as u64, "{scheme}");
        assert_eq!(result.took, None, "{scheme}: memory takes no time");
        if scheme == "stream" {
            assert_eq!(
                (result.counts.creates, result.counts.unlinks),
                (1, 0),
                "the file for all records"
            );
        }
        if scheme == "ufs" {
            assert!(result.counts.creates >= operations.count(OperationKind::Write));
        }
    }
}

#[test]
fn a_modelled_disk_gives_the_creates_of_memory_and_a_time() {
    let operations = stream();
    let memory = run(&plan("ufs"), &operations, Place::Memory, &Watch::default()).expect("runs");
    let profile = Box::new(DiskProfile::st15150w());
    let model =
        run(&plan("ufs"), &operations, Place::Model(profile), &Watch::default()).expect("runs");
    let files =
        |result: &RunResult| (result.counts.creates, result.counts.unlinks, result.outcome.found);
    assert_eq!(files(&model), files(&memory));
    assert!(model.took.is_some_and(|took| took > Duration::from_secs(1)), "{:?}", model.took);
    assert!(model.outcome.latency(0.99) >= model.outcome.latency(0.5));
}

#[test]
fn a_small_store_on_the_model_finds_all_records_despite_a_backlog() {
    let operations = stream();
    for scheme in ["stream", "packetizer", "lazy-reads", "lazy-reads-loc"] {
        let settings = settings(&plan(scheme), &operations);
        assert!(settings.store.size < 2 << 20, "{}", settings.store.size);
        let place = Place::Model(Box::new(paper_disk(0.001)));
        let result = run(&plan(scheme), &operations, place, &Watch::default());
        let result = result.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert_eq!((result.outcome.lost, result.outcome.refused), (0, 0), "{scheme}");
        let there = result.fewer_buffers.map(|fewer| fewer.there * (64 << 10));
        assert_eq!(there.is_some(), scheme == "lazy-reads-loc");
        assert!(there.is_none_or(|bytes| bytes * 4 <= settings.store.size as usize), "{there:?}");
    }
}

/// The test keeps writes waiting all the time. The modelled disk sorts waiting requests by
/// position, so the writes could delay a read for long.
#[test]
fn lazy_reads_delays_a_read_by_a_fraction_of_a_second() {
    let operation = |kind, url: u32| {
        let size = 1000 + u64::from(url) * 7919 % 20_000;
        Operation { kind, url, site: url % 40, size }
    };
    let list = (0..6000).flat_map(|url| {
        let old = (url > 2000 && url % 16 == 0).then_some(url / 2);
        let read = old.map(|old| operation(OperationKind::Read, old));
        read.into_iter().chain([operation(OperationKind::Write, url)])
    });
    let list = list.collect();
    let operations = Operations { list, gets: 6000, memory_hits: 0, disk: 100 << 20 };
    for scheme in ["lazy-reads", "lazy-reads-loc"] {
        let place = Place::Model(Box::new(DiskProfile::st15150w()));
        let result = run(&plan(scheme), &operations, place, &Watch::default()).expect("runs");
        let outcome = result.outcome;
        assert!(outcome.found > 200 && outcome.lost == 0, "{scheme}: {}", outcome.found);
        assert!(outcome.mean_read_seconds() < 0.5, "{scheme}: {}", outcome.mean_read_seconds());
        assert!(outcome.read_seconds(1.0) < 1.0, "{scheme}: {}", outcome.read_seconds(1.0));
    }
}

#[test]
fn a_store_that_does_not_fit_the_modelled_disk_is_refused_before_the_run() {
    let profile = DiskProfile { cylinders: 32, ..DiskProfile::st15150w() };
    let sized = |bytes: u64| {
        let write = |url| Operation { kind: OperationKind::Write, url, site: 0, size: 1 << 20 };
        let list = (0..(bytes >> 20) as u32).map(write).collect();
        Operations { list, gets: bytes >> 20, memory_hits: 0, disk: bytes }
    };
    let watch = Watch::default();
    let run = |bytes| run(&plan("stream"), &sized(bytes), Place::Model(Box::new(profile)), &watch);
    let error = run(profile.capacity()).expect_err("larger than the disk");
    assert!(matches!(error, RunError::NoRoom { size, room } if size > room), "{error}");
    assert!(error.to_string().contains("--utilization"), "{error}");
    assert_eq!(watch.done.load(Relaxed), 0);
    assert!(run(profile.room() / 2).is_ok());
}

#[test]
fn a_store_of_the_default_scheme_shrinks_to_the_modelled_disk() {
    let profile = paper_disk(0.001);
    let operations = Operations { disk: profile.capacity(), ..stream() };
    assert!(settings(&plan("webcosm"), &operations).store.size > profile.room());
    let place = Place::Model(Box::new(profile));
    let result = run(&plan("webcosm"), &operations, place, &Watch::default());
    let outcome = result.unwrap_or_else(|error| panic!("{error}")).outcome;
    assert!(outcome.found > 50 && !outcome.disk_full, "{outcome:?}");
}

#[test]
fn a_store_that_skips_its_work_gives_no_result() {
    let operations = stream();
    let none = plan("null");
    let error =
        run(&none, &operations, Place::Memory, &Watch::default()).expect_err("it stores nothing");
    assert!(
        matches!(error, RunError::FellShort(shortfall) if shortfall.lost == shortfall.reads),
        "{error}"
    );
    assert!(error.to_string().contains("found nothing"), "{error}");
}

#[test]
fn every_scheme_reports_a_full_disk() {
    let operations = stream();
    let plan_of_faults = FaultPlan { no_space: 0.01, ..FaultPlan::default() };
    for scheme in ["stream", "packetizer", "lazy-reads-loc", "buddy", "ufs"] {
        let setup = setup(&plan(scheme), 1, &operations).expect("a store");
        let device = Faulty::new(Memory::default(), FaultPlan::default(), 1);
        let mut drive = Drive::start(setup, device, VirtualTime::default(), Observer::default())
            .expect("opens");
        drive.engine().device().set_plan(plan_of_faults);
        for &operation in &operations.list {
            drive.operation(operation).expect("answers");
        }
        let shortfall = drive.finish().0.shortfall().expect("not all was stored");
        assert!(shortfall.is_failure(), "{scheme}: {shortfall}");
        assert!(shortfall.to_string().starts_with("the disk was full"), "{scheme}: {shortfall}");
    }
}

#[test]
fn objects_smaller_than_a_block_are_all_found_in_a_file_each() {
    let operation =
        |kind, url: u32| Operation { kind, url, site: url, size: 100 + u64::from(url) % 50 };
    let mut list: Vec<Operation> =
        (0..300).map(|url| operation(OperationKind::Write, url)).collect();
    list.extend((0..300).map(|url| operation(OperationKind::Read, url)));
    let operations = Operations { list, gets: 600, memory_hits: 0, disk: 100 << 10 };
    for scheme in ["ufs", "single-directory", "multiple-dirs", "squidl", "buddy", "stream"] {
        let result = run(&plan(scheme), &operations, Place::Memory, &Watch::default());
        let outcome = result.unwrap_or_else(|error| panic!("{scheme}: {error}")).outcome;
        assert_eq!((outcome.found, outcome.lost, outcome.refused), (300, 0, 0), "{scheme}");
    }
}

#[test]
fn a_run_stops_on_request() {
    let watch = Watch { stop: Arc::new(AtomicBool::new(true)), ..Watch::default() };
    let result = run(&plan("stream"), &stream(), Place::Memory, &watch);
    assert_eq!(result.err(), Some(RunError::Stopped));
}

#[test]
fn a_stream_that_no_store_can_hold_is_refused() {
    let operation = Operation { kind: OperationKind::Write, url: 0, site: 0, size: 1 << 41 };
    let operations = Operations { list: vec![operation], gets: 1, memory_hits: 0, disk: 1 << 41 };
    let result = run(&plan("stream"), &operations, Place::Memory, &Watch::default());
    assert!(matches!(result, Err(RunError::TooLarge(_))), "{result:?}");
}

#[test]
fn records_on_a_real_disk_are_read_again_through_a_new_device() {
    let operations = stream();
    let reads = left_on_disk(&operations, 1);
    assert!(reads.len() > 20);
    for scheme in ["ufs", "buddy", "packetizer", "lazy-reads-loc"] {
        let folder = tempfile::tempdir().expect("a folder");
        let device = || {
            let root = Root::open(folder.path()).expect("a folder");
            Box::new(Blocking::new(&root, DirectIo::Off))
        };
        let watch = Watch::default();
        let written = run(&plan(scheme), &operations, Place::Real(device()), &watch);
        let written = written.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert!(written.took >= Some(written.outcome.took), "{scheme}");
        let again = read_again(&plan(scheme), 1, &operations, &reads, device(), &watch);
        let again = again.unwrap_or_else(|error| panic!("{scheme}: {error}"));
        assert_eq!((again.found, again.lost), (reads.len() as u64, 0), "{scheme}");
    }
}
