//! Arguments of `foxy collector`, and the settings that they describe.

use crate::arguments::{count, option, path, switch};
use crate::experiment::{Flag, flags};
use crate::{certificates, collector, trust};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::units::{parse_duration, parse_positive_duration};
use foxy_lab::leap::collector::{CollectorOptions, Listen, MOST_PROXIES, Reach, SpoolFile};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

const LONG: &str = "\
Serve as the parent proxy of the compared proxies. This is the Collector of LEAP (Davison and \
Wu). The Collector sends each request to the origin once for all proxies, including POST, \
private answers, cookies and errors. Every proxy waits as long as the first proxy waited: for \
one DNS lookup, the connection, the first byte, and the transfer. The Collector keeps answers \
that may not be stored for 180 seconds. It opens one connection per exchange with the origin. It \
does not repeat an exchange after an error, and never serves a later proxy before the first.

The address that a proxy connects to identifies the proxy. Give each proxy its own --listen \
address, and configure this address as the proxy's only parent. Proxies may speak HTTP/1 or \
HTTP/2. Only this machine and private networks may connect.

HTTPS: with --ca-dir each address also accepts CONNECT and TLS. The Collector terminates TLS \
with certificates of this authority, which the proxies must trust (foxy: --origin-ca). The \
Collector requests https URLs over TLS, and trusts the origin's certificate by --ca or the \
system's authorities. The TLS handshake counts as a part of the connection.

OFFLINE by default: the Collector sends requests only to loopback and private addresses and \
localhost, without DNS lookups. With --origin it sends the requests for every host to this \
synthetic origin. With --live it sends requests over the network to the servers that they name: \
only GET unless --any-method is given, and 10 exchanges per second unless --live-rate is given. \
The Collector runs until a signal stops it, and then prints its counts.";

const LIVE_RATE: f64 = 10.0;

pub fn command() -> Command {
    Command::new("collector")
        .about(
            "Serve as the parent of compared proxies: one exchange with the origin serves all \
             proxies, and all proxies wait equally long",
        )
        .long_about(LONG)
        .args(whom())
        .args(costs())
        .args(limits())
        .args([path(
            "log",
            "FILE",
            "Write a line for each answer to this file, in the format of Squid's access.log",
        )])
        .args(flags([Flag::Json, Flag::FailIf("hit_minus_miss_p90_ms>2")]))
}

fn whom() -> Vec<Arg> {
    vec![
        option(
            "listen",
            "[NAME=]ADDRESS:PORT",
            "Address at which one proxy connects; can be repeated",
        )
        .action(ArgAction::Append)
        .value_parser(parse_listen)
        .default_value("127.0.0.1:3180"),
        option(
            "origin",
            "ADDRESS:PORT",
            "Synthetic origin that receives the requests for every host",
        )
        .value_parser(value_parser!(SocketAddr)),
        certificates::argument(),
        trust::argument(),
        switch("live", "Send requests to the servers that they name, over the network")
            .conflicts_with("origin"),
        switch("any-method", "With --live, also forward POST and all other methods than GET")
            .requires("live"),
        switch(
            "origin-http2",
            "Use HTTP/2 with origins: by prior knowledge without TLS, by ALPN with TLS",
        ),
        option("live-rate", "N", "With --live, exchanges with origins per second [default: 10]")
            .value_parser(parse_rate)
            .requires("live"),
    ]
}

fn costs() -> Vec<Arg> {
    let time =
        |name, help| option(name, "TIME", help).default_value("0ms").value_parser(parse_duration);
    vec![
        time(
            "dns-cost",
            "Time added to each proxy's first request to a host, on top of the measured DNS lookup",
        ),
        time(
            "network-cost",
            "Time added for each round trip to the origin: one trip to connect, one to the first \
             byte",
        ),
        time("time-limit", "Time after which an exchange without progress fails")
            .default_value("60s")
            .value_parser(parse_positive_duration),
    ]
}

fn limits() -> Vec<Arg> {
    let size = |name, help| option(name, "SIZE", help).value_parser(value_parser!(ByteSize));
    vec![
        option(
            "most-connections",
            "N",
            "Maximum number of connections of proxies; the Collector refuses and counts further connections",
        )
        .default_value("1024")
        .value_parser(count()),
        option(
            "most-fetches",
            "N",
            "Maximum number of concurrent exchanges with origins; the Collector refuses and counts further requests",
        )
        .default_value("256")
        .value_parser(count()),
        size("memory", "Most memory for heads and bodies of answers").default_value("64MiB"),
        size("spool", "Most disk space for further bodies, in an unnamed file; 0 uses no file").default_value("4GiB"),
        path("spool-dir", "DIR", "Folder of the unnamed file of --spool [default: the system's temporary folder]"),
    ]
}

