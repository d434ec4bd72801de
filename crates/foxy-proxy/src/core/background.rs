//! Runs slow calculations on threads of the lowest priority, so that they do not delay the workers.

use std::thread::Builder;
use tokio::sync::oneshot;

/// The lowest priority of a thread. Beside busy workers, the thread gets about 1.5 % of a core.
const LOWEST_PRIORITY: i32 = 19;

/// Runs `work` on a new thread with the lowest priority. An unprivileged thread cannot raise its
/// priority again, so the thread ends with the work. Returns `None` if no thread can start.
pub(crate) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, result) = oneshot::channel();
    let thread = move || {
        give_way();
        let _nobody_waits = sender.send(work());
    };
    Builder::new().name("background".into()).spawn(thread).ok()?;
    result.await.ok()
}

/// Lowers the priority of this thread. Elsewhere than on Linux, the call would lower the priority
/// of the whole process.
fn give_way() {
    if cfg!(target_os = "linux") {
        let _works_at_the_usual_priority =
            rustix::process::setpriority_process(None, LOWEST_PRIORITY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[tokio::test]
    async fn only_the_background_thread_has_the_lowest_priority() {
        let before = getpriority_process(None);
        let inside = in_background(|| getpriority_process(None)).await;
        assert_eq!(inside, Some(Ok(LOWEST_PRIORITY)));
        assert_eq!(getpriority_process(None), before);
    }
}
