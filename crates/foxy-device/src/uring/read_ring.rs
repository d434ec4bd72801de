//! A ring (io_uring instance) with which one thread reads files that a device has open. Each call
//! of `turn` submits the new reads and collects the finished reads, with at most one system call.

use super::queue::TransferQueue;
use super::slots::{Transfer, Work};
use super::{UringError, setup_error};
use crate::buffer::IoBuffer;
use crate::io::{FileId, IoDone, IoError, IoId, range_end};
use crate::reader::Reader;
use io_uring::IoUring;
use rustix::event::{EventfdFlags, eventfd};
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// Maximum number of reads in the kernel at once. Further reads wait in this process.
const DEPTH: u32 = 128;

/// Maximum total size in bytes of the buffers of unfinished reads.
const MAX_BYTES: usize = 2 << 20;

/// When a ring is dropped, it waits at most this time for each unfinished read.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// A ring for the reads of one thread.
pub struct ReadRing {
    queue: TransferQueue,
    /// The kernel writes to this eventfd when a read has finished.
    bell: OwnedFd,
    /// Number of bytes in the buffers of unfinished reads.
    bytes: usize,
    /// Other threads must not use the ring, because the kernel would refuse their calls.
    thread: PhantomData<*const ()>,
}

impl fmt::Debug for ReadRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadRing").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}

impl ReadRing {
    /// Creates a ring for the calling thread.
    ///
    /// # Errors
    /// Returns a [`UringError`] if the kernel has no suitable io_uring.
    pub fn new() -> Result<Self, UringError> {
        let ring = ring().map_err(setup_error)?;
        super::check_abilities(&ring)?;
        let bell = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|error| UringError::Helper(error.raw_os_error()))?;
        ring.submitter().register_eventfd(bell.as_raw_fd()).map_err(setup_error)?;
        Ok(Self { queue: TransferQueue::new(ring, DEPTH), bell, bytes: 0, thread: PhantomData })
    }

    /// Returns an eventfd that becomes readable when the next call of [`Self::turn`] may find a
    /// finished read. The caller need not read the eventfd: an edge-triggered epoll reports each
    /// new signal.
    ///
    /// # Errors
    /// Returns an error if the process has no free descriptor.
    pub fn bell(&self) -> io::Result<OwnedFd> {
        self.bell.try_clone()
    }

    /// Whether the ring accepts a read of `length` bytes now. Each ring has a limit on the memory
    /// of its unfinished reads.
    #[must_use]
    pub const fn has_room(&self, length: usize) -> bool {
        self.bytes + length <= MAX_BYTES
    }

    /// Begins to read `length` bytes of a file of `reader` at `offset`. The next call of
    /// [`Self::turn`] passes the read to the kernel.
    pub fn begin(&mut self, id: IoId, reader: &Reader, file: FileId, offset: u64, length: usize) {
        let buffer = IoBuffer::for_read(length);
        self.bytes += length;
        let found = reader.file(file).ok_or(IoError::NotOpen);
        match found.and_then(|file| range_end(offset, length as u64).map(|_| file)) {
            Ok(file) => {
                self.queue.add(Transfer::new(id, file, Work::Read { offset }, Some(buffer)));
            }
            Err(error) => {
                let done = IoDone { id, result: Err(error), buffer: Some(buffer) };
                self.queue.finished.push(done);
            }
        }
    }

    /// Passes new reads to the kernel, and adds the finished reads to `done`. Never waits. Makes no
    /// system call if nothing is to do. Returns whether the caller must call again soon.
    ///
    /// # Errors
    /// Returns an error if the kernel refuses the call. The unfinished reads may then never finish,
    /// so the caller must drop the ring.
    pub fn turn(&mut self, done: &mut Vec<IoDone>) -> Result<bool, IoError> {
        self.queue.fill();
        let turned = self.queue.turn(0, None);
        let buffers = self.queue.finished.iter().filter_map(|done| done.buffer.as_ref());
        self.bytes -= buffers.map(IoBuffer::len).sum::<usize>();
        done.append(&mut self.queue.finished);
        turned?;
        Ok(self.queue.has_more())
    }
}

impl Drop for ReadRing {
    fn drop(&mut self) {
        self.queue.finish_within(LAST_PATIENCE);
    }
}

