//! `foxy wpb`: runs the Wisconsin Proxy Benchmark on any proxy.

mod arguments;
mod busy;
mod report;

use crate::experiment::{Conclusion, Experiment};
use crate::origin;
use crate::peers::single::Single;
use crate::peers::up::MEASURES;
use crate::run::allow_connections;
pub use arguments::command;
use arguments::{CACHE, WpbPlan, plan};
use busy::{BusyPoint, Watched};
use clap::ArgMatches;
use foxy_base::random::split_mix;
use foxy_cli::failure::Failure;
use foxy_cli::progress::Progress;
use foxy_cli::signals::interrupted;
use foxy_lab::Origin;
use foxy_lab::load::wpb::{self, Route, WpbRun};
use foxy_report::{Measurable, Record};
use foxy_workload::wpb::Wpb;
use report::Outcome;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let (clients, interrupted) = (arguments::clients(matches)?, interrupted()?);
    let experiment = Experiment::new("wpb", matches).with_bars(measurable(matches, &clients))?;
    // For each client, this process has two open files: the client's connection to the proxy, and
    // the proxy's connection to the origin. For each server of the benchmark, it also has a
    // listener.
    let most = u64::from(clients.iter().copied().max().unwrap_or_default());
    allow_connections(
        2 * most + most.div_ceil(wpb::CLIENTS_PER_SERVER.into()),
        &format!("--clients {most}"),
    )?;
    let mut started = start(matches, &interrupted)?;
    let here = started.as_ref().map(|(single, origin)| (single, origin.address()));
    let plan = plan(matches, clients, here);
    let (_servers, route) = route(&plan)?;
    let first = run_of(&plan, plan.clients[0], &route, &interrupted);
    if let Err(cause) = wpb::probe(&first).map_err(failed)? {
        return Err(Failure::Failed(format!(
            "wpb: {} gave no correct answer ({}); does a proxy listen there that may forward to \
             {}?",
            plan.target,
            cause.name(),
            match &route {
                Route::Forward { servers } => servers[0].to_string(),
                Route::Reverse { host } => host.clone(),
            }
        )));
    }
    let single = started.as_mut().map(|(single, _)| single);
    let (points, stopped) = all_points(&plan, &route, single, &interrupted)?;
    let clients: u64 = points.iter().map(|point| u64::from(point.report.clients)).sum();
    let requests = clients * 3 * u64::from(plan.knobs.requests);
    let (more, lost) = started.map_or_else(Default::default, |(single, _)| single.end(requests));
    finish(experiment, &plan, &points, more, lost.or(stopped).as_deref())
}

fn measurable(matches: &ArgMatches, clients: &[u32]) -> Vec<Measurable> {
    let started = matches.get_one::<String>("start");
    let disks = matches.get_many::<PathBuf>("folder").map_or(1, Iterator::count);
    let subject = started.or_else(|| matches.get_one("subject")).expect("has a default");
    let mut all: Vec<Measurable> =
        clients.iter().flat_map(|&clients| wpb::measurable(subject, clients)).collect();
    if started.is_some() {
        all = all.into_iter().map(|of_point| busy::measurable(of_point, disks)).collect();
        all.push(Measurable::of(subject, &MEASURES));
    }
    all
}

fn start(
    matches: &ArgMatches,
    interrupted: &Arc<AtomicBool>,
) -> Result<Option<(Single, Origin)>, Failure> {
    if !matches.contains_id("start") {
        return Ok(None);
    }
    let origin = origin::start("wpb", 1)?;
    let cache = matches.get_one("cache-size").copied().unwrap_or(CACHE);
    let single = Single::start(matches, origin.address(), cache, "wpb", interrupted)?;
    Ok(single.map(|single| (single, origin)))
}

fn all_points(
    plan: &WpbPlan,
    route: &Route,
    mut started: Option<&mut Single>,
    interrupted: &Arc<AtomicBool>,
) -> Result<(Vec<BusyPoint>, Option<String>), Failure> {
    let each = |clients: u32| u64::from(clients) * 3 * u64::from(plan.knobs.requests);
    let mut progress =
        Progress::new("wpb", Some(plan.clients.iter().map(|&clients| each(clients)).sum()));
    let (mut points, mut done) = (Vec::new(), 0);
    for &clients in &plan.clients {
        let run = run_of(plan, clients, route, interrupted);
        let mut watched = Watched::new(started.as_deref_mut());
        let report = wpb::run(&run, &mut |begun| progress.update(done + begun), &mut |part| {
            watched.ended(part)
        });
        let report = report.map_err(failed)?;
        done += each(clients);
        let silent = report.silent();
        points.push(BusyPoint { report, spent: watched.spent });
        if interrupted.load(Relaxed) {
            return Ok((points, Some(format!("stopped by a signal at {clients} clients"))));
        }
        if let Some(part) = silent {
            let part = part.name();
            return Ok((
                points,
                Some(format!("{}: no correct answer at {clients} clients in {part}", plan.target)),
            ));
        }
    }
    Ok((points, None))
}

fn route(plan: &WpbPlan) -> Result<(Option<Origin>, Route), Failure> {
    match (&plan.origin, plan.reverse) {
        (Some(origin), true) => Ok((None, Route::Reverse { host: origin.to_string() })),
        (Some(origin), false) => Ok((None, Route::Forward { servers: vec![*origin] })),
        (None, _) => {
            let most =
                plan.clients.iter().copied().max().unwrap_or(1).div_ceil(wpb::CLIENTS_PER_SERVER);
            let origin = origin::start("wpb", most)?;
            let servers = origin.servers().to_vec();
            Ok((Some(origin), Route::Forward { servers }))
        }
    }
}

/// Returns the options of a point (a test with a fixed number of clients). Each point requests
/// other files. Otherwise files of earlier points would cause hits.
fn run_of(plan: &WpbPlan, clients: u32, route: &Route, interrupted: &Arc<AtomicBool>) -> WpbRun {
    let mut state = plan.knobs.seed ^ u64::from(clients).rotate_left(32);
    let servers = match route {
        Route::Forward { servers } if plan.origin.is_some() => {
            u32::try_from(servers.len()).unwrap_or(1)
        }
        Route::Forward { .. } => clients.div_ceil(wpb::CLIENTS_PER_SERVER),
        Route::Reverse { .. } => 1,
    };
    WpbRun {
        target: plan.target,
        route: route.clone(),
        clients,
        knobs: Wpb { seed: split_mix(&mut state), servers, ..plan.knobs },
        latency: plan.latency,
        slow: plan.slow,
        time_limit: plan.time_limit,
        interrupted: Arc::clone(interrupted),
    }
}

fn finish(
    experiment: Experiment<'_>,
    plan: &WpbPlan,
    points: &[BusyPoint],
    more: Vec<Record>,
    stopped: Option<&str>,
) -> Result<(), Failure> {
    let outcome = Outcome { plan, points };
    let mut records: Vec<Record> =
        points.iter().flat_map(|point| point.records(&plan.subject)).collect();
    records.extend(more);
    records.extend(
        stopped.map(|reason| Record::FailedRun {
            subject: plan.subject.clone(),
            reason: reason.into(),
        }),
    );
    let failed = stopped.map(|reason| {
        format!("{reason}; the results so far are above, and the records mark them as incomplete")
    });
    let conclusion =
        Conclusion { text: outcome.text(), warnings: outcome.warnings(), records, failed };
    experiment
        .scaled(wpb::scale(plan.latency))
        .finish_with_page(conclusion, |setup| outcome.page(setup, stopped))
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("wpb: {error}"))
}
