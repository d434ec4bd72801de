//! Reads on any thread, beside the device, of what the system has in memory: nobody waits for a
//! disk. Where that was in vain several times it is tried less often, since each try costs a system
//! call.

use crate::buffer::IoBuffer;
use crate::files::Files;
use crate::io::{FileId, range_end};
use rustix::io::{IoSliceMut, ReadWriteFlags, preadv2};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Reads that are let go by after one that was in vain, at most.
const LONGEST_PAUSE: u32 = 31;

/// Reads what is in memory. Clones of it learn from each other.
#[derive(Clone)]
pub struct Reader(Arc<ReaderShared>);

struct ReaderShared {
    files: Arc<Files>,
    pause: Pause,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl Reader {
    pub(crate) fn new(files: Arc<Files>) -> Self {
        Self(Arc::new(ReaderShared { files, pause: Pause::default() }))
    }

    /// All of the `length` bytes from `offset` of an open file, if they are in memory; `None` may
    /// also mean that it was not tried.
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
        let mut buffer = IoBuffer::zeroed(length);
        let slice = &mut [IoSliceMut::new(buffer.as_mut())];
        let count = preadv2(&file.buffered, slice, offset, ReadWriteFlags::NOWAIT);
        // Too few bytes, a file system that cannot do this, an error of the disk: whoever waits for
        // the disk learns which.
        (count == Ok(length)).then_some(buffer)
    }
}

/// How many reads are let go by: twice as many after each that was in vain, none after one that was
/// not.
#[derive(Debug, Default)]
struct Pause {
    length: AtomicU32,
    left: AtomicU32,
}

impl Pause {
    /// Whether this read is let go by. Of several at once too many or too few may be.
    fn is_on(&self) -> bool {
        let left = self.left.load(Relaxed);
        self.left.store(left.saturating_sub(1), Relaxed);
        left > 0
    }

    fn learn(&self, found: bool) {
        let before = self.length.load(Relaxed);
        let length = if found { 0 } else { (before * 2 + 1).min(LONGEST_PAUSE) };
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
    fn reads_in_vain_become_rarer_until_one_is_not() {
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
