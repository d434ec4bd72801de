//! A device for a real disk with io_uring. One system call submits many reads, writes and syncs
//! (transfers). A separate thread performs operations on paths, with the code of
//! [`crate::threads`]. [`UringError`] lists the reasons why io_uring may not run.
//!
//! Memory safety: each transfer has a slot that owns its buffer and its descriptor. The slot owns
//! them before the kernel receives the transfer. It keeps them until the transfer's completion was
//! taken from the ring, even if the device is dropped.

mod slots;

use crate::buffer::IoBuffer;
use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, range_end};
use crate::park::{BlockingDevice, Waker};
use crate::reader::Reader;
use crate::root::Root;
use crate::threads::{DirectIo, Threads};
use foxy_base::Instant;
use io_uring::{IoUring, Probe, opcode, squeue, types};
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use slots::{After, Slots, Transfer, Work};
use std::collections::VecDeque;
use std::fmt;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Marks the completion of a poll of the bell, the eventfd that wakes the device's thread. The user
/// data of all other completions is a slot number, which is never this large.
const BELL: u64 = u64::MAX;

/// Longest wait in the kernel, because the kernel rejects waits of more than 2^63 seconds. A wait
/// may end earlier.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

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
    ring: IoUring,
    slots: Slots,
    /// Numbers of the transfers whose next entry is not in the submission queue of the ring yet.
    backlog: VecDeque<u32>,
    /// Number of entries of transfers in the ring or in the kernel. The entry that polls the bell
    /// does not count.
    started: usize,
    /// Maximum number of transfers in the ring or in the kernel. Further transfers wait in
    /// `backlog`.
    depth: usize,
    finished: Vec<IoDone>,
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
        let setup = |error: std::io::Error| UringError::Setup(error.raw_os_error().unwrap_or(0));
        // Add one entry for the poll of the bell, the eventfd that wakes the device's thread.
        let ring = IoUring::new(depth.saturating_add(1)).map_err(setup)?;
        check_abilities(&ring)?;
        let helper = |error: std::io::Error| UringError::Helper(error.raw_os_error().unwrap_or(0));
        let bell = Arc::new(Bell::new().map_err(|error| helper(error.into()))?);
        let names = Threads::for_owner(root, 1, direct, Bell::waker(&bell)).map_err(helper)?;
        let mut device = Self {
            ring,
            slots: Slots::default(),
            backlog: VecDeque::new(),
            started: 0,
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            finished: Vec::new(),
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
                let slot = self.slots.insert(Transfer::new(id, file, work, buffer));
                self.backlog.push_back(slot);
            }
            Err(error) => self.finished.push(IoDone { id, result: Err(error), buffer }),
        }
    }

    /// Moves transfers from the backlog to the ring, as far as the ring has space. The next call of
    /// `turn` passes them to the kernel.
    fn fill(&mut self) {
        if !self.armed {
            let watch =
                opcode::PollAdd::new(types::Fd(self.bell.descriptor().as_raw_fd()), POLL_IN)
                    .build();
            self.armed = self.push(watch.user_data(BELL));
        }
        while self.started < self.depth
            && let Some(&slot) = self.backlog.front()
        {
            let entry = self.slots.get_mut(slot).entry().user_data(u64::from(slot));
            if !self.push(entry) {
                break;
            }
            self.started += 1;
            self.backlog.pop_front();
        }
    }

    /// Adds an entry to the submission queue of the ring. Returns false if the queue is full.
    fn push(&mut self, entry: squeue::Entry) -> bool {
        // SAFETY: the entry's memory and descriptor stay valid until the entry's completion. For a
        // transfer, its slot owns the buffer and the descriptor, and no other code reads or writes
        // the buffer. `take_completions` empties the slot only after it took the completion.
        // `fail_backlog` empties only slots whose entry is not in the ring. If the device is
        // dropped earlier, `drop` waits for the completion or leaks the slots. For the bell, the
        // kernel takes its own reference to the file while submitting, and the bell is dropped
        // after the ring.
        unsafe { self.ring.submission().push(&entry).is_ok() }
    }

    /// Passes the entries in the ring to the kernel and collects completions. Blocks until `want`
    /// transfers have completed or `timeout` has passed.
    fn turn(&mut self, want: usize, timeout: Option<Duration>) -> Result<(), Errno> {
        let nothing_new = self.ring.submission().is_empty();
        let submitter = self.ring.submitter();
        let entered = match timeout {
            _ if want == 0 && nothing_new => Ok(0),
            _ if want == 0 => submitter.submit(),
            None => submitter.submit_and_wait(want),
            Some(timeout) => {
                let limit = types::Timespec::from(timeout.min(MAX_WAIT));
                submitter.submit_with_args(want, &types::SubmitArgs::new().timespec(&limit))
            }
        };
        self.take_completions();
        match entered.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO)) {
            // A signal, the timeout, or missing memory in the kernel ended the call early. A later
            // call retries.
            Ok(_) | Err(Errno::INTR | Errno::TIME | Errno::AGAIN | Errno::BUSY) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn take_completions(&mut self) {
        for completion in self.ring.completion() {
            if completion.user_data() == BELL {
                self.armed = false;
                self.heard = true;
                self.bell.silence();
                continue;
            }
            self.started -= 1;
            let slot =
                u32::try_from(completion.user_data()).expect("slots are numbered with 32 bits");
            match self.slots.get_mut(slot).advance(completion.result()) {
                After::Again => self.backlog.push_front(slot),
                After::Done(result) => self.finished.push(self.slots.remove(slot).finish(result)),
            }
        }
    }

    /// Fails all transfers that are not in the ring yet, because the kernel accepts no more
    /// entries.
    fn fail_backlog(&mut self, error: Errno) {
        for slot in std::mem::take(&mut self.backlog) {
            self.finished.push(self.slots.remove(slot).finish(Err(error.into())));
        }
    }
}

/// The value of `POLLIN` in poll(2).
const POLL_IN: u32 = 1;

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
        if let Err(error) = self.turn(0, None) {
            self.fail_backlog(error);
        }
        done.append(&mut self.finished);
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.slots.len() + self.finished.len() + self.names.in_flight()
    }
}

impl BlockingDevice for Uring {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.fill();
        let ready = self.heard || !self.finished.is_empty() || self.names.has_finished();
        if let Err(error) = self.turn(usize::from(!ready), timeout) {
            self.fail_backlog(error);
        }
        self.heard = false;
    }

    fn waker(&self) -> Waker {
        Bell::waker(&self.bell)
    }

    fn reader(&self) -> Option<Reader> {
        self.names.reader()
    }
}

impl Drop for Uring {
    /// Finishes all submitted operations before the device is dropped. If the ring fails, leaks the
    /// buffers, because the kernel may still write into them.
    fn drop(&mut self) {
        while !self.slots.is_empty() {
            self.fill();
            if self.turn(1, None).is_err() {
                std::mem::forget(std::mem::take(&mut self.slots));
            }
        }
    }
}

/// Wakes the owner of the ring through an eventfd that the ring polls. Any thread may ring the
/// bell, that is, write to the eventfd. Only the owner resets the bell.
#[derive(Debug)]
struct Bell {
    descriptor: OwnedFd,
    /// Whether the bell rang after its last reset. Only the first ring after a reset makes a system
    /// call.
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

    /// Resets the bell, (an eventfd), so that the next ring wakes the device's thread again. A
    /// thread that finds the bell already rung makes no system call. All work that this thread did
    /// before it rang the bell is visible to the device's thread after this reset.
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
