//! The proxies that can be compared, each set up from the same neutral description. A proxy is one row of [`PEERS`] and one
//! file beside this; what starts and stops it stands in `process`, what it uses in `usage`.

mod apache;
pub mod choice;
pub mod control_group;
mod foxy;
mod helper;
mod nginx;
pub mod process;
pub mod ready;
pub mod set_up;
pub mod single;
pub mod spent;
mod squid;
pub mod system_calls;
mod trafficserver;
pub mod up;
pub mod usage;
mod varnish;

use ::foxy_base::ByteSize;
use helper::Helper;
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
    /// Where it listens.
    pub listen: SocketAddr,
    /// The only origin that it answers for.
    pub origin: SocketAddr,
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

    /// A line for each of its caches, with the cache's number, counted from 1, and folder.
    fn for_each_cache(&self, line: impl Fn(usize, std::path::Display) -> String) -> String {
        let caches = self.caches();
        let lines =
            caches.iter().enumerate().map(|(number, folder)| line(number + 1, folder.display()) + "\n");
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
    /// How to set it up.
    pub plan: fn(&Description) -> Plan,
}

/// Every proxy that can be compared.
pub const PEERS: [Peer; 6] = [
    peer("foxy", None, ("", "--version"), Disks::Several, foxy::plan),
    peer("squid", Some("squid"), ("squid", "-v"), Disks::Several, squid::plan),
    peer("nginx", Some("nginx"), ("nginx", "-v"), Disks::Several, nginx::plan),
    peer("varnish", Some("varnishd"), ("varnish", "-V"), Disks::Several, varnish::plan),
    peer(
        "trafficserver",
        Some("traffic_server"),
        ("trafficserver", "-V"),
        Disks::Several,
        trafficserver::plan,
    ),
    peer("apache2", Some("apache2"), ("apache2", "-v"), Disks::One, apache::plan),
];

const fn peer(
    name: &'static str,
    program: Option<&'static str>,
    (package, version): (&'static str, &'static str),
    disks: Disks,
    plan: fn(&Description) -> Plan,
) -> Peer {
    Peer { name, program, package, version, disks, plan }
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
        in_path(program)
            .ok_or_else(|| format!("not installed; `apt-get install {}` brings {program}", self.package))
    }

    /// What its program says of itself, in a few words.
    pub fn version(&self, program: &Path) -> String {
        let Ok(output) = Command::new(program).arg(self.version).output() else { return String::new() };
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
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_each_program_says() {
        for (text, version) in [
            ("foxy 0.1.0\n", "0.1.0"),
            ("Squid Cache: Version 5.7\nService Name: squid\n", "5.7"),
            ("nginx version: nginx/1.22.1\n", "1.22.1"),
            ("varnishd (varnish-7.1.1 revision 7cee1c5)\n", "7.1.1"),
            ("Traffic Server 9.2.5+ds Mar  5 2025 12:14:31 reproducible.build\n", "9.2.5"),
            ("Server version: Apache/2.4.71 (Debian)\n", "2.4.71"),
            ("who knows", ""),
        ] {
            assert_eq!(version_in(text), version, "{text}");
        }
    }

    #[test]
    fn a_proxy_that_is_not_installed_says_how_to_get_it() {
        let peer = Peer { program: Some("no-such-proxy"), ..PEERS[1] };
        let text = peer.installed().expect_err("not there");
        assert_eq!(text, "not installed; `apt-get install squid` brings no-such-proxy");
    }

    fn described(folder: &str, beside: &[&str]) -> Description {
        Description {
            folder: folder.into(),
            beside: beside.iter().map(PathBuf::from).collect(),
            listen: "127.0.0.1:20001".parse().expect("an address"),
            origin: "127.0.0.1:20002".parse().expect("an address"),
            disk: ByteSize(256 << 20),
            memory: ByteSize(64 << 20),
            holding: Holding::Disk,
            cores: 2,
        }
    }

    #[test]
    fn every_plan_names_its_listener_its_origin_and_its_own_folder() {
        let description = described("/somewhere/of-its-own", &[]);
        for peer in PEERS {
            let plan = (peer.plan)(&description);
            let files = plan.files.iter().map(|(_, text)| text.as_str());
            let text: String = files.chain(plan.serve.iter().map(String::as_str)).collect();
            for wanted in ["20001", "20002", "/somewhere/of-its-own"] {
                assert!(text.contains(wanted), "{}: no {wanted} in {text}", peer.name);
            }
        }
    }

    #[test]
    fn who_can_have_several_disks_names_the_cache_on_each_and_gives_it_its_part() {
        let description = described("/one/proxy", &["/two/proxy"]);
        for peer in PEERS.into_iter().filter(|peer| peer.disks == Disks::Several) {
            let plan = (peer.plan)(&description);
            let files = plan.files.iter().map(|(_, text)| text.as_str());
            let text: Vec<&str> = files.chain(plan.serve.iter().map(String::as_str)).collect();
            let text = text.join(" ");
            for wanted in ["/one/proxy/cache", "/two/proxy/cache"] {
                assert!(text.contains(wanted), "{}: no {wanted} in {text}", peer.name);
            }
            let whole = [description.disk.0.to_string(), "256m".into(), " 256 ".into()];
            assert!(!whole.iter().any(|size| text.contains(size.as_str())), "{}: {text}", peer.name);
            assert!(text.contains("134217728") || text.contains("128m") || text.contains(" 128 "), "{text}");
        }
    }
}
