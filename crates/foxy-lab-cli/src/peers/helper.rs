//! A program beside a proxy that belongs to it, such as the one that keeps Apache's cache within
//! its limit. It goes into the background by itself, into a session of its own, so it is known by
//! the file that it writes its number to.

use super::in_path;
use foxy_base::clock;
use foxy_cli::process_table::Process;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long it may take to write its number.
const UNTIL_KNOWN: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(10);

/// How to run one.
#[derive(Clone, Debug)]
pub struct Helper {
    /// Its program.
    pub program: &'static str,
    /// Debian's package.
    pub package: &'static str,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Where it writes its number.
    pub number: PathBuf,
}

impl Helper {
    /// Runs it, by a command for this program with these arguments, until it is in the background.
    ///
    /// # Errors
    /// What keeps it from that, in a few words.
    pub fn start(
        &self,
        command: impl Fn(&Path, &[String]) -> io::Result<Command>,
    ) -> Result<Process, String> {
        let (program, package) = (self.program, self.package);
        let file = in_path(program).ok_or_else(|| {
            format!("{program}, which belongs to it, is not installed; `apt-get install {package}` brings it")
        })?;
        let status = command(&file, &self.arguments).and_then(|mut command| command.status());
        let status = status.map_err(|error| format!("{program} cannot be started: {error}"))?;
        let begun = clock::monotonic();
        while status.success() && clock::monotonic().since(begun) < UNTIL_KNOWN {
            let number = std::fs::read_to_string(&self.number).unwrap_or_default();
            if let Some(process) = number.trim().parse().ok().and_then(Process::find) {
                return Ok(process);
            }
            std::thread::sleep(TICK);
        }
        Err(format!("{program} did not start ({status})"))
    }
}

/// Tells one to end, unless it has.
pub fn ask_to_end(helper: &Process) {
    if let Some(process) =
        i32::try_from(helper.id).ok().and_then(Pid::from_raw).filter(|_| helper.still_runs())
    {
        let _gone_meanwhile = kill_process(process, Signal::TERM);
    }
}