/// Sets up a ring that never interrupts its only thread: completions wait until the thread asks for
/// them. A kernel before 6.1 cannot do this, so the ring then works in the usual way.
fn ring() -> io::Result<IoUring> {
    IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .build(DEPTH)
        .or_else(|_| IoUring::new(DEPTH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::{Device, IoOp, IoOutput, StorePath};
    use crate::park::BlockingDevice;
    use crate::root::Root;
    use crate::threads::DirectIo;
    use crate::uring::Uring;
    use foxy_base::Instant;
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::io::Errno;

    const FILE: FileId = FileId(1);
    const BYTES: usize = 3 << 20;

    /// Returns the reader of a device with a file of `BYTES` bytes. The value of each byte is the
    /// number of its page.
    fn reader(folder: &tempfile::TempDir) -> Reader {
        let root = Root::open(folder.path()).expect("a new folder");
        let mut device = Uring::new(&root, 8, DirectIo::Off).expect("io_uring");
        let create = IoOp::Create { file: FILE, path: StorePath::new("a"), size: BYTES as u64 };
        let mut buffer = IoBuffer::zeroed(BYTES);
        for (page, bytes) in buffer.as_mut().chunks_mut(4096).enumerate() {
            bytes.fill(page as u8);
        }
        for op in [create, IoOp::Write { file: FILE, offset: 0, buffer }, IoOp::Sync { file: FILE }]
        {
            device.submit(IoId(0), op, Instant::ZERO);
            let mut done = Vec::new();
            while done.is_empty() {
                device.wait(None);
                device.reap(Instant::ZERO, &mut done);
            }
            assert!(done[0].result.is_ok(), "{done:?}");
        }
        device.reader().expect("a device of the page cache has a reader")
    }

    fn wait(ring: &mut ReadRing, count: usize) -> Vec<IoDone> {
        let (bell, mut done) = (ring.bell().expect("a descriptor"), Vec::new());
        let mut has_more = ring.turn(&mut done).expect("a working ring");
        while done.len() < count {
            if !has_more {
                poll(&mut [PollFd::new(&bell, PollFlags::IN)], None).expect("the bell rings");
            }
            has_more = ring.turn(&mut done).expect("a working ring");
        }
        assert_eq!(ring.bytes, 0);
        done
    }

    #[test]
    fn reads_return_the_bytes_of_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (reader, mut ring) = (reader(&folder), ReadRing::new().expect("io_uring"));
        for page in 0..200 {
            ring.begin(IoId(page), &reader, FILE, page * 4096, 8192);
        }
        for IoDone { id, result, buffer } in wait(&mut ring, 200) {
            assert_eq!(result, Ok(IoOutput::Moved { count: 8192 }));
            let buffer = buffer.expect("reads return their buffer");
            let (first, second) = buffer.as_ref().split_at(4096);
            assert!(first.iter().all(|byte| *byte == id.0 as u8), "{id:?}");
            assert!(second.iter().all(|byte| *byte == id.0 as u8 + 1), "{id:?}");
        }
    }

    #[test]
    fn reads_past_the_end_and_of_closed_files_fail() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (reader, mut ring) = (reader(&folder), ReadRing::new().expect("io_uring"));
        ring.begin(IoId(1), &reader, FILE, BYTES as u64 - 10, 4096);
        ring.begin(IoId(2), &reader, FileId(7), 0, 4096);
        ring.begin(IoId(3), &reader, FILE, u64::MAX - 5, 4096);
        let mut done = wait(&mut ring, 3);
        done.sort_by_key(|done| done.id);
        let results: Vec<_> = done.into_iter().map(|done| done.result).collect();
        assert_eq!(results[0], Ok(IoOutput::Moved { count: 10 }));
        assert_eq!(results[1], Err(IoError::NotOpen));
        assert!(results[2].is_err(), "{results:?}");
    }

    #[test]
    fn a_ring_has_no_room_for_too_many_bytes_and_finishes_when_dropped() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (reader, mut ring) = (reader(&folder), ReadRing::new().expect("io_uring"));
        let mut begun = 0;
        while ring.has_room(64 << 10) {
            ring.begin(IoId(begun), &reader, FILE, 0, 64 << 10);
            begun += 1;
        }
        assert_eq!(begun as usize, MAX_BYTES / (64 << 10));
        ring.turn(&mut Vec::new()).expect("a working ring");
    }

    /// A ring that a test uses on another thread than the ring's own thread. The kernel refuses all
    /// calls there.
    struct MovedRing(ReadRing);

    // SAFETY: a ring is memory and descriptors that no other thread uses at the same time.
    unsafe impl Send for MovedRing {}

    impl MovedRing {
        fn turn(mut self) -> (Result<bool, IoError>, usize) {
            let mut done = Vec::new();
            (self.0.turn(&mut done), done.len())
        }
    }

    #[test]
    fn a_ring_whose_calls_the_kernel_refuses_reports_an_error() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (reader, mut ring) = (reader(&folder), ReadRing::new().expect("io_uring"));
        ring.begin(IoId(1), &reader, FILE, 0, 4096);
        let moved = MovedRing(ring);
        let turned = std::thread::spawn(|| moved.turn()).join().expect("no panic");
        // A ring of a kernel before 6.1 works on all threads.
        let refused = Err(IoError::from(Errno::EXIST));
        assert!([(refused, 0), (Ok(false), 1)].contains(&turned), "{turned:?}");
    }
}
