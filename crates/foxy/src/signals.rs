//! The signals that commands listen to.

use crate::failure::Failure;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What an operator wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// SIGTERM or SIGINT: stop.
    Stop,
    /// SIGHUP: open log files anew, and read certificates anew.
    Reopen,
}

/// The signals, listened to from its making on.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
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
        })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.hang_up.recv() => Wish::Reopen,
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
        while signals.next().await != Wish::Stop {}
        Ok(())
    })
}

/// From now on the first signal sets this flag instead of ending the process, so that what was measured is kept and what was
/// made is removed.
///
/// # Errors
/// The system gives no runtime, handler or thread.
pub fn interrupted() -> Result<Arc<AtomicBool>, Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("foxy: no signal handler: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    let flag = Arc::new(AtomicBool::new(false));
    let set = Arc::clone(&flag);
    let listen = move || {
        runtime.block_on(signals.next());
        set.store(true, Relaxed);
    };
    std::thread::Builder::new().spawn(listen).map_err(failed)?;
    Ok(flag)
}
