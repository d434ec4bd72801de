//! Reads file content on any thread, without the device's thread. [`Reader::read`] reads only from
//! the page cache, so it never waits for the disk. If the content is not cached (a miss), the next
//! reads may return `None` without an attempt, because each attempt costs a system call. A
//! [`crate::ReadRing`] also reads these files, with io_uring and from the disk too.

use crate::buffer::IoBuffer;
use crate::io::{FileId, IoOutput, range_end};
use crate::open_file::{Files, OpenFile};
use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Maximum number of consecutive reads to skip after a miss (content not in the page cache). A
/// skipped read makes no attempt. With a larger number, the reader would notice later that content
/// is cached again.
const MAX_SKIPPED_READS: u32 = 31;

/// Reads file content from the page cache. All clones share the state that decides which reads to
/// skip.
#[derive(Clone)]
pub struct Reader(Arc<ReaderShared>);

struct ReaderShared {
    files: Arc<Files>,
    pause: Pause,
    for_rings: bool,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

/// Files that a device had open. They stay readable here after the device has closed them. The
/// proxy uses them while another foxy process takes over its store.
#[derive(Debug)]
pub struct KeptFiles(Files);

impl KeptFiles {
    /// Reads `length` bytes at `offset`, and waits for the disk. Returns `None` if the read fails or
    /// returns fewer bytes.
    #[must_use]
    pub fn read(&self, file: FileId, offset: u64, length: usize) -> Option<IoBuffer> {
        range_end(offset, length as u64).ok()?;
        let mut buffer = IoBuffer::for_read(length);
        let read = self.0.get(file)?.read(offset, &mut buffer).ok()?;
        (read == IoOutput::Moved { count: length }).then_some(buffer)
    }
}

impl Reader {
    /// Returns an object that keeps all open files readable after the device has closed them.
    #[must_use]
    pub fn keep_files(&self) -> KeptFiles {
        KeptFiles(self.0.files.copy())
    }

    pub(crate) fn new(files: Arc<Files>) -> Self {
        Self(Arc::new(ReaderShared { files, pause: Pause::default(), for_rings: false }))
    }

    /// Returns a reader of the same files. Threads may also read these files with a
    /// [`crate::ReadRing`].
    pub(crate) fn for_rings(self) -> Self {
        let (files, pause) = (Arc::clone(&self.0.files), Pause::default());
        Self(Arc::new(ReaderShared { files, pause, for_rings: true }))
    }

    /// Whether the device uses io_uring, so that other threads may read its files with rings of
    /// their own.
    #[must_use]
    pub fn is_for_rings(&self) -> bool {
        self.0.for_rings
    }

    pub(crate) fn file(&self, file: FileId) -> Option<Arc<OpenFile>> {
        self.0.files.get(file)
    }

    /// Returns all `length` bytes from `offset` if they are in the page cache. Returns `None` if a
    /// byte is missing there. Also returns `None`, without any attempt, for the reads that are
    /// skipped after a miss.
    #[must_use]
    pub fn read(&self, file: FileId, offset: u64, length: usize) -> Option<IoBuffer> {
        if self.0.pause.is_on() {
            return None;
        }
        let found = self.read_now(file, offset, length);
        self.0.pause.learn(found.is_some());
        found
    }

    fn read_now(&self, file: FileId, offset: u64, length: usize) -> Option<IoBuffer> {
        range_end(offset, length as u64).ok()?;
        let file = self.0.files.get(file)?;
        let mut buffer = IoBuffer::for_read(length);
        let slice = &mut [IoSliceMut::new(buffer.as_mut())];
        let count = preadv2(&file.buffered, slice, offset, ReadWriteFlags::NOWAIT);
        // A short read, a missing kernel feature and a disk error all count as a miss. The device
        // reads again and reports the cause.
        (count == Ok(length)).then_some(buffer)
    }
}

/// Decides which reads to skip. After each miss (content not in the page cache), the number of
/// reads to skip about doubles. A hit resets this number to 0.
#[derive(Debug, Default)]
struct Pause {
    length: AtomicU32,
    left: AtomicU32,
}

impl Pause {
    /// Returns whether to skip this read, and counts the skip. If several threads call at once, the
    /// number of skipped reads may be slightly wrong.
    fn is_on(&self) -> bool {
        let left = self.left.load(Relaxed);
        self.left.store(left.saturating_sub(1), Relaxed);
        left > 0
    }

    fn learn(&self, found: bool) {
        let before = self.length.load(Relaxed);
        let length = if found { 0 } else { (before * 2 + 1).min(MAX_SKIPPED_READS) };
        if length != before {
            self.length.store(length, Relaxed);
        }
        if length > 0 {
            self.left.store(length, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_make_reads_rarer_until_a_hit() {
        let pause = Pause::default();
        let tried = |reads: u32, found| {
            let tries = (0..reads).filter(|_| !pause.is_on());
            tries.inspect(|_| pause.learn(found)).count()
        };
        assert_eq!(tried(9, true), 9);
        assert_eq!(tried(1 + 1 + 1 + 3 + 1 + 7 + 1 + 15 + 1 + 31 + 1 + 31, false), 6);
        assert_eq!(tried(9, true), 9);
    }
}
