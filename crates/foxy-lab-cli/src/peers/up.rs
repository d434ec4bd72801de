//! A running proxy from start to end: its setup and resource use.

use super::control_group::ControlGroup;
use super::process::Running;
use super::spent::Moment;
use super::start::Start;
use super::{Description, Peer, set_up};
use foxy_report::{Measure, Record};
use rustix::io::Errno;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub struct Up {
    pub name: String,
    pub address: SocketAddr,
    running: Running,
    caches: Vec<PathBuf>,
    before: Duration,
}

/// Drop asks all proxies to end, and then waits for each.
#[derive(Default)]
pub struct Beside(pub Vec<Up>);

impl Drop for Beside {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|up| up.running.ask_to_end());
    }
}

pub const MEASURES: [&str; 2] = ["cpu_us_per_request", "resident_bytes"];

pub struct Used {
    pub name: String,
    processor: Duration,
    pub resident: u64,
}

impl Up {
    pub fn start(
        (peer, program, name): (&Peer, &Path, &str),
        mut description: Description,
        (host, workload): (SocketAddr, &str),
        folder: &Path,
        interrupted: &AtomicBool,
    ) -> Result<(Self, Record), String> {
        let start = Start { peer, program, name, host, limit: None, interrupted };
        let (running, plan) = start.start(&mut description, peer.plan)?;
        let beside = description.beside.iter().filter_map(|folder| folder.parent());
        let folders: Vec<&Path> =
            [&*description.folder, folder].into_iter().chain(beside).collect();
        let subject = set_up::record((peer, program), (name, workload), &plan, &folders);
        let (name, address) = (name.to_owned(), description.listen);
        let caches = description.caches();
        Ok((
            Self { name, address, running, caches, before: Duration::ZERO },
            Record::Subject(subject),
        ))
    }

    pub fn moment(&mut self) -> Option<Moment> {
        Some(Moment::now(self.running.usage()?, &self.caches))
    }

    pub fn hold_in(&mut self, group: &ControlGroup) -> Result<(), String> {
        for process in self.running.processes() {
            match group.hold(process) {
                Err(error) if error.raw_os_error() != Some(Errno::SRCH.raw_os_error()) => {
                    return Err(format!("it cannot be limited: {error}"));
                }
                _held_or_ended_meanwhile => {}
            }
        }
        Ok(())
    }

    pub fn begin(&mut self) {
        self.before = self.running.usage().unwrap_or_default().processor;
    }

    pub fn used(&mut self) -> Result<Used, String> {
        if let Some(status) = self.running.ended() {
            return Err(format!(
                "{} ended in the middle ({status}): {}",
                self.name,
                self.running.last_words()
            ));
        }
        let usage = self.running.usage();
        let usage =
            usage.ok_or_else(|| format!("{} ended before it was known what it used", self.name))?;
        let processor = usage.processor.saturating_sub(self.before);
        Ok(Used { name: self.name.clone(), processor, resident: usage.resident })
    }
}

impl Used {
    #[expect(clippy::cast_precision_loss, reason = "requests of a run are far below 2^53")]
    pub fn each(&self, requests: u64) -> f64 {
        self.processor.as_secs_f64() * 1e6 / requests.max(1) as f64
    }

    #[expect(clippy::cast_precision_loss, reason = "bytes of memory are far below 2^53")]
    pub fn records(&self, requests: u64) -> [Record; 2] {
        let measure =
            |name, value, unit| Record::Measure(Measure::once(name, &self.name, value, unit));
        [
            measure("cpu_us_per_request", self.each(requests), "us"),
            measure("resident_bytes", self.resident as f64, "B"),
        ]
    }
}
