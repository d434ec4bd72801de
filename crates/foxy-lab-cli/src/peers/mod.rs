//! The proxies that can be compared, each set up from the same neutral description. A proxy is one
//! row of [`PEERS`] and one file beside this; what starts and stops it stands in `process`, what it
//! uses in `usage`.

mod apache;
pub mod choice;
pub mod control_group;
mod foxy;
mod helper;
mod nginx;
mod port;
pub mod process;
pub mod ready;
pub mod secured;
pub mod set_up;
pub mod single;
pub mod spent;
mod squid;
pub mod start;
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

/// Where what a workload asks for again is meant to lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// In memory, whatever the disk has besides.
    Memory,
    /// On disk: there is more of it than memory.
    Disk,
}

/// What a proxy is to be, in words that every proxy has.
#[derive(Clone, Debug)]
pub struct Description {
    /// A folder of its own, that it may write to.
    pub folder: PathBuf,
    /// Further ones, on other disks: each gets an equal part of the cache.
    pub beside: Vec<PathBuf>,
    /// Where it listens; what starts it chooses the port.
    pub listen: SocketAddr,
    /// The only origin that it answers for.
    pub origin: SocketAddr,
    /// What it speaks TLS with, on both sides; nothing where it speaks none.
    pub papers: Option<Papers>,
    /// What it may keep on all disks together.
    pub disk: ByteSize,
    /// What it may keep in memory.
    pub memory: ByteSize,
    /// Where what is asked for again is meant to lie.
    pub holding: Holding,
    /// Cores it may use.
    pub cores: usize,
}

impl Description {
    /// Where what it stores on disk lies.
    pub fn cache(&self) -> PathBuf {
        self.folder.join("cache")
    }

    /// The same with those on other disks.
    pub fn caches(&self) -> Vec<PathBuf> {
        let beside = self.beside.iter().map(|folder| folder.join("cache"));
        [self.cache()].into_iter().chain(beside).collect()
    }

    /// What it may keep on each disk.
    pub fn on_each_disk(&self) -> ByteSize {
        ByteSize(self.disk.0 / (self.beside.len() as u64 + 1))
    }

    /// Where what it speaks TLS with lies, if it speaks any.
    fn secured(&self) -> Option<TlsFiles> {
        self.papers.as_ref().map(|_| TlsFiles::within(&self.folder))
    }

    /// How it speaks with its origin.
    const fn scheme(&self) -> &'static str {
        if self.papers.is_some() { "https" } else { "http" }
    }

    /// A line for each of its caches, with the cache's number, counted from 1, and folder.
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

/// How to run a proxy as described.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Folders to be made below its own.
    pub folders: Vec<&'static str>,
    /// Files to be written below its own folder: name and text.
    pub files: Vec<(&'static str, String)>,
    /// Arguments of a run of the same program that makes its cache, before it serves.
    pub prepare: Option<Vec<String>>,
    /// Arguments of the run that serves, in the foreground.
    pub serve: Vec<String>,
    /// What is started beside it, and ended with it.
    pub helper: Option<Helper>,
    /// What a reader must know to judge its figures fairly.
    pub notes: Vec<&'static str>,
}

/// Over how many disks a proxy can spread its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disks {
    /// One.
    One,
    /// As many as there are.
    Several,
}

/// A proxy that can be compared.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// Its program; none is foxy's own.
    program: Option<&'static str>,
    /// Debian's package.
    package: &'static str,
    /// What makes the program say its version.
    version: &'static str,
    /// Over how many disks it can spread its cache.
    pub disks: Disks,
    /// What it speaks within TLS that it ends itself.
    pub ends: Ends,
    /// How to set it up.
    pub plan: fn(&Description) -> Plan,
}

/// Every proxy that can be compared.
pub const PEERS: [Peer; 6] = [
    peer("foxy", None, ("", "--version"), (Disks::Several, Ends::Http2), foxy::plan),
    peer("squid", Some("squid"), ("squid", "-v"), (Disks::Several, Ends::Http1), squid::plan),
    peer("nginx", Some("nginx"), ("nginx", "-v"), (Disks::Several, Ends::Http2), nginx::plan),
    peer(
        "varnish",
        Some("varnishd"),
        ("varnish", "-V"),
        (Disks::Several, Ends::Nothing),
        varnish::plan,
    ),
    peer(
        "trafficserver",
        Some("traffic_server"),
        ("trafficserver", "-V"),
        (Disks::Several, Ends::Http2),
        trafficserver::plan,
    ),
    peer("apache2", Some("apache2"), ("apache2", "-v"), (Disks::One, Ends::Http2), apache::plan),
];

const fn peer(
    name: &'static str,
    program: Option<&'static str>,
    (package, version): (&'static str, &'static str),
    (disks, ends): (Disks, Ends),
    plan: fn(&Description) -> Plan,
) -> Peer {
    Peer { name, program, package, version, disks, ends, plan }
}

impl Peer {
    /// The proxy of that name.
    pub fn find(name: &str) -> Option<Self> {
        PEERS.into_iter().find(|peer| peer.name == name)
    }

    /// Whether it is foxy itself.
    pub const fn is_foxy(&self) -> bool {
        self.program.is_none()
    }

    /// Its program's file, where it is installed.
    ///
    /// # Errors
    /// Why it cannot be had; how to get it, where it is not installed.
    pub fn installed(&self) -> Result<PathBuf, String> {
        let Some(program) = self.program else {
            return std::env::current_exe()
                .map_err(|error| format!("its own program cannot be found: {error}"));
        };
        in_path(program).ok_or_else(|| {
            format!("not installed; `apt-get install {}` brings {program}", self.package)
        })
    }

    /// What its program says of itself, in a few words.
    pub fn version(&self, program: &Path) -> String {
        let Ok(output) = Command::new(program).arg(self.version).output() else {
            return String::new();
        };
        let text = [output.stdout, output.stderr].concat();
        version_in(&String::from_utf8_lossy(&text))
    }
}

/// The file of a program, where users or root find programs.
fn in_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The first word of a text that looks like a version: digits and at least one dot.
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
