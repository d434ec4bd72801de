//! A running proxy. Starts it at a free port, describes its setup in a record, and measures its use
//! of CPU, memory and disks.

use super::control_group::ControlGroup;
use super::process::Running;
use super::ready::NotReady;
use super::usage::Moment;
use super::{Description, Peer, Plan, ready};
use foxy_cli::terminal;
use foxy_cli::terminal::Level;
use foxy_report::{Measure, Record, Subject};
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

/// Several running proxies. Dropping this value asks all of them to end, and then waits for each.
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
    /// Starts a proxy. Returns the proxy and a record of its setup. The record leaves out the paths
    /// of `folder` and of the proxy's folders.
    pub fn start(
        start: &Start<'_>,
        mut description: Description,
        folder: &Path,
    ) -> Result<(Self, Record), String> {
        let (running, plan) = start.start(&mut description, start.peer.plan)?;
        let beside = description.beside.iter().filter_map(|folder| folder.parent());
        let folders: Vec<&Path> =
            [&*description.folder, folder].into_iter().chain(beside).collect();
        let subject = start.subject(&plan, &folders);
        let (name, address) = (start.name.to_owned(), description.listen);
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
                    return Err(format!(
                        "the proxy cannot be put into the control group that limits it: {error}"
                    ));
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
                "{} ended during the run ({status}): {}",
                self.name,
                self.running.last_words()
            ));
        }
        let usage = self.running.usage();
        let usage =
            usage.ok_or_else(|| format!("{} ended before its CPU time was measured", self.name))?;
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

const ATTEMPTS: u32 = 5;

pub struct Start<'a> {
    pub peer: &'a Peer,
    pub program: &'a Path,
    pub name: &'a str,
    /// The address of the origin that requests contain.
    pub host: SocketAddr,
    pub workload: &'a str,
    pub limit: Option<&'a ControlGroup>,
    pub interrupted: &'a AtomicBool,
}

impl Start<'_> {
    fn subject(&self, plan: &Plan, folders: &[&Path]) -> Subject {
        subject(self.peer, self.program, self.name, self.workload, plan, folders)
    }

    pub fn start(
        &self,
        description: &mut Description,
        plan: impl Fn(&Description) -> Plan,
    ) -> Result<(Running, Plan), String> {
        let name = self.name;
        for attempt in 1..=ATTEMPTS {
            description.listen = ready::free_place(name)?;
            let plan = plan(description);
            let mut running =
                Running::start(self.peer, self.program, description, &plan, self.limit)?;
            let ready = ready::wait_until_ready(
                &mut running,
                name,
                description,
                self.host,
                self.interrupted,
            );
            match ready {
                Ok(()) => return Ok((running, plan)),
                Err(NotReady::Failed(why)) => return Err(why),
                Err(NotReady::PortTaken) if attempt < ATTEMPTS => {
                    let listen = description.listen;
                    let what = format!(
                        "{name}: another program took {listen}; starting it at another port"
                    );
                    terminal::report(Level::Warning, &what);
                }
                Err(NotReady::PortTaken) => {}
            }
            running.stop();
            // An error does not matter, because the next attempt creates the folder again.
            let _laid_out_anew = std::fs::remove_dir_all(&description.folder);
        }
        Err(format!(
            "{name} did not start: other programs took each of {ATTEMPTS} ports; try again"
        ))
    }
}

/// Describes the setup of a proxy in a record, in enough detail to repeat the run.
pub fn subject(
    peer: &Peer,
    program: &Path,
    name: &str,
    workload: &str,
    plan: &Plan,
    folders: &[&Path],
) -> Subject {
    let neutral = |text: &str| {
        folders.iter().fold(text.to_owned(), |text, folder| {
            text.replace(&*folder.to_string_lossy(), "FOLDER")
        })
    };
    let program_name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let command =
        [program_name].into_iter().chain(plan.serve.iter().map(|argument| neutral(argument)));
    let helper = plan.helper.iter().map(|helper| {
        let words = helper.arguments.iter().map(|argument| neutral(argument)).collect::<Vec<_>>();
        format!("beside it: {} {}", helper.program, words.join(" "))
    });
    Subject {
        subject: name.into(),
        version: peer.version(program),
        workload: workload.into(),
        command: command.collect::<Vec<_>>().join(" "),
        files: plan.files.iter().map(|(name, text)| ((*name).to_owned(), neutral(text))).collect(),
        notes: plan.notes.iter().map(ToString::to_string).chain(helper).collect(),
    }
}
