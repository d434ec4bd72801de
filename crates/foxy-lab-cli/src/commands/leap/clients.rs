//! `foxy leap --listen`: sends copies of real clients' requests to the proxies, instead of requests
//! from a workload or a trace.

use super::arguments::{LIVE_RATE, is_reverse, most};
use crate::arguments::{count, option};
use crate::certificates;
use clap::{Arg, ArgMatches, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::terminal;
use foxy_cli::units::parse_positive_duration;
use foxy_lab::leap::Front;
use foxy_lab::leap::collector::Reach;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

pub fn arguments() -> Vec<Arg> {
    vec![
        option(
            "listen",
            "ADDRESS:PORT",
            "Accept requests from clients at this address, as a proxy or as the site itself",
        )
        .value_parser(value_parser!(SocketAddr))
        .conflicts_with_all(["workload", "like", "recorded", "clients"]),
        option("for", "TIME", "Accept no more requests after this time")
            .value_parser(parse_positive_duration)
            .requires("listen"),
        option(
            "most-connections",
            "N",
            "Maximum number of client connections; further connections are refused and counted [default: 1024]",
        )
        .value_parser(count())
        .requires("listen"),
    ]
}

pub fn check(matches: &ArgMatches) -> Result<(), Failure> {
    let (live, listen) = (matches.get_flag("live"), matches.contains_id("listen"));
    let refuse = |what: &str| Err(Failure::Unusable(what.into()));
    if listen && matches.contains_id("rate") && !live {
        return refuse(
            "--rate: with --listen the clients decide when they send requests; leave --rate out, or give --live, whose requests it limits",
        );
    }
    if live && !listen && matches.contains_id("direct") {
        return refuse(
            "--direct: with --live the requests of a trace go to the servers in the trace; leave out --direct or --live",
        );
    }
    Ok(())
}

pub fn front(matches: &ArgMatches, origin: Option<SocketAddr>) -> Result<Front, Failure> {
    let address =
        *matches.get_one::<SocketAddr>("listen").expect("it is there when clients are taken");
    let listener = TcpListener::bind(address).map_err(|error| {
        Failure::Failed(format!(
            "leap: --listen {address}: cannot listen: {error}; choose another address"
        ))
    })?;
    let rate = matches.get_one::<f64>("rate").copied().unwrap_or(LIVE_RATE);
    let live = matches.get_flag("live");
    let connections = matches.get_one::<u64>("most-connections").copied().unwrap_or(1024);
    Ok(Front {
        listener,
        authority: origin.filter(|_| !live).map(|origin| origin.to_string()),
        scheme: super::secure::scheme(matches),
        certificates: certificates::of(matches)?,
        reach: if live { Reach::Live { any_method: false, rate } } else { Reach::Offline },
        any_host: is_reverse(matches) || matches.contains_id("collector"),
        most_connections: usize::try_from(connections).unwrap_or(usize::MAX),
        requests: most(matches),
        time: matches.get_one::<Duration>("for").copied(),
    })
}

pub fn announce(front: &Front) {
    let address =
        front.listener.local_addr().map_or_else(|_| "?".into(), |address| address.to_string());
    let reach = match front.reach {
        Reach::Live { rate, .. } => {
            format!("LIVE: any server that clients name, only GET, {rate} requests per second")
        }
        Reach::Offline if front.any_host => {
            "offline: any host, because each proxy forwards to its own origin".into()
        }
        Reach::Offline => {
            "offline: loopback and private addresses and localhost; --live uses the network".into()
        }
    };
    let origin = front
        .authority
        .as_ref()
        .map(|origin| format!("; requests without a host in the URL go to {origin}"));
    let tls = front
        .certificates
        .as_ref()
        .map_or("", |_| "; TLS, with or without CONNECT, by certificates of --ca-dir");
    let origin = origin.unwrap_or_default();
    terminal::print(&format!("leap: clients at http://{address}/ {reach}{origin}{tls}"));
}
