//! Runs a foxy binary as a separate process. Tests can set its environment, kill it, and read its
//! standard error. `FOXY_BINARY` selects a binary that was not built with the tests.

use super::address_after;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Number of the newest lines of standard error that are kept.
const KEPT: usize = 200;

/// Returns an environment variable, if it is set.
#[expect(clippy::disallowed_methods, reason = "says how large a run is and where its record goes")]
pub fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Returns an environment variable as a number, or `otherwise` if it is not set.
pub fn number(name: &str, otherwise: u64) -> u64 {
    let text = variable(name);
    text.map_or(otherwise, |text| {
        text.parse().unwrap_or_else(|_| panic!("{name} is not a number: {text}"))
    })
}

/// Returns the path of the binary under test.
pub fn binary() -> PathBuf {
    variable("FOXY_BINARY").map_or_else(|| env!("CARGO_BIN_EXE_foxy").into(), PathBuf::from)
}

type Lines = Arc<Mutex<VecDeque<String>>>;

/// A running foxy process. Drop kills it.
pub struct BlackBox {
    child: Child,
    said: Lines,
    ready: Receiver<String>,
}

impl BlackBox {
    /// Starts the process without waiting for it.
    pub fn spawn(command: &mut Command) -> std::io::Result<Self> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let said = Lines::default();
        let (tell, ready) = channel();
        let (errors, lines) = (child.stderr.take().expect("piped"), Arc::clone(&said));
        std::thread::spawn(move || listen(errors, &lines, |welcome| tell.send(welcome).is_ok()));
        Ok(Self { child, said, ready })
    }

    /// Waits until foxy serves. Returns the address of the proxy and the address of the admin
    /// server.
    ///
    /// # Errors
    /// The output of foxy, if foxy ended or did not start in time.
    pub fn ready(&mut self, within: Duration) -> Result<(SocketAddr, SocketAddr), String> {
        match self.ready.recv_timeout(within) {
            Ok(welcome) => Ok((address_after(&welcome, "proxy"), address_after(&welcome, "admin"))),
            Err(RecvTimeoutError::Timeout) => {
                Err(format!("not ready after {within:?}: {}", self.said()))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(format!("ended with {:?}: {}", self.child.wait(), self.said()))
            }
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether the process is still running.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Sends a signal by its name, as for kill(1).
    pub fn signal(&self, name: &str) {
        super::commands::signal(self.child.id(), name);
    }

    /// Waits until the process has ended. Returns `None` if it does not end within `within`.
    pub fn ended(&mut self, within: Duration) -> Option<ExitStatus> {
        const STEP: Duration = Duration::from_millis(2);
        for _ in 0..within.as_millis() / STEP.as_millis() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(STEP);
        }
        None
    }

    /// Kills the process with SIGKILL.
    pub fn kill(&mut self) {
        let _ended_already = self.child.kill();
        let _ended_already = self.child.wait();
    }

    /// Returns the last lines that the process wrote to standard error.
    pub fn said(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().map(String::as_str).collect()
    }
}

impl Drop for BlackBox {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Keeps the newest lines of standard error, and passes the start-up message to `tell`.
fn listen(errors: ChildStderr, said: &Lines, tell: impl Fn(String) -> bool) {
    let (mut reader, mut welcome, mut told) = (BufReader::new(errors), String::new(), false);
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|length| length > 0) {
        if !told {
            welcome.push_str(&line);
            told = line.starts_with("  curl ") && tell(std::mem::take(&mut welcome));
        }
        let mut kept = said.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(std::mem::take(&mut line));
        if kept.len() > KEPT {
            kept.pop_front();
        }
    }
}
