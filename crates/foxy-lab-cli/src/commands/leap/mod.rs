//! `foxy leap`: sends each request to several proxies at once, and compares their response times
//! and answers.

mod arguments;
mod bandwidth;
mod check;
mod clients;
mod measurable;
mod parent;
mod report;
mod secure;
mod source;
mod started;
mod tables;

use crate::experiment::{self, Conclusion, Experiment};
use crate::logs::LineLog;
use crate::origin;
use arguments::NamedProxy;
pub use arguments::command;
use bandwidth::Bandwidth;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::progress::Progress;
use foxy_cli::signals::interrupted;
use foxy_cli::terminal::{self, Level};
use foxy_lab::leap::collector::Collector;
use foxy_lab::leap::{
    self, Asked, LeapReport, LeapRun, Manner, Multiplier, Numbers, Outgoing, Path,
};
use foxy_lab::wire::tls::Certificates;
use foxy_lab::{Origin, Wanted};
use report::ReplayOutcome;
use source::{ReplaySource, probe, stream};
use started::ReplayGround;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    if matches.contains_id("check") {
        return check::run(matches);
    }
    let authority = secure::authority(matches)?;
    let chosen = started::chosen(matches, authority.as_ref().filter(|_| matches.get_flag("tls")))?;
    let mut proxies = arguments::proxies(matches, &chosen)?;
    clients::check(matches)?;
    secure::check(matches)?;
    let experiment =
        Experiment::new("leap", matches).with_bars(measurable::of(matches, &proxies, &chosen))?;
    let source = ReplaySource::of(matches)?;
    let origin = LeapOrigin::of(matches)?;
    let interrupted = interrupted()?;
    let trust = secure::trust(matches, origin.own.as_ref(), authority.as_ref())?;
    let certificates = authority.map(|authority| authority.certificates());
    let (outgoing, passing_on) = (secure::outgoing(matches, &trust), Outgoing::new(&trust));
    let wanted = Arc::new(Wanted::default());
    let collector =
        parent::start(matches, &proxies, origin.address, certificates.clone(), trust, &wanted)?;
    let parent = collector.as_ref().and_then(|collector| collector.addresses().last().copied());
    let passthrough =
        passthrough(matches, &mut proxies, parent.or(origin.address), certificates, passing_on)?;
    let started = match (&collector, origin.address) {
        (Some(collector), Some(host)) if !chosen.is_empty() => {
            let places = &collector.addresses()[1..];
            let ground = ReplayGround::new(matches, host, &source.name, &interrupted)?;
            Some(ground.start_all(&chosen, places, &mut proxies, &wanted)?)
        }
        _ => None,
    };
    let mut replay =
        LeapRun { outgoing, ..replay_of(matches, &proxies, origin.address, &interrupted) };
    replay.wanted = collector.is_some().then_some(wanted);
    replay.alike = started::alike(&chosen, &replay.paths);
    if let (Some(collector), Some(direct)) = (&collector, replay.paths.first_mut()) {
        direct.address = collector.addresses()[0];
    }
    if collector.is_none() {
        origin.tally_paths(&replay);
    }
    let report = ask(matches, &replay, &source, &origin)?;
    let proxies = started.map(|started| started.end(report.requests));
    drop(passthrough);
    if interrupted.load(Relaxed) {
        terminal::report(
            Level::Info,
            "leap: stopped; calculating the differences between the paths",
        );
    }
    let collected = collector.map(Collector::stop);
    let bandwidth = match (&collected, &origin.own) {
        (Some(collected), _) => Bandwidth::of_collector(&report, collected),
        (None, Some(origin)) => Bandwidth::of_origin(&report, &origin.tallied()),
        (None, None) => Bandwidth::default(),
    };
    let outcome = ReplayOutcome {
        bandwidth,
        report: &report,
        differences: &report.differences(),
        by_class: &report.differences_by_class(),
        collector: collected.as_ref(),
        proxies: proxies.as_ref(),
        asked: source.text.as_deref(),
    };
    // With `--listen`, a signal is the normal end of a run without a limit on requests or time.
    let is_normal_end = matches.contains_id("listen")
        && arguments::most(matches).is_none()
        && !matches.contains_id("for");
    let stopped = interrupted.load(Relaxed) && !is_normal_end;
    finish(experiment, &outcome, stopped.then_some("stopped by a signal"))
}

/// The origin of a run with requests from a workload or a trace. With `address` `None`, the servers
/// that the trace names answer the requests.
struct LeapOrigin {
    /// The origin, if this command started it.
    own: Option<Origin>,
    address: Option<SocketAddr>,
}

