//! Gives a worker (a thread that serves clients) its own io_uring. The worker then reads small
//! records itself. One system call starts all reads that began in one iteration of the worker's
//! event loop.

use foxy_store::ThreadRing;
use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::task::Poll;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Runs the reads of this worker, if a store uses io_uring. Returns only if the worker gets no
/// io_uring. The threads of the stores then read the records for this worker.
pub(super) async fn run(is_for_rings: bool) {
    if let Some((ring, bell)) = is_for_rings.then(open).flatten() {
        poll_fn(|cx| {
            while let Poll::Ready(Ok(mut rung)) = bell.poll_read_ready(cx) {
                rung.clear_ready();
            }
            ring.turn(cx.waker());
            Poll::<()>::Pending
        })
        .await;
    }
}

#[expect(deprecated, reason = "the safe constructor; it is sound, because the file is owned")]
fn open() -> Option<(ThreadRing, AsyncFd<OwnedFd>)> {
    let ring = ThreadRing::open().ok()?;
    let bell = AsyncFd::with_interest(ring.bell().ok()?, Interest::READABLE).ok()?;
    Some((ring, bell))
}
