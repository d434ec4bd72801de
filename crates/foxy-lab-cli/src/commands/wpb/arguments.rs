//! Arguments of `foxy wpb`, and the plan of the benchmark.

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
/// A request fails if its answer takes longer than the delay of the benchmark's servers plus this
/// time.
const SLACK: Duration = Duration::from_secs(60);

const LONG: &str = "\
Run the Wisconsin Proxy Benchmark 1.0 on a proxy. Each client sends its requests one after the \
other without think time, and opens a new connection for each request (HTTP/1.0). There is one \
server for every four clients, and servers wait 3 s before they answer. In phase 1 every file is \
new. In phase 2 half of the requests are for files that the client requested recently. So at \
most about a quarter of all requests can be hits.

Each number of clients is one point. A point starts with a control measurement without a cache: \
it sends the requests of phase 1 to URLs whose answers say no-store. So the proxy writes nothing \
and finds nothing. (With Cache-Control: no-cache in the requests, the proxy would still write \
every answer.) The command checks every byte.

At full scale a point takes half an hour. --latency shortens the servers' delay and so the run. \
Compared with its servers, the proxy then appears slower by the same factor. Tables, pages and \
records show this scale. A proxy must let clients reach 127.0.0.1 (foxy: --allow-destination \
127.0.0.0/8).";

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
        option("proxy", "ADDRESS:PORT", "Address of the proxy to measure")
            .required_unless_present("start")
            .value_parser(value_parser!(SocketAddr)),
        option(
            "origin",
            "ADDRESS:PORT",
            "Server to use, such as `foxy origin` [default: servers that this command starts]",
        )
        .value_parser(value_parser!(SocketAddr)),
        switch("reverse", "Send origin-form requests, as to a reverse proxy").requires("origin"),
        option("subject", "NAME", "Name of the proxy in the records").default_value("proxy"),
    ]
}

fn what() -> Vec<Arg> {
    vec![
        option("clients", "FIRST..LAST", "Range of numbers of clients to measure, or one number")
            .default_value("8..96"),
        option("step", "N", "Step between numbers of clients [default: 8]")
            .value_parser(value_parser!(u32).range(1..)),
        option("requests", "N", "Requests per client and phase [default: 200, with --quick 40]")
            .value_parser(value_parser!(u32).range(1..=1_000_000)),
        option(
            "latency",
            "TIME",
            "Delay of the servers before an answer [default: 3s, with --quick 30ms]",
        )
        .value_parser(parse_duration),
        option(
            "sizes",
            "uniform|pareto",
            "Object sizes: uniform (99 % from 0 to 40 KB, 1 % of 1 MB), or pareto (shape 1.1, at least 3 KB)",
        )
        .value_parser(["uniform", "pareto"])
        .default_value("uniform"),
        option("slow-bytes-per-second", "N", "Maximum read rate of each client, as over a modem [default: unlimited]")
            .value_parser(count()),
        option(
            "cache-size",
            "SIZE",
            "Size of the proxy's cache; the command warns if a point fetched less than four times \
             this size [default: with --start 64MiB]",
        )
        .value_parser(value_parser!(ByteSize)),
        option("time-limit", "TIME", "Time limit for an answer [default: --latency plus 60s]")
            .value_parser(parse_positive_duration),
        switch("quick", "Send fewer requests at a short latency; the run takes about a minute"),
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
        return Err(refuse("is not a range of numbers"));
    };
    if first > last {
        Err(refuse("the last number is below the first"))
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
