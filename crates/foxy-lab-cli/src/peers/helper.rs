//! A helper program of a proxy, such as Apache's cache cleaner. It runs as a daemon in its own
//! session. So the lab finds it by its pid file.

use super::in_path;
use foxy_base::clock;
use foxy_cli::process_table::Process;
use rustix::process::{Pid, Signal, kill_process};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const UNTIL_KNOWN: Duration = Duration::from_secs(5);
const TICK: Duration = Duration::from_millis(10);

#[derive(Clone, Debug)]
pub struct Helper {
    pub program: &'static str,
    pub package: &'static str,
    pub arguments: Vec<String>,
    pub number: PathBuf,
}

impl Helper {
    pub fn start(
        &self,
        command: impl Fn(&Path, &[String]) -> io::Result<Command>,
    ) -> Result<Process, String> {
        let (program, package) = (self.program, self.package);
        let file = in_path(program).ok_or_else(|| {
            format!(
                "{program}, which the proxy needs, is not installed; `apt-get install \
                     {package}` installs it"
            )
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

pub fn ask_to_end(helper: &Process) {
    if let Some(process) =
        i32::try_from(helper.id).ok().and_then(Pid::from_raw).filter(|_| helper.still_runs())
    {
        let _gone_meanwhile = kill_process(process, Signal::TERM);
    }
}
