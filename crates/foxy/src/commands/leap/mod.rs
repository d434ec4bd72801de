//! `foxy leap`: the same requests to several proxies at once, timed and judged beside each other.

mod arguments;
mod check;
mod clients;
mod parent;
mod report;

use crate::failure::Failure;
use crate::lab::ending::conclude;
use crate::lab::line_log::Log;
use crate::lab::progress::Progress;
use crate::lab::{logs, origin, records, seed, workloads};
use crate::serve::process::raise_open_files;
use crate::signals::interrupted;
use crate::terminal::{self, Level};
pub use arguments::command;
use arguments::{Named, REQUESTS};
use clap::ArgMatches;
use foxy_lab::Origin;
use foxy_lab::collector::{Collector, CollectorReport};
use foxy_lab::leap::{self, Asked, LeapReport, LeapRun, Manner, Multiplier, Path, requests};
use foxy_workload::{Object, Trace};
use report::Outcome;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Runs it.
///
/// # Errors
/// Arguments or a trace that cannot be used, no proxy that answers, a signal, a file that cannot be written, a missed bar.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.contains_id("check") {
        return check::run(matches);
    }
    let mut proxies = arguments::proxies(matches)?;
    clients::check(matches)?;
    let trace = logs::read_trace(matches, "leap")?;
    let (started, origin) = origin(matches)?;
    let interrupted = interrupted()?;
    let collector = parent::start(matches, &proxies, origin)?;
    let passthrough = passthrough(matches, &mut proxies, collector.as_ref(), origin)?;
    let mut replay = replay_of(matches, &proxies, origin, &interrupted);
    if let (Some(collector), Some(direct)) = (&collector, replay.paths.first_mut()) {
        direct.address = collector.addresses()[0];
    }
    let mut log = Log::create(matches.get_one("log"))?;
    let mut stopped = None;
    let mut write = |line: &leap::Line| stopped = log.write(line).or(stopped.take());
    let report = if matches.contains_id("listen") {
        let started = started.as_ref().map(|origin| probe(&origin.address().to_string().into()));
        accept(matches, &replay, started.as_ref(), origin, &mut write)?
    } else {
        let stream = stream(matches, trace.as_ref().map(|(trace, _)| trace), origin)?;
        let mut progress = Progress::new("leap", stream.count);
        let mut requests = stream.requests;
        leap::run(&replay, &stream.probe, &mut *requests, &mut write, &mut |begun| progress.update(begun))
    };
    let report = report.map_err(|error| Failure::Failed(format!("leap: {error}")))?;
    if let Some(stopped) = log.finish().or(stopped) {
        terminal::report(Level::Warning, &format!("leap: {stopped}"));
    }
    // Clients are taken until a signal comes, unless something else was to end that.
    let meant =
        matches.contains_id("listen") && !matches.contains_id("requests") && !matches.contains_id("for");
    let stopped = (interrupted.load(Relaxed) && !meant).then_some("stopped by a signal");
    drop(passthrough);
    let collected = collector.map(Collector::stop);
    finish(matches, &report, collected.as_ref(), stopped)
}

/// Starts the proxy that stores nothing, if it is asked for, and says where it is: its parent is the Collector, else the origin.
fn passthrough(
    matches: &ArgMatches,
    proxies: &mut [Named],
    collector: Option<&Collector>,
    origin: Option<SocketAddr>,
) -> Result<Option<Multiplier>, Failure> {
    let Some(place) = proxies.last_mut().filter(|_| matches.get_flag("passthrough")) else { return Ok(None) };
    let parent = collector.and_then(|collector| collector.addresses().last().copied()).or(origin);
    let started = Multiplier::pass_through(parent)
        .map_err(|error| Failure::Failed(format!("leap: no pass-through proxy: {error}")))?;
    place.address = started.address();
    Ok(Some(started))
}

/// Takes the requests of clients; `probe` is asked twice beforehand, if there is one.
fn accept(
    matches: &ArgMatches,
    run: &LeapRun,
    probe: Option<&Asked>,
    origin: Option<SocketAddr>,
    log: &mut dyn FnMut(&leap::Line),
) -> Result<io::Result<LeapReport>, Failure> {
    raise_open_files();
    let front = clients::front(matches, origin)?;
    clients::announce(&front);
    let mut progress = Progress::new("leap", front.requests);
    Ok(leap::serve(run, probe, front, log, &mut |begun| progress.update(begun)))
}

/// Where the origin is, started here unless it is given; none when the trace's own servers are asked.
fn origin(matches: &ArgMatches) -> Result<(Option<Origin>, Option<SocketAddr>), Failure> {
    let given = matches.get_one("direct").or_else(|| matches.get_one("origin")).copied();
    if given.is_some() || matches.get_flag("live") {
        return Ok((None, given));
    }
    let origin = origin::start("leap", 1)?;
    let address = origin.address();
    Ok((Some(origin), Some(address)))
}

