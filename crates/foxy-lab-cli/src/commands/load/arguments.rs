//! The arguments of `foxy load`, and the load that they describe.

use crate::arguments::{count, option, switch};
use crate::experiment::{self, Flag, flags};
use crate::fault::{FAULTS, Staged};
use crate::{logs, origin, trust, workloads};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::{ByteSize, clock};
use foxy_cli::failure::Failure;
use foxy_cli::units::parse_positive_duration;
use foxy_lab::Origin;
use foxy_lab::load::options::{LoadOptions, Mode, Pace, Protocol, Stop};
use foxy_workload::{MAX_RANKED_OBJECTS, Model, Objects, Popularity, Workload};
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

const PROTOCOLS: [(&str, Protocol); 5] = [
    ("1.0", Protocol::Http10 { persistent: false }),
    ("1.0-keep-alive", Protocol::Http10 { persistent: true }),
    ("1.1", Protocol::Http11 { persistent: true }),
    ("1.1-close", Protocol::Http11 { persistent: false }),
    ("2", Protocol::Http2),
];

pub fn command() -> Command {
    Command::new("load")
        .about("Send a workload to a proxy, check every byte, and report rates and latencies")
        .after_help(workloads::help())
        .args(whom())
        .args(origin_names())
        .args(what())
        .args(how())
        .args(flags([Flag::Seed, Flag::Json, Flag::FailIf("hit_ratio<0.9")]))
}

pub fn whom() -> Vec<Arg> {
    vec![
        option("proxy", "ADDRESS:PORT", "Address of the proxy that receives the requests")
            .required(true)
            .value_parser(value_parser!(SocketAddr)),
        option(
            "origin",
            "HOST:PORT",
            "Origin in the URLs; further servers of a workload use the next ports [default: an \
             origin that this command starts]",
        ),
        switch("reverse", "Send origin-form requests, as to a reverse proxy or an origin"),
        switch(
            "tls",
            "Request https URLs, through a CONNECT tunnel per connection, or with --reverse over \
             TLS to the proxy",
        ),
        trust::argument().requires("tls"),
        option("pid", "PID", "Process id of the proxy, to measure its CPU time")
            .value_parser(value_parser!(u32)),
        option("subject", "NAME", "Name of the proxy in the records").default_value("proxy"),
        option(
            "protocol",
            "VERSION",
            "HTTP version and use of connections; 2 starts with prior knowledge, or with ALPN if --tls is given",
        )
        .value_parser(PROTOCOLS.map(|(name, _)| name))
        .default_value("1.1"),
        option("threads", "N", "Number of threads that run the clients")
            .default_value("1")
            .value_parser(value_parser!(u16).range(1..=256)),
    ]
}

fn origin_names() -> Vec<Arg> {
    let hosts = option(
        "hosts",
        "N",
        "Distribute the objects over N host names of the origin, h1.HOST to hN.HOST; HOST is \
             origin.test for an origin that this command starts",
    );
    let hosts = hosts
        .value_parser(value_parser!(u32).range(1..=1_000_000))
        .conflicts_with_all(["reverse", "tls"]);
    let server = origin::name_server_flags()
        .map(|argument| argument.requires("hosts").conflicts_with("origin"));
    [hosts].into_iter().chain(server).collect()
}

fn what() -> Vec<Arg> {
    vec![
        workloads::argument().default_value("zipf"),
        logs::trace().conflicts_with("workload"),
        logs::format().requires("trace"),
        option("objects", "N", "Number of objects [default: as in the workload]")
            .value_parser(count()),
        option("size", "SIZE", "Body size of the objects [default: as in the workload]")
            .value_parser(value_parser!(ByteSize)),
        switch(
            "no-warm-up",
            "Skip the warm-up, which requests each object once before the measurement",
        ),
        option(
            "newest",
            "N",
            "At the end, request the N newest objects again, and report the share of hits",
        )
        .value_parser(count()),
    ]
}

fn how() -> Vec<Arg> {
    vec![
        option(
            "clients",
            "N",
            "Number of clients with one connection and one request at a time [default: 64]; with \
             table3, clients with any number of connections [default: 100]",
        )
        .value_parser(value_parser!(u32).range(1..=65_535)),
        option(
            "rate",
            "N",
            "Requests per second, sent without waiting for answers [default: each client waits \
             for its answer, unless the workload has a rate]",
        )
        .value_parser(value_parser!(u32).range(1..)),
        logs::recorded().conflicts_with("rate"),
        option(
            "requests",
            "N",
            "Stop after this number of requests; a trace also stops at its end",
        )
        .value_parser(count()),
        option(
            "seconds",
            "N",
            "Duration of the run in seconds [default: 10, without --requests and --trace]",
        )
        .value_parser(count()),
        option("time-limit", "TIME", "Time limit for an answer, also after the end of the run")
            .value_parser(parse_positive_duration)
            .default_value("30s"),
        option(
            "fault",
            "WHAT",
            "Let the origin that this command starts fail during the middle third of --seconds",
        )
        .value_parser(["origin-down", "origin-slow"])
        .conflicts_with_all(["origin", "requests"]),
    ]
}

