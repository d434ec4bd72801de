//! `foxy floor`: runs the smallest caching proxy, as a lower bound for the CPU time of any proxy.

use crate::arguments::{option, path, switch};
use crate::floor::{self, Floor, FloorStore, SmallAnswers};
use clap::{ArgMatches, Command, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::process::raise_open_files;
use foxy_cli::{signals, terminal};
use std::net::SocketAddr;
use std::path::PathBuf;

const LONG: &str = "\
Serve as the smallest caching reverse proxy that could do the work, for comparisons: foxy compare \
foxy floor nginx. Its CPU time is a lower bound for any proxy on this machine. It answers GET \
requests by their path, stores every answer for ever, and sends the bytes as they came from the \
origin. A stored answer costs a read of the request, a look-up, a read of the file and a write. \
Answers from 256 KiB go from the file to the socket inside the kernel. It has no checks, no access \
control and no recovery, so it listens only on loopback addresses. The command runs until a \
signal stops it.";

pub fn command() -> Command {
    Command::new("floor")
        .about("Serve as the smallest caching proxy, whose CPU time is a lower bound for any proxy")
        .long_about(LONG)
        .args([
            option("listen", "ADDRESS:PORT", "Address to listen on")
                .value_parser(value_parser!(SocketAddr))
                .default_value("127.0.0.1:3131"),
            option("origin", "ADDRESS:PORT", "Server that receives the requests without an answer")
                .value_parser(value_parser!(SocketAddr))
                .required(true),
            path(
                "store",
                "DIR",
                "Folder for the file of the answers [default: answers stay in memory]",
            ),
            option("size", "SIZE", "Size of the file of the answers, at least 4 MiB")
                .value_parser(value_parser!(ByteSize))
                .default_value("1GiB"),
            switch("small-in-memory", "Keep answers below 256 KiB in memory, without a limit"),
            option("workers", "N", "Number of threads [default: one for each core]")
                .value_parser(value_parser!(u16).range(1..)),
        ])
}

pub fn run(matches: &ArgMatches) -> Result<(), Failure> {
    let address = |name| *matches.get_one::<SocketAddr>(name).expect("has a value");
    let (listen, origin) = (address("listen"), address("origin"));
    if !listen.ip().is_loopback() {
        return Err(Failure::Unusable(format!(
            "--listen {listen}: `foxy floor` has no access control; name a loopback address such as 127.0.0.1:3131"
        )));
    }
    let size = *matches.get_one::<ByteSize>("size").expect("has a default");
    let in_memory = matches.get_flag("small-in-memory");
    let small = if in_memory { SmallAnswers::InMemory } else { SmallAnswers::InFile };
    let folder = matches.get_one::<PathBuf>("store").expect("required");
    let store = FloorStore::create(folder, size.0, small)
        .map_err(|error| Failure::Unusable(format!("--store {}: {error}", folder.display())))?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let workers = matches.get_one::<u16>("workers").map_or(cores, |&number| usize::from(number));
    raise_open_files();
    floor::start(Floor { origin, store }, listen, workers).map_err(|error| {
        Failure::Failed(format!(
            "floor: cannot listen on {listen}: {error}; choose another address with --listen"
        ))
    })?;
    terminal::print(&format!("floor: http://{listen}/ answers for http://{origin}/"));
    signals::wait_for_stop()
        .map_err(|error| Failure::Failed(format!("floor: cannot set a signal handler: {error}")))
}
