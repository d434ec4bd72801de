//! The signals that commands listen to.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalWish {
    /// SIGTERM or SIGINT: stop.
    Stop,
    /// SIGHUP: open log files anew, and read certificates anew.
    Reopen,
    /// SIGUSR1: open log files anew.
    ReopenLogs,
}

/// The signal of a write beyond the process's limit on the size of a file.
const FILE_TOO_LARGE: i32 = 25;

/// From now on a write beyond the limit on the size of a file fails, as on a full disk, and does
/// not end the process. A child process begins without this.
///
/// # Errors
/// The system gives no handler.
pub fn outlive_file_limit() -> std::io::Result<()> {
    outlive(&[SignalKind::from_raw(FILE_TOO_LARGE)])
}

/// From now on a signal that has logs opened anew, or that other servers replace themselves at,
/// does not end the process, although nobody listens yet: one may come while stores are opened.
///
/// # Errors
/// The system gives no handler.
pub fn outlive_log_rotation() -> std::io::Result<()> {
    outlive(&[SignalKind::hangup(), SignalKind::user_defined1(), SignalKind::user_defined2()])
}

/// A handler stays when the runtime that it was made in is gone; nobody asks what it saw.
fn outlive(kinds: &[SignalKind]) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { kinds.iter().try_for_each(|&kind| signal(kind).map(drop)) })
}

/// The signals, listened to from its making on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user_1: Signal,
    /// SIGUSR2, which other servers replace themselves at: nothing is done.
    user_2: Signal,
}

impl Signals {
    /// Listens. Must be called inside a runtime.
    ///
    /// # Errors
    /// The system gives no handler.
    pub fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
            user_1: signal(SignalKind::user_defined1())?,
            user_2: signal(SignalKind::user_defined2())?,
        })
    }

    /// Waits for the next one.
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

/// Waits for SIGTERM or SIGINT, without a runtime around it.
///
/// # Errors
/// The system gives no runtime or handler.
pub fn wait_for_stop() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut signals = Signals::listen()?;
        while signals.next().await != SignalWish::Stop {}
        Ok(())
    })
}

/// From now on the first signal sets this flag instead of ending the process, so that what was
/// measured is kept and what was made is removed.
///
/// # Errors
/// The system gives no runtime, handler or thread.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let failed =
        |error: std::io::Error| Failure::Failed(format!("foxy: no signal handler: {error}"));
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let listen = move || {
        // A hang-up ends what is measured too: whoever waits for it has gone.
        runtime.block_on(async { while signals.next().await == SignalWish::ReopenLogs {} });
        set.store(true, Relaxed);
    };
    std::thread::Builder::new().spawn(listen).map_err(failed)?;
    Ok(flag)
}
