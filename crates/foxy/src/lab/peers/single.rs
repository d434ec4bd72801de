//! One proxy that a command starts to put its load on: set up from the same neutral description as those of `foxy compare`, in front
//! of an origin of this program, and ended with the command.

use super::process::Running;
use super::{Description, Holding, Peer, choice, ready, set_up};
use crate::failure::Failure;
use crate::lab::arguments::option;
use crate::lab::temporary::Temporary;
use clap::{Arg, ArgMatches, value_parser};
use foxy_base::ByteSize;
use foxy_report::{Measure, Record};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The arguments of a command that may start its proxy; `instead` are those that say where one is that runs already.
pub fn arguments(instead: &'static [&'static str]) -> [Arg; 3] {
    let names = super::PEERS.map(|peer| peer.name);
    // Refused beside `instead` by itself: an argument that --start would be refused beside does not miss it.
    let only = |argument: Arg| argument.requires("start").conflicts_with_all(instead);
    [
        option("start", "NAME", "Start this one here as a reverse proxy of an origin started here too")
            .value_parser(names)
            .conflicts_with_all(instead),
        only(
            option("memory", "SIZE", "With --start, memory for what it holds")
                .value_parser(value_parser!(ByteSize))
                .default_value("32MiB"),
        ),
        only(choice::folder_argument()),
    ]
}

/// A proxy that runs; dropped, it is ended, and its folder removed.
pub struct Single {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it is called.
    pub name: &'static str,
    running: Running,
    before: Duration,
    set_up: Record,
    _folder: Temporary,
}

impl Single {
    /// Starts the one that the arguments name, in front of `origin`, with room for `disk` bytes; none when they name none.
    ///
    /// # Errors
    /// One that is not installed, or does not come up.
    pub fn start(
        matches: &ArgMatches,
        origin: SocketAddr,
        (disk, workload): (ByteSize, &str),
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = matches.get_one::<String>("start") else { return Ok(None) };
        let (peer, program) = choice::installed(std::iter::once(name.as_str()))?.installed.swap_remove(0);
        let folder = choice::folder(matches)?;
        let failed = |why: String| Failure::Failed(format!("--start {name}: {why}"));
        let description = Description {
            folder: folder.path().join(name),
            listen: ready::free_place(name).map_err(failed)?,
            origin,
            disk,
            memory: *matches.get_one("memory").expect("has a default"),
            holding: Holding::Disk,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let whose = (&peer, &*program, name.as_str());
        let (running, set_up) =
            bring_up(whose, &description, (origin, workload), folder.path(), interrupted).map_err(failed)?;
        let (address, name) = (description.listen, peer.name);
        let mut single = Self { address, name, running, before: Duration::ZERO, set_up, _folder: folder };
        single.before = single.running.usage().unwrap_or_default().processor;
        Ok(Some(single))
    }

    /// Ends it; how it was set up and what it used for so many requests, and why it came to nothing, if it did.
    #[expect(clippy::cast_precision_loss, reason = "requests and bytes of a run are far below 2^53")]
    pub fn end(mut self, requests: u64) -> (Vec<Record>, Option<String>) {
        let mut found = vec![self.set_up];
        if let Some(status) = self.running.ended() {
            let why = format!("{} ended in the middle ({status}): {}", self.name, self.running.last_words());
            return (found, Some(why));
        }
        let used = self.running.usage().unwrap_or_default();
        let each = used.processor.saturating_sub(self.before).as_secs_f64() * 1e6 / requests.max(1) as f64;
        for (name, value, unit) in
            [("cpu_us_per_request", each, "us"), ("resident_bytes", used.resident as f64, "B")]
        {
            found.push(Record::Measure(Measure::once(name, self.name, value, unit)));
        }
        (found, None)
    }
}

/// Starts a proxy called `name` as described and waits until it gives an object of the origin `host`; the record is how it was set up.
///
/// # Errors
/// Why it does not come up, in one line.
pub fn bring_up(
    (peer, program, name): (&Peer, &Path, &str),
    description: &Description,
    (host, workload): (SocketAddr, &str),
    folder: &Path,
    interrupted: &AtomicBool,
) -> Result<(Running, Record), String> {
    let plan = (peer.plan)(description);
    let mut running = Running::start(peer, program, description, &plan, None)?;
    ready::wait_until_ready(&mut running, name, (description.listen, host), interrupted)?;
    let folders = [&*description.folder, folder];
    let subject = set_up::record((peer, program), (name, workload), &plan, &folders);
    Ok((running, Record::Subject(subject)))
}
