//! Arguments of `foxy leap`.

use super::secure;
use super::started::{self, Chosen, QUICK};
use super::{check, clients};
use crate::arguments::{count, option, path, positive, switch};
use crate::experiment::{Flag, flags};
use crate::{logs, workloads};
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::units::{parse_duration, parse_positive_duration};
use foxy_lab::leap::{LeapPace, PASSTHROUGH};
use foxy_workload::trace::synthetic::MODELS;
use std::net::SocketAddr;
use std::str::FromStr;

const LONG: &str = "\
Send each request of a workload or a trace to every proxy and directly to the origin, and \
compare the answers. This is the Multiplier of LEAP (Davison and Wu). Each way to the origin is \
a path: one path for each proxy, and the direct path. The order of the paths rotates. The \
command sends the copies of a request at short intervals, each on a new connection unless \
--connections is given. The verdicts are OK, STATUS_CODE_MISMATCH, HEADER_MISMATCH, \
BODY_MISMATCH, INCOMPLETE, TIMEOUT and STALE. An answer is correct if it agrees with the direct \
answer of the origin. With --origin it must agree with the answer of more than half of the \
proxies.

Without --origin and --direct the command starts an origin. The URLs of a trace then become \
objects of the recorded sizes at this origin, so no request goes to the network. A proxy must \
let clients reach 127.0.0.1 (foxy: --allow-destination 127.0.0.0/8). With --live, requests go to \
the servers in the trace: only GET, 10 per second by default. Give the same address under two \
names to measure the noise of the comparison.

With --listen the requests come from clients. A client receives the answer of the direct path \
as it arrives, or without a direct path the answer of the first proxy. A signal, --requests or \
--for ends the run. Offline, clients may request only loopback and private addresses and \
localhost. With --live clients may request any server: only GET, 10 per second by default. \
--direct must then be a live Collector.

--collector starts a Collector (see foxy collector) between proxies and origin. One exchange \
with the origin then serves all proxies, and all proxies wait equally long. The first proxy must \
use the port after the given port as its parent, and the second proxy the port after that.

--start also starts the proxies, as foxy compare does, with the Collector as their parent. It \
also starts a proxy without a cache. If you name a proxy twice, the command starts it twice, and \
the difference between both is noise. A proxy that is not installed or does not start is \
reported and left out.

HTTPS: --tls makes the origin an https origin. The command can judge answers only if the proxy \
terminates TLS, by interception or as a reverse proxy. --ca names the authorities that the copies \
trust. With --ca-dir clients may open CONNECT tunnels and use TLS, which this command terminates \
with certificates of this authority. The copies also trust this authority. A Collector and a \
pass-through proxy of this command use this authority. With --start each proxy terminates TLS \
itself and uses TLS to the Collector. The authority is then made for this run, unless --ca-dir \
names an authority (for 127.0.0.0/8 and localhost). A proxy that cannot terminate TLS, or with \
--protocol 2 cannot speak HTTP/2, is reported and left out.

Clients may speak HTTP/1 or HTTP/2. --protocol 2 sends HTTP/2 to the proxies.

--check measures LEAP itself, and starts everything that the check needs. overhead measures the \
added time (added_median_ms). fairness compares identical proxies \
(identical_proxies_max_difference_ms, false_alarm_share). replay compares the times of Collector \
hits with the times of their misses (hit_minus_miss_median_ms).";

pub const REQUESTS: u64 = 1000;
pub const LIVE_RATE: f64 = 10.0;

pub fn command() -> Command {
    Command::new("leap")
        .about("Send the same requests to several proxies at once, and compare times and answers")
        .long_about(LONG)
        .args(whom())
        .args(what())
        .args(how())
        .args(secure::arguments())
        .args(started::arguments())
        .args(clients::arguments())
        .args(check::arguments())
        .args(flags([Flag::Seed, Flag::Json, Flag::Html, Flag::FailIf("verdict_stale>0")]))
        .group(ArgGroup::new("stream").args(["trace", "workload", "like"]))
        .group(ArgGroup::new("named").args(["trace", "listen"]))
        .group(ArgGroup::new("collecting").args(["collector", "start"]))
        .after_help(workloads::help())
}

fn whom() -> Vec<Arg> {
    let address = || value_parser!(SocketAddr);
    vec![
        option("proxy", "NAME=ADDRESS:PORT", "Name and address of a proxy; can be repeated")
            .required_unless_present_any(["check", "start"])
            .action(ArgAction::Append)
            .value_parser(value_parser!(NamedProxy)),
        switch(
            "passthrough",
            "Start a proxy without a cache, and compare it as the path named passthrough",
        )
        .conflicts_with("live"),
        switch("reverse", "Send origin-form requests, as to reverse proxies"),
        option(
            "direct",
            "ADDRESS:PORT",
            "Origin in the URLs, such as `foxy origin`, which also receives each request directly",
        )
        .value_parser(address()),
        option("origin", "ADDRESS:PORT", "Origin in the URLs, which receives no direct requests")
            .value_parser(address())
            .conflicts_with("direct"),
        option(
            "collector",
            "ADDRESS:PORT",
            "Start a Collector at this address for the direct path, and at the next ports as the \
             parent of the proxies",
        )
        .value_parser(address())
        .conflicts_with_all(["origin", "live"]),
        option(
            "network-cost",
            "TIME",
            "With a Collector of this command, time added for each round trip to the origin: one \
             trip to connect, one to the first byte [default: none]",
        )
        .requires("collecting")
        .value_parser(parse_duration),
    ]
}

