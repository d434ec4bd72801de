//! A FUSE file system with one file for each modelled disk. The kernel sends each read and write of
//! a file directly, without a page cache. Each disk has a thread, which answers the reads and
//! writes of its file.

use super::arm::DiskJob;
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo,
    KernelConfig, LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyEmpty,
    ReplyEntry, ReplyOpen, ReplyWrite, Request, WriteFlags,
};
use std::ffi::OsStr;
use std::io;
use std::sync::mpsc::Sender;
use std::time::{Duration, UNIX_EPOCH};

/// The time for which the kernel may cache names and attributes. The time is long, because names
/// and attributes never change while the file system is mounted.
const LIFETIME: Duration = Duration::from_secs(3600);

/// The largest number of requests in progress, as in the queue of a loop device.
const QUEUE: u16 = 128;

/// Inode number of the first disk's file. The root directory has the number 1.
const FIRST_DISK: u64 = 2;

pub struct DiskFiles {
    /// Size of each disk in bytes.
    capacity: u64,
    disks: Vec<Sender<DiskJob>>,
}

impl DiskFiles {
    pub fn new(capacity: u64, disks: Vec<Sender<DiskJob>>) -> Self {
        Self { capacity, disks }
    }

    /// The inode numbers of the disks' files.
    fn inodes(&self) -> std::ops::Range<u64> {
        FIRST_DISK..FIRST_DISK + self.disks.len() as u64
    }

    fn disk(&self, inode: INodeNo) -> Option<&Sender<DiskJob>> {
        self.disks.get(usize::try_from(u64::from(inode).checked_sub(FIRST_DISK)?).ok()?)
    }

    fn attributes(&self, inode: INodeNo) -> Option<FileAttr> {
        let is_root = inode == INodeNo::ROOT;
        let size = if is_root { 0 } else { self.disk(inode).map(|_| self.capacity)? };
        Some(FileAttr {
            ino: inode,
            size,
            blocks: size / 512,
            atime: UNIX_EPOCH,
            mtime: UNIX_EPOCH,
            ctime: UNIX_EPOCH,
            crtime: UNIX_EPOCH,
            kind: if is_root { FileType::Directory } else { FileType::RegularFile },
            perm: if is_root { 0o755 } else { 0o600 },
            nlink: if is_root { 2 } else { 1 },
            uid: 0,
            gid: 0,
            rdev: 0,
            flags: 0,
            blksize: 4096,
        })
    }

    fn holds(&self, offset: u64, length: u64) -> bool {
        offset.checked_add(length).is_some_and(|end| end <= self.capacity)
    }
}

fn name_of(inode: u64) -> String {
    format!("disk{}", inode - FIRST_DISK + 1)
}

impl Filesystem for DiskFiles {
    /// Lets the kernel send as many requests as its own queues hold. Then the modelled disk sorts
    /// the requests, and not FUSE.
    fn init(&mut self, _: &Request, config: &mut KernelConfig) -> io::Result<()> {
        // The kernel may set a lower limit. The disks work with it, so the result does not matter.
        let _ = config.set_max_background(QUEUE);
        let _ = config.set_congestion_threshold(QUEUE);
        Ok(())
    }

    fn lookup(&self, _: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        let found = self
            .inodes()
            .filter(|_| parent == INodeNo::ROOT)
            .find(|&inode| name.to_str() == Some(&name_of(inode)));
        match found.and_then(|inode| self.attributes(INodeNo(inode))) {
            Some(attributes) => reply.entry(&LIFETIME, &attributes, Generation(0)),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, inode: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        match self.attributes(inode) {
            Some(attributes) => reply.attr(&LIFETIME, &attributes),
            None => reply.error(Errno::ENOENT),
        }
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        reply.opened(FileHandle(0), FopenFlags::FOPEN_DIRECT_IO);
    }

    fn read(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        let length = u64::from(size).min(self.capacity.saturating_sub(offset));
        if length == 0 {
            return reply.data(&[]);
        }
        answer_after(disk, DiskJob::Read { offset, length, reply });
    }

    fn write(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        data: &[u8],
        _: WriteFlags,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyWrite,
    ) {
        let Some(disk) = self.disk(inode) else { return reply.error(Errno::ENOENT) };
        if !self.holds(offset, data.len() as u64) {
            return reply.error(Errno::ENOSPC);
        }
        answer_after(disk, DiskJob::Write { offset, data: data.to_vec(), reply });
    }

    /// There is nothing to sync, because each answered write is already on the disk.
    fn fsync(&self, _: &Request, _: INodeNo, _: FileHandle, _: bool, reply: ReplyEmpty) {
        reply.ok();
    }

    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        reply.ok();
    }

    fn readdir(
        &self,
        _: &Request,
        inode: INodeNo,
        _: FileHandle,
        offset: u64,
        mut reply: ReplyDirectory,
    ) {
        if inode != INodeNo::ROOT {
            return reply.error(Errno::ENOTDIR);
        }
        let files = self.inodes().map(|inode| (inode, FileType::RegularFile, name_of(inode)));
        let folders = [".", ".."].map(|name| (1, FileType::Directory, name.to_owned()));
        let entries = folders.into_iter().chain(files).zip(1..);
        for ((inode, kind, name), next) in entries.skip(usize::try_from(offset).unwrap_or(0)) {
            if reply.add(INodeNo(inode), next, kind, name) {
                break;
            }
        }
        reply.ok();
    }
}

/// Sends the job to the disk's thread. If the thread has ended, the job is dropped, and its answer
/// object then reports an error.
fn answer_after(disk: &Sender<DiskJob>, job: DiskJob) {
    drop(disk.send(job));
}
