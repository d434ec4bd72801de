//! `foxy collector`: runs the parent proxy of several proxies that a user compares. The Collector
//! fetches each answer once and gives the same answer to all proxies.

mod arguments;

use crate::collector;
use crate::experiment::{Conclusion, Experiment};
use crate::logs::LineLog;
pub use arguments::command;
use clap::ArgMatches;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::signals;
use foxy_cli::terminal::{self, Level};
use foxy_lab::leap::collector::{Collector, CollectorOptions, CollectorReport, LogSink, Reach};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let experiment =
        Experiment::new("collector", matches).with_bars(CollectorReport::measurable(&[]))?;
    let mut options = arguments::options(matches)?;
    let log = Arc::new(Mutex::new(LineLog::create_to_follow(matches.get_one::<PathBuf>("log"))?));
    options.log = Some(sink(&log));
    raise_open_files();
    let (names, reach) = (names(&options), reach(&options));
    let running = Collector::start(options).map_err(|error| {
        Failure::Failed(format!(
            "collector: cannot listen: {error}; choose another place with --listen"
        ))
    })?;
    for (name, address) in names.iter().zip(running.addresses()) {
        terminal::print(&format!("collector: {name}parent at http://{address}/"));
    }
    terminal::print(&format!("collector: {reach}"));
    signals::wait_for_stop().map_err(|error| {
        Failure::Failed(format!("collector: cannot install a signal handler: {error}"))
    })?;
    let report = running.stop();
    say(log.lock().unwrap_or_else(PoisonError::into_inner).finish());
    experiment.finish(Conclusion {
        text: collector::text(&report),
        records: report.records(),
        ..Conclusion::default()
    })
}

fn sink(log: &Arc<Mutex<LineLog>>) -> LogSink {
    let log = Arc::clone(log);
    Box::new(move |line| say(log.lock().unwrap_or_else(PoisonError::into_inner).write(line)))
}

fn say(stopped: Option<String>) {
    if let Some(stopped) = stopped {
        terminal::report(Level::Warning, &format!("collector: {stopped}; answers go on"));
    }
}

fn names(options: &CollectorOptions) -> Vec<String> {
    let name =
        |name: &Option<String>| name.as_ref().map_or(String::new(), |name| format!("{name}: "));
    options.listen.iter().map(|listen| name(&listen.name)).collect()
}

fn reach(options: &CollectorOptions) -> String {
    match (options.reach, options.origin) {
        (Reach::Offline, Some(origin)) => format!("offline: every host is {origin}"),
        (Reach::Offline, None) => {
            "offline: asks only loopback, private addresses and localhost; --live asks any server"
                .into()
        }
        (Reach::Live { any_method, rate }, _) => {
            let methods = if any_method { "any method" } else { "GET only" };
            format!(
                "LIVE: asks whatever servers requests name, {methods}, {rate} exchanges a second"
            )
        }
    }
}
