//! Recovery compared (R38–R41): how long a store takes to open after a clean stop and after a
//! crash, what is found again, and what it costs while it serves. The seed describes the ways and
//! gives no numbers (its section 6.1).

use super::Figure;
use super::lab::Lab;
use super::picture::{Picture, Series, Style};
use super::trial::Mix;
use super::webcosm::RATE;
use crate::simulation::storage::drive::{Drive, DriveError, Subject};
use crate::simulation::storage::operation::{OperationKind, Operations};
use crate::simulation::storage::pace::Virtual;
use crate::simulation::storage::sizing;
use foxy_base::Instant;
use foxy_device::Mechanical;
use foxy_report::figure::{FigureRow, Place};
use foxy_report::statistics::mean;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::record::HEADER;
use foxy_store::{Observer, Recovery, StoreSettings};

const NAME: &str = "001-recovery";

/// Shares of the paper's gets and disk: the sizes of the stores.
const SIZES: [f64; 3] = [0.05, 0.1, 0.2];

/// A way to come back.
struct Way {
    name: &'static str,
    scheme: SchemeName,
    recovery: Recovery,
}

const WAYS: [Way; 4] = [
    Way {
        name: "stream-packetizer",
        scheme: SchemeName::StreamPacketizer,
        recovery: Recovery::AfterCrash,
    },
    Way { name: "packetizer", scheme: SchemeName::Packetizer, recovery: Recovery::AfterCleanStop },
    Way { name: "ufs", scheme: SchemeName::Ufs, recovery: Recovery::AfterCrash },
    Way { name: "ufs without ledger", scheme: SchemeName::Ufs, recovery: Recovery::AfterCleanStop },
];

/// What one store went through.
#[derive(Clone, Copy, Debug, Default)]
struct RecoveryCourse {
    /// URL-gets a second while it served, from its creation on.
    rate: f64,
    /// Bytes written beyond the objects', over these, in percent.
    beyond: f64,
    /// Bytes of record headers over the objects', in percent.
    headers: f64,
    /// Syncs for each URL-write.
    syncs: f64,
    /// Seconds that closing took.
    close: f64,
    /// Records when it was closed.
    records: f64,
    /// Seconds to open after that, and records found, in percent.
    clean: (f64, f64),
    /// The same after the process had ended in the middle and the machine was started again.
    crash: (f64, f64),
}

fn settings(way: &Way, operations: &Operations, seed: u64) -> SchemeSettings {
    SchemeSettings::from(StoreSettings {
        recovery: way.recovery,
        record_limit: sizing::peak_records(operations),
        waiting_reads: 1024,
        seed,
        ..StoreSettings::with_size(sizing::store_size(sizing::peak_slots(operations), 1.0))
    })
}

/// A store that is open again.
struct Life {
    drive: Drive<Mechanical, Virtual>,
    observer: Observer,
}

impl Life {
    fn begin(subject: &Subject, device: Mechanical, now: Instant) -> Result<Self, DriveError> {
        let observer = Observer::default();
        let drive = Drive::start(subject.clone(), device, Virtual(now), observer.clone())?;
        Ok(Self { drive, observer })
    }

    fn records(&self) -> f64 {
        self.observer.statistics.records.get() as f64
    }

    /// Seconds it took to open, and the share of so many records that it found, in percent.
    fn opened(&self, of: f64) -> (f64, f64) {
        let found = self.observer.statistics.recovered.get() as f64;
        (self.drive.opening().as_secs_f64(), found / of.max(1.0) * 100.0)
    }
}