fn parse_listen(text: &str) -> Result<Listen, String> {
    let refuse = || {
        format!(
            "{text:?} is not an address with a port; write ADDRESS:PORT or NAME=ADDRESS:PORT, such as squid=127.0.0.1:3181"
        )
    };
    let (name, address) =
        text.split_once('=').map_or((None, text), |(name, rest)| (Some(name), rest));
    let usable = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
    };
    if !name.is_none_or(usable) {
        return Err(refuse());
    }
    let address = address.parse().map_err(|_| refuse())?;
    Ok(Listen { name: name.map(str::to_owned), address })
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| (0.001..=100_000.0).contains(number));
    number.ok_or_else(|| format!("{text:?} is not a number from 0.001 to 100000"))
}

pub fn options(matches: &ArgMatches) -> Result<CollectorOptions, Failure> {
    let listen: Vec<Listen> = matches.get_many("listen").into_iter().flatten().cloned().collect();
    if listen.len() > MOST_PROXIES {
        let text =
            format!("--listen: {} addresses are given; give at most {MOST_PROXIES}", listen.len());
        return Err(Failure::Unusable(text));
    }
    let origin = matches.get_one::<SocketAddr>("origin").copied();
    if let Some(origin) = origin.filter(|origin| !Reach::Offline.covers(origin.ip())) {
        return Err(Failure::Unusable(format!(
            "--origin {origin}: an offline Collector sends requests only to loopback and private addresses; name such an \
             address, or use --live to reach the servers that requests name"
        )));
    }
    let rate = matches.get_one::<f64>("live-rate").copied().unwrap_or(LIVE_RATE);
    let reach = match matches.get_flag("live") {
        true => Reach::Live { any_method: matches.get_flag("any-method"), rate },
        false => Reach::Offline,
    };
    let time = |name: &str| *matches.get_one::<Duration>(name).expect("has a default");
    let number = |name: &str| {
        usize::try_from(*matches.get_one::<u64>(name).expect("has a default")).unwrap_or(usize::MAX)
    };
    let size = |name: &str| *matches.get_one::<ByteSize>(name).expect("has a default");
    Ok(CollectorOptions {
        reach,
        origin,
        name_cost: time("dns-cost"),
        round_trip: time("network-cost"),
        time_limit: time("time-limit"),
        certificates: certificates::of(matches)?,
        trust: trust::read(matches, None)?,
        origin_http2: matches.get_flag("origin-http2"),
        most_connections: number("most-connections"),
        most_fetches: number("most-fetches"),
        memory: usize::try_from(size("memory").0).unwrap_or(usize::MAX),
        file: spool(matches, size("spool"))?,
        ..CollectorOptions::new(listen)
    })
}

fn spool(matches: &ArgMatches, size: ByteSize) -> Result<Option<SpoolFile>, Failure> {
    if size.0 == 0 {
        return Ok(None);
    }
    let folder =
        matches.get_one::<PathBuf>("spool-dir").cloned().unwrap_or_else(std::env::temp_dir);
    collector::spool(&folder, size).map(Some).map_err(|error| {
        let folder = folder.display();
        Failure::Unusable(format!(
            "--spool-dir {folder}: no file can be created in this folder: {error}; name another folder"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(more: &[&str]) -> Result<CollectorOptions, Failure> {
        let words = [&["collector", "--spool", "0"], more].concat();
        options(&command().try_get_matches_from(words).expect("usable"))
    }

    #[test]
    fn it_is_offline_unless_told_otherwise_and_live_is_get_at_ten_a_second() {
        let reach = |more: &[&str]| of(more).expect("usable").reach;
        assert_eq!(reach(&[]), Reach::Offline);
        assert_eq!(reach(&["--live"]), Reach::Live { any_method: false, rate: 10.0 });
        let more = ["--live", "--any-method", "--live-rate", "2.5"];
        assert_eq!(reach(&more), Reach::Live { any_method: true, rate: 2.5 });
        assert!(command().try_get_matches_from(["collector", "--any-method"]).is_err());
        assert!(of(&["--origin", "192.0.2.1:80"]).is_err());
    }

    #[test]
    fn places_have_an_address_and_may_have_a_name() {
        let listen =
            of(&["--listen", "squid=127.0.0.1:1", "--listen", "[::1]:2"]).expect("usable").listen;
        assert_eq!((listen[0].name.as_deref(), listen[0].address.port()), (Some("squid"), 1));
        assert_eq!((listen[1].name.as_deref(), listen[1].address.port()), (None, 2));
        for wrong in ["127.0.0.1", "=127.0.0.1:1", "a b=127.0.0.1:1", "squid="] {
            assert!(
                parse_listen(wrong).is_err_and(|text| text.contains("squid=127.0.0.1:3181")),
                "{wrong}"
            );
        }
    }
}
