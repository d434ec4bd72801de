//! A device for a real disk with io_uring. A *ring* is an io_uring instance. One system call
//! submits many reads, writes and syncs (transfers). A separate thread performs operations on
//! paths, with the code of [`crate::threads`]. [`UringError`] lists the reasons why io_uring may
//! not run.

mod queue;
mod read_ring;
mod slots;

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, range_end};
use crate::park::{BlockingDevice, Waker};
use crate::reader::Reader;
use crate::root::Root;
use crate::threads::{DirectIo, Threads};
use foxy_base::Instant;
use io_uring::{IoUring, Probe, opcode};
use queue::TransferQueue;
pub use read_ring::ReadRing;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slots::{Transfer, Work};
use std::fmt;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Reason why a [`Uring`] cannot run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UringError {
    /// The setup failed with this error number of the system. Causes: an old kernel (ENOSYS), a
    /// container's filter or `kernel.io_uring_disabled` (EPERM), too little lockable memory
    /// (ENOMEM), or an invalid number of entries (EINVAL).
    Setup(i32),
    /// The kernel lacks operations or features that this device needs. Linux 5.11 has all of them.
    TooOld,
    /// A harmless operation, which tests io_uring, did not complete within a second.
    Trial,
    /// The helper thread or the bell (an eventfd) could not be created. The value is the error
    /// number of the system.
    Helper(i32),
}

impl fmt::Display for UringError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Setup(number) => {
                write!(
                    f,
                    "io_uring cannot be set up: {}",
                    std::io::Error::from_raw_os_error(*number)
                )
            }
            Self::TooOld => f.write_str(
                "this kernel's io_uring lacks operations that foxy needs; Linux 5.11 has them",
            ),
            Self::Trial => f.write_str("io_uring starts, but a test operation did not complete"),
            Self::Helper(number) => {
                write!(
                    f,
                    "the helper thread for io_uring cannot start: {}",
                    std::io::Error::from_raw_os_error(*number)
                )
            }
        }
    }
}

impl std::error::Error for UringError {}

/// A device that uses io_uring.
pub struct Uring {
    queue: TransferQueue,
    names: Threads,
    bell: Arc<Bell>,
    /// Whether the ring or the kernel has an entry that polls the bell (the eventfd that wakes the
    /// device's thread).
    armed: bool,
    /// Whether a poll of the bell (the eventfd that wakes the device's thread) completed after the
    /// last wait.
    heard: bool,
}

impl fmt::Debug for Uring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Uring").field("in_flight", &self.in_flight()).finish_non_exhaustive()
    }
}

impl Uring {
    /// Creates a device for the folder `root` with at most `depth` transfers (reads, writes and
    /// syncs) in the kernel. Further transfers wait in this process.
    ///
    /// # Errors
    /// Returns a [`UringError`] if the kernel has no suitable io_uring. In this case nothing stays
    /// open.
    pub fn new(root: &Root, depth: u32, direct: DirectIo) -> Result<Self, UringError> {
        // Add one entry for the poll of the bell, the eventfd that wakes the device's thread.
        let ring = IoUring::new(depth.saturating_add(1)).map_err(setup_error)?;
        check_abilities(&ring)?;
        let helper = |error: std::io::Error| UringError::Helper(error.raw_os_error().unwrap_or(0));
        let bell = Arc::new(Bell::new().map_err(|error| helper(error.into()))?);
        let names = Threads::for_owner(root, 1, direct, Bell::waker(&bell)).map_err(helper)?;
        let mut device = Self {
            queue: TransferQueue::new(ring, depth),
            names,
            bell,
            armed: false,
            heard: false,
        };
        device.try_out()?;
        Ok(device)
    }

    /// Rings the bell (an eventfd that wakes the device's thread), and waits for the completion of
    /// its poll. This test shows whether operations complete on this machine.
    fn try_out(&mut self) -> Result<(), UringError> {
        self.bell.ring();
        self.wait(Some(Duration::from_secs(1)));
        if self.armed { Err(UringError::Trial) } else { Ok(()) }
    }

    fn begin(&mut self, id: IoId, file: FileId, work: Work, buffer: Option<IoBuffer>) {
        let length = buffer.as_ref().map_or(0, IoBuffer::len);
        let found = self.names.file(file).ok_or(IoError::NotOpen);
        match found.and_then(|file| range_end(work.offset(), length as u64).map(|_| file)) {
            Ok(file) => {
                self.queue.add(Transfer::new(id, file, work, buffer));
            }
            Err(error) => self.queue.finished.push(IoDone { id, result: Err(error), buffer }),
        }
    }

