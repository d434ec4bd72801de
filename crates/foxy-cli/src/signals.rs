//! Signals that commands handle.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A request of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalWish {
    /// SIGTERM or SIGINT: stop.
    Stop,
    /// SIGHUP: reopen log files and reread certificates.
    Reopen,
    /// SIGUSR1: reopen log files.
    ReopenLogs,
}

/// SIGXFSZ: a write beyond the file size limit of the process.
const FILE_TOO_LARGE: i32 = 25;

/// Makes a write beyond the file size limit fail, as on a full disk, instead of ending the process.
/// Child processes do not inherit this.
///
/// # Errors
/// The system gives no handler.
pub fn outlive_file_limit() -> std::io::Result<()> {
    outlive(&[SignalKind::from_raw(FILE_TOO_LARGE)])
}

/// Keeps signals for log rotation and self-replacement from ending the process while stores are
/// opened.
///
/// # Errors
/// The system gives no handler.
pub fn outlive_log_rotation() -> std::io::Result<()> {
    outlive(&[SignalKind::hangup(), SignalKind::user_defined1(), SignalKind::user_defined2()])
}

/// A handler outlives the runtime that installed it.
fn outlive(kinds: &[SignalKind]) -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { kinds.iter().try_for_each(|&kind| signal(kind).map(drop)) })
}

/// The signals of an operator, as a stream.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
    user_1: Signal,
    /// SIGUSR2 asks other servers to replace themselves: ignored.
    user_2: Signal,
}

impl Signals {
    /// Starts to listen. Call it inside a runtime.
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

    /// Waits for the next signal.
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

/// Waits for SIGTERM or SIGINT. Call it outside a runtime.
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

/// Returns a flag that the first signal sets, so that results are kept and temporary files removed.
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
        // A hang-up ends the run too.
        runtime.block_on(async { while signals.next().await == SignalWish::ReopenLogs {} });
        set.store(true, Relaxed);
    };
    std::thread::Builder::new().spawn(listen).map_err(failed)?;
    Ok(flag)
}
