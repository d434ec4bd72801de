//! `foxy origin`: runs the lab's origin server in its own process. Clients can verify every byte of
//! its answers.

use crate::arguments::{option, path};
use crate::origin;
use crate::run::allow_connections;
use clap::{ArgMatches, Command, value_parser};
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::signals;
use foxy_cli::terminal::{self, Level};
use foxy_lab::{ErrorCause, Origin, OriginOptions};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const LOOK: Duration = Duration::from_millis(50);

pub fn command() -> Command {
    Command::new("origin")
        .about("Serve synthetic objects whose bytes a client can verify")
        .long_about(
            "Serve synthetic objects at /o/ID/SIZE/VERSION. ID and VERSION determine the body, so a load generator can \
             check every byte. The query of the URL may contain max-age=SECONDS, no-store, chunked and \
             delay=MILLISECONDS. Documents of the workload polymix-4 are at /p/SEED-T-D/TYPE/NUMBER/IMAGE. SEED is the workload's seed, \
             T its time-scale and D its delay-scale. TYPE is html, download or other. NUMBER is the page's number. IMAGE is the number of an \
             image in its page, or 0 for the page itself. The command runs until a signal stops it.",
        )
        .arg(
            option("listen", "ADDRESS:PORT", "Address to listen on")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:8080"),
        )
        .arg(
            option(
                "servers",
                "N",
                "Number of servers, at consecutive ports: 4 for table3, 500 + peak-rate / 4 for polymix-4",
            )
            .value_parser(value_parser!(u32).range(1..=20_000))
            .default_value("1"),
        )
        .arg(
            option("threads", "N", "Number of serving threads")
                .value_parser(value_parser!(u16).range(1..=256))
                .default_value("1"),
        )
        .arg(path(
            "write-ca",
            "FILE",
            "Use TLS with a certificate authority made for this run, and write its certificate to this file",
        ))
        .args(origin::name_server_flags())
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let listen = *matches.get_one::<SocketAddr>("listen").expect("has a default");
    raise_open_files();
    let threads = usize::from(*matches.get_one::<u16>("threads").expect("has a default"));
    let servers = *matches.get_one::<u32>("servers").expect("has a default");
    let authority = matches.get_one::<PathBuf>("write-ca");
    let start = if authority.is_some() { Origin::start_tls } else { Origin::start_servers };
    let origin = start(OriginOptions { listen, threads }, servers)
        .map_err(|error| failed(listen, servers, &error))?;
    let address = origin.address();
    let (scheme, trusting) = match authority.zip(origin.authority()) {
        Some((file, certificate)) => {
            write(file, certificate)?;
            ("https", format!(" --cacert {}", file.display()))
        }
        None => ("http", String::new()),
    };
    terminal::print(&format!(
        "origin: serving at {scheme}://{address}/   try: curl -v{trusting} {scheme}://{address}/o/1/100/1"
    ));
    let name_server = origin::start_name_server(matches, Some(&origin))?;
    if let Some(server) = &name_server {
        let (zone, place) = (origin::ZONE, server.address());
        terminal::print(&format!(
            "origin: its names end with {zone}; the name server is at {place}"
        ));
    }
    serve(&origin)?;
    if let Some(server) = name_server {
        terminal::print(&format!(
            "origin: name server: {}",
            origin::name_server_text(server.asked())
        ));
    }
    Ok(())
}

fn failed(listen: SocketAddr, servers: u32, error: &io::Error) -> Failure {
    if ErrorCause::of_connect(error) == ErrorCause::NoDescriptor
        && let Err(refusal) = allow_connections(u64::from(servers), &format!("--servers {servers}"))
    {
        return refusal;
    }
    Failure::Failed(format!(
        "origin: cannot listen on {listen}: {error}; choose another address with --listen"
    ))
}

/// Serves until a signal arrives. Warns once if clients must wait because the limit on open files
/// is reached.
fn serve(origin: &Origin) -> Result<(), Failure> {
    let stop = signals::interrupted()?;
    let mut said = false;
    while !stop.load(Relaxed) {
        if !said && origin.not_accepted() > 0 {
            said = true;
            let why = "origin: connections wait, because this process has reached its limit of open files; raise ulimit -n";
            terminal::report(Level::Warning, why);
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn write(file: &Path, certificate: &str) -> Result<(), Failure> {
    std::fs::write(file, certificate).map_err(|error| {
        let file = file.display();
        Failure::Unusable(format!(
            "--write-ca {file}: cannot be written: {error}; name a file in a folder that can be written to"
        ))
    })
}