    fn fill(&mut self) {
        if !self.armed {
            self.armed = self.queue.watch(self.bell.descriptor());
        }
        self.queue.fill();
    }

    /// Passes waiting entries to the kernel, and collects completions. If the kernel accepts no
    /// more entries, all transfers that wait for space in the ring fail.
    fn turn(&mut self, want: usize, timeout: Option<Duration>) {
        if let Err(error) = self.queue.turn(want, timeout) {
            self.queue.fail_backlog(error);
        }
        if self.queue.take_rang() {
            self.armed = false;
            self.heard = true;
            self.bell.silence();
        }
    }
}

fn setup_error(error: std::io::Error) -> UringError {
    UringError::Setup(error.raw_os_error().unwrap_or(0))
}

fn check_abilities(ring: &IoUring) -> Result<(), UringError> {
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe).map_err(|_| UringError::TooOld)?;
    let needed =
        [opcode::Read::CODE, opcode::Write::CODE, opcode::Fsync::CODE, opcode::PollAdd::CODE];
    let features = ring.params().is_feature_ext_arg() && ring.params().is_feature_nodrop();
    let all = features && needed.into_iter().all(|code| probe.is_supported(code));
    all.then_some(()).ok_or(UringError::TooOld)
}

impl Device for Uring {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        match op {
            IoOp::Read { file, offset, buffer } => {
                self.begin(id, file, Work::Read { offset }, Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                self.begin(id, file, Work::Write { offset }, Some(buffer));
            }
            IoOp::Sync { file }
                if self.names.file(file).is_some_and(|file| !file.has_new_name()) =>
            {
                self.begin(id, file, Work::Sync, None);
            }
            named => self.names.submit(id, named, now),
        }
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.names.reap(now, done);
        self.fill();
        self.turn(0, None);
        done.append(&mut self.queue.finished);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.queue.len() + self.names.in_flight()
    }
}

impl BlockingDevice for Uring {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.fill();
        let ready = self.heard || !self.queue.finished.is_empty() || self.names.has_finished();
        self.turn(usize::from(!ready), timeout);
        self.heard = false;
    }

    fn waker(&self) -> Waker {
        Bell::waker(&self.bell)
    }

    fn reader(&self) -> Option<Reader> {
        self.names.reader().map(Reader::for_rings)
    }
}

/// Wakes the owner of the ring through an eventfd that the ring polls. Any thread may ring the
/// bell, that is, write to the eventfd. Only the owner resets the bell.
#[derive(Debug)]
struct Bell {
    descriptor: OwnedFd,
    /// Whether the bell rang after its last reset. Only the first call of `ring` after a reset
    /// makes a system call.
    rung: AtomicBool,
}

impl Bell {
    fn new() -> Result<Self, Errno> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { descriptor, rung: AtomicBool::new(false) })
    }

    fn waker(bell: &Arc<Self>) -> Waker {
        let bell = Arc::clone(bell);
        Waker::new(move || bell.ring())
    }

    const fn descriptor(&self) -> &OwnedFd {
        &self.descriptor
    }

    fn ring(&self) {
        if !self.rung.swap(true, Ordering::AcqRel) {
            // Ignore the result: the write cannot fail, because the eight-byte counter never comes
            // near its limit.
            let _ = rustix::io::write(&self.descriptor, &1u64.to_ne_bytes());
        }
    }

    /// Resets the bell (an eventfd), so that the next call of `ring` wakes the device's thread
    /// again. A thread that finds the bell already rung makes no system call. All work that this
    /// thread did before it rang the bell is visible to the device's thread after this reset.
    fn silence(&self) {
        // Ignore an error, because the eventfd may still be empty. The poll can complete before the
        // ringing thread has written to the eventfd. That later write then ends one additional
        // wait, which does no harm.
        let _ = rustix::io::read(&self.descriptor, &mut [0; 8]);
        self.rung.swap(false, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_audible(bell: &Bell) -> bool {
        let audible = rustix::io::read(&bell.descriptor, &mut [0; 8]).is_ok();
        if audible {
            rustix::io::write(&bell.descriptor, &1u64.to_ne_bytes())
                .expect("an eventfd takes a write");
        }
        audible
    }

    #[test]
    fn the_bell_is_audible_from_the_first_ring_until_silenced() {
        let bell = Bell::new().expect("an eventfd");
        assert!(!is_audible(&bell));
        bell.ring();
        bell.ring();
        assert!(is_audible(&bell));
        bell.silence();
        assert!(!is_audible(&bell));
        bell.ring();
        assert!(is_audible(&bell));
    }
}
