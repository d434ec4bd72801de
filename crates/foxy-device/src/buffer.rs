//! Owned, page-aligned memory for disk IO, as O_DIRECT needs it. It can become [`Bytes`] without a
//! copy.
//!
//! Large buffers are the system's own pages and go back to it when they are dropped. The C library
//! would keep them: many short-lived ones of different threads leave its heaps several times as
//! large as what is in use.

use bytes::Bytes;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;

/// Alignment of every buffer, in bytes: the page, enough for any block device's direct IO.
pub const ALIGNMENT: usize = 4096;

/// Bytes from which on a buffer is mapped from the system.
const LARGE: usize = 256 << 10;

/// A page-aligned byte buffer of fixed length.
pub struct IoBuffer {
    start: NonNull<u8>,
    length: usize,
    capacity: usize,
}

impl IoBuffer {
    /// A zeroed buffer of `length` bytes; its memory is rounded up to whole pages.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        let capacity = length.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let layout = Self::layout(capacity);
        let start = if capacity >= LARGE {
            let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
            // SAFETY: no address is asked for, so nothing that is mapped is touched; new pages are
            // zeros.
            let mapped =
                unsafe { mmap_anonymous(std::ptr::null_mut(), capacity, protection, flags) };
            mapped.map_or(std::ptr::null_mut(), <*mut _>::cast)
        } else {
            // SAFETY: the layout's size is at least one page, so not zero.
            unsafe { alloc_zeroed(layout) }
        };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        Self { start, length, capacity }
    }

    /// A buffer that holds a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.as_mut().copy_from_slice(bytes);
        buffer
    }

    /// Shortens the visible part; the memory stays.
    ///
    /// # Panics
    /// When `length` is more than the buffer has.
    pub fn truncate(&mut self, length: usize) {
        assert!(length <= self.length, "a buffer of {} cannot be cut to {length}", self.length);
        self.length = length;
    }

    /// The same memory with `length` visible bytes, if there is as much; they hold what they held.
    #[must_use]
    pub fn resized(mut self, length: usize) -> Option<Self> {
        (length <= self.capacity).then(|| {
            self.length = length;
            self
        })
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Whether it holds no bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Shares the memory as immutable bytes, without copying.
    #[must_use]
    pub fn freeze(self) -> Bytes {
        Bytes::from_owner(self)
    }

    fn layout(capacity: usize) -> Layout {
        Layout::from_size_align(capacity, ALIGNMENT).expect("buffer sizes are far below isize::MAX")
    }
}

impl AsRef<[u8]> for IoBuffer {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `start` points to `capacity >= length` initialised bytes that this buffer alone
        // owns.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl AsMut<[u8]> for IoBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_ref`, and `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        if self.capacity >= LARGE {
            // SAFETY: mapped in `zeroed` with this very length, and unmapped only here.
            let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.capacity) };
            debug_assert!(unmapped.is_ok(), "the mapping was whole: {unmapped:?}");
        } else {
            // SAFETY: allocated in `zeroed` with this very layout, and freed only here.
            unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) }
        }
    }
}

// SAFETY: the buffer owns its memory alone, like a `Vec<u8>`.
unsafe impl Send for IoBuffer {}
// SAFETY: shared access only reads.
unsafe impl Sync for IoBuffer {}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({} bytes)", self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_are_zeros_and_can_be_written() {
        for length in [0, 1, ALIGNMENT, LARGE - 1, LARGE, (1 << 20) + 1] {
            let mut buffer = IoBuffer::zeroed(length);
            assert!(buffer.len() == length && buffer.as_ref().iter().all(|byte| *byte == 0));
            buffer.as_mut().fill(7);
            assert!(buffer.freeze().iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn buffers_are_page_aligned_and_freeze_without_moving() {
        let buffer = IoBuffer::copy_of(b"foxy");
        let address = buffer.as_ref().as_ptr() as usize;
        assert_eq!(address % ALIGNMENT, 0);
        let bytes = buffer.freeze();
        assert_eq!(bytes.as_ptr() as usize, address);
        assert_eq!(&bytes[..], b"foxy");
    }
}