/// Nine tenths of the URL-reads and URL-writes, a clean stop, the rest, and a crash, with the
/// machine started again in between. The store itself decides what goes, as one that serves does:
/// what it drops need not be made durable.
fn run(way: &Way, lab: &Lab, share: f64, seed: u64) -> Result<RecoveryCourse, DriveError> {
    let stream = lab.stream(seed, Mix::sized(share));
    let mut list = stream.operations.list.clone();
    list.retain(|operation| operation.kind != OperationKind::Delete);
    let (before, after) = list.split_at(list.len() * 9 / 10);
    let subject = Subject {
        scheme: way.scheme,
        settings: settings(way, &stream.operations, seed),
        reads_at_once: 1,
        writes_at_once: 1,
    };
    let mut life = Life::begin(&subject, Mechanical::new(lab.profile(), 1, seed), Instant::ZERO)?;
    let statistics = life.observer.statistics.clone();
    let (bytes_then, syncs_then) = (statistics.written_bytes.get(), statistics.syncs.get());
    for &operation in before {
        life.drive.operation(operation)?;
    }
    let served = life.drive.elapsed().as_secs_f64();
    let writes = || before.iter().filter(|operation| operation.kind == OperationKind::Write);
    let objects = writes().map(|operation| operation.size).sum::<u64>().max(1) as f64;
    let pieces = writes().map(|operation| sizing::pieces_of(operation.size)).sum::<u64>() as f64;
    let mut course = RecoveryCourse {
        rate: stream.operations.gets as f64 * 0.9 / served,
        beyond: ((statistics.written_bytes.get() - bytes_then) as f64 / objects - 1.0) * 100.0,
        headers: pieces * HEADER as f64 / objects * 100.0,
        syncs: (statistics.syncs.get() - syncs_then) as f64 / writes().count().max(1) as f64,
        ..RecoveryCourse::default()
    };
    let asked = life.drive.elapsed();
    let (outcome, mut device) =
        life.drive.close(|| course.records = statistics.records.get() as f64);
    course.close = (outcome.took.saturating_sub(asked)).as_secs_f64();
    let now = device.restart(Instant::ZERO);
    let mut life = Life::begin(&subject, device, now)?;
    course.clean = life.opened(course.records);
    for &operation in after {
        life.drive.operation(operation)?;
    }
    let records = life.records();
    let (_, mut device) = life.drive.finish();
    let now = device.restart(Instant::ZERO);
    course.crash = Life::begin(&subject, device, now)?.opened(records);
    Ok(course)
}

/// What the ways to come back take, over the store's size.
///
/// # Panics
/// When a store breaks its contract.
pub fn recovery(lab: &Lab) -> Figure {
    let seeds = &lab.extent().seeds;
    let jobs: Vec<(usize, f64, u64)> = (0..WAYS.len())
        .flat_map(|way| SIZES.map(move |share| (way, share)))
        .flat_map(|(way, share)| seeds.iter().map(move |&seed| (way, share, seed)))
        .collect();
    let courses = lab.all(&jobs, |&(way, share, seed)| {
        let way = &WAYS[way];
        run(way, lab, share, seed)
            .unwrap_or_else(|error| panic!("{}, {share}, seed {seed}: {error}", way.name))
    });
    let by_way: Vec<&[RecoveryCourse]> = courses.chunks(SIZES.len() * seeds.len()).collect();
    let mut rows = Vec::new();
    for (way, courses) in WAYS.iter().zip(&by_way) {
        let largest = &courses[(SIZES.len() - 1) * seeds.len()..];
        rows.extend(rows_of(way.name, largest));
    }
    let series = |value: fn(&RecoveryCourse) -> f64| -> Vec<Series> {
        let over_size = |courses: &[RecoveryCourse]| -> Vec<(f64, f64)> {
            courses
                .chunks(seeds.len())
                .map(|courses| {
                    let mean_of = |value: fn(&RecoveryCourse) -> f64| {
                        mean(&courses.iter().map(value).collect::<Vec<_>>())
                    };
                    (mean_of(|course| course.records) / 1000.0, mean_of(value))
                })
                .collect()
        };
        WAYS.iter()
            .zip(&by_way)
            .map(|(way, courses)| Series { name: way.name.into(), points: over_size(courses) })
            .collect()
    };
    let picture = |title: &str, series| Picture::Plot {
        title: title.into(),
        x: "thousands of records".into(),
        y: "seconds".into(),
        style: Style::Lines,
        series,
    };
    let pictures = vec![
        picture("Opening after a crash", series(|course| course.crash.0)),
        picture("Opening after a clean stop", series(|course| course.clean.0)),
    ];
    Figure { rows, pictures }
}

/// The rows of one way, at the largest size.
fn rows_of(name: &str, courses: &[RecoveryCourse]) -> Vec<FigureRow> {
    let row = |what: &str, unit: &str, value: fn(&RecoveryCourse) -> f64| {
        let values: Vec<f64> = courses.iter().map(value).collect();
        FigureRow::of(NAME, &format!("{name}: {what}"), unit, &values)
    };
    vec![
        row("opening after a clean stop", "s", |course| course.clean.0).with_note(format!(
            "{:.0} records",
            mean(&courses.iter().map(|c| c.records).collect::<Vec<_>>())
        )),
        row("found again after a clean stop", "%", |course| course.clean.1),
        row("opening after a crash", "s", |course| course.crash.0)
            .with_note("what the killed process had handed to the system is on the disk"),
        row("found again after a crash", "%", |course| course.crash.1).with_note(
            "of what it had; above 100 where dropped records lay still whole on the disk",
        ),
        row("stopping", "s", |course| course.close),
        row("while serving", RATE, |course| course.rate),
        row("syncs for a URL-write", "1", |course| course.syncs),
        row("written beyond the objects", "%", |course| course.beyond)
            .with_note("headers, the rest of slots and pages, logs and checkpoints"),
        row("of that headers", "%", |course| course.headers).from_place(Place::Derived),
    ]
}
