//! Stops a running proxy: finishes requests, then closes stores and log.

use crate::serve::opening::{RunningProxy, keep_doubts};
use crate::serve::status::ProxyStatus;
use crate::signals::{SignalWish, Signals};
use crate::terminal::{self, Level};
use foxy_base::clock;
use std::time::Duration;
use tokio::sync::oneshot;

/// Interval between checks during a stop whether a disk hangs.
const STOP_LOOK_INTERVAL: Duration = Duration::from_millis(200);
/// Time limit for writing the purge lists if a store's disk hangs during a stop. Lists on other
/// disks can then still be written.
const LISTS_PATIENCE: Duration = Duration::from_secs(5);

/// Waits for requests in progress, then closes the stores and the log. foxy ends at once after a
/// second signal, or if a disk hangs and `stop_after` has passed. Unwritten data is then lost, but
/// the stores remain intact.
pub async fn stop(
    running: RunningProxy,
    signals: &mut Signals,
    status: &ProxyStatus,
    stop_after: Duration,
) {
    terminal::report(
        Level::Info,
        "foxy: stopping after the requests in progress; a second signal stops foxy at once",
    );
    let Some(ended) = in_thread("stop", move || running.close()) else { return };
    tokio::select! {
        _ = ended => terminal::report(Level::Info, "foxy: stopped"),
        () = again(signals) => terminal::report(Level::Warning, "foxy: stopped at once"),
        folder = silent_folder(status, stop_after) => {
            let handle = status.handle.clone();
            if let Some(kept) = in_thread("doubts", move || keep_doubts(&handle)) {
                // A list on the hanging disk cannot be written. The next start then treats the
                // stores as after a killed process.
                let _ = tokio::time::timeout(LISTS_PATIENCE, kept).await;
            }
            let text = format!(
                "foxy: store {folder}: its disk does not answer; foxy stopped without it, and \
                 unwritten data is lost"
            );
            terminal::report(Level::Warning, &text);
        }
    }
}

/// Waits for another signal that asks foxy to stop.
pub async fn again(signals: &mut Signals) {
    while signals.next().await != SignalWish::Stop {}
}

/// Runs `work` on a new thread. The receiver yields its result. Returns `None` if the system cannot
/// start the thread.
pub fn in_thread<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<oneshot::Receiver<T>> {
    let (done, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        let _nobody_waits = done.send(work());
    });
    thread.ok().map(|_| ended)
}

/// Waits until `stop_after` has passed and a store's disk hangs. Returns the folder of this store.
async fn silent_folder(status: &ProxyStatus, stop_after: Duration) -> String {
    let since = clock::monotonic() + stop_after;
    loop {
        tokio::time::sleep(STOP_LOOK_INTERVAL).await;
        if clock::monotonic() >= since
            && let Some(folder) = status.silent_folder()
        {
            return folder.to_owned();
        }
    }
}
