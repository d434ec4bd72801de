//! One point of the Wisconsin Proxy Benchmark (a test with a fixed number of clients) as a workload
//! of `foxy compare`. The command `foxy wpb` runs all points.

use super::context::{Trial, TrialContext};
use crate::peers::process::Running;
use foxy_cli::progress::Progress;
use foxy_lab::load::wpb::{self, PointReport, Route, WpbRun};
use foxy_report::{Latencies, Measurable, Measure, Record};
use foxy_workload::wpb::Wpb;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

const LATENCY: Duration = Duration::from_millis(30);
const TIME_LIMIT: Duration = Duration::from_secs(30);

const MEASURES: [&str; 11] = [
    "hit_ratio",
    "byte_hit_ratio",
    "offered_hit_ratio",
    "latency_mean_us",
    "latency_p50_us",
    "latency_p99_us",
    "control_latency_mean_us",
    "requests",
    "errors",
    "cpu_us_per_request",
    "resident_bytes",
];

#[derive(Clone, Copy, Debug)]
pub struct ClientsPoint {
    pub clients: u32,
    requests: u32,
}

pub const fn point(quick: bool) -> ClientsPoint {
    if quick {
        ClientsPoint { clients: 32, requests: 40 }
    } else {
        ClientsPoint { clients: 96, requests: 200 }
    }
}

pub fn measurable(subject: &str) -> Measurable {
    Measurable::of(subject, &MEASURES)
}

pub fn measure(
    trial: &Trial,
    context: &TrialContext,
    running: &mut Running,
    target: SocketAddr,
) -> Result<Vec<Record>, String> {
    let name = trial.peer.name;
    let ClientsPoint { clients, requests } = point(context.quick);
    let seed = context.seed.wrapping_add(u64::from(trial.repeat));
    let interrupted = Arc::new(AtomicBool::new(false));
    let run = WpbRun {
        target,
        route: Route::Reverse { host: context.origin.address().to_string() },
        clients,
        knobs: Wpb { requests, seed, ..Wpb::new(1) },
        latency: LATENCY,
        slow: None,
        time_limit: TIME_LIMIT,
        interrupted: Arc::clone(&interrupted),
    };
    let ended = || format!("{name} ended before it was measured");
    let before = running.usage().ok_or_else(ended)?;
    let mut progress =
        Progress::new(&trial.label, Some(3 * u64::from(clients) * u64::from(requests)));
    let mut progressed = |begun| {
        progress.update(begun);
        if context.is_stopping(name) || running.ended().is_some() {
            interrupted.store(true, Relaxed);
        }
    };
    let report = wpb::run(&run, &mut progressed, &mut |_| {})
        .map_err(|error| format!("{name}: cannot send the load: {error}"))?;
    if context.interrupted.load(Relaxed) {
        return Err(format!("{name}: stopped by a signal"));
    }
    let after = running.usage().ok_or_else(ended)?;
    if let Some(part) = report.silent() {
        let part = part.name();
        return Err(format!(
            "{name}: no correct answer in {part}; the proxy's output: {}",
            running.last_words()
        ));
    }
    let processor = after.processor.saturating_sub(before.processor);
    let values = values(&report, processor, after.resident);
    let record = |(measure, value, unit): (&str, f64, &str)| {
        let (workload, repeat) = (Some(trial.scenario.name.to_owned()), Some(trial.repeat));
        Record::Measure(Measure { workload, repeat, ..Measure::once(measure, name, value, unit) })
    };
    Ok(values.into_iter().map(record).collect())
}

fn values(
    report: &PointReport,
    processor: Duration,
    resident: u64,
) -> Vec<(&'static str, f64, &'static str)> {
    let [control, phases @ ..] = &report.parts;
    let mut latencies = Latencies::default();
    phases.iter().for_each(|part| latencies.merge(&part.latencies));
    let errors: u64 = report.parts.iter().map(|part| part.failed()).sum();
    let requests: u64 = errors + report.parts.iter().map(|part| part.answers).sum::<u64>();
    let shares = [
        ("hit_ratio", report.hit_ratio()),
        ("byte_hit_ratio", report.byte_hit_ratio()),
        ("offered_hit_ratio", report.offered()),
    ];
    let mut values: Vec<_> =
        shares.into_iter().filter_map(|(name, value)| Some((name, value?, "share"))).collect();
    values.extend([
        ("latency_mean_us", latencies.mean(), "us"),
        ("latency_p50_us", latencies.at(0.5) as f64, "us"),
        ("latency_p99_us", latencies.at(0.99) as f64, "us"),
        ("control_latency_mean_us", control.latencies.mean(), "us"),
        ("requests", requests as f64, "requests"),
        ("errors", errors as f64, "requests"),
        ("cpu_us_per_request", processor.as_secs_f64() * 1e6 / requests.max(1) as f64, "us"),
        ("resident_bytes", resident as f64, "B"),
    ]);
    values
}
