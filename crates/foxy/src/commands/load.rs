//! `foxy load`: puts a named workload on a proxy and says what it did, byte for byte.

use crate::failure::Failure;
use crate::lab::bars::{self, Bar};
use crate::lab::{processor_time, progress::Progress, records};
use crate::terminal;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_lab::load::{self, LoadOptions, Mode, Pace, Stop};
use foxy_lab::{LoadReport, Origin, OriginOptions};
use foxy_report::{Measure, Record, Table};
use foxy_workload::stream::WORKLOADS;
use foxy_workload::{Popularity, Workload};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Its arguments.
pub fn command() -> Command {
    let names = WORKLOADS.iter().map(|workload| format!("  {:<11} {}", workload.name, workload.about));
    Command::new("load")
        .about("Put a workload on a proxy, check every byte, and report rates and latencies")
        .after_help(format!("Workloads:\n{}", names.collect::<Vec<_>>().join("\n")))
        .args(whom())
        .args(what())
        .args(how())
}

fn option(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

fn switch(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn whom() -> Vec<Arg> {
    vec![
        option("proxy", "ADDRESS:PORT", "The proxy to load")
            .required(true)
            .value_parser(value_parser!(SocketAddr)),
        option("origin", "HOST:PORT", "The origin in each URL; without it one is started here"),
        switch("reverse", "Send origin-form requests, as to a reverse proxy or an origin"),
        option("pid", "PID", "The proxy's process, to count its CPU time").value_parser(value_parser!(u32)),
        option("subject", "NAME", "The proxy's name in the records").default_value("proxy"),
    ]
}

fn what() -> Vec<Arg> {
    let count = || value_parser!(u64).range(1..);
    vec![
        option("workload", "NAME", "What to ask for").default_value("zipf"),
        option("objects", "N", "Another number of objects than the workload's").value_parser(count()),
        option("size", "SIZE", "Another body size than the workload's").value_parser(value_parser!(ByteSize)),
        switch("no-warm-up", "Do not ask for each object once before measuring"),
        option(
            "newest",
            "N",
            "Afterwards ask again for the N objects asked for last: how many are still hits",
        )
        .value_parser(count()),
        option("seed", "N", "Seed of every choice").default_value("1").value_parser(value_parser!(u64)),
    ]
}

fn how() -> Vec<Arg> {
    let count = || value_parser!(u64).range(1..);
    vec![
        option("clients", "N", "Connections, each with one request at a time")
            .default_value("64")
            .value_parser(value_parser!(u32).range(1..=65_535)),
        option("threads", "N", "Threads that carry the clients")
            .default_value("1")
            .value_parser(value_parser!(u16).range(1..=256)),
        option(
            "rate",
            "N",
            "Requests a second, open loop; without it each client goes on when it has its answer",
        )
        .value_parser(value_parser!(u32).range(1..)),
        option("requests", "N", "Stop after this many").value_parser(count()),
        option("seconds", "N", "Stop after this time (10 unless --requests is given)").value_parser(count()),
        records::argument(),
        option("fail-if", "BAR", "End with code 1 if this holds, such as hit_ratio<0.9; can be repeated")
            .value_parser(value_parser!(Bar))
            .action(ArgAction::Append),
    ]
}

/// Runs it.
pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let started_here = match matches.get_one::<String>("origin") {
        Some(_) => None,
        None => Some(start_origin()?),
    };
    let options = options(matches, started_here.as_ref())?;
    let subject = matches.get_one::<String>("subject").expect("has a default");
    let process = matches.get_one::<u32>("pid").copied();
    if options.workload.warm_up && !matches.get_flag("no-warm-up") {
        let mut progress = Progress::new("warm-up", Some(options.workload.objects));
        load::warm_up(&options, &mut |done| progress.update(done)).map_err(failed)?;
    }
    let before = process_time(process)?;
    let report = measure(&options, "load", WARM_UP_REQUESTS)?;
    let used = process_time(process)?.zip(before).map(|(after, before)| after.saturating_sub(before));
    let mut found = report.records(subject, used);
    if let Some(&newest) = matches.get_one::<u64>("newest") {
        let again = ask_again(&options, &report, newest)?;
        found.push(Record::Measure(Measure::once(
            "resident_after_fill",
            subject,
            again.hit_ratio(),
            "share",
        )));
    }
    terminal::print(table(&found).trim_end());
    let missed = bars::missed(matches.get_many::<Bar>("fail-if").into_iter().flatten(), &found)?;
    records::write(matches, records::setup(options.seed), found, missed.is_empty())?;
    if report.answers == 0 {
        return Err(Failure::Failed("load: no request was answered; is the proxy running there?".into()));
    }
    if missed.is_empty() { Ok(()) } else { Err(Failure::Missed(missed.join("\n"))) }
}

/// Numbers of measured requests start above those of the warm-up, so that its replies are known as hits.
const WARM_UP_REQUESTS: u64 = 1 << 40;

fn start_origin() -> Result<Origin, Failure> {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Origin::start(OriginOptions { listen, threads: 1 })
        .map_err(|error| Failure::Failed(format!("load: no origin: {error}")))
}

fn options(matches: &ArgMatches, started_here: Option<&Origin>) -> Result<LoadOptions, Failure> {
    let name = matches.get_one::<String>("workload").expect("has a default");
    let mut workload = Workload::find(name).ok_or_else(|| {
        let known: Vec<&str> = WORKLOADS.iter().map(|workload| workload.name).collect();
        Failure::Unusable(format!("--workload {name}: no such workload; there are {}", known.join(", ")))
    })?;
    if let Some(&objects) = matches.get_one("objects") {
        workload.objects = objects;
    }
    if let Some(&ByteSize(size)) = matches.get_one("size") {
        workload.size = size;
    }
    let origin = matches.get_one::<String>("origin").cloned();
    let origin =
        origin.or_else(|| started_here.map(|origin| origin.address().to_string())).unwrap_or_default();
    let mode =
        if matches.get_flag("reverse") { Mode::Reverse { host: origin } } else { Mode::Forward { origin } };
    let pace =
        matches.get_one::<u32>("rate").map_or(Pace::Closed, |&rate| Pace::Open { rate: f64::from(rate) });
    let stop = match (matches.get_one::<u64>("requests"), matches.get_one::<u64>("seconds")) {
        (Some(&requests), None) => Stop::Requests(requests),
        (None, None) if workload.popularity == Popularity::AllNew => Stop::Requests(workload.objects),
        (None, seconds) => Stop::After(Duration::from_secs(seconds.copied().unwrap_or(10))),
        (Some(_), Some(_)) => {
            return Err(Failure::Unusable("--requests and --seconds: give one of them".into()));
        }
    };
    Ok(LoadOptions {
        target: *matches.get_one("proxy").expect("required"),
        mode,
        workload,
        clients: *matches.get_one::<u32>("clients").expect("has a default") as usize,
        threads: usize::from(*matches.get_one::<u16>("threads").expect("has a default")),
        pace,
        stop,
        seed: *matches.get_one("seed").expect("has a default"),
        time_limit: Duration::from_secs(30),
        first_request: 0,
        interrupted: Arc::default(),
    })
}

fn measure(options: &LoadOptions, label: &str, first_request: u64) -> Result<LoadReport, Failure> {
    let total = match options.stop {
        Stop::Requests(count) => Some(count),
        Stop::After(_) => None,
    };
    let mut progress = Progress::new(label, total);
    load::run(&LoadOptions { first_request, ..options.clone() }, &mut |done| progress.update(done))
        .map_err(failed)
}

/// Asks once more for the objects that a run of new ones asked for last. Meant for workloads that never repeat.
fn ask_again(options: &LoadOptions, report: &LoadReport, newest: u64) -> Result<LoadReport, Failure> {
    let asked = report.answers + report.failed();
    let workload = Workload {
        popularity: Popularity::Window { first: asked.saturating_sub(newest) },
        objects: newest.min(asked),
        ..options.workload.clone()
    };
    let stop = Stop::Requests(workload.objects);
    measure(
        &LoadOptions { workload, stop, pace: Pace::Closed, ..options.clone() },
        "newest",
        2 * WARM_UP_REQUESTS,
    )
}

fn process_time(process: Option<u32>) -> Result<Option<Duration>, Failure> {
    let Some(process) = process else { return Ok(None) };
    let time = processor_time::of(process);
    time.map(Some).ok_or_else(|| {
        Failure::Unusable(format!("--pid {process}: no such process; name the proxy's main one"))
    })
}

fn failed(error: std::io::Error) -> Failure {
    Failure::Failed(format!("load: {error}"))
}

fn table(found: &[Record]) -> String {
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
    table.render()
}
