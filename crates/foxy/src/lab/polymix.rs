//! PolyMix-4 phase by phase: the run, and what is recorded of each phase.

use foxy_lab::LoadReport;
use foxy_lab::load::LoadOptions;
use foxy_lab::robots::{self, Robots};
use foxy_lab::schedule::Schedule;
use foxy_report::{Measure, Record, RequestClass};
use foxy_workload::polymix::{PolyMix4, ROBOT_CONNECTIONS, requests_per_start};
use std::io;

/// Runs all phases; gives everything together, and what is known of each phase in records.
///
/// # Errors
/// When the run itself fails.
pub fn run(
    options: &LoadOptions,
    knobs: &PolyMix4,
    subject: &str,
    progress: &mut dyn FnMut(u64),
) -> io::Result<(LoadReport, Vec<Record>)> {
    let mut schedule = Schedule::new(knobs);
    let robots = Robots {
        count: knobs.robots() as usize,
        connections: ROBOT_CONNECTIONS,
        starts: knobs.peak_rate / requests_per_start(),
    };
    let reports = robots::run(options, robots, &mut schedule, progress)?;
    let mut all = LoadReport::default();
    let mut records = Vec::new();
    for (name, report) in schedule.names().zip(&reports) {
        all.merge(report);
        let measure = |what: &str, value, unit| {
            Record::Measure(Measure::once(&format!("{name}_{what}"), subject, value, unit))
        };
        records.push(measure("hit_ratio", report.hit_ratio(), "share"));
        records.push(measure("latency_mean_us", report.latencies.mean(), "us"));
        records.push(Record::RequestClass(RequestClass::new(name, subject, report.bytes, &report.latencies)));
    }
    Ok((all, records))
}
