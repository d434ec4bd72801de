//! The io_uring of the calling thread. A thread with such a ring reads records from the disk
//! itself, so that the store's thread need not wake. [`ThreadRing`] explains the use.

use crate::contract::RecordPlace;
use foxy_device::{IoBuffer, IoDone, IoId, IoOutput, ReadRing, Reader, UringError};
use std::cell::RefCell;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::task::Waker;

/// Receives the bytes of a read, or `None` if the read failed or returned too few bytes.
pub(super) type Then = Box<dyn FnOnce(Option<IoBuffer>)>;

thread_local! {
    static RING: RefCell<Option<RingState>> = const { RefCell::new(None) };
}

/// The ring (io_uring instance) of a thread, and the reads in progress on it.
struct RingState {
    reads: ReadRing,
    /// The receivers of the reads in progress. The index is the `IoId` of the read.
    waiting: Vec<Option<Then>>,
    free: Vec<usize>,
    done: Vec<IoDone>,
    /// Wakes the task that calls [`ThreadRing::turn`]. `None` after the task was woken.
    waker: Option<Waker>,
}

impl RingState {
    fn take(&mut self, IoId(id): IoId) -> Option<Then> {
        let index = usize::try_from(id).ok()?;
        let then = self.waiting.get_mut(index)?.take()?;
        self.free.push(index);
        Some(then)
    }

    fn begin(&mut self, reader: &Reader, place: RecordPlace, then: Then) {
        let index = self.free.pop().unwrap_or_else(|| {
            self.waiting.push(None);
            self.waiting.len() - 1
        });
        self.waiting[index] = Some(then);
        let RecordPlace { file, offset, length } = place;
        self.reads.begin(IoId(index as u64), reader, file, offset, length);
    }
}

/// An io_uring for the calling thread. As long as this value exists, gets of small records on this
/// thread read through the ring, from stores whose device uses io_uring. The thread must call
/// [`ThreadRing::turn`] each time the waker that it passed to the last call is woken. It must also
/// call it when the eventfd of [`ThreadRing::bell`] signals.
#[derive(Debug)]
pub struct ThreadRing(PhantomData<*const ()>);

impl ThreadRing {
    /// Opens a ring for this thread, which must not have a ring yet.
    ///
    /// # Errors
    /// Returns a [`UringError`] if the kernel has no suitable io_uring.
    pub fn open() -> Result<Self, UringError> {
        let (reads, waiting) = (ReadRing::new()?, Vec::new());
        let ring = RingState { reads, waiting, free: Vec::new(), done: Vec::new(), waker: None };
        RING.set(Some(ring));
        Ok(Self(PhantomData))
    }

    /// Returns an eventfd that signals when a call of [`ThreadRing::turn`] may find a finished
    /// read. Use the eventfd with an edge-triggered epoll, so that no thread needs to read it.
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
    pub fn bell(&self) -> io::Result<OwnedFd> {
        RING.with_borrow(|ring| match ring {
            Some(ring) => ring.reads.bell(),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    /// Passes all reads that began after the last call to the kernel, and answers the gets whose
    /// reads have finished. Wakes `waker` when the next read begins.
    pub fn turn(&self, waker: &Waker) {
        let Some((mut done, turned)) = RING.with_borrow_mut(|ring| {
            let ring = ring.as_mut()?;
            let mut done = std::mem::take(&mut ring.done);
            let turned = ring.reads.turn(&mut done);
            ring.waker.get_or_insert_with(|| waker.clone());
            Some((done, turned))
        }) else {
            return;
        };
        if turned == Ok(true) {
            waker.wake_by_ref();
        }
        for IoDone { id, result, buffer } in done.drain(..) {
            let then = RING.with_borrow_mut(|ring| ring.as_mut()?.take(id));
            let whole = |buffer: &IoBuffer| result == Ok(IoOutput::Moved { count: buffer.len() });
            // The receiver may begin another read, so the ring must not be borrowed here.
            if let Some(then) = then {
                then(buffer.filter(whole));
            }
        }
        if turned.is_err() {
            return give_up();
        }
        RING.with_borrow_mut(|ring| {
            if let Some(ring) = ring {
                ring.done = done;
            }
        });
    }
}

impl Drop for ThreadRing {
    fn drop(&mut self) {
        drop(RING.take());
    }
}

/// Closes the ring of the calling thread, because the kernel refuses its calls. From now on, the
/// stores' threads read records for this thread.
fn give_up() {
    let unfinished = RING.take().map(|ring| ring.waiting);
    unfinished.into_iter().flatten().flatten().for_each(|then| then(None));
}

/// Whether the calling thread has a ring with space for a read of `length` bytes, and `reader`
/// permits the use of the ring.
pub(super) fn has_room(reader: &Reader, length: usize) -> bool {
    reader.is_for_rings()
        && RING.with_borrow(|ring| ring.as_ref().is_some_and(|ring| ring.reads.has_room(length)))
}

/// Begins a read on the ring of the calling thread. `then` receives the bytes in a later call of
/// [`ThreadRing::turn`].
pub(super) fn begin(reader: &Reader, place: RecordPlace, then: Then) {
    let waker = RING.with_borrow_mut(|ring| {
        let ring = ring.as_mut()?;
        ring.begin(reader, place, then);
        ring.waker.take()
    });
    if let Some(waker) = waker {
        waker.wake();
    }
}
