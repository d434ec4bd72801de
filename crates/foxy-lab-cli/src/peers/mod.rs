//! The proxies that the lab can compare. Each proxy has a row in [`PEERS`] and a file. The lab
//! makes the configurations of all proxies from the same description, which favours none of them.

mod apache;
pub mod choice;
pub mod control_group;
mod floor;
mod foxy;
mod helper;
mod nginx;
pub mod process;
pub mod ready;
pub mod secured;
pub mod single;
mod squid;
pub mod system_calls;
mod trafficserver;
pub mod up;
pub mod usage;
mod varnish;

use ::foxy_base::ByteSize;
use helper::Helper;
use secured::{Ends, Papers, TlsFiles};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    Memory,
    Disk,
}

#[derive(Clone, Debug)]
pub struct Description {
    pub folder: PathBuf,
    /// The folders on additional disks. Each disk holds an equal part of the cache.
    pub beside: Vec<PathBuf>,
    /// Address at which the proxy listens. The code that starts the proxy chooses the port.
    pub listen: SocketAddr,
    pub origin: SocketAddr,
    pub papers: Option<Papers>,
    pub disk: ByteSize,
    pub memory: ByteSize,
    pub holding: Holding,
    /// The kind of the disk cache, such as Squid's `aufs`. `None` for the default of the proxy.
    pub store: Option<&'static str>,
    pub cores: usize,
}

impl Description {
    pub fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    pub fn caches(&self) -> Vec<PathBuf> {
        let beside = self.beside.iter().map(|folder| folder.join("cache"));
        [self.cache()].into_iter().chain(beside).collect()
    }

    pub fn on_each_disk(&self) -> ByteSize {
        ByteSize(self.disk.0 / (self.beside.len() as u64 + 1))
    }

    fn secured(&self) -> Option<TlsFiles> {
        self.papers.as_ref().map(|_| TlsFiles::within(&self.folder))
    }

    const fn scheme(&self) -> &'static str {
        if self.papers.is_some() { "https" } else { "http" }
    }

    fn for_each_cache(&self, line: impl Fn(usize, std::path::Display) -> String) -> String {
        let caches = self.caches();
        let lines = caches
            .iter()
            .enumerate()
            .map(|(number, folder)| line(number + 1, folder.display()) + "\n");
        lines.collect()
    }

    fn path(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    pub folders: Vec<&'static str>,
    pub files: Vec<(&'static str, String)>,
    /// The arguments with which the proxy's program first creates the cache. `None` if the proxy
    /// needs no such step.
    pub prepare: Option<Vec<String>>,
    pub serve: Vec<String>,
    pub helper: Option<Helper>,
    /// Notes on the proxy that a reader must know for a fair comparison.
    pub notes: Vec<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disks {
    One,
    Several,
}

#[derive(Clone, Copy, Debug)]
pub struct Peer {
    pub name: &'static str,
    program: Option<&'static str>,
    package: &'static str,
    version: &'static str,
    pub disks: Disks,
    pub ends: Ends,
    /// The kinds of disk cache from which `--start NAME:STORE` can choose.
    pub stores: fn() -> Vec<&'static str>,
    pub plan: fn(&Description) -> Plan,
}

pub const PEERS: [Peer; 7] = [
    Peer {
        stores: foxy::stores,
        ..peer("foxy", None, "", "--version", Disks::Several, Ends::Http2, foxy::plan)
    },
    Peer {
        stores: squid::stores,
        ..peer("squid", Some("squid"), "squid", "-v", Disks::Several, Ends::Http1, squid::plan)
    },
    peer("nginx", Some("nginx"), "nginx", "-v", Disks::Several, Ends::Http2, nginx::plan),
    peer(
        "varnish",
        Some("varnishd"),
        "varnish",
        "-V",
        Disks::Several,
        Ends::Nothing,
        varnish::plan,
    ),
    peer(
        "trafficserver",
        Some("traffic_server"),
        "trafficserver",
        "-V",
        Disks::Several,
        Ends::Http2,
        trafficserver::plan,
    ),
    peer("apache2", Some("apache2"), "apache2", "-v", Disks::One, Ends::Http2, apache::plan),
    peer("floor", None, "", "--version", Disks::One, Ends::Nothing, floor::plan),
];

const fn peer(
    name: &'static str,
    program: Option<&'static str>,
    package: &'static str,
    version: &'static str,
    disks: Disks,
    ends: Ends,
    plan: fn(&Description) -> Plan,
) -> Peer {
    Peer { name, program, package, version, disks, ends, stores: Vec::new, plan }
}

impl Peer {
    pub fn find(name: &str) -> Option<Self> {
        PEERS.into_iter().find(|peer| peer.name == name)
    }

    /// Finds the proxy and the kind of its disk cache that `text` names, as in `squid:ufs`.
    pub fn with_store(text: &str) -> Result<(Self, Option<&'static str>), String> {
        let (name, store) =
            text.split_once(':').map_or((text, None), |(name, store)| (name, Some(store)));
        let peer = Self::find(name)
            .ok_or_else(|| format!("the proxies are {}", PEERS.map(|peer| peer.name).join(", ")))?;
        let Some(store) = store else { return Ok((peer, None)) };
        let stores = (peer.stores)();
        match stores.iter().find(|known| **known == store) {
            Some(known) => Ok((peer, Some(known))),
            None if stores.is_empty() => Err(format!(
                "{name} has only one kind of disk cache; write `{name}` without `:{store}`"
            )),
            None => Err(format!("the disk caches of {name} are {}", stores.join(", "))),
        }
    }

    pub const fn is_part_of_foxy(&self) -> bool {
        self.program.is_none()
    }

    pub fn installed(&self) -> Result<PathBuf, String> {
        let Some(program) = self.program else {
            return std::env::current_exe()
                .map_err(|error| format!("foxy's own program cannot be found: {error}"));
        };
        in_path(program).ok_or_else(|| {
            format!("not installed; `apt-get install {}` installs {program}", self.package)
        })
    }

    pub fn version(&self, program: &Path) -> String {
        let Ok(output) = Command::new(program).arg(self.version).output() else {
            return String::new();
        };
        let text = [output.stdout, output.stderr].concat();
        version_in(&String::from_utf8_lossy(&text))
    }
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn version_in(text: &str) -> String {
    let is_version = |word: &&str| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.') && !word.contains(':')
    };
    let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || ".:".contains(c)));
    let word = words.by_ref().find(|word| is_version(word) || word.starts_with("varnish."));
    word.unwrap_or_default().trim_end_matches('.').trim_start_matches("varnish.").to_owned()
}

#[cfg(test)]
mod tests;
