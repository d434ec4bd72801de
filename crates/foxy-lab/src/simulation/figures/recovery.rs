//! Compares recovery methods of stores. Measures how long a store takes to open after a clean stop
//! and after a crash, and how many records it finds. Also measures the cost of recovery while the
//! store serves. The WebCoSM paper (paper 001 in docs/figures.md) describes the methods in section
//! 6.1 but gives no numbers.

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, line};
use super::throughput::RATE;
use super::trial::Mix;
use crate::simulation::storage::drive::{Drive, DriveError, StoreSetup, VirtualTime};
use crate::simulation::storage::operation::{OperationKind, Operations};
use crate::simulation::storage::sizing;
use foxy_base::Instant;
use foxy_device::Mechanical;
use foxy_report::chart::Line;
use foxy_report::figure::{FigureRow, Place};
use foxy_report::statistics::mean;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::record::HEADER;
use foxy_store::{Observer, Recovery, StoreSettings};

const NAME: &str = "001-recovery";

/// The sizes of the three experiments. An experiment at size 0.05 has 5 % of the WebCoSM paper's
/// requests, on a disk of 5 % of the size in the paper.
const SIZES: [f64; 3] = [0.05, 0.1, 0.2];

#[derive(Debug)]
struct RecoveryMethod {
    name: &'static str,
    scheme: SchemeName,
    recovery: Recovery,
}

static METHODS: [RecoveryMethod; 4] = [
    method("stream-packetizer", SchemeName::StreamPacketizer, Recovery::AfterCrash),
    method("packetizer", SchemeName::Packetizer, Recovery::AfterCleanStop),
    method("ufs", SchemeName::Ufs, Recovery::AfterCrash),
    method("ufs without ledger", SchemeName::Ufs, Recovery::AfterCleanStop),
];

const fn method(name: &'static str, scheme: SchemeName, recovery: Recovery) -> RecoveryMethod {
    RecoveryMethod { name, scheme, recovery }
}

#[derive(Clone, Copy, Debug, Default)]
struct ReopenResult {
    seconds: f64,
    /// The number of records found, in percent of the records before the restart.
    found: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct RecoveryResult {
    /// The URL-gets (client requests) per second from the creation of the store to its clean stop.
    rate: f64,
    /// The bytes written in addition to the objects themselves, in percent of the objects' bytes.
    beyond: f64,
    /// The bytes of record headers, in percent of the objects' bytes.
    headers: f64,
    /// The number of syncs of the disk for each URL-write (stored object).
    syncs: f64,
    /// The duration of the clean stop in seconds.
    close: f64,
    /// The number of records when the store was closed.
    records: f64,
    clean: ReopenResult,
    /// The restart after a crash: the process ended during its work, and the machine restarted.
    crash: ReopenResult,
}

fn settings(method: &RecoveryMethod, operations: &Operations, seed: u64) -> SchemeSettings {
    SchemeSettings::from(StoreSettings {
        recovery: method.recovery,
        record_limit: sizing::peak_records(operations),
        waiting_reads: 1024,
        seed,
        ..StoreSettings::with_size(sizing::store_size(sizing::peak_slots(operations), 1.0))
    })
}

#[derive(Debug)]
struct Job {
    method: &'static RecoveryMethod,
    share: f64,
    seed: u64,
}

struct Incarnation {
    drive: Drive<Mechanical, VirtualTime>,
    observer: Observer,
}

impl Incarnation {
    fn begin(setup: &StoreSetup, device: Mechanical, now: Instant) -> Result<Self, DriveError> {
        let observer = Observer::default();
        let drive = Drive::start(setup.clone(), device, VirtualTime(now), observer.clone())?;
        Ok(Self { drive, observer })
    }

    fn records(&self) -> f64 {
        self.observer.statistics.records.get() as f64
    }

