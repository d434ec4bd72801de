//! Starts the proxies of `foxy leap --start`. Each proxy uses its own port of the Collector, LEAP's
//! common parent proxy, as its origin.

use super::arguments::NamedProxy;
use super::secure;
use crate::arguments::{option, switch};
use crate::certificates::Authority;
use crate::peers::secured::Papers;
use crate::peers::up::{Beside, Start, Up, Used};
use crate::peers::{Description, Holding, Peer, choice, ready};
use clap::{Arg, ArgMatches, value_parser};
use foxy_base::ByteSize;
use foxy_cli::failure::Failure;
use foxy_cli::temporary::Temporary;
use foxy_cli::terminal::{self, Level};
use foxy_lab::{Wanted, leap};
use foxy_report::{Record, Table};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub const QUICK: u64 = 4000;

pub fn arguments() -> [Arg; 5] {
    let size = |name, help| option(name, "SIZE", help).value_parser(value_parser!(ByteSize));
    // `conflicts_with("proxy")` is necessary: clap does not require `--start` if another argument
    // excludes `--start`.
    let only = |argument: Arg| argument.requires("start").conflicts_with("proxy");
    [
        option(
            "start",
            "PROXY,…",
            "Start these proxies in front of a Collector; a proxy named twice shows the noise of \
             the comparison",
        )
        .value_delimiter(',')
        .conflicts_with_all([
            "proxy",
            "collector",
            "origin",
            "direct",
            "live",
            "reverse",
            "check",
        ]),
        only(
            size("memory", "With --start, size of each proxy's memory cache")
                .default_value("256MiB"),
        ),
        only(size("disk", "With --start, size of each proxy's disk cache").default_value("1GiB")),
        only(choice::folder_argument()),
        only(switch(
            "quick",
            "With --start, stop after 4000 requests: about a minute, but little evidence",
        ))
        .conflicts_with("requests"),
    ]
}

pub struct Chosen {
    pub name: String,
    peer: Peer,
    program: PathBuf,
    papers: Option<Papers>,
}

pub fn chosen(matches: &ArgMatches, authority: Option<&Authority>) -> Result<Vec<Chosen>, Failure> {
    let Some(names) = matches.get_many::<String>("start") else { return Ok(Vec::new()) };
    let mut chosen: Vec<Chosen> = Vec::new();
    let able = |peer: &Peer| secure::able(matches, peer);
    for (peer, program) in choice::installed(names.map(String::as_str), able)?.installed {
        let before = chosen.iter().filter(|other| other.peer.name == peer.name).count();
        let name = if before == 0 {
            peer.name.to_owned()
        } else {
            format!("{}-{}", peer.name, before + 1)
        };
        let papers = authority.map(secure::papers).transpose()?;
        chosen.push(Chosen { name, peer, program, papers });
    }
    Ok(chosen)
}

/// Returns all pairs of instances of one proxy with the same configuration. Any difference within
/// such a pair is noise.
pub fn alike(chosen: &[Chosen], paths: &[leap::Path]) -> Vec<(usize, usize)> {
    let peer = |path: &leap::Path| {
        chosen.iter().find(|one| one.name == path.name).map(|one| one.peer.name)
    };
    let later = |one: usize| (one + 1..paths.len()).map(move |other| (one, other));
    let pairs = (0..paths.len()).flat_map(later);
    pairs
        .filter(|&(one, other)| {
            peer(&paths[one]).is_some() && peer(&paths[one]) == peer(&paths[other])
        })
        .collect()
}

pub struct Started {
    up: Beside,
    found: Vec<Record>,
    failed: Vec<String>,
    _folder: Temporary,
}

/// The settings that all proxies started by this command share. `host` is the origin's address in
/// the requests.
pub struct ReplayGround<'a> {
    folder: Temporary,
    disk: ByteSize,
    memory: ByteSize,
    host: SocketAddr,
    workload: &'a str,
    interrupted: &'a AtomicBool,
}

