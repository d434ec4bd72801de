//! Measures Figures 18, 19 and 20 of the WebCoSM paper (paper 001 in docs/figures.md). Squid, and
//! foxy with several storage schemes, serve the load of Table 3 at increasing rates.

mod rows;

use super::Context;
use crate::folder::PREFIX;
use crate::peers::up::Start;
use crate::peers::{Description, Holding, Peer, ready};
use foxy_base::ByteSize;
use foxy_cli::process::raise_open_files;
use foxy_cli::temporary::Temporary;
use foxy_lab::load::options::{LoadOptions, Mode, Pace, Stop};
use foxy_lab::load::{self};
use foxy_lab::simulation::figures::Figure;
use foxy_lab::{LoadReport, Origin, OriginOptions, Tally};
use foxy_schemes::SchemeName;
use foxy_workload::{Model, Workload};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// At this scale or a larger scale (1 is the WebCoSM paper's scale), foxy measures each rate in
/// [`RATES`] for the time [`TIME`]. At a smaller scale, foxy measures only two rates of the paper,
/// for a quarter of this time.
const FULL: f64 = 0.5;
const TIME: Duration = Duration::from_secs(12);
/// Requests per second. The WebCoSM paper ends at 350 and discusses 50, 90, 110 and 340.
const RATES: [u32; 11] = [50, 90, 110, 200, 340, 500, 700, 1000, 1400, 2000, 2800];
const SPOKEN_OF: [u32; 2] = [110, 340];
const MEMORY: ByteSize = ByteSize(32 << 20);
const DISK: ByteSize = ByteSize(256 << 20);
const TIME_LIMIT: Duration = Duration::from_secs(15);
/// A proxy sustains a rate if it answers at least this share of the requests, at no less than this
/// share of the rate.
const GOOD: f64 = 0.95;

struct Subject {
    name: &'static str,
    peer: &'static str,
    scheme: Option<SchemeName>,
    quick: bool,
}

const SQUID: &str = "Squid";
const FOXY: &str = "foxy, STREAM-PACKETIZER";

const SUBJECTS: [Subject; 6] = [
    Subject { name: SQUID, peer: "squid", scheme: None, quick: true },
    Subject { name: FOXY, peer: "foxy", scheme: Some(SchemeName::Packetizer), quick: true },
    Subject {
        name: "foxy, LAZY-READS-LOC",
        peer: "foxy",
        scheme: Some(SchemeName::LazyReadsLoc),
        quick: false,
    },
    Subject { name: "foxy, BUDDY", peer: "foxy", scheme: Some(SchemeName::Buddy), quick: false },
    Subject {
        name: "foxy, SQUID's files",
        peer: "foxy",
        scheme: Some(SchemeName::Ufs),
        quick: false,
    },
    Subject { name: "foxy, webcosm", peer: "foxy", scheme: Some(SchemeName::Webcosm), quick: true },
];

struct RatePoint {
    rate: f64,
    answered: f64,
    good: bool,
    response: f64,
    /// Bytes that the origin sent, divided by the bytes that clients requested.
    fetched: f64,
    /// The share of the possible hits that the proxy missed.
    shed: f64,
    /// Bytes that the origin sent, divided by the size of the cache on disk.
    fills: f64,
}

struct MeasuredRates {
    name: &'static str,
    runs: Result<Vec<Vec<RatePoint>>, String>,
}

pub fn figures(context: &Context) -> Figure {
    raise_open_files();
    let full = context.lab.extent().scale >= FULL;
    let measured: Vec<MeasuredRates> = SUBJECTS
        .iter()
        .filter(|subject| full || subject.quick)
        .map(|subject| MeasuredRates { name: subject.name, runs: measure(context, subject, full) })
        .collect();
    Figure { rows: rows::rows(&measured), pictures: rows::pictures(&measured) }
}

