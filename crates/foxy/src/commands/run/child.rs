//! Runs the command of `foxy run` as a child process: starts it, forwards signals to it, and waits
//! for its end.

use crate::failure::Failure;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

/// Exit code that shells use if the command does not exist.
const NOT_FOUND: u8 = 127;
/// Exit code that shells use if the command exists but cannot be executed.
const NOT_RUNNABLE: u8 = 126;
/// If a signal ends a command, shells use 128 plus the number of the signal as exit code.
const BY_SIGNAL: i32 = 128;

/// Runs `command` to its end, with `variables` added to its environment. Forwards SIGTERM, SIGHUP
/// and SIGINT. An exit code other than 0 becomes [`Failure::Ended`].
pub fn run(command: &[OsString], variables: &[(&'static str, OsString)]) -> Result<(), Failure> {
    let failed =
        |error: std::io::Error| Failure::Failed(format!("cannot wait for the command: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (program, arguments) = command.split_first().expect("the command line demands one");
    let status = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hang_up = signal(SignalKind::hangup()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let child = Command::new(program).args(arguments).envs(variables.iter().cloned()).spawn();
        let mut child = child.map_err(|error| {
            let text = format!("{}: {error}", program.display());
            let code = if error.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE };
            Failure::NotRun(text, code)
        })?;
        loop {
            tokio::select! {
                status = child.wait() => return status.map_err(failed),
                _ = terminate.recv() => pass_on(&child, rustix::process::Signal::TERM),
                _ = hang_up.recv() => pass_on(&child, rustix::process::Signal::HUP),
                _ = interrupt.recv() => {
                    if !has_terminal() {
                        pass_on(&child, rustix::process::Signal::INT);
                    }
                }
            }
        }
    })?;
    match code(status) {
        0 => Ok(()),
        code => Err(Failure::Ended(code)),
    }
}

/// Returns whether foxy is in the terminal's foreground process group. Then Ctrl-C sends SIGINT to
/// the child too, so foxy must not forward it.
fn has_terminal() -> bool {
    let foreground = rustix::termios::tcgetpgrp(std::io::stdin());
    foreground.is_ok_and(|group| group == rustix::process::getpgrp())
}

fn pass_on(child: &Child, signal: rustix::process::Signal) {
    let id = child.id().and_then(|id| rustix::process::Pid::from_raw(id.cast_signed()));
    if let Some(id) = id {
        // An error means that the child has just ended, and then it needs no signal.
        let _ = rustix::process::kill_process(id, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| BY_SIGNAL + signal));
    u8::try_from(code.unwrap_or(1)).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str) -> Result<(), Failure> {
        run(&["sh".into(), "-c".into(), script.into()], &[("FOXY_TEST", "7".into())])
    }

    #[test]
    fn the_exit_code_is_the_commands_or_128_plus_its_signal() {
        assert!(ended("exit 0").is_ok());
        assert!(matches!(ended("exit 3"), Err(Failure::Ended(3))));
        assert!(matches!(ended("exit $FOXY_TEST"), Err(Failure::Ended(7))));
        assert!(matches!(ended("kill -TERM $$"), Err(Failure::Ended(143))));
        let missing = run(&["/nonexistent/program".into()], &[]);
        assert!(matches!(missing, Err(Failure::NotRun(_, NOT_FOUND))));
        assert!(matches!(run(&["/".into()], &[]), Err(Failure::NotRun(_, NOT_RUNNABLE))));
    }
}