impl LeapOrigin {
    fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let given = matches.get_one("direct").or_else(|| matches.get_one("origin")).copied();
        if given.is_some() || matches.get_flag("live") {
            return Ok(Self { own: None, address: given });
        }
        let start = if matches.get_flag("tls") { origin::start_tls } else { origin::start };
        let own = start("leap", 1)?;
        let address = Some(own.address());
        Ok(Self { own: Some(own), address })
    }

    /// Makes the origin count the bytes that it sends on each path (proxy or direct path), if this
    /// command started the origin. The last counter is for requests without the number of a copy,
    /// such as prefetches of a proxy.
    fn tally_paths(&self, replay: &LeapRun) {
        if let (Some(origin), Some(numbers)) = (&self.own, replay.numbers) {
            let unasked = replay.paths.len();
            origin.tally(unasked + 1, move |number| {
                number.map_or(Some(unasked), |number| numbers.path(number))
            });
        }
    }
}

fn ask(
    matches: &ArgMatches,
    run: &LeapRun,
    source: &ReplaySource,
    origin: &LeapOrigin,
) -> Result<LeapReport, Failure> {
    let mut log = LineLog::create(matches.get_one("log"))?;
    let mut stopped = None;
    let mut write = |line: &leap::Line| stopped = log.write(line).or(stopped.take());
    let report = if matches.contains_id("listen") {
        let own = origin.own.as_ref();
        let probe =
            own.map(|own| probe(&own.address().to_string().into()).over(secure::scheme(matches)));
        accept(matches, run, probe.as_ref(), origin.address, &mut write)?
    } else {
        let stream = stream(matches, source, origin.address)?;
        let mut progress = Progress::new("leap", stream.count);
        let mut requests = stream.requests;
        leap::run(run, &stream.probe, &mut *requests, &mut write, &mut |begun| {
            progress.update(begun)
        })
    };
    let report = report.map_err(|error| Failure::Failed(format!("leap: {error}")))?;
    if let Some(stopped) = log.finish().or(stopped) {
        terminal::report(Level::Warning, &format!("leap: {stopped}"));
    }
    Ok(report)
}

fn passthrough(
    matches: &ArgMatches,
    proxies: &mut [NamedProxy],
    parent: Option<SocketAddr>,
    certificates: Option<Certificates>,
    outgoing: Outgoing,
) -> Result<Option<Multiplier>, Failure> {
    let Some(place) = proxies.last_mut().filter(|_| arguments::has_passthrough(matches)) else {
        return Ok(None);
    };
    let time_limit = *matches.get_one("time-limit").expect("has a default");
    let started = Multiplier::pass_through_tls(parent, certificates, outgoing, time_limit)
        .map_err(|error| {
            Failure::Failed(format!("leap: cannot start the pass-through proxy: {error}"))
        })?;
    place.address = started.address();
    Ok(Some(started))
}

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

fn replay_of(
    matches: &ArgMatches,
    proxies: &[NamedProxy],
    origin: Option<SocketAddr>,
    interrupted: &Arc<AtomicBool>,
) -> LeapRun {
    let manner = if arguments::is_reverse(matches) { Manner::Reverse } else { Manner::Forward };
    let direct = origin.filter(|_| !matches.contains_id("origin"));
    let direct =
        direct.map(|address| Path { name: "direct".into(), address, manner: Manner::Direct });
    let proxies = proxies.iter().map(|NamedProxy { name, address }| Path {
        name: name.clone(),
        address: *address,
        manner,
    });
    let paths: Vec<Path> = direct.into_iter().chain(proxies).collect();
    let numbered = origin.is_some() && !matches.get_flag("live");
    let numbers = numbered.then(|| Numbers::new(paths.len()));
    let time = |name| *matches.get_one::<Duration>(name).expect("has a default");
    let most = *matches.get_one::<u32>("most-in-flight").expect("has a default");
    LeapRun {
        paths,
        pace: arguments::pace(matches),
        stagger: time("stagger"),
        time_limit: time("time-limit"),
        most_in_flight: usize::try_from(most).unwrap_or(usize::MAX),
        numbers,
        outgoing: Outgoing::default(),
        connections: secure::connections(matches),
        seed: experiment::seed(matches),
        alike: Vec::new(),
        wanted: None,
        interrupted: Arc::clone(interrupted),
    }
}

fn finish(
    experiment: Experiment<'_>,
    outcome: &ReplayOutcome<'_>,
    stopped: Option<&str>,
) -> Result<(), Failure> {
    let report = outcome.report;
    let silent = report.paths.iter().all(|path| path.name == "direct" || path.answers == 0);
    let silent = silent && (report.requests > 0 || report.clients.is_none());
    let lost = outcome.proxies.and_then(|proxies| proxies.failed.first());
    let failed = stopped
        .or(silent.then_some("no proxy answered any request"))
        .or(lost.map(String::as_str))
        .map(|reason| format!("{reason}; the results so far are above"));
    let conclusion = Conclusion {
        text: outcome.text(),
        warnings: outcome.warnings(),
        records: outcome.records(),
        failed,
    };
    experiment.finish_with_page(conclusion, |setup| outcome.page(setup, stopped))
}
