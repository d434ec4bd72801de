//! The signals that commands listen to.

use crate::failure::Failure;
use foxy_lab::sim::runs::Watch;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
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

/// From now on a signal ends runs early instead of the process, so that what they made is removed.
///
/// # Errors
/// The system gives no runtime, handler or thread.
pub fn stop_on_signal(watch: &Arc<Watch>) -> Result<(), Failure> {
    let watch = Arc::clone(watch);
    once_signalled(move || watch.stop.store(true, Relaxed))
}

/// From now on the first signal does this instead of ending the process.
///
/// # Errors
/// The system gives no runtime, handler or thread.
pub fn once_signalled(act: impl FnOnce() + Send + 'static) -> Result<(), Failure> {
    let failed = |error: std::io::Error| Failure::Failed(format!("foxy: no signal handler: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let mut signals = runtime.block_on(async { Signals::listen() }).map_err(failed)?;
    let listen = move || {
        runtime.block_on(signals.next());
        act();
    };
    std::thread::Builder::new().spawn(listen).map_err(failed)?;
    Ok(())
}