pub fn wire(
    matches: &ArgMatches,
    target: SocketAddr,
    is_reverse: bool,
    workload: Workload,
    started_here: Option<&Origin>,
) -> Result<LoadOptions, Failure> {
    let origin = matches.get_one::<String>("origin").cloned();
    let origin = origin
        .or_else(|| started_here.map(|origin| origin.address().to_string()))
        .unwrap_or_default();
    let mode = if is_reverse { Mode::Reverse { host: origin } } else { Mode::Forward { origin } };
    let protocol = matches.get_one::<String>("protocol").expect("has a default");
    let protocol =
        PROTOCOLS.iter().find(|known| known.0 == protocol).expect("clap knows the values").1;
    Ok(LoadOptions {
        protocol,
        tls: trust::of(matches, started_here)?,
        threads: usize::from(*matches.get_one::<u16>("threads").expect("has a default")),
        seed: experiment::seed(matches),
        ..LoadOptions::new(target, mode, workload)
    })
}

pub fn options(
    matches: &ArgMatches,
    workload: Workload,
    started_here: Option<&Origin>,
) -> Result<LoadOptions, Failure> {
    let once_each = all_new(&workload).map(|objects| objects.objects).or(workload.model.requests());
    let stop = match (matches.get_one::<u64>("requests"), matches.get_one::<u64>("seconds")) {
        (Some(&requests), None) => Stop::Requests(requests),
        (None, Some(&seconds)) => Stop::After(Duration::from_secs(seconds)),
        (None, None) => once_each.map_or(Stop::After(Duration::from_secs(10)), Stop::Requests),
        (Some(_), Some(_)) => {
            return Err(Failure::Unusable(
                "--requests and --seconds: both set the end of the run; give one of them".into(),
            ));
        }
    };
    let rate = matches.get_one::<u32>("rate").copied().map(f64::from);
    let recorded = matches.get_one::<f64>("recorded").copied();
    if recorded.is_some() && !matches.contains_id("trace") {
        return Err(Failure::Unusable(
            "--recorded: only a trace has recorded times; give a trace with --trace".into(),
        ));
    }
    let (clients, pace) = match (&workload.model, rate, recorded) {
        (Model::Table3(knobs), rate, _) => {
            (knobs.clients, Pace::Random { rate: rate.unwrap_or(knobs.rate) })
        }
        (_, Some(rate), _) => (64, Pace::Open { rate }),
        (_, None, Some(times)) => (64, Pace::Recorded { times }),
        (_, None, None) => (64, Pace::Closed),
    };
    let clients = matches.get_one::<u32>("clients").copied().unwrap_or(clients) as usize;
    let target = *matches.get_one("proxy").expect("required");
    let wire = wire(matches, target, matches.get_flag("reverse"), workload, started_here)?;
    let hosts = matches.get_one::<u32>("hosts").copied();
    let mode = match started_here.filter(|_| hosts.is_some()) {
        Some(origin) => {
            Mode::Forward { origin: format!("{}:{}", origin::ZONE, origin.address().port()) }
        }
        None => wire.mode.clone(),
    };
    let time_limit = *matches.get_one("time-limit").expect("has a default");
    Ok(LoadOptions { clients, pace, stop, hosts, mode, time_limit, ..wire })
}

pub fn staged<'a>(
    matches: &ArgMatches,
    options: &LoadOptions,
    started_here: Option<&'a Origin>,
) -> Result<Option<Staged<'a>>, Failure> {
    let Some((name, origin)) = matches.get_one::<String>("fault").zip(started_here) else {
        return Ok(None);
    };
    let (Stop::After(time), Some(_)) = (options.stop, options.workload.objects()) else {
        let what = "needs a run that ends after --seconds, and a workload of objects";
        return Err(Failure::Unusable(format!("--fault {name}: {what}")));
    };
    let (_, kind) = FAULTS.iter().find(|known| known.0 == name).expect("clap knows the values");
    Ok(Some(Staged::new(*kind, origin, Path::new(""), clock::monotonic(), time)))
}

pub fn workload(matches: &ArgMatches, given: Option<Workload>) -> Result<Workload, Failure> {
    let mut workload = given.map_or_else(|| workloads::named(matches), Ok)?;
    let refuse = |option: &str, whose: &str| {
        Failure::Unusable(format!("--{option}: only {whose} have this option; leave it out"))
    };
    let objects = "workloads of the model objects/1";
    if let Some(&count) = matches.get_one("objects") {
        let changed = workload.objects_mut().ok_or_else(|| refuse("objects", objects))?;
        changed.objects = count;
        if changed.are_too_many() {
            return Err(Failure::Unusable(format!(
                "--objects {count}: at most {MAX_RANKED_OBJECTS} objects can have different \
                 popularities; give fewer objects, or a workload without zipf"
            )));
        }
    }
    if let Some(&ByteSize(size)) = matches.get_one("size") {
        workload.objects_mut().ok_or_else(|| refuse("size", objects))?.size = size;
    }
    if matches.get_flag("no-warm-up")
        && let Some(objects) = workload.objects_mut()
    {
        objects.warm_up = false;
    }
    if matches.contains_id("newest") && all_new(&workload).is_none() {
        return Err(refuse("newest", "workloads that never repeat, such as fill,"));
    }
    if let Model::PolyMix4(_) = workload.model
        && let Some(option) =
            ["clients", "rate", "requests", "seconds"].iter().find(|id| matches.contains_id(id))
    {
        let whose = "workloads without phases";
        return Err(refuse(option, whose));
    }
    Ok(workload)
}

fn all_new(workload: &Workload) -> Option<&Objects> {
    workload.objects().filter(|objects| objects.popularity == Popularity::AllNew)
}
