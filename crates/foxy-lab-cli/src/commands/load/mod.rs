//! `foxy load`: sends the requests of a workload to a proxy, and checks every byte of the answers.

pub mod arguments;
mod shortfall;
mod trace;

use crate::experiment::{Conclusion, Experiment};
use crate::fault::Staged;
use crate::origin;
use crate::run::{self, allow_connections};
pub use arguments::command;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::process_table::{family, processor_time};
use foxy_cli::progress::Progress;
use foxy_cli::signals::interrupted;
use foxy_cli::terminal::{self, Level};
use foxy_lab::load::options::{LoadOptions, Pace, Stop};
use foxy_lab::load::outcome::HIT_RATIOS;
use foxy_lab::load::{self};
use foxy_lab::{LoadReport, Origin, REQUEST_ID, Tally};
use foxy_report::{Measurable, Measure, Record, Table};
use foxy_workload::polymix::ROBOT_CONNECTIONS;
use foxy_workload::{Model, Workload};
pub use shortfall::nothing_answered;
use shortfall::{failure, trouble};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let subject = matches.get_one::<String>("subject").expect("has a default");
    let (given, read) = trace::read(matches, subject)?.unzip();
    let workload = arguments::workload(matches, given)?;
    let experiment = Experiment::new("load", matches)
        .with_bars(vec![measurable(matches, &workload, subject)])?;
    provide_descriptors(matches, &workload, None)?;
    let started_here = start_origin(matches, &workload)?;
    let name_server = origin::start_name_server(matches, started_here.as_ref())?;
    let options = arguments::options(matches, workload, started_here.as_ref())?;
    let options = LoadOptions { interrupted: interrupted()?, ..options };
    if let Model::Trace(_) = &options.workload.model {
        terminal::report(Level::Info, &format!("load: trace: {}", options.workload.about));
    }
    if let Some(objects) = options.workload.warm_up() {
        look(&options)?;
        let mut progress = Progress::new("warm-up", Some(objects.objects)).with_lines();
        load::warm_up(&options, &mut |done| progress.update(done)).map_err(failed)?;
    }
    if options.interrupted.load(Relaxed) {
        return Err(Failure::Failed(
            "load: stopped by a signal before anything was measured".into(),
        ));
    }
    let staged = arguments::staged(matches, &options, started_here.as_ref())?;
    let options = LoadOptions { fault: staged.as_ref().map(Staged::fault), ..options };
    let process = matches.get_one::<u32>("pid").copied();
    let (used_before, asked_before) = (process_time(process)?, asked(started_here.as_ref()));
    let (mut report, mut more) = measure(&options, "load", subject, staged.as_ref())?;
    let used =
        process_time(process)?.zip(used_before).map(|(after, before)| after.saturating_sub(before));
    report.origin =
        asked(started_here.as_ref()).zip(asked_before).map(|(after, before)| after.since(before));
    let mut found = report.records(subject, used);
    found.append(&mut more);
    found.extend(read.into_iter().flatten());
    found.extend(
        name_server.iter().flat_map(|server| origin::name_server_records(server.asked(), subject)),
    );
    if let Some(&newest) = matches.get_one::<u64>("newest") {
        let (again, _) =
            measure(&load::newest_again(&options, &report, newest), "newest", subject, None)?;
        let share =
            |hits| Record::Measure(Measure::once("resident_after_fill", subject, hits, "share"));
        found.extend(again.hit_ratio().map(share));
    }
    finish(experiment, &options, subject, &report, found)
}

fn measurable(matches: &ArgMatches, workload: &Workload, subject: &str) -> Measurable {
    let mut all = run::measurable(&workload.model, subject);
    if let Model::Trace(_) = &workload.model {
        all = all.and(&trace::MEASURES);
    }
    if matches.contains_id("dns") {
        all = all.and(&origin::NAME_SERVER_MEASURES);
    }
    if matches.contains_id("newest") { all.and(&["resident_after_fill"]) } else { all }
}

/// Requests one object before the warm-up. So the command fails at once if the proxy does not work.
fn look(options: &LoadOptions) -> Result<(), Failure> {
    let one =
        LoadOptions { clients: 1, stop: Stop::Requests(1), pace: Pace::Closed, ..options.clone() };
    let report = load::run(&one, &mut |_| {}).map_err(failed)?;
    if report.answers > 0 || options.interrupted.load(Relaxed) {
        return Ok(());
    }
    Err(Failure::Failed(format!("load: {}", nothing_answered(options, report.main_cause()))))
}

/// A run has reached the rate of `--rate` if it sent at least this share of the requests per
/// second.
const REACHED: f64 = 0.95;

