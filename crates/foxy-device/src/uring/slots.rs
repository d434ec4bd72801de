//! The transfers (reads, writes and syncs) in flight on a ring (io_uring instance). Each transfer
//! has a numbered slot that owns its buffer and descriptor. This module builds the entries for the
//! kernel and interprets the kernel's answers.

use crate::buffer::IoBuffer;
use crate::io::{IoDone, IoError, IoId, IoOutput};
use crate::open_file::OpenFile;
use io_uring::{opcode, squeue, types};
use rustix::io::Errno;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

/// Maximum number of bytes that the kernel moves in one read or write.
const MAX_ENTRY_BYTES: usize = 0x7fff_f000;

/// The kind of a transfer, and the file offset at which it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Read { offset: u64 },
    Write { offset: u64 },
    Sync,
}

impl Work {
    pub(super) const fn offset(self) -> u64 {
        match self {
            Self::Read { offset } | Self::Write { offset } => offset,
            Self::Sync => 0,
        }
    }
}

/// The next step of a transfer after the kernel completed an entry of the transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The transfer must submit another entry, for example for the rest of its bytes.
    Again,
    /// The transfer is finished. The value is the number of bytes moved or the error.
    Done(Result<usize, IoError>),
}

/// A read, write or sync in flight, and the number of bytes that it has moved.
#[derive(Debug)]
pub(super) struct Transfer {
    id: IoId,
    file: Arc<OpenFile>,
    work: Work,
    buffer: Option<IoBuffer>,
    moved: usize,
    /// Whether the entry in the kernel uses direct IO.
    direct: bool,
}

impl Transfer {
    pub(super) const fn new(
        id: IoId,
        file: Arc<OpenFile>,
        work: Work,
        buffer: Option<IoBuffer>,
    ) -> Self {
        Self { id, file, work, buffer, moved: 0, direct: false }
    }

    /// Builds the transfer's next entry for the kernel. The entry points into the buffer, so the
    /// transfer must stay in its slot until the kernel answers.
    pub(super) fn entry(&mut self) -> squeue::Entry {
        let rest =
            self.buffer.as_mut().map_or(&mut [][..], |buffer| &mut buffer.as_mut()[self.moved..]);
        let length = rest.len().min(MAX_ENTRY_BYTES);
        let at = |offset: u64| offset + self.moved as u64;
        let asked = u32::try_from(length).expect("MAX_ENTRY_BYTES fits 32 bits");
        match self.work {
            Work::Sync => opcode::Fsync::new(target(&self.file.buffered))
                .flags(types::FsyncFlags::DATASYNC)
                .build(),
            Work::Read { offset } => {
                let direct = self.file.direct_for(at(offset), length);
                self.direct = direct.is_some();
                let descriptor = target(direct.unwrap_or(&self.file.buffered));
                opcode::Read::new(descriptor, rest.as_mut_ptr(), asked).offset(at(offset)).build()
            }
            Work::Write { offset } => {
                let direct = self.file.direct_for(at(offset), length);
                self.direct = direct.is_some();
                let descriptor = target(direct.unwrap_or(&self.file.buffered));
                opcode::Write::new(descriptor, rest.as_ptr(), asked).offset(at(offset)).build()
            }
        }
    }

    /// Interprets the kernel's answer: a number of bytes, or a negated error number.
    pub(super) fn advance(&mut self, answer: i32) -> After {
        let Ok(count) = usize::try_from(answer) else {
            let error = Errno::from_raw_os_error(answer.saturating_neg());
            if error == Errno::INVAL && self.direct {
                self.file.refuse_direct();
                return After::Again;
            }
            let passing = matches!(error, Errno::INTR | Errno::AGAIN);
            return if passing { After::Again } else { After::Done(Err(error.into())) };
        };
        self.moved += count;
        let whole = self.buffer.as_ref().map_or(0, IoBuffer::len);
        match self.work {
            Work::Sync => After::Done(Ok(0)),
            Work::Write { .. } if count == 0 && self.moved < whole => {
                After::Done(Err(IoError::Device))
            }
            _ if count == 0 || self.moved >= whole => After::Done(Ok(self.moved)),
            _ => After::Again,
        }
    }