fn measure(
    context: &Context,
    subject: &Subject,
    full: bool,
) -> Result<Vec<Vec<RatePoint>>, String> {
    let peer = Peer::find(subject.peer).expect("a proxy of the table");
    let program = peer.installed()?;
    let (rates, time) = if full { (&RATES[..], TIME) } else { (&SPOKEN_OF[..], TIME / 4) };
    let mut runs = Vec::new();
    for &seed in &context.lab.extent().seeds {
        let mut points: Vec<RatePoint> = Vec::new();
        for &rate in rates {
            if context.watch.stop.load(Relaxed) {
                return Err("stopped".into());
            }
            points.push(point(context, subject, &peer, &program, f64::from(rate), time, seed)?);
            // The first rate that the proxy does not sustain shows how it fails. The second such
            // rate ends the measurement, because higher rates show nothing new.
            if points.iter().filter(|point| !point.good).count() > 1 {
                break;
            }
        }
        runs.push(points);
    }
    Ok(runs)
}

fn point(
    context: &Context,
    subject: &Subject,
    peer: &Peer,
    program: &Path,
    rate: f64,
    time: Duration,
    seed: u64,
) -> Result<RatePoint, String> {
    let folder =
        Temporary::new(context.folder.join(format!("{PREFIX}{}-table-3", std::process::id())));
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let origin = Origin::start(OriginOptions { listen, threads: 1 });
    let origin = origin.map_err(|error| format!("an origin cannot be started: {error}"))?;
    let mut description = Description {
        folder: folder.path().join(peer.name),
        beside: Vec::new(),
        listen: ready::ANYWHERE,
        origin: origin.address(),
        papers: None,
        disk: DISK,
        memory: MEMORY,
        holding: Holding::Disk,
        store: None,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
    };
    let plan = |description: &Description| {
        let mut plan = (peer.plan)(description);
        let scheme =
            subject.scheme.map(|scheme| ["--scheme".to_owned(), scheme.row().text.to_owned()]);
        plan.serve.extend(scheme.into_iter().flatten());
        plan
    };
    let start = Start {
        peer,
        program,
        name: peer.name,
        host: origin.address(),
        workload: "table3",
        limit: None,
        interrupted: &context.watch.stop,
    };
    let (mut running, _) = start.start(&mut description, plan)?;
    let workload = Workload::find("table3").expect("a workload of ours");
    let Model::Table3(knobs) = &workload.model else { unreachable!("table3 is of that model") };
    let (clients, think) = (knobs.clients as usize, knobs.think_time);
    let options = LoadOptions {
        clients,
        pace: Pace::Random { rate },
        stop: Stop::After(time),
        seed,
        time_limit: TIME_LIMIT,
        interrupted: Arc::clone(&context.watch.stop),
        ..LoadOptions::new(
            description.listen,
            Mode::Reverse { host: origin.address().to_string() },
            workload,
        )
    };
    let sent = || Tally { requests: origin.requests(), bytes: origin.body_bytes() };
    let before = sent();
    let report = load::run(&options, &mut |_| {})
        .map_err(|error| format!("cannot send the load: {error}"))?;
    match running.ended() {
        Some(status) => {
            Err(format!("the proxy ended during the run ({status}): {}", running.last_words()))
        }
        None => Ok(RatePoint::of(&report, sent().since(before), (rate, think))),
    }
}

impl RatePoint {
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    fn of(report: &LoadReport, origin: Tally, (rate, think): (f64, Duration)) -> Self {
        // The origin waits for the time `think` before each answer. So if the proxy sustained the
        // rate, the last request started this time before the run ended.
        let sending = report.elapsed.saturating_sub(think).as_secs_f64();
        let share = |part: u64, of: u64| part as f64 / of as f64;
        let answered = report.answers as f64 / sending;
        Self {
            rate,
            answered,
            good: share(report.answers, report.asked()) >= GOOD && answered >= GOOD * rate,
            response: report.latencies.mean() / 1000.0,
            fetched: share(origin.bytes, report.bytes),
            shed: 1.0 - share(report.hits.min(report.offered.requests), report.offered.requests),
            fills: share(origin.bytes, DISK.0),
        }
    }
}
