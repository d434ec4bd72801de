//! The orderly end: requests in progress, then the stores and the log. Nothing can keep foxy from
//! ending but its own patience.

use super::facts::RunningFacts;
use super::opening::{RunningProxy, keep_doubts};
use crate::signals::{SignalWish, Signals};
use crate::terminal::{self, Level};
use foxy_base::clock;
use std::time::Duration;
use tokio::sync::oneshot;

/// How often it is looked whether a disk hangs.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// How long the lists of purges may take when a disk hangs; they may lie on another.
const PATIENCE_FOR_LISTS: Duration = Duration::from_secs(5);

/// Lets requests in progress end, then closes the stores and the log. A second signal ends it at
/// once, and so does a disk that hangs once the requests have had their time: it costs what was not
/// written, as the stores survive any end.
pub async fn stop(
    running: RunningProxy,
    signals: &mut Signals,
    facts: &RunningFacts,
    stop_after: Duration,
) {
    terminal::report(
        Level::Info,
        "foxy: stopping when requests in progress have ended; again to stop at once",
    );
    let Some(ended) = in_a_thread("stop", move || running.close()) else { return };
    let again = async { while signals.next().await != SignalWish::Stop {} };
    tokio::select! {
        _ = ended => terminal::report(Level::Info, "foxy: stopped"),
        () = again => terminal::report(Level::Warning, "foxy: stopped at once"),
        folder = silent(facts, stop_after) => {
            let purger = facts.purger.clone();
            if let Some(kept) = in_a_thread("doubts", move || keep_doubts(&purger)) {
                // Lists on a disk that hangs cannot be written; that is as after a kill.
                let _ = tokio::time::timeout(PATIENCE_FOR_LISTS, kept).await;
            }
            let text = format!(
                "foxy: store {folder}: its disk does not answer; stopped without it, and what was not written is lost"
            );
            terminal::report(Level::Warning, &text);
        }
    }
}

/// Does something in a thread of its own and says when it is done; `None` when the system gives no
/// thread.
fn in_a_thread(name: &str, what: impl FnOnce() + Send + 'static) -> Option<oneshot::Receiver<()>> {
    let (done, ended) = oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        what();
        let _nobody_waits = done.send(());
    });
    thread.ok().map(|_| ended)
}

/// The folder of a store whose disk does not answer, not before requests have had their time to
/// end.
async fn silent(facts: &RunningFacts, stop_after: Duration) -> String {
    let since = clock::monotonic() + stop_after;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        if clock::monotonic() >= since
            && let Some(folder) = facts.silent()
        {
            return folder.to_owned();
        }
    }
}