    pub(super) fn finish(self, result: Result<usize, IoError>) -> IoDone {
        let output = |count| match self.work {
            Work::Sync => IoOutput::Done,
            Work::Read { .. } | Work::Write { .. } => IoOutput::Moved { count },
        };
        IoDone { id: self.id, result: result.map(output), buffer: self.buffer }
    }
}

fn target(descriptor: &OwnedFd) -> types::Fd {
    types::Fd(descriptor.as_raw_fd())
}

#[derive(Debug, Default)]
pub(super) struct Slots {
    transfers: Vec<Option<Transfer>>,
    free: Vec<u32>,
}

impl Slots {
    pub(super) const fn len(&self) -> usize {
        self.transfers.len() - self.free.len()
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn insert(&mut self, transfer: Transfer) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.transfers.push(None);
            u32::try_from(self.transfers.len() - 1).expect("fewer than 2^32 transfers at once")
        });
        self.transfers[slot as usize] = Some(transfer);
        slot
    }

    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Transfer {
        self.transfers[slot as usize].as_mut().expect("a slot in use")
    }

    pub(super) fn remove(&mut self, slot: u32) -> Transfer {
        let transfer = self.transfers[slot as usize].take().expect("a slot in use");
        self.free.push(slot);
        transfer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::StorePath;
    use crate::root::Root;
    use crate::tree;

    const LENGTH: usize = 8192;

    /// Creates a transfer of two pages on an empty file. Uses direct IO if the file system supports
    /// it.
    fn transfer(work: Work) -> Transfer {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("a new folder");
        let (file, _) =
            tree::create(&root.directory(), &StorePath::new("a"), 1 << 20, true).expect("created");
        let buffer = (work != Work::Sync).then(|| IoBuffer::zeroed(LENGTH));
        Transfer::new(IoId(1), Arc::new(file), work, buffer)
    }

    fn check(work: Work, answers: &[i32], expected: &[After]) {
        let mut transfer = transfer(work);
        for (&answer, &after) in answers.iter().zip(expected) {
            let _ = transfer.entry();
            assert_eq!(transfer.advance(answer), after, "{work:?} after {answers:?}");
        }
        let buffer = transfer.finish(Ok(0)).buffer;
        assert_eq!(
            buffer.map(|buffer| buffer.len()),
            (work != Work::Sync).then_some(LENGTH),
            "{work:?}"
        );
    }

    fn refused(errno: Errno) -> i32 {
        -errno.raw_os_error()
    }

    #[test]
    fn short_transfers_continue_until_all_is_moved() {
        for work in [Work::Read { offset: 3 }, Work::Write { offset: 4096 }] {
            check(work, &[100, 8092], &[After::Again, After::Done(Ok(LENGTH))]);
        }
    }

    #[test]
    fn reads_end_at_the_end_of_the_file_and_writes_of_no_bytes_fail() {
        check(Work::Read { offset: 0 }, &[100, 0], &[After::Again, After::Done(Ok(100))]);
        check(
            Work::Write { offset: 0 },
            &[100, 0],
            &[After::Again, After::Done(Err(IoError::Device))],
        );
    }

    #[test]
    fn transient_errors_are_retried_and_others_reported() {
        for work in [Work::Read { offset: 1 }, Work::Sync] {
            let answers = [refused(Errno::INTR), refused(Errno::AGAIN), refused(Errno::IO)];
            check(work, &answers, &[After::Again, After::Again, After::Done(Err(IoError::Device))]);
        }
        check(Work::Sync, &[0], &[After::Done(Ok(0))]);
    }

    #[test]
    fn a_refused_direct_transfer_switches_the_file_to_the_page_cache() {
        let mut transfer = transfer(Work::Read { offset: 0 });
        let _ = transfer.entry();
        if transfer.direct {
            assert_eq!(transfer.advance(refused(Errno::INVAL)), After::Again);
            let _ = transfer.entry();
        }
        assert!(!transfer.direct);
        let invalid = IoError::Other(Errno::INVAL.raw_os_error());
        assert_eq!(transfer.advance(refused(Errno::INVAL)), After::Done(Err(invalid)));
    }
}
