//! The origin that a command starts on this machine, and the name server of `--dns` that resolves
//! the names of the origin.

use crate::arguments::option;
use clap::{Arg, ArgMatches, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::units::parse_duration;
use foxy_lab::load::name_server::{NameServer, NameServerError, NameServerOptions, QuestionCounts};
use foxy_lab::{Origin, OriginOptions};
use foxy_report::{Measure, Record};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

pub fn start(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_servers(here(), servers).map_err(|error| failed(command, servers, &error))
}

pub fn start_tls(command: &str, servers: u32) -> Result<Origin, Failure> {
    Origin::start_tls(here(), servers).map_err(|error| failed(command, servers, &error))
}

fn here() -> OriginOptions {
    OriginOptions { listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), threads: 1 }
}

fn failed(command: &str, servers: u32, error: &io::Error) -> Failure {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse if servers > 1 => {
            format!(
                "this machine has no {servers} consecutive free ports; stop programs that listen \
                 on ports"
            )
        }
        io::ErrorKind::AddrInUse => {
            "this machine has no free port; wait, or widen net.ipv4.ip_local_port_range".into()
        }
        _ => error.to_string(),
    };
    Failure::Failed(format!("{command}: the origin cannot start: {why}"))
}

/// Default zone of the name server. Names in `.test` are reserved for tests (RFC 6761).
pub const ZONE: &str = "origin.test";
const NAME_LIFETIME: Duration = Duration::from_secs(3600);

pub fn name_server_flags() -> [Arg; 3] {
    [
        option(
            "dns",
            "ADDRESS:PORT",
            "Serve DNS at this UDP address; every name in the zone origin.test has the origin's \
             address",
        )
        .value_parser(value_parser!(SocketAddr)),
        option(
            "dns-cost",
            "TIME",
            "Mean delay of a DNS answer; the delay of each name is from 0.5 to 1.5 times this mean \
             [default: 30ms]",
        )
        .value_parser(parse_duration)
        .requires("dns"),
        option("dns-lifetime", "TIME", "Lifetime of DNS answers [default: 1h]")
            .value_parser(parse_duration)
            .requires("dns"),
    ]
}

pub fn start_name_server(
    matches: &ArgMatches,
    origin: Option<&Origin>,
) -> Result<Option<NameServer>, Failure> {
    let Some((&listen, origin)) = matches.get_one::<SocketAddr>("dns").zip(origin) else {
        return Ok(None);
    };
    let address = origin.address().ip();
    if address.is_unspecified() {
        let text = format!(
            "--dns {listen}: names get the origin's address, but clients cannot connect to \
             {address}; give another address with --listen"
        );
        return Err(Failure::Unusable(text));
    }
    let time = |name, default| matches.get_one(name).copied().unwrap_or(default);
    let options = NameServerOptions {
        listen,
        zone: ZONE.into(),
        address,
        cost: time("dns-cost", Duration::from_millis(30)),
        lifetime: time("dns-lifetime", NAME_LIFETIME),
    };
    NameServer::start(&options).map(Some).map_err(|error| match error {
        NameServerError::Zone(error) => Failure::Unusable(format!("--dns {listen}: {error}")),
        NameServerError::Start(error) => Failure::Failed(format!(
            "--dns {listen}: cannot listen: {error}; give another address and port"
        )),
    })
}

pub const NAME_SERVER_MEASURES: [&str; 4] =
    ["dns_addresses", "dns_nothing", "dns_refused", "dns_dropped"];

pub fn name_server_records(asked: QuestionCounts, subject: &str) -> [Record; 4] {
    let measure = |name, count: u64| {
        #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
        let count = count as f64;
        Record::Measure(Measure::once(name, subject, count, "questions"))
    };
    [
        measure("dns_addresses", asked.addresses),
        measure("dns_nothing", asked.nothing),
        measure("dns_refused", asked.refused),
        measure("dns_dropped", asked.dropped),
    ]
}

pub fn name_server_text(asked: QuestionCounts) -> String {
    let QuestionCounts { addresses, nothing, refused, dropped } = asked;
    format!(
        "DNS questions: {addresses} for addresses, {nothing} for other data, {refused} refused, \
         {dropped} dropped"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_for_which_no_port_is_left_says_so() {
        let said = |servers| failed("load", servers, &io::ErrorKind::AddrInUse.into()).to_string();
        assert!(
            said(1).contains("the origin cannot start: this machine has no free port;"),
            "{}",
            said(1)
        );
        assert!(
            said(4)
                .contains("the origin cannot start: this machine has no 4 consecutive free ports"),
            "{}",
            said(4)
        );
    }
}
