//! A device for a real disk that makes blocking system calls. Each call finishes before `submit`
//! returns, so the calling thread waits for the disk. Squid's store type `ufs` without threads
//! works in this way.

use crate::io::{Device, FileId, IoDone, IoError, IoId, IoOp, IoOutput};
use crate::open_file::OpenFile;
use crate::park::{BlockingDevice, Parker, Waker};
use crate::root::Root;
use crate::threads::DirectIo;
use crate::tree;
use foxy_base::Instant;
use std::collections::{HashMap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

/// A device whose `submit` blocks until the operation is finished.
#[derive(Debug)]
pub struct Blocking {
    root: Arc<OwnedFd>,
    direct: DirectIo,
    parker: Parker,
    files: HashMap<FileId, OpenFile>,
    finished: VecDeque<IoDone>,
}

impl Blocking {
    /// Creates a device for the files in the folder `root`. This function cannot fail, because it
    /// starts no thread.
    #[must_use]
    pub fn new(root: &Root, direct: DirectIo) -> Self {
        Self::on(root.directory(), direct)
    }

    pub(crate) fn on(root: Arc<OwnedFd>, direct: DirectIo) -> Self {
        let (files, finished) = (HashMap::new(), VecDeque::new());
        Self { root, direct, parker: Parker::default(), files, finished }
    }
}

impl Device for Blocking {
    fn submit(&mut self, id: IoId, op: IoOp, _now: Instant) {
        if let IoOp::Close { file } = op {
            let result = self.files.remove(&file).map(|_| IoOutput::Done).ok_or(IoError::NotOpen);
            return self.finished.push_back(IoDone { id, result, buffer: None });
        }
        let file = op.open_file().and_then(|file| self.files.get(&file));
        let direct = self.direct == DirectIo::WhenAligned;
        let finished = tree::carry_out(&self.root, id, op, file, direct);
        self.files.extend(finished.opened);
        self.finished.push_back(finished.done);
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
    fn submit_returns_after_the_write_happened() {
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
