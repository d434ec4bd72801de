//! Runs a load and causes its fault at the right time. Builds records of the phases of the load,
//! and raises the limit on open files.

use super::fault::Staged;
use foxy_base::clock;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::progress::Progress;
use foxy_lab::load::options::{LoadOptions, Stop};
use foxy_lab::load::plan::Schedule;
use foxy_lab::load::robots::{self, Robots};
use foxy_lab::{LoadReport, load};
use foxy_report::{Measurable, Measure, Record, RequestClass};
use foxy_workload::Model;
use foxy_workload::polymix::{PolyMix4, ROBOT_CONNECTIONS, requests_per_start};
use std::io;

pub fn measurable(model: &Model, subject: &str) -> Measurable {
    let all = LoadReport::measurable(subject);
    let Model::PolyMix4(knobs) = model else { return all };
    let schedule = Schedule::new(knobs);
    let measures = ["{phase}_hit_ratio", "{phase}_offered_hit_ratio", "{phase}_latency_mean_us"];
    all.and(&measures).choosing("phase", schedule.names())
}

pub fn progress(label: &str, options: &LoadOptions) -> Progress {
    match (&options.workload.model, options.stop) {
        (Model::PolyMix4(_), _) => Progress::new(label, None),
        (model, Stop::Requests(count)) => {
            Progress::new(label, Some(count.min(model.requests().unwrap_or(u64::MAX))))
        }
        (_, Stop::After(time)) => Progress::lasting(label, time),
    }
}

pub fn run(
    options: &LoadOptions,
    subject: &str,
    staged: Option<&Staged<'_>>,
    progress: &mut dyn FnMut(u64),
) -> io::Result<(LoadReport, Vec<Record>)> {
    let mut progressed = |done| {
        progress(done);
        if let Some(staged) = staged {
            staged.tick(clock::monotonic());
        }
    };
    match &options.workload.model {
        Model::PolyMix4(knobs) => phases(options, knobs, subject, &mut progressed),
        Model::Objects(_) | Model::Table3(_) | Model::Trace(_) => {
            load::run(options, &mut progressed).map(|report| (report, Vec::new()))
        }
    }
}

fn phases(
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
        let shares =
            [("hit_ratio", report.hit_ratio()), ("offered_hit_ratio", report.offered_hit_ratio())];
        let known = |(name, value): (_, Option<f64>)| Some(measure(name, value?, "share"));
        records.extend(shares.into_iter().filter_map(known));
        records.push(measure("latency_mean_us", report.latencies.mean(), "us"));
        records.push(Record::RequestClass(RequestClass::new(
            name,
            subject,
            report.bytes,
            &report.latencies,
        )));
    }
    Ok((all, records))
}

/// The file descriptors that the program needs in addition to its connections.
const OWN_DESCRIPTORS: u64 = 64;

/// Raises the limit on open files, so that `connections` connections fit. If the system refuses,
/// the error names `what`, the argument that needs the connections.
pub fn allow_connections(connections: u64, what: &str) -> Result<(), Failure> {
    refuse(connections, what, raise_open_files())
}

fn refuse(connections: u64, what: &str, limit: Option<u64>) -> Result<(), Failure> {
    let needed = connections.saturating_add(OWN_DESCRIPTORS);
    match limit {
        Some(limit) if needed > limit => Err(Failure::Unusable(format!(
            "{what}: needs up to {needed} open files, but this process may open {limit}; use a \
             smaller value, or raise ulimit -n"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_suffice_is_refused_before_anything_is_sent() {
        assert!(refuse(900, "--clients 900", Some(1000)).is_ok());
        assert!(refuse(u64::MAX, "--clients 900", None).is_ok());
        let text = refuse(990, "--clients 990", Some(1000)).expect_err("too many").to_string();
        assert_eq!(
            text,
            "--clients 990: needs up to 1054 open files, but this process may open 1000; use a \
             smaller value, or raise ulimit -n"
        );
    }
}
