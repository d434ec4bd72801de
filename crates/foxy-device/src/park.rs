//! Lets the thread that owns a device sleep. The thread wakes when an operation finishes, a timeout
//! passes, or another thread wakes it.

use crate::io::{Device, IoDone, IoId, IoOp};
use crate::reader::Reader;
use foxy_base::Instant;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// A device whose owner (the thread that uses it) can sleep. The owner's loop accepts requests,
/// reaps results, runs the storage scheme, and submits operations. When idle, the loop calls
/// [`BlockingDevice::wait`]. If another thread wakes the owner before the wait begins, the wait
/// ends at once.
pub trait BlockingDevice: Device + Send {
    /// Sleeps until a result can be reaped, [`Waker::wake`] is called, or `timeout` has passed. The
    /// call may return earlier.
    fn wait(&mut self, timeout: Option<Duration>);

    /// Returns a handle with which other threads end a wait.
    fn waker(&self) -> Waker;

    /// Returns a handle with which other threads read file content from the page cache, if the
    /// device supports this.
    fn reader(&self) -> Option<Reader> {
        None
    }
}

impl<D: Device + ?Sized> Device for Box<D> {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        (**self).submit(id, op, now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        (**self).reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        (**self).next_completion()
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn restarts(&self) -> u64 {
        (**self).restarts()
    }
}

impl<D: BlockingDevice + ?Sized> BlockingDevice for Box<D> {
    fn wait(&mut self, timeout: Option<Duration>) {
        (**self).wait(timeout);
    }

    fn waker(&self) -> Waker {
        (**self).waker()
    }

    fn reader(&self) -> Option<Reader> {
        (**self).reader()
    }
}

/// Wakes the owner of a device (the thread that uses it) from any thread.
#[derive(Clone)]
pub struct Waker(Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// Creates a waker that calls `wake`.
    #[must_use]
    pub fn new(wake: impl Fn() + Send + Sync + 'static) -> Self {
        Self(Arc::new(wake))
    }

    /// Wakes the owner of the device. The call is cheap if the owner is already awake.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// A flag for which the sleeping owner of a device waits. Devices use it if no kernel object can
/// wake their owner.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parker {
    shared: Arc<(Mutex<bool>, Condvar)>,
}

impl Parker {
    pub(crate) fn waker(&self) -> Waker {
        let parker = self.clone();
        Waker::new(move || parker.wake())
    }

    pub(crate) fn wake(&self) {
        let (flag, condition) = &*self.shared;
        *flag.lock().unwrap_or_else(PoisonError::into_inner) = true;
        condition.notify_one();
    }

    pub(crate) fn wait(&self, timeout: Option<Duration>) {
        let (flag, condition) = &*self.shared;
        let mut woken = flag.lock().unwrap_or_else(PoisonError::into_inner);
        if !*woken {
            woken = match timeout {
                None => condition
                    .wait_while(woken, |woken| !*woken)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(timeout) => {
                    let result = condition.wait_timeout_while(woken, timeout, |woken| !*woken);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        *woken = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_before_the_wait_is_not_lost() {
        let parker = Parker::default();
        parker.waker().wake();
        parker.wait(None);
    }

    #[test]
    fn another_thread_ends_the_wait() {
        let parker = Parker::default();
        let waker = parker.waker();
        let thread = std::thread::spawn(move || waker.wake());
        parker.wait(None);
        thread.join().expect("the thread only wakes");
    }
}
