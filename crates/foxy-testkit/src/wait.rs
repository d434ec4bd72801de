//! Waits, with a time limit, for events on other threads and in other processes.

use foxy_base::clock;
use std::time::Duration;

/// Time limit of a wait. 30 seconds suffice for the slowest test machine.
pub const PATIENCE: Duration = Duration::from_secs(30);

const PAUSE: Duration = Duration::from_millis(5);

/// Calls `look` until it returns a value. Panics with the name of `event` after [`PATIENCE`].
pub fn until<T>(event: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let started = clock::monotonic();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(clock::monotonic().since(started) < PATIENCE, "{event} did not happen");
        std::thread::sleep(PAUSE);
    }
}