fn what() -> Vec<Arg> {
    vec![
        workloads::argument().default_value("zipf"),
        logs::trace(),
        logs::format().requires("trace"),
        option("like", "TRACE", "Send a synthetic trace that resembles this published trace")
            .value_parser(MODELS.iter().map(|model| model.name).collect::<Vec<_>>()),
        switch(
            "live",
            "Send requests to the servers that the trace or the clients name, over the network",
        )
        .requires("named")
        .conflicts_with_all(["origin", "reverse"]),
        option(
            "requests",
            "N",
            "Number of requests [default: 1000 of a workload, all of a trace or of clients]",
        )
        .value_parser(count()),
    ]
}

fn how() -> Vec<Arg> {
    vec![
        option("rate", "N", "Requests per second, sent without waiting for answers")
            .value_parser(positive)
            .conflicts_with_all(["recorded", "clients"]),
        logs::recorded().conflicts_with("clients"),
        option(
            "clients",
            "N",
            "Number of concurrent requests; the next request starts when all paths have answered [default: 1]",
        )
        .value_parser(value_parser!(u32).range(1..=10_000)),
        option("stagger", "TIME", "Delay between the copies of a request")
            .default_value("1ms")
            .value_parser(parse_duration),
        option("time-limit", "TIME", "Time limit for an answer")
            .default_value("30s")
            .value_parser(parse_positive_duration),
        option(
            "most-in-flight",
            "N",
            "Maximum number of concurrent requests; further requests are refused and counted",
        )
        .default_value("256")
        .value_parser(value_parser!(u32).range(1..=10_000)),
        path("log", "FILE", "Write a line for each answer to this file, in the format of the paper's Multiplier"),
    ]
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedProxy {
    pub name: String,
    pub address: SocketAddr,
}

impl FromStr for NamedProxy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = |what: &str| {
            format!("{text:?} {what}; write NAME=ADDRESS:PORT, such as squid=127.0.0.1:3128")
        };
        let (name, address) = text.split_once('=').ok_or_else(|| refuse("has no name"))?;
        let usable = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || !name.bytes().all(usable) {
            return Err(refuse(
                "has a name with characters other than letters, digits, '-', '_' and '.'",
            ));
        }
        if matches!(name, "direct" | "leap") {
            return Err(refuse("has a reserved name"));
        }
        let address = address.parse().map_err(|_| refuse("has no address with a port"))?;
        Ok(Self { name: name.into(), address })
    }
}

pub fn proxies(matches: &ArgMatches, chosen: &[Chosen]) -> Result<Vec<NamedProxy>, Failure> {
    let mut proxies: Vec<NamedProxy> = Vec::new();
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let started: Vec<NamedProxy> = chosen
        .iter()
        .map(|chosen| NamedProxy { name: chosen.name.clone(), address: nowhere })
        .collect();
    let passthrough = NamedProxy { name: PASSTHROUGH.into(), address: nowhere };
    let passthrough = has_passthrough(matches).then_some(&passthrough);
    let given = matches.get_many::<NamedProxy>("proxy").into_iter().flatten();
    for proxy in given.chain(&started).chain(passthrough) {
        if proxies.iter().any(|known| known.name == proxy.name) {
            let name = &proxy.name;
            let what = format!(
                "--proxy {name}=…: two proxies have this name; give each proxy its own name"
            );
            return Err(Failure::Unusable(what));
        }
        proxies.push(proxy.clone());
    }
    Ok(proxies)
}

pub fn has_passthrough(matches: &ArgMatches) -> bool {
    matches.get_flag("passthrough") || matches.contains_id("start")
}

pub fn is_reverse(matches: &ArgMatches) -> bool {
    matches.get_flag("reverse") || matches.contains_id("start")
}

pub fn most(matches: &ArgMatches) -> Option<u64> {
    matches.get_one("requests").copied().or_else(|| matches.get_flag("quick").then_some(QUICK))
}

pub fn pace(matches: &ArgMatches) -> LeapPace {
    let given = |name| matches.get_one::<f64>(name).copied();
    match (given("rate"), given("recorded"), matches.get_one::<u32>("clients")) {
        (Some(rate), _, _) => LeapPace::Rate(rate),
        (_, Some(times), _) => LeapPace::Recorded(times),
        (_, _, Some(&clients)) => LeapPace::Closed(usize::try_from(clients).unwrap_or(1)),
        _ if matches.get_flag("live") => LeapPace::Rate(LIVE_RATE),
        _ => LeapPace::Closed(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proxies_have_a_name_and_an_address() {
        let named = "squid-5.7=127.0.0.1:3128".parse::<NamedProxy>().expect("one");
        assert_eq!((named.name.as_str(), named.address.port()), ("squid-5.7", 3128));
        for wrong in [
            "127.0.0.1:1",
            "=127.0.0.1:1",
            "a b=127.0.0.1:1",
            "direct=127.0.0.1:1",
            "a=127.0.0.1",
            "",
        ] {
            let text = wrong.parse::<NamedProxy>().expect_err(wrong);
            assert!(text.contains("write NAME=ADDRESS:PORT") && !text.contains('\n'), "{text}");
        }
    }

    #[test]
    fn live_origins_get_ten_requests_a_second_unless_told_otherwise() {
        let pace_of = |more: &[&str]| {
            let words =
                [&["leap", "--proxy", "a=127.0.0.1:1", "--trace", "-", "--live"], more].concat();
            pace(&command().try_get_matches_from(words).expect("usable"))
        };
        assert_eq!(pace_of(&[]), LeapPace::Rate(10.0));
        assert_eq!(pace_of(&["--rate", "0.5"]), LeapPace::Rate(0.5));
        assert_eq!(pace_of(&["--recorded"]), LeapPace::Recorded(1.0));
        assert_eq!(pace_of(&["--clients", "3"]), LeapPace::Closed(3));
    }
}