/// Raises the limit on open files for the connections of the workload. `robots` replaces the number
/// of robots (clients) that the workload needs.
pub fn provide_descriptors(
    matches: &ArgMatches,
    workload: &Workload,
    robots: Option<usize>,
) -> Result<(), Failure> {
    let sides = if matches.contains_id("origin") { 1 } else { 2 };
    let servers = if sides == 1 { 0 } else { u64::from(workload.model.servers()) };
    let given = matches.try_get_one::<u32>("clients").ok().flatten().copied();
    let (connections, what) = match (&workload.model, given) {
        (Model::Table3(knobs), None) => {
            let clients = u64::from(knobs.clients);
            (clients, format!("--workload {}: {clients} clients", workload.name))
        }
        (Model::Objects(_) | Model::Table3(_) | Model::Trace(_), given) => {
            let clients = given.unwrap_or(64);
            (u64::from(clients), format!("--clients {clients}"))
        }
        (Model::PolyMix4(knobs), _) => {
            let robots = robots.map_or_else(|| u64::from(knobs.robots()), |robots| robots as u64);
            (
                robots * ROBOT_CONNECTIONS as u64,
                format!("--workload {}: {robots} robots", workload.name),
            )
        }
    };
    allow_connections(connections * sides + servers, &what)
}

fn finish(
    experiment: Experiment<'_>,
    options: &LoadOptions,
    subject: &str,
    report: &LoadReport,
    mut records: Vec<Record>,
) -> Result<(), Failure> {
    let has = |name: &str| {
        records.iter().any(|record| matches!(record, Record::Measure(found) if found.name == name))
    };
    let text = table(&records, HIT_RATIOS.into_iter().filter(|name| !has(name)));
    let mut warnings = Vec::new();
    if let Some(why) = report.limited_by_generator() {
        warnings.push(format!("the generator, not the proxy, was the limit: {why}"));
    }
    if report.unnumbered > 0 {
        warnings.push(format!(
            "{} of {} answers lack the field {REQUEST_ID}, so it is unknown which of them are \
             hits: the proxy drops the field",
            report.unnumbered, report.answers
        ));
    }
    if let Pace::Open { rate } = options.pace
        && report.begun_rate() < rate * REACHED
    {
        let (begun, clients) = (report.begun_rate(), options.clients);
        warnings.push(format!(
            "only {begun:.1} of {rate:.1} requests per second began, because all {clients} \
             connections were waiting; raise --clients; latencies count from the planned start"
        ));
    }
    let failed = failure(options, report);
    if let Some(reason) = failed.clone() {
        records.push(Record::FailedRun { subject: subject.into(), reason });
    } else if let Some(trouble) = trouble(options, report).filter(|_| options.fault.is_none()) {
        warnings.push(format!("{trouble}; the results include only the other requests"));
    }
    let conclusion = Conclusion { text, warnings, records, failed };
    experiment.scaled(scale(options)).finish(conclusion)
}

/// Returns the durations of the load divided by the durations of the same workload at full scale.
pub fn scale(options: &LoadOptions) -> f64 {
    match (&options.workload.model, options.pace) {
        (Model::PolyMix4(knobs), _) => 1.0 / f64::from(knobs.time_scale),
        (_, Pace::Recorded { times }) => 1.0 / times,
        _ => 1.0,
    }
}

pub fn start_origin(matches: &ArgMatches, workload: &Workload) -> Result<Option<Origin>, Failure> {
    if matches.contains_id("origin") {
        return Ok(None);
    }
    let start = if matches.get_flag("tls") { origin::start_tls } else { origin::start };
    start("load", workload.model.servers()).map(Some)
}

fn asked(origin: Option<&Origin>) -> Option<Tally> {
    origin.map(|origin| Tally { requests: origin.requests(), bytes: origin.body_bytes() })
}

fn measure(
    options: &LoadOptions,
    label: &str,
    subject: &str,
    staged: Option<&Staged<'_>>,
) -> Result<(LoadReport, Vec<Record>), Failure> {
    let mut progress = run::progress(label, options).with_lines();
    run::run(options, subject, staged, &mut |done| progress.update(done)).map_err(failed)
}

fn process_time(process: Option<u32>) -> Result<Option<Duration>, Failure> {
    let Some(process) = process else { return Ok(None) };
    let family = family(process);
    if family.is_empty() {
        let what = format!("--pid {process}: no such process; name the main process of the proxy");
        return Err(Failure::Unusable(what));
    }
    Ok(Some(processor_time(&family)))
}

pub fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("load: {error}"))
}

pub fn table<'a>(found: &[Record], unknown: impl Iterator<Item = &'a str>) -> String {
    let mut table = Table::new(&["measure", "value", "unit"]);
    for record in found {
        if let Record::Measure(measure) = record {
            let value = if measure.value.fract() == 0.0 {
                format!("{:.0}", measure.value)
            } else {
                format!("{:.3}", measure.value)
            };
            table.row(&[measure.name.clone(), value, measure.unit.clone()]);
        }
    }
    unknown.for_each(|name| table.row(&[name.into(), "-".into(), String::new()]));
    table.render()
}