fn replay_of(
    matches: &ArgMatches,
    proxies: &[Named],
    origin: Option<SocketAddr>,
    interrupted: &Arc<AtomicBool>,
) -> LeapRun {
    let manner = if matches.get_flag("reverse") { Manner::Reverse } else { Manner::Forward };
    let direct = origin.filter(|_| !matches.contains_id("origin"));
    let direct = direct.map(|address| Path { name: "direct".into(), address, manner: Manner::Direct });
    let proxies =
        proxies.iter().map(|Named { name, address }| Path { name: name.clone(), address: *address, manner });
    let time = |name| *matches.get_one::<Duration>(name).expect("has a default");
    let most = *matches.get_one::<u32>("most-in-flight").expect("has a default");
    LeapRun {
        paths: direct.into_iter().chain(proxies).collect(),
        pace: arguments::pace(matches),
        stagger: time("stagger"),
        time_limit: time("time-limit"),
        most_in_flight: usize::try_from(most).unwrap_or(usize::MAX),
        numbered: origin.is_some() && !matches.get_flag("live"),
        seed: seed::of(matches),
        interrupted: Arc::clone(interrupted),
    }
}

/// An object of the verifying origin that nothing else asks for.
fn probe(authority: &Arc<str>) -> Asked {
    let path = Object { id: u64::MAX, size: 1000, version: 1 }.to_string();
    Asked::get(Arc::clone(authority), path, Duration::ZERO)
}

/// What is asked for.
struct Stream<'a> {
    /// What everyone is asked for twice beforehand.
    probe: Asked,
    requests: Box<dyn Iterator<Item = Asked> + 'a>,
    count: Option<u64>,
}

fn stream<'a>(
    matches: &ArgMatches,
    trace: Option<&'a Trace>,
    origin: Option<SocketAddr>,
) -> Result<Stream<'a>, Failure> {
    let limit = matches.get_one::<u64>("requests").copied();
    let authority: Arc<str> = origin.map(|origin| origin.to_string()).unwrap_or_default().into();
    let probe = probe(&authority);
    let Some(trace) = trace else {
        let (workload, count) = (workloads::named(matches)?, limit.unwrap_or(REQUESTS));
        let requests = requests::of_workload(&workload, seed::of(matches), count, authority);
        let requests = requests.ok_or_else(|| {
            let name = &workload.name;
            Failure::Unusable(format!(
                "--workload {name}: has more than plain gets of one server, which leap cannot send yet; name one of model objects/1"
            ))
        })?;
        return Ok(Stream { probe, requests: Box::new(requests), count: Some(count) });
    };
    let most = usize::try_from(limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
    let count = Some(trace.gets.len().min(most) as u64);
    if origin.is_some() {
        let requests = Box::new(requests::of_trace(trace, authority).take(most));
        return Ok(Stream { probe, requests, count });
    }
    let probe = requests::live(trace).next().ok_or_else(|| {
        Failure::Unusable("--live: the trace names no http:// URL; give one that does".into())
    })?;
    let usable = requests::live(trace).count();
    if usable < trace.gets.len() {
        let left_out = trace.gets.len() - usable;
        let what =
            format!("leap: --live: {left_out} gets of the trace are left out: their URLs are not http://");
        terminal::report(Level::Warning, &what);
    }
    let count = Some(usable.min(most) as u64);
    Ok(Stream { probe, requests: Box::new(requests::live(trace).take(most)), count })
}

/// Says and writes what was found.
fn finish(
    matches: &ArgMatches,
    report: &LeapReport,
    collector: Option<&CollectorReport>,
    stopped: Option<&str>,
) -> Result<(), Failure> {
    let differences = report.differences();
    let outcome = Outcome { report, differences: &differences, collector };
    terminal::print(outcome.text().trim_end());
    for warning in outcome.warnings() {
        terminal::report(Level::Warning, &format!("leap: {warning}"));
    }
    let silent = report.paths.iter().all(|path| path.name == "direct" || path.answers == 0);
    let failed = stopped
        .or((silent && (report.requests > 0 || report.clients.is_none()))
            .then_some("no proxy answered any request"))
        .map(|reason| Failure::Failed(format!("leap: {reason}; what was measured stands above")));
    let setup = records::setup(seed::of(matches));
    let mut found = report.records(&differences);
    found.extend(collector.map(CollectorReport::records).into_iter().flatten());
    found
        .extend(collector.map(parent::bandwidth).into_iter().flatten().flat_map(|fetched| fetched.records()));
    conclude(matches, setup, found, failed, |setup| outcome.page(setup, stopped))
}