    fn reopened(&self, records_before: f64) -> ReopenResult {
        let found = self.observer.statistics.recovered.get() as f64;
        let found = found / records_before.max(1.0) * 100.0;
        ReopenResult { seconds: self.drive.opening().as_secs_f64(), found }
    }
}

/// Runs nine tenths of the operations, a clean stop, the last tenth, and a crash. The machine
/// restarts after the stop and after the crash. The store evicts by itself, as it does in a proxy.
fn run(lab: &Lab, job: &Job) -> Result<RecoveryResult, DriveError> {
    let &Job { method, share, seed } = job;
    let stream = lab.stream(seed, Mix::sized(share));
    let mut list = stream.operations.list.clone();
    list.retain(|operation| operation.kind != OperationKind::Delete);
    let (before, after) = list.split_at(list.len() * 9 / 10);
    let setup = StoreSetup {
        scheme: method.scheme,
        settings: settings(method, &stream.operations, seed),
        reads_at_once: 1,
        writes_at_once: 1,
    };
    let mut store =
        Incarnation::begin(&setup, Mechanical::new(lab.profile(), 1, seed), Instant::ZERO)?;
    let statistics = store.observer.statistics.clone();
    let (bytes_then, syncs_then) = (statistics.written_bytes.get(), statistics.syncs.get());
    for &operation in before {
        store.drive.operation(operation)?;
    }
    let served = store.drive.elapsed().as_secs_f64();
    let writes = || before.iter().filter(|operation| operation.kind == OperationKind::Write);
    let objects = writes().map(|operation| operation.size).sum::<u64>().max(1) as f64;
    let pieces = writes().map(|operation| sizing::pieces_of(operation.size)).sum::<u64>() as f64;
    let mut result = RecoveryResult {
        rate: stream.operations.gets as f64 * 0.9 / served,
        beyond: ((statistics.written_bytes.get() - bytes_then) as f64 / objects - 1.0) * 100.0,
        headers: pieces * HEADER as f64 / objects * 100.0,
        syncs: (statistics.syncs.get() - syncs_then) as f64 / writes().count().max(1) as f64,
        ..RecoveryResult::default()
    };
    let asked = store.drive.elapsed();
    let (outcome, mut device) =
        store.drive.close(|| result.records = statistics.records.get() as f64);
    result.close = (outcome.took.saturating_sub(asked)).as_secs_f64();
    let now = device.restart(Instant::ZERO);
    let mut store = Incarnation::begin(&setup, device, now)?;
    result.clean = store.reopened(result.records);
    for &operation in after {
        store.drive.operation(operation)?;
    }
    let records = store.records();
    let (_, mut device) = store.drive.finish();
    let now = device.restart(Instant::ZERO);
    result.crash = Incarnation::begin(&setup, device, now)?.reopened(records);
    Ok(result)
}

/// Makes a figure that compares the recovery methods in stores of three sizes. Panics if a store
/// breaks its contract.
pub fn recovery(lab: &Lab) -> Figure {
    let seeds = &lab.extent().seeds;
    let mut jobs = Vec::new();
    for method in &METHODS {
        for share in SIZES {
            jobs.extend(seeds.iter().map(|&seed| Job { method, share, seed }));
        }
    }
    let results =
        lab.all(&jobs, |job| run(lab, job).unwrap_or_else(|error| panic!("{job:?}: {error}")));
    let by_method: Vec<&[RecoveryResult]> = results.chunks(SIZES.len() * seeds.len()).collect();
    let mut rows = Vec::new();
    for (method, results) in METHODS.iter().zip(&by_method) {
        let largest = &results[(SIZES.len() - 1) * seeds.len()..];
        rows.extend(rows_of(method.name, largest));
    }
    let lines = |value: fn(&RecoveryResult) -> f64| -> Vec<Line> {
        let over_size = |results: &[RecoveryResult]| -> Vec<(f64, Vec<f64>)> {
            let point = |results: &[RecoveryResult]| {
                let records = mean_of(results, |result| result.records) / 1000.0;
                (records, results.iter().map(value).collect())
            };
            results.chunks(seeds.len()).map(point).collect()
        };
        let named = METHODS.iter().zip(&by_method);
        named.map(|(method, results)| line(method.name, over_size(results))).collect()
    };
    let picture = |title: &str, lines| {
        Picture::lines([title, "records in the store, thousands", "time to open, s"], lines)
    };
    let pictures = vec![
        picture(
            "Opening a store after a crash, by its size (the paper gives no numbers)",
            lines(|result| result.crash.seconds),
        ),
        picture(
            "Opening a store after a clean stop, by its size (the paper gives no numbers)",
            lines(|result| result.clean.seconds),
        ),
    ];
    Figure { rows, pictures }
}

fn mean_of(results: &[RecoveryResult], value: fn(&RecoveryResult) -> f64) -> f64 {
    mean(&results.iter().map(value).collect::<Vec<_>>())
}

/// Returns the rows of one recovery method, for the largest store.
fn rows_of(name: &str, results: &[RecoveryResult]) -> Vec<FigureRow> {
    let row = |what: &str, unit: &str, value: fn(&RecoveryResult) -> f64| {
        let values: Vec<f64> = results.iter().map(value).collect();
        FigureRow::of(NAME, &format!("{name}: {what}"), unit, &values)
    };
    vec![
        row("opening after a clean stop", "s", |result| result.clean.seconds)
            .with_note(format!("{:.0} records", mean_of(results, |result| result.records))),
        row("found again after a clean stop", "%", |result| result.clean.found),
        row("opening after a crash", "s", |result| result.crash.seconds)
            .with_note("the disk has everything that the killed process had passed to the system"),
        row("found again after a crash", "%", |result| result.crash.found).with_note(
            "share of the stored objects; above 100 where removed records are still whole on the \
             disk",
        ),
        row("stopping", "s", |result| result.close),
        row("while serving", RATE, |result| result.rate),
        row("syncs for a URL-write", "1", |result| result.syncs),
        row("written beyond the objects", "%", |result| result.beyond)
            .with_note("headers, the rest of slots and pages, logs and checkpoints"),
        row("of that headers", "%", |result| result.headers).from_place(Place::Derived),
    ]
}
