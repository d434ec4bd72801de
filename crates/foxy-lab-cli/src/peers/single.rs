//! Starts the single proxy that a command loads, in front of an origin in this process.

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

pub fn arguments(instead: &'static [&'static str]) -> [Arg; 5] {
    // `conflicts_with_all(instead)` is necessary: clap does not require `--start` if another
    // argument excludes `--start`.
    let only = |argument: Arg| argument.requires("start").conflicts_with_all(instead);
    [
        option(
            "start",
            "NAME[:STORE]",
            "Start this proxy on this machine, as the reverse proxy of an origin that this command \
             starts; STORE is the kind of its disk cache, such as squid:ufs or foxy:coss",
        )
        .value_parser(|text: &str| Peer::with_store(text).map(|_| text.to_owned()))
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
        only(
            option(
                "memory-limit",
                "SIZE",
                "With --start, limit the memory of the running proxy and its page cache, so that \
                 its disk is read; needs root",
            )
            .value_parser(value_parser!(ByteSize)),
        )
        .conflicts_with("cores"),
        only(choice::folder_argument().action(ArgAction::Append).help(
            "Folder for the files of the proxy; can be repeated, for one cache in each folder \
             [default: the system's temporary folder]",
        )),
    ]
}

fn limit(matches: &ArgMatches) -> Option<(Limit, String)> {
    let cores = || {
        let cores: f64 = *matches.get_one("cores")?;
        Some((Limit::Cores(cores), format!("--cores {cores}")))
    };
    let memory = || {
        let size: ByteSize = *matches.get_one("memory-limit")?;
        Some((Limit::Memory(size), format!("--memory-limit {size}")))
    };
    cores().or_else(memory)
}

fn hold_to(
    (limit, option): (Limit, String),
    up: &mut Up,
    set_up: &mut Record,
) -> Result<ControlGroup, String> {
    let mut held = || {
        let group = ControlGroup::new(limit)?;
        up.hold_in(&group)?;
        Ok(group)
    };
    let group = held().map_err(|why: String| format!("{option}: {why}"))?;
    if let Record::Subject(subject) = set_up {
        subject.notes.push(format!("limited by a control group: {option}"));
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
    // The control group of the proxy. Rust drops fields in order, so this field comes after `up`.
    // The kernel removes a control group only after its processes have ended.
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
        let (peer, store) = Peer::with_store(name).expect("clap has checked the name");
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
            folder: folders[0].path().join(peer.name),
            beside: (2..).zip(&folders[1..]).map(beside).collect(),
            listen: ready::ANYWHERE,
            origin,
            papers: None,
            disk,
            memory: *matches.get_one("memory").expect("has a default"),
            holding: Holding::Disk,
            store,
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
        let group = limit(matches).map(|limit| hold_to(limit, &mut up, &mut set_up));
        let group = group.transpose().map_err(failed)?;
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
