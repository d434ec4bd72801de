//! The simulated costs of operations on open files: their steps in the page cache and on the disk.

use super::Mechanical;
use super::aging::Aged;
use super::counts::RequestKind;
use super::engine::Step;
use super::profile::{AccessTimes, MetadataMode};
use crate::io::{FileId, IoDone, IoError, IoId, IoOp, IoOutput, StorePath};
use crate::memory::FileNumber;
use std::collections::VecDeque;

impl Mechanical {
    /// Changes the file content at once, then starts the steps that take simulated time.
    pub(super) fn carry_out(&mut self, id: IoId, op: IoOp) {
        match op {
            IoOp::Read { file, offset, .. } => self.read(id, file, offset, op),
            IoOp::Write { file, offset, ref buffer } => {
                let length = buffer.len() as u64;
                self.write(id, file, offset, length, op);
            }
            IoOp::Close { file } => self.close(id, file, op),
            IoOp::Sync { file } => self.sync(id, file, op),
            IoOp::Trim { .. } | IoOp::OpenBlockDevice { .. } => {
                let done = self.apply(id, op);
                self.finish(done);
            }
            IoOp::Open { file, path } => self.open(id, file, path),
            IoOp::Create { file, path, size } => self.create(id, file, path, size),
            IoOp::Remove { path } => self.remove(id, path),
            IoOp::MakeDir { path } => self.make_directory(id, path),
            IoOp::List { path } => self.list(id, path),
        }
    }

    /// Returns the number of the disk that an operation uses. Operations on unknown files and
    /// folders use disk 0.
    #[must_use]
    pub fn disk_of(&self, op: &IoOp) -> usize {
        let of_file = |number: FileNumber| self.files.get(&number).map(|file| file.volume);
        let of_directory = |path: &StorePath| {
            self.directories.find(path).map(|found| self.directories.get(found).volume)
        };
        let found = match op {
            IoOp::Close { file } => self.inner.number(*file).ok().and_then(of_file),
            IoOp::Open { path, .. } | IoOp::Create { path, .. } | IoOp::Remove { path } => {
                let known = self.inner.find(path).ok().and_then(of_file);
                known.or_else(|| of_directory(&path.parent()))
            }
            IoOp::MakeDir { path } => of_directory(&path.parent()),
            IoOp::List { path } | IoOp::OpenBlockDevice { path, .. } => of_directory(path),
            _ => op.open_file().and_then(|file| self.inner.number(file).ok()).and_then(of_file),
        };
        found.unwrap_or(0)
    }

    pub(super) fn finish(&mut self, done: IoDone) {
        self.ready.push_back((self.now, done));
    }

    fn read(&mut self, id: IoId, file: FileId, offset: u64, op: IoOp) {
        let done = self.apply(id, op);
        let (Ok(IoOutput::Moved { count }), Ok(number)) = (&done.result, self.inner.number(file))
        else {
            return self.finish(done);
        };
        if *count == 0 {
            return self.finish(done);
        }
        let end = offset + *count as u64;
        let (first, last) = (offset / self.page_size(), (end - 1) / self.page_size());
        let ahead = self.read_ahead(number, offset, end, last);
        let requests = self.read_pages(number, first..=last, RequestKind::Read);
        if !requests.is_empty() && ahead > last {
            self.read_pages(number, last + 1..=ahead, RequestKind::Read);
        }
        if self.profile.system.access_times == AccessTimes::Updated {
            self.change_inode(number);
        }
        let volume = self.files.get(&number).map_or(0, |file| file.volume);
        self.begin(done, volume, VecDeque::from([Step::Await(requests)]));
    }

    fn write(&mut self, id: IoId, file: FileId, offset: u64, length: u64, op: IoOp) {
        let end = offset.checked_add(length).filter(|&end| i64::try_from(end).is_ok());
        let (Ok(number), Some(end), true) = (self.inner.number(file), end, length > 0) else {
            let done = self.apply(id, op);
            return self.finish(done);
        };
        let (first, last) = (offset / self.page_size(), (end - 1) / self.page_size());
        let partial: Vec<u64> = [first, last][..if first == last { 1 } else { 2 }]
            .iter()
            .copied()
            .filter(|&page| self.must_be_read(number, page, offset, end))
            .collect();
        let lengthens = end > self.file_size(number);
        let placed = self.files.get_mut(&number).expect("an open file has a place");
        let volume = placed.volume;
        placed.settled &= !lengthens || self.profile.system.metadata == MetadataMode::Synchronous;
        let grown =
            self.volumes[volume].layout.grow(&mut placed.extents, placed.inode.group, first, last);
        if grown.is_err() {
            return self.fail(id, op, IoError::NoSpace);
        }
        let mut requests = Vec::new();
        for page in partial {
            requests.extend(self.read_pages(number, page..=page, RequestKind::ReadBeforeWrite));
        }
        let done = self.apply(id, op);
        self.change_inode(number);
        let wrote = Step::Wrote { file: number, first, last };
        self.begin(done, volume, VecDeque::from([Step::Await(requests), wrote]));
    }

    fn close(&mut self, id: IoId, file: FileId, op: IoOp) {
        let number = self.inner.number(file).ok();
        let done = self.apply(id, op);
        self.forget_unless_used(number);
        if let Some(number) = number
            && let Some(placed) = self.files.get_mut(&number)
        {
            let size = self.inner.size_of(number).unwrap_or(0);
            self.volumes[placed.volume].layout.trim_tail(&mut placed.extents, size);
            self.send_collected(number);
        }
        self.finish(done);
    }

    fn sync(&mut self, id: IoId, file: FileId, op: IoOp) {
        let done = self.apply(id, op);
        let number = self.inner.number(file).ok().filter(|_| done.result.is_ok());
        let Some(number) = number else { return self.finish(done) };
        let placed = self.files.get_mut(&number).expect("an open file has a place");
        let volume = placed.volume;
        let mut steps = VecDeque::from([Step::Sync(number)]);
        if !std::mem::replace(&mut placed.settled, true) {
            let name = self.directories.get(placed.directory).entry_sector(placed.entry);
            let blocks = [self.volumes[volume].layout.inode_block(placed.inode), name];
            let (aging, written_back) = (&self.aging, &self.volumes[volume].written_back);
            let waits = |&block: &u64| {
                aging.contains(Aged::Block { volume, block }) || written_back.contains(&block)
            };
            steps.extend(blocks.into_iter().filter(waits).map(Step::WriteBlock));
        }
        self.begin(done, volume, steps);
    }

    pub(super) fn change_inode(&mut self, number: FileNumber) {
        if let Some(placed) = self.files.get(&number) {
            let (volume, inode) = (placed.volume, placed.inode);
            let block = self.volumes[volume].layout.inode_block(inode);
            self.change_block(volume, block);
        }
    }
}
