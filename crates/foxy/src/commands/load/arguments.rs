//! The arguments of `foxy load`, and the plan they make.

use super::bars::Bar;
use super::cpu::ProcessId;
use crate::failure::Failure;
use crate::settings::units::parse_duration;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use foxy_lab::load::{LoadOptions, Mode, Pace, Stop};
use foxy_workload::Workload;
use foxy_workload::stream::WORKLOADS;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// A load run as asked for.
pub struct Plan {
    /// The run itself.
    pub load: LoadOptions,
    /// Whether to start a verifying origin here.
    pub own_origin: bool,
    /// Whose CPU time to count.
    pub processes: Vec<ProcessId>,
    /// What the records call the proxy.
    pub subject: String,
    /// Where the records go.
    pub json: Option<PathBuf>,
    /// What must not happen.
    pub bars: Vec<Bar>,
    /// The command line, for the record.
    pub command: String,
}

/// The arguments.
pub fn command() -> Command {
    let workloads: Vec<String> =
        WORKLOADS.iter().map(|workload| format!("  {:<12} {}", workload.name, workload.about)).collect();
    Command::new("load")
        .about("Put a workload on a proxy, check every byte that comes back, and measure")
        .after_help(format!("Workloads:\n{}", workloads.join("\n")))
        .args([
            value("proxy", "ADDRESS", "The proxy under load, or an origin")
                .required(true)
                .value_parser(value_parser!(SocketAddr)),
            value("workload", "NAME", "What to ask for; see below").required(true),
            value(
                "origin",
                "HOST:PORT",
                "The verifying origin, as the URLs name it [default: one of its own on loopback]",
            ),
            value("reverse", "HOST", "Ask as a reverse proxy or an origin is asked, with this Host")
                .conflicts_with("origin"),
            value("clients", "N", "Connections")
                .value_parser(value_parser!(u32).range(1..=100_000))
                .default_value("32"),
            value("threads", "N", "Threads the clients run on")
                .value_parser(value_parser!(u32).range(1..=256))
                .default_value("1"),
            value("rate", "N", "Open loop: start this many requests a second [default: closed loop]")
                .value_parser(rate),
            value("requests", "N", "Stop after this many [default: 10000]")
                .value_parser(value_parser!(u64).range(1..)),
            value("time", "TIME", "Stop after this time").value_parser(parse_duration),
            value("objects", "N", "How many different objects, instead of the workload's")
                .value_parser(value_parser!(u64).range(1..)),
            value("size", "SIZE", "How large each is, instead of the workload's")
                .value_parser(value_parser!(foxy_base::ByteSize)),
            value("patience", "TIME", "An answer that takes longer is an error")
                .value_parser(parse_duration)
                .default_value("10s"),
            value("pid", "PID", "Count the CPU time of this process")
                .value_parser(value_parser!(u32))
                .action(ArgAction::Append),
            value("subject", "NAME", "What the records call the proxy").default_value("proxy"),
            value("seed", "N", "The seed of every choice")
                .value_parser(value_parser!(u64))
                .default_value("1"),
            value("json", "FILE", "Write run records, one JSON object a line")
                .value_parser(value_parser!(PathBuf)),
            value("fail-if", "BAR", "End with code 1 if this holds, such as hit_ratio<0.9")
                .value_parser(value_parser!(Bar))
                .action(ArgAction::Append),
        ])
        .group(ArgGroup::new("stop").args(["requests", "time"]))
}

fn value(name: &'static str, placeholder: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name(placeholder).help(help)
}

fn rate(text: &str) -> Result<f64, String> {
    let rate: Option<f64> = text.parse().ok();
    rate.filter(|rate| rate.is_finite() && *rate > 0.0)
        .ok_or_else(|| "write requests a second, more than 0".to_owned())
}

impl Plan {
    /// Takes the arguments.
    pub fn of(matches: &ArgMatches) -> Result<Self, Failure> {
        let text = |name: &str| matches.get_one::<String>(name).cloned();
        let duration = |name: &str| matches.get_one::<Duration>(name).copied();
        let count = |name: &str| matches.get_one::<u32>(name).map_or(1, |count| *count as usize);
        let (origin, reverse) = (text("origin"), text("reverse"));
        let own_origin = origin.is_none() && reverse.is_none();
        let mode = match reverse {
            Some(host) => Mode::Reverse { host },
            None => Mode::Forward { origin: origin.unwrap_or_default() },
        };
        let load = LoadOptions {
            target: *matches.get_one::<SocketAddr>("proxy").expect("required"),
            mode,
            workload: workload(matches)?,
            clients: count("clients"),
            threads: count("threads"),
            pace: matches.get_one::<f64>("rate").map_or(Pace::Closed, |rate| Pace::Open { rate: *rate }),
            stop: match duration("time") {
                Some(time) => Stop::After(time),
                None => Stop::Requests(matches.get_one::<u64>("requests").copied().unwrap_or(10_000)),
            },
            seed: matches.get_one::<u64>("seed").copied().unwrap_or(1),
            time_limit: duration("patience").expect("has a default"),
            first_request: 0,
        };
        let processes = matches.get_many::<u32>("pid").into_iter().flatten().copied().map(ProcessId);
        Ok(Self {
            load,
            own_origin,
            processes: processes.collect(),
            subject: text("subject").unwrap_or_default(),
            json: matches.get_one::<PathBuf>("json").cloned(),
            bars: matches.get_many::<Bar>("fail-if").into_iter().flatten().cloned().collect(),
            command: std::env::args().collect::<Vec<_>>().join(" "),
        })
    }
}

fn workload(matches: &ArgMatches) -> Result<Workload, Failure> {
    let name = matches.get_one::<String>("workload").map_or("", String::as_str);
    let mut workload = Workload::find(name).ok_or_else(|| {
        let names: Vec<_> = WORKLOADS.iter().map(|workload| workload.name).collect();
        Failure::Unusable(format!(
            "there is no workload {name:?} (--workload); use one of {}",
            names.join(", ")
        ))
    })?;
    if let Some(objects) = matches.get_one::<u64>("objects") {
        workload.objects = *objects;
    }
    if let Some(size) = matches.get_one::<foxy_base::ByteSize>("size") {
        workload.size = size.0;
    }
    Ok(workload)
}
