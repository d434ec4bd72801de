//! Transfers under way on a ring, each in a numbered slot that owns its buffer and descriptor. No ring here: it says
//! what to ask the kernel next and what an answer means.

use super::{File, target};
use crate::buffer::IoBuffer;
use crate::io::{IoDone, IoError, IoId, IoOutput};
use io_uring::{opcode, squeue, types};
use rustix::io::Errno;

/// Bytes asked for in one entry at most: what the kernel moves in one call, in whole pages.
const LARGEST: usize = 0x7fff_f000;

/// What to do with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    Read { offset: u64 },
    Write { offset: u64 },
    Sync,
}

impl Work {
    /// Where in the file it begins, in bytes.
    pub(super) const fn offset(self) -> u64 {
        match self {
            Self::Read { offset } | Self::Write { offset } => offset,
            Self::Sync => 0,
        }
    }
}

/// What comes after a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// There is more to ask for.
    Again,
    /// It is over, with that many bytes moved.
    Done(Result<usize, IoError>),
}

/// One operation until it is done.
#[derive(Debug)]
pub(super) struct Transfer {
    id: IoId,
    file: File,
    work: Work,
    buffer: Option<IoBuffer>,
    moved: usize,
    /// Whether the entry at the kernel goes past the page cache.
    direct: bool,
}

impl Transfer {
    pub(super) const fn new(id: IoId, file: File, work: Work, buffer: Option<IoBuffer>) -> Self {
        Self { id, file, work, buffer, moved: 0, direct: false }
    }

    /// The next thing to ask the kernel for. It points into the buffer: the transfer must stay in its slot until the
    /// answer.
    pub(super) fn entry(&mut self) -> squeue::Entry {
        let rest = self.buffer.as_mut().map_or(&mut [][..], |buffer| &mut buffer.as_mut()[self.moved..]);
        let length = rest.len().min(LARGEST);
        let at = |offset: u64| offset + self.moved as u64;
        let asked = u32::try_from(length).expect("LARGEST fits 32 bits");
        match self.work {
            Work::Sync => {
                opcode::Fsync::new(target(&self.file.buffered)).flags(types::FsyncFlags::DATASYNC).build()
            }
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

    /// Takes the kernel's answer: bytes moved, or an error number below zero.
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
            Work::Write { .. } if count == 0 && self.moved < whole => After::Done(Err(IoError::Device)),
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

/// The slots.
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

    /// The transfer in a taken slot.
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Transfer {
        self.transfers[slot as usize].as_mut().expect("a slot in use")
    }

    pub(super) fn remove(&mut self, slot: u32) -> Transfer {
        let transfer = self.transfers[slot as usize].take().expect("a slot in use");
        self.free.push(slot);
        transfer
    }
}
