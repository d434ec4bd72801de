//! Starts a single proxy for the load of a command, in front of an origin of this process.

use super::control_group::{ControlGroup, Limit};
use super::up::{Start, Up};
use super::usage::Moment;
use super::{Description, Disks, Holding, Peer, choice, ready};
use crate::arguments::option;
use clap::{Arg, ArgAction, ArgMatches, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::temporary::Temporary;
use foxy_report::Record;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

const LEAST_CORES: f64 = 0.01;
const MOST_CORES: f64 = 1024.0;

pub fn arguments(instead: &'static [&'static str]) -> [Arg; 4] {
    let names = super::PEERS.map(|peer| peer.name);
    // `conflicts_with_all(instead)` is necessary: clap does not require `--start` if another
    // argument excludes `--start`.
    let only = |argument: Arg| argument.requires("start").conflicts_with_all(instead);
    [
        option(
            "start",
            "NAME",
            "Start this proxy on this machine, as the reverse proxy of an origin that this command starts",
        )
        .value_parser(names)
        .conflicts_with_all(instead),
        only(
            option("memory", "SIZE", "With --start, size of the proxy's memory cache")
                .value_parser(value_parser!(ByteSize))
                .default_value("32MiB"),
        ),
        only(
            option(
                "cores",
                "N",
                "With --start, limit the proxy to N cores, such as 0.05, so that the load \
             generator is not the bottleneck; needs root",
            )
            .value_parser(cores),
        ),
        only(choice::folder_argument().action(ArgAction::Append).help(
            "Folder for the files of the proxy; can be repeated, for one cache in each folder \
             [default: the system's temporary folder]",
        )),
    ]
}

fn hold_to(cores: f64, up: &mut Up, set_up: &mut Record) -> Result<ControlGroup, String> {
    let group = ControlGroup::new(Limit::Cores(cores))?;
    up.hold_in(&group)?;
    if let Record::Subject(subject) = set_up {
        subject.notes.push(format!("held to {cores} cores by a control group"));
    }
    Ok(group)
}

fn cores(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (LEAST_CORES..=MOST_CORES).contains(number));
    number.ok_or_else(|| {
        format!("a number of cores from {LEAST_CORES} to {MOST_CORES} is needed, such as 0.05")
    })
}

pub struct Single {
    up: Up,
    set_up: Record,
    // Control group of the proxy. Rust must drop this field after `up`, because the system removes
    // a control group only after its processes have ended.
    _group: Option<ControlGroup>,
    _folders: Vec<Temporary>,
}

impl Single {
    pub fn start(
        matches: &ArgMatches,
        origin: SocketAddr,
        disk: ByteSize,
        workload: &str,
        interrupted: &AtomicBool,
    ) -> Result<Option<Self>, Failure> {
        let Some(name) = matches.get_one::<String>("start") else { return Ok(None) };
        let peer = Peer::find(name).expect("clap knows the names");
        let refuse = |why: String| format!("--start {name}: {why}");
        let disks = matches.get_many::<PathBuf>("folder").map_or(1, |folders| folders.len());
        if disks > 1 && peer.disks == Disks::One {
            let why =
                format!("the proxy can use only one cache folder, not {disks}; give one --folder");
            return Err(Failure::Unusable(refuse(why)));
        }
        let program = peer.installed().map_err(|why| Failure::Unusable(refuse(why)))?;
        let folders = choice::folders(matches)?;
        let failed = |why: String| Failure::Failed(refuse(why));
        let beside =
            |(number, folder): (usize, &Temporary)| folder.path().join(format!("disk-{number}"));
        let description = Description {
            folder: folders[0].path().join(name),
            beside: (2..).zip(&folders[1..]).map(beside).collect(),
            listen: ready::ANYWHERE,
            origin,
            papers: None,
            disk,
            memory: *matches.get_one("memory").expect("has a default"),
            holding: Holding::Disk,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let start = Start {
            peer: &peer,
            program: &program,
            name,
            host: origin,
            workload,
            limit: None,
            interrupted,
        };
        let started = Up::start(&start, description, folders[0].path());
        let (mut up, mut set_up) = started.map_err(failed)?;
        let group = match matches.get_one("cores") {
            Some(&cores) => Some(
                hold_to(cores, &mut up, &mut set_up)
                    .map_err(|why| failed(format!("--cores {cores}: {why}")))?,
            ),
            None => None,
        };
        up.begin();
        Ok(Some(Self { up, set_up, _group: group, _folders: folders }))
    }

    pub fn name(&self) -> &str {
        &self.up.name
    }

    pub const fn address(&self) -> SocketAddr {
        self.up.address
    }

    pub fn moment(&mut self) -> Option<Moment> {
        self.up.moment()
    }

    pub fn end(mut self, requests: u64) -> (Vec<Record>, Option<String>) {
        let mut found = vec![self.set_up];
        match self.up.used() {
            Ok(used) => found.extend(used.records(requests)),
            Err(why) => return (found, Some(why)),
        }
        (found, None)
    }
}
