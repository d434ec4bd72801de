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
use foxy_lab::leap::{PASSTHROUGH, Pace};
use foxy_workload::trace::synthetic::MODELS;
use std::net::SocketAddr;
use std::str::FromStr;

const LONG: &str = "Sends each request of a workload or a trace to every proxy, and to the origin itself, and judges the answers beside \
each other: LEAP's Multiplier (Davison and Wu) as a replay. The order turns from request to request, the copies are sent a little \
after each other, each on a connection of its own unless --connections says otherwise. Verdicts: OK, STATUS_CODE_MISMATCH, HEADER_MISMATCH, BODY_MISMATCH, INCOMPLETE, \
TIMEOUT, STALE, by the origin's own answer; with --origin, by what more than half of the proxies agree about.\n\n\
Without --origin and --direct an origin is started here; a trace's URLs are then objects of the recorded sizes at it, so that nothing \
goes to the network. A proxy must let clients reach 127.0.0.1 (foxy: --allow-destination 127.0.0.0/8). --live asks for what the \
trace names instead: GETs only, 10 a second unless told otherwise. Give one address under two names to see what is noise.\n\n\
--listen takes the requests of clients, who get the direct path's answer (without one the first proxy's) as it comes, until a signal, \
--requests or --for ends it. Offline they may ask for loopback and private addresses and localhost only; --live lets them name any \
server, GETs only, 10 a second unless told otherwise, and --direct is then a live Collector.\n\n\
--collector starts a Collector (see foxy collector) between proxies and origin: one exchange with the origin for all, each pays for it. Every \
proxy must have its parent there: the first at the port after the given one, the second at the next.\n\n\
--start starts the proxies too, as foxy compare does, each with the Collector as its parent, and one that stores nothing beside them; a proxy \
that is named twice is started twice, and what the two differ by is noise. What is not installed or does not come up is said, and left out.\n\n\
HTTPS: with --tls the origin is an https one, one that is started here too. Answers can be judged, and cached, where the proxy ends TLS, by \
interception or as a reverse proxy; --ca names whom copies trust. With --ca-dir clients may open tunnels and speak TLS, which ends here by \
certificates of that authority; copies trust it too, and a Collector and a pass-through proxy that are started here show it. With --start each proxy \
ends TLS itself and speaks it with the Collector, by an authority of this run unless --ca-dir names one (for 127.0.0.0/8 and localhost); one that ends \
no TLS, or with --protocol 2 speaks no HTTP/2, is said, and left out.\n\n\
Clients may speak HTTP/1 or HTTP/2; --protocol 2 asks the proxies in HTTP/2.\n\n\
--check measures LEAP itself, and starts all it needs: overhead (what it adds, added_median_ms), fairness (identical proxies and false alarms, \
identical_proxies_max_difference_ms, false_alarm_share) or replay (hits at the Collector beside their misses, hit_minus_miss_median_ms).";

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
        option("proxy", "NAME=ADDRESS:PORT", "A proxy; can be repeated")
            .required_unless_present_any(["check", "start"])
            .action(ArgAction::Append)
            .value_parser(value_parser!(NamedProxy)),
        switch("passthrough", "Add a proxy without a cache, started here, as the path passthrough")
            .conflicts_with("live"),
        switch("reverse", "Send origin-form requests, as to reverse proxies"),
        option(
            "direct",
            "ADDRESS:PORT",
            "The origin, such as `foxy origin`; it also gets each request directly",
        )
        .value_parser(address()),
        option("origin", "ADDRESS:PORT", "The origin in the URLs; it gets no direct requests")
            .value_parser(address())
            .conflicts_with("direct"),
        option(
            "collector",
            "ADDRESS:PORT",
            "Start a Collector here for the direct path; the ports after it are the proxies' \
             parents",
        )
        .value_parser(address())
        .conflicts_with_all(["origin", "live"]),
        option(
            "network-cost",
            "TIME",
            "With a Collector here, time added per round trip to the origin: one to connect, \
             one to the first byte",
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
        option("like", "TRACE", "Replay a synthetic trace that resembles this published trace")
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
            "Number of requests (1000 of a workload, all of a trace or of clients)",
        )
        .value_parser(count()),
    ]
}

fn how() -> Vec<Arg> {
    vec![
        option("rate", "N", "Requests per second, started without waiting for answers")
            .value_parser(positive)
            .conflicts_with_all(["recorded", "clients"]),
        logs::recorded().conflicts_with("clients"),
        option(
            "clients",
            "N",
            "Without --rate, concurrent requests; the next starts when all paths are done (1)",
        )
        .value_parser(value_parser!(u32).range(1..=10_000)),
        option("stagger", "TIME", "Delay between the copies of a request")
            .default_value("1ms")
            .value_parser(parse_duration),
        option("time-limit", "TIME", "Time limit of an answer")
            .default_value("30s")
            .value_parser(parse_positive_duration),
        option(
            "most-in-flight",
            "N",
            "Maximum number of concurrent requests; more are refused and counted",
        )
        .default_value("256")
        .value_parser(value_parser!(u32).range(1..=10_000)),
        path("log", "FILE", "Write a line per answer in the format of the paper's Multiplier"),
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
            return Err(refuse("has a name of other than letters, digits, '-', '_' and '.'"));
        }
        if matches!(name, "direct" | "leap") {
            return Err(refuse("has a name that means something else here"));
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
            let what = format!("--proxy {name}=…: there are two of that name; give each its own");
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

pub fn pace(matches: &ArgMatches) -> Pace {
    let given = |name| matches.get_one::<f64>(name).copied();
    match (given("rate"), given("recorded"), matches.get_one::<u32>("clients")) {
        (Some(rate), _, _) => Pace::Rate(rate),
        (_, Some(times), _) => Pace::Recorded(times),
        (_, _, Some(&clients)) => Pace::Closed(usize::try_from(clients).unwrap_or(1)),
        _ if matches.get_flag("live") => Pace::Rate(LIVE_RATE),
        _ => Pace::Closed(1),
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
        assert_eq!(pace_of(&[]), Pace::Rate(10.0));
        assert_eq!(pace_of(&["--rate", "0.5"]), Pace::Rate(0.5));
        assert_eq!(pace_of(&["--recorded"]), Pace::Recorded(1.0));
        assert_eq!(pace_of(&["--clients", "3"]), Pace::Closed(3));
    }
}
