//! Arguments and plan of `foxy wpb`.

use crate::arguments::{count, option, switch};
use crate::experiment::{self, Flag, flags};
use crate::peers::single::{self, Single};
use clap::{Arg, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::units::{parse_duration, parse_positive_duration};
use foxy_workload::wpb::{Sizes, Wpb};
use std::net::SocketAddr;
use std::time::Duration;

const QUICK_REQUESTS: u32 = 40;
const QUICK_LATENCY: Duration = Duration::from_millis(30);
pub const CACHE: ByteSize = ByteSize(64 << 20);
/// Time limit of an answer beyond the servers' latency.
const SLACK: Duration = Duration::from_secs(60);

const LONG: &str = "\
Runs the Wisconsin Proxy Benchmark 1.0 on a proxy. Each client sends its requests one after the \
other without think time, each on a new connection (HTTP/1.0). There is a server for four \
clients, and servers wait 3 s before they answer. In phase 1 every file is new. In phase 2 half \
of the requests are for files that the client requested recently, so at most about a quarter of \
all requests can be hits. Each point begins with a control without a cache: the requests of \
phase 1, at URLs whose answers say no-store, so that the proxy neither writes nor finds \
anything. (Cache-Control: no-cache in requests would still have it write every answer.) Every \
byte is checked.

At full scale a point takes half an hour. --latency compresses this: the proxy then looks slower \
by the same factor beside its servers, and tables, pages and records give the scale. A proxy \
must let clients reach 127.0.0.1 (foxy: --allow-destination 127.0.0.0/8).";

pub fn command() -> Command {
    Command::new("wpb")
        .about("Run the Wisconsin Proxy Benchmark on a proxy")
        .long_about(LONG)
        .args(whom())
        .args(single::arguments(&["proxy", "origin", "reverse", "subject"]))
        .args(what())
        .args(flags([Flag::Seed, Flag::Json, Flag::Html, Flag::FailIf("hit_ratio<0.2")]))
}

fn whom() -> Vec<Arg> {
    vec![
        option("proxy", "ADDRESS:PORT", "The proxy")
            .required_unless_present("start")
            .value_parser(value_parser!(SocketAddr)),
        option(
            "origin",
            "ADDRESS:PORT",
            "A server (`foxy origin`), instead of servers started here",
        )
        .value_parser(value_parser!(SocketAddr)),
        switch("reverse", "Send origin-form requests, as to a reverse proxy").requires("origin"),
        option("subject", "NAME", "The proxy's name in the records").default_value("proxy"),
    ]
}

fn what() -> Vec<Arg> {
    vec![
        option("clients", "FIRST..LAST", "Numbers of clients, or one number")
            .default_value("8..96"),
        option("step", "N", "Step between numbers of clients (8)")
            .value_parser(value_parser!(u32).range(1..)),
        option("requests", "N", "Requests per client and phase (200, quick 40)")
            .value_parser(value_parser!(u32).range(1..=1_000_000)),
        option(
            "latency",
            "TIME",
            "Delay of the servers before an answer, such as 30ms (3s, quick 30ms)",
        )
        .value_parser(parse_duration),
        option(
            "sizes",
            "uniform|pareto",
            "Object sizes: 99 % of 0–40 KB and 1 % of 1 MB, or Pareto (1.1, 3 KB)",
        )
        .value_parser(["uniform", "pareto"])
        .default_value("uniform"),
        option("slow-bytes-per-second", "N", "Maximum read rate of a client, as over a modem")
            .value_parser(count()),
        option(
            "cache-size",
            "SIZE",
            "Size of the proxy's cache; warns at points that fetched less than four times as \
             much (with --start 64MiB)",
        )
        .value_parser(value_parser!(ByteSize)),
        option("time-limit", "TIME", "Time limit of an answer (the latency and 60s)")
            .value_parser(parse_positive_duration),
        switch("quick", "Fewer requests and a short latency: about a minute"),
    ]
}

#[derive(Debug)]
pub struct WpbPlan {
    pub target: SocketAddr,
    pub origin: Option<SocketAddr>,
    pub reverse: bool,
    pub subject: String,
    pub clients: Vec<u32>,
    pub knobs: Wpb,
    pub latency: Duration,
    pub slow: Option<u64>,
    pub cache: Option<ByteSize>,
    pub time_limit: Duration,
}

pub fn clients(matches: &ArgMatches) -> Result<Vec<u32>, Failure> {
    let step = matches.get_one("step").copied().unwrap_or(8);
    points(matches.get_one::<String>("clients").expect("has a default"), step)
        .map_err(Failure::Unusable)
}

pub fn plan(
    matches: &ArgMatches,
    clients: Vec<u32>,
    started: Option<(&Single, SocketAddr)>,
) -> WpbPlan {
    let quick = matches.get_flag("quick");
    let latency = matches.get_one("latency").copied();
    let latency =
        latency.unwrap_or(if quick { QUICK_LATENCY } else { foxy_lab::load::wpb::LATENCY });
    let defaults = Wpb::new(1);
    let requests = if quick { QUICK_REQUESTS } else { defaults.requests };
    let pareto = matches.get_one::<String>("sizes").is_some_and(|sizes| sizes == "pareto");
    WpbPlan {
        target: started.map_or_else(
            || *matches.get_one("proxy").expect("required"),
            |(single, _)| single.address(),
        ),
        origin: started.map(|(_, origin)| origin).or_else(|| matches.get_one("origin").copied()),
        reverse: started.is_some() || matches.get_flag("reverse"),
        subject: started.map_or_else(
            || matches.get_one::<String>("subject").expect("has a default").clone(),
            |(single, _)| single.name().to_owned(),
        ),
        clients,
        knobs: Wpb {
            requests: matches.get_one("requests").copied().unwrap_or(requests),
            sizes: if pareto { Sizes::Pareto } else { Sizes::Uniform },
            seed: experiment::seed(matches),
            ..defaults
        },
        latency,
        slow: matches.get_one("slow-bytes-per-second").copied(),
        cache: matches.get_one("cache-size").copied().or(started.map(|_| CACHE)),
        time_limit: matches.get_one("time-limit").copied().unwrap_or(latency + SLACK),
    }
}

fn points(text: &str, step: u32) -> Result<Vec<u32>, String> {
    const MOST: u32 = 10_000;
    let refuse = |what: &str| {
        format!(
            "--clients {text}: {what}; write a range such as 8..96, or one number, up to {MOST}"
        )
    };
    let number = |part: &str| part.trim().parse().ok().filter(|number| (1..=MOST).contains(number));
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(refuse("not a range of numbers"));
    };
    if first > last {
        Err(refuse("ends before it begins"))
    } else {
        Ok((first..=last).step_by(step as usize).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_clients_are_read_and_those_without_a_number_refused() {
        assert_eq!(points("8..96", 8).map(|all| (all.len(), all[11])), Ok((12, 96)));
        assert_eq!(points("8..20", 8), Ok(vec![8, 16]));
        assert_eq!(points("5", 8), Ok(vec![5]));
        for wrong in ["", "0..", "..8", "0..8", "96..8", "8..x", "8...9", "-1", "1..10001"] {
            let text = points(wrong, 8).expect_err(wrong);
            assert!(
                text.starts_with(&format!("--clients {wrong}: ")) && !text.contains('\n'),
                "{text}"
            );
        }
    }
}
