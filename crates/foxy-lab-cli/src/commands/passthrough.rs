//! `foxy passthrough`: runs a proxy without a cache, as a baseline for comparisons.

use crate::arguments::option;
use crate::experiment::{Conclusion, Experiment, Flag, flags};
use crate::{certificates, trust};
use clap::{ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::signals::interrupted;
use foxy_cli::terminal;
use foxy_lab::leap::{
    self, Connections, Front, FrontRefusal, LeapRun, Outgoing, PASSTHROUGH, passing_through,
};
use std::net::{SocketAddr, TcpListener};

const LONG: &str = "\
Serve as a proxy without a cache. The proxy forwards each request unchanged, on a new connection \
to --origin (an origin, or a parent proxy such as foxy collector). Without --origin the request \
goes to the loopback or private address in its URL. This is the pass-through proxy of LEAP. It \
is the baseline for the bytes that a cache saves, and for the time that any proxy adds. It \
speaks HTTP/1.0, 1.1 and 2. With --ca-dir it also accepts CONNECT tunnels and TLS, terminates \
the TLS, and forwards the requests over TLS. It then trusts the servers' certificates by --ca or \
the system's authorities. Only this machine and private networks may connect. The proxy runs \
until a signal stops it, and then prints its counts.";

pub fn command() -> Command {
    let place = || value_parser!(SocketAddr);
    Command::new("passthrough")
        .about("Serve as a proxy without a cache, as a baseline")
        .long_about(LONG)
        .args([
            option("listen", "ADDRESS:PORT", "Address to listen on")
                .value_parser(place())
                .default_value("127.0.0.1:3130"),
            option(
                "origin",
                "ADDRESS:PORT",
                "Server that receives all requests, whatever host a request names",
            )
            .value_parser(place()),
            certificates::argument(),
            trust::argument(),
        ])
        .args(flags([Flag::Json, Flag::FailIf("errors>0")]))
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let measurable = leap::measurable(&[PASSTHROUGH], true, Connections::New);
    let experiment = Experiment::new("passthrough", matches).with_bars(measurable)?;
    let address = *matches.get_one::<SocketAddr>("listen").expect("has a default");
    let origin = matches.get_one::<SocketAddr>("origin").copied();
    raise_open_files();
    let failed = |error: std::io::Error| {
        Failure::Failed(format!(
            "passthrough: {address}: cannot serve: {error}; choose another address with --listen"
        ))
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    let own = listener.local_addr().map_err(failed)?;
    let authority = origin.map(|origin| origin.to_string());
    let to =
        authority.clone().unwrap_or_else(|| "the loopback or private address in its URL".into());
    let certificates = certificates::of(matches)?;
    let front =
        Front { authority, any_host: origin.is_some(), certificates, ..Front::at(listener) };
    terminal::print(&format!("passthrough: http://{own}/ forwards every request to {to}"));
    let outgoing = Outgoing::new(&trust::read(matches, None)?);
    let run = LeapRun { outgoing, ..passing_through(origin, interrupted()?) };
    let report = leap::serve(&run, None, front, &mut |_| {}, &mut |_| {}).map_err(failed)?;
    let path = &report.paths[0];
    terminal::print(&format!(
        "{} requests forwarded, {} answers with {} of bodies, {} errors",
        report.requests,
        path.answers,
        ByteSize(path.bytes),
        path.failed()
    ));
    let refused = report.clients.as_ref().map(|clients| clients.refused).unwrap_or_default();
    for reason in FrontRefusal::ALL.into_iter().filter(|&reason| refused[reason as usize] > 0) {
        let count = refused[reason as usize];
        terminal::print(&format!("refused {}: {count}: {}", reason.name(), reason.description()));
    }
    experiment.finish(Conclusion { records: report.records(&[]), ..Conclusion::default() })
}
