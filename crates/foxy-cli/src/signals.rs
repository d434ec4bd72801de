//! Handles the Unix signals to which foxy commands react.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The action that an operator requests with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalWish {
    /// SIGTERM or SIGINT: stop the command.
    Stop,
    /// SIGHUP: reopen log files and read certificates again.
    Reopen,
    /// SIGUSR1: reopen log files.
    ReopenLogs,
}

/// Number of the signal SIGXFSZ. The kernel sends it to a process that writes to a file beyond the
/// process's file size limit.
const FILE_TOO_LARGE: i32 = 25;

/// Makes a write beyond the process's file size limit fail with an error. Without this call, the
/// kernel ends the process. Child processes do not inherit this behaviour.
///
/// # Errors
/// Returns an error if the system refuses the signal handler.
pub fn outlive_file_limit() -> std::io::Result<()> {
    outlive(&[SignalKind::from_raw(FILE_TOO_LARGE)])
}

/// Prevents SIGHUP, SIGUSR1 and SIGUSR2 from ending the process before [`Signals::listen`] is
/// called. Log rotation may send these signals while foxy opens its stores.
///
/// # Errors
/// Returns an error if the system refuses a signal handler.
pub fn outlive_log_rotation() -> std::io::Result<()> {
    outlive(&[SignalKind::hangup(), SignalKind::user_defined1(), SignalKind::user_defined2()])
}

/// Installs handlers for `kinds` with a Tokio runtime that lives only during this call. The
/// handlers remain installed.
fn outlive(kinds: &[SignalKind]) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { kinds.iter().try_for_each(|&kind| signal(kind).map(drop)) })
}

/// Receives the operator's signals, one at a time.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user_1: Signal,
    /// Receives SIGUSR2, which foxy ignores. Some other servers replace their program when they
    /// receive this signal.
    user_2: Signal,
}

impl Signals {
    /// Starts to receive signals. Must be called inside a Tokio runtime.
    ///
    /// # Errors
    /// Returns an error if the system refuses a signal handler.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for the next signal, and returns the action that it requests.
    pub async fn next(&mut self) -> SignalWish {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return SignalWish::Stop,
                _ = self.interrupt.recv() => return SignalWish::Stop,
                _ = self.hang_up.recv() => return SignalWish::Reopen,
                _ = self.user_1.recv() => return SignalWish::ReopenLogs,
                _ = self.user_2.recv() => {}
            }
        }
    }
}

/// Waits for SIGTERM or SIGINT. Must be called outside a Tokio runtime.
///
/// # Errors
/// Returns an error if the Tokio runtime cannot start, or if the system refuses the signal handler.
pub fn wait_for_stop() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        while signals.next().await != SignalWish::Stop {}
        Ok(())
    })
}

/// Returns a flag that becomes true at the first SIGTERM, SIGINT or SIGHUP. The command polls the
/// flag, so that it can save results and remove temporary files before it ends.
///
/// # Errors
/// Returns an error if the Tokio runtime or a thread cannot start, or if the system refuses the
/// signal handler.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    interrupted_then(|| ())
}

/// Returns a flag like [`interrupted`], and calls `then` in the thread that has set the flag.
///
/// # Errors
/// Returns the errors of [`interrupted`].
pub fn interrupted_then(then: impl FnOnce() + Send + 'static) -> Result<Arc<AtomicBool>, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Failed(format!("foxy: cannot install a signal handler: {error}"))
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let listen = move || {
        // SIGUSR1 only asks foxy to reopen its logs, so it does not set the flag.
        runtime.block_on(async { while signals.next().await == SignalWish::ReopenLogs {} });
        set.store(true, Relaxed);
        then();
    };
    std::thread::Builder::new().spawn(listen).map_err(failed)?;
    Ok(flag)
}
