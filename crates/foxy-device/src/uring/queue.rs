//! The queue of transfers (reads, writes and syncs) on a ring (io_uring instance), and the only
//! code that passes memory to the kernel. A device and a [`super::ReadRing`] each have a queue.
//!
//! Memory safety: each transfer has a slot that owns its buffer and its descriptor. The slot owns
//! them before the kernel receives the transfer. It keeps them until the transfer's completion was
//! taken from the ring, even if the queue is dropped.

use super::slots::{After, Slots, Transfer};
use crate::io::IoDone;
use io_uring::{IoUring, opcode, squeue, types};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Marks the completion of a poll of the bell, the eventfd that wakes the device's thread. The user
/// data of all other completions is a slot number, which is never this large.
const BELL: u64 = u64::MAX;

/// Longest wait in the kernel, because the kernel rejects waits of more than 2^63 seconds. A wait
/// may end earlier.
const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// The value of `POLLIN` in poll(2).
const POLL_IN: u32 = 1;

pub(super) struct TransferQueue {
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
    pub(super) finished: Vec<IoDone>,
    /// Whether the poll of the bell completed after the last call of [`Self::take_rang`].
    rang: bool,
}

impl TransferQueue {
    pub(super) fn new(ring: IoUring, depth: u32) -> Self {
        Self {
            ring,
            slots: Slots::default(),
            backlog: VecDeque::new(),
            started: 0,
            depth: usize::try_from(depth).unwrap_or(usize::MAX),
            finished: Vec::new(),
            rang: false,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.slots.len() + self.finished.len()
    }

    pub(super) fn add(&mut self, transfer: Transfer) {
        let slot = self.slots.insert(transfer);
        self.backlog.push_back(slot);
    }

    /// Adds an entry that polls `bell`. Returns false if the submission queue is full. The bell
    /// must stay open until the queue is dropped.
    pub(super) fn watch(&mut self, bell: &impl AsRawFd) -> bool {
        let watch = opcode::PollAdd::new(types::Fd(bell.as_raw_fd()), POLL_IN).build();
        self.push(watch.user_data(BELL))
    }

    pub(super) fn take_rang(&mut self) -> bool {
        std::mem::take(&mut self.rang)
    }

    /// Moves transfers from the backlog to the ring, as far as the ring has space. The next call of
    /// `turn` passes them to the kernel.
    pub(super) fn fill(&mut self) {
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
        // `fail_backlog` empties only slots whose entry is not in the ring. If the queue is
        // dropped earlier, `drop` waits for the completion or leaks the slots. For the bell, the
        // kernel takes its own reference to the file while submitting, and the bell is dropped
        // after the ring.
        unsafe { self.ring.submission().push(&entry).is_ok() }
    }

    /// Passes the entries in the ring to the kernel and collects completions. Blocks until `want`
    /// transfers have completed or `timeout` has passed.
    pub(super) fn turn(&mut self, want: usize, timeout: Option<Duration>) -> Result<(), Errno> {
        let nothing_new = {
            let submission = self.ring.submission();
            submission.is_empty() && !submission.taskrun()
        };
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
            // A signal, the timeout, or a lack of memory in the kernel ended the call early. A
            // later call retries.
            Ok(_) | Err(Errno::INTR | Errno::TIME | Errno::AGAIN | Errno::BUSY) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Whether there are entries that the next call of `fill` and `turn` can pass to the kernel.
    pub(super) fn has_more(&mut self) -> bool {
        let can_fill = !self.backlog.is_empty() && self.started < self.depth;
        can_fill || !self.ring.submission().is_empty()
    }

    fn take_completions(&mut self) {
        for completion in self.ring.completion() {
            if completion.user_data() == BELL {
                self.rang = true;
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
    pub(super) fn fail_backlog(&mut self, error: Errno) {
        for slot in std::mem::take(&mut self.backlog) {
            self.finished.push(self.slots.remove(slot).finish(Err(error.into())));
        }
    }

    /// Waits until all transfers are finished, but at most `patience` for each completion.
    /// Transfers that remain unfinished keep their memory for ever, because the kernel may still
    /// write into it.
    pub(super) fn finish_within(&mut self, patience: Duration) {
        while !self.slots.is_empty() {
            let before = self.finished.len();
            self.fill();
            if self.turn(1, Some(patience)).is_err() || self.finished.len() == before {
                std::mem::forget(std::mem::take(&mut self.slots));
            }
        }
    }
}

impl Drop for TransferQueue {
    /// Finishes all transfers before the ring is dropped. If the ring fails, leaks the buffers,
    /// because the kernel may still write into them.
    fn drop(&mut self) {
        while !self.slots.is_empty() {
            self.fill();
            if self.turn(1, None).is_err() {
                std::mem::forget(std::mem::take(&mut self.slots));
            }
        }
    }
}