impl<'a> ReplayGround<'a> {
    pub fn new(
        matches: &ArgMatches,
        host: SocketAddr,
        workload: &'a str,
        interrupted: &'a AtomicBool,
    ) -> Result<Self, Failure> {
        let folder = choice::folder(matches)?;
        let size = |name| *matches.get_one::<ByteSize>(name).expect("has a default");
        Ok(Self { folder, disk: size("disk"), memory: size("memory"), host, workload, interrupted })
    }

    /// Starts each proxy with its port of the Collector (common parent proxy) as its origin, and
    /// enters its address in `proxies`. If a proxy does not start, reports this and goes on without
    /// the proxy.
    pub fn start_all(
        self,
        chosen: &[Chosen],
        places: &[SocketAddr],
        proxies: &mut Vec<NamedProxy>,
        wanted: &Wanted,
    ) -> Result<Started, Failure> {
        wanted.note(&self.host.to_string(), &ready::probed());
        let (mut up, mut found, mut failed) = (Beside::default(), Vec::new(), Vec::new());
        for (one, &place) in chosen.iter().zip(places) {
            match self.start(one, place) {
                Ok((proxy, set_up)) => {
                    proxies
                        .iter_mut()
                        .filter(|known| known.name == one.name)
                        .for_each(|known| known.address = proxy.address);
                    up.0.push(proxy);
                    found.push(set_up);
                }
                Err(_) if self.interrupted.load(Relaxed) => {
                    return Err(Failure::Failed(
                        "leap: stopped by a signal; nothing was measured".into(),
                    ));
                }
                Err(why) => {
                    terminal::report(
                        Level::Warning,
                        &format!("leap: {why}; continuing without this proxy"),
                    );
                    proxies.retain(|known| known.name != one.name);
                    let (subject, reason) = (one.name.clone(), why.clone());
                    found.push(Record::FailedRun { subject, reason });
                    failed.push(why);
                }
            }
        }
        if up.0.is_empty() {
            return Err(Failure::Failed(
                "leap: no proxy started; the last message of each proxy is above".into(),
            ));
        }
        up.0.iter_mut().for_each(Up::begin);
        Ok(Started { up, found, failed, _folder: self.folder })
    }

    fn start(&self, chosen: &Chosen, origin: SocketAddr) -> Result<(Up, Record), String> {
        let Chosen { name, peer, program, papers } = chosen;
        let description = Description {
            folder: self.folder.path().join(name),
            beside: Vec::new(),
            listen: ready::ANYWHERE,
            origin,
            papers: papers.clone(),
            disk: self.disk,
            memory: self.memory,
            holding: Holding::Disk,
            store: None,
            cores: std::thread::available_parallelism().map_or(1, usize::from),
        };
        let start = Start {
            peer,
            program,
            name,
            host: self.host,
            workload: self.workload,
            limit: None,
            interrupted: self.interrupted,
        };
        Up::start(&start, description, self.folder.path())
    }
}

impl Started {
    pub fn end(mut self, requests: u64) -> Ended {
        let mut used = Vec::new();
        for proxy in &mut self.up.0 {
            match proxy.used() {
                Ok(proxy) => used.push(proxy),
                Err(why) => {
                    terminal::report(Level::Warning, &format!("leap: {why}"));
                    self.found.push(Record::FailedRun {
                        subject: proxy.name.clone(),
                        reason: why.clone(),
                    });
                    self.failed.push(why);
                }
            }
        }
        self.found.extend(used.iter().flat_map(|used| used.records(requests)));
        Ended { records: self.found, used, requests, failed: self.failed }
    }
}

pub struct Ended {
    pub records: Vec<Record>,
    pub failed: Vec<String>,
    used: Vec<Used>,
    requests: u64,
}

impl Ended {
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["proxy", "CPU µs/request", "memory"]);
        for used in &self.used {
            let each = format!("{:.0}", used.each(self.requests));
            table.row(&[used.name.clone(), each, ByteSize(used.resident).to_string()]);
        }
        table
    }
}
