//! A real disk with plain system calls, each carried out before `submit` returns: what a process
//! without threads does, as Squid's ufs scheme. The owner stands still for as long as the disk
//! takes.

use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::park::{BlockingDevice, Parker, Waker};
use crate::root::Root;
use crate::threads::DirectIo;
use crate::transfer;
use crate::tree::{self, OpenFile};
use foxy_base::Instant;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// The device.
#[derive(Debug)]
pub struct Blocking {
    root: Arc<OwnedFd>,
    direct: DirectIo,
    parker: Parker,
    files: HashMap<FileId, OpenFile>,
    finished: VecDeque<IoDone>,
}

impl Blocking {
    /// A device on `root`; it starts nothing, so it cannot fail.
    #[must_use]
    pub fn new(root: &Root, direct: DirectIo) -> Self {
        Self::on(root.directory(), direct)
    }

    /// A device on an open folder.
    pub(crate) fn on(root: Arc<OwnedFd>, direct: DirectIo) -> Self {
        let (files, finished) = (HashMap::new(), VecDeque::new());
        Self { root, direct, parker: Parker::default(), files, finished }
    }

    fn with_file(
        &self,
        file: FileId,
        work: impl FnOnce(&OpenFile) -> Result<IoOutput, Errno>,
    ) -> Result<IoOutput, IoError> {
        Ok(work(self.files.get(&file).ok_or(IoError::NotOpen)?)?)
    }

    fn named(&mut self, op: IoOp) -> Result<IoOutput, IoError> {
        let (result, opened) =
            tree::carry_out(&self.root, op, self.direct == DirectIo::WhenAligned);
        self.files.extend(opened);
        result
    }
}

impl Device for Blocking {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        let (result, buffer) = match op {
            IoOp::Read { file, offset, mut buffer } => {
                let result = self.with_file(file, |open| transfer::read(open, offset, &mut buffer));
                (result, Some(buffer))
            }
            IoOp::Write { file, offset, buffer } => {
                (self.with_file(file, |open| transfer::write(open, offset, &buffer)), Some(buffer))
            }
            IoOp::Sync { file } => {
                let sync = |open: &OpenFile| tree::sync(&self.root, open).map(|()| IoOutput::Done);
                (self.with_file(file, sync), None)
            }
            IoOp::Trim { file, offset, length } => {
                (self.with_file(file, |open| transfer::trim(open, offset, length)), None)
            }
            IoOp::Close { file } => {
                (self.files.remove(&file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen), None)
            }
            named => (self.named(named), None),
        };
        self.finished.push_back(IoDone { id, result, buffer });
    }

    fn reap(&mut self, _now: Instant, done: &mut Vec<IoDone>) {
        done.extend(self.finished.drain(..));
    }

    fn next_completion(&self) -> Option<Instant> {
        None
    }

    fn in_flight(&self) -> usize {
        self.finished.len()
    }
}

impl BlockingDevice for Blocking {
    fn wait(&mut self, timeout: Option<Duration>) {
        if self.finished.is_empty() {
            self.parker.wait(timeout);
        }
    }

    fn waker(&self) -> Waker {
        self.parker.waker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::IoBuffer;
    use crate::io::StorePath;

    #[test]
    fn a_write_is_in_the_file_before_submit_returns() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("a new folder");
        let mut device = Blocking::new(&root, DirectIo::Off);
        let file = FileId(0);
        device.submit(
            IoId(0),
            IoOp::Create { file, path: StorePath::new("x"), size: 0 },
            Instant::ZERO,
        );
        let write = IoOp::Write { file, offset: 0, buffer: IoBuffer::copy_of(b"fox") };
        device.submit(IoId(1), write, Instant::ZERO);
        assert_eq!(std::fs::read(folder.path().join("x")).ok().as_deref(), Some(&b"fox"[..]));
        assert_eq!(device.in_flight(), 2);
    }
}
