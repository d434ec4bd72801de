//! Page-aligned memory for disk IO, as O_DIRECT requires. This module also returns freed memory to
//! the operating system.
//!
//! Large buffers are mapped from the operating system. The allocator of the C library would keep
//! their memory. With many short-lived buffers in several threads, its heaps grow to several times
//! the memory in use.

mod mapping;

use bytes::Bytes;
use foxy_base::clock;
use mapping::{Mapping, Spares};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

/// Alignment of every buffer in bytes. Direct IO on any block device accepts this alignment.
pub const ALIGNMENT: usize = 4096;

/// Buffers of at least this number of bytes are mapped from the operating system.
const MAPPED_BYTES: usize = 256 << 10;

/// When a buffer of at least this number of bytes is dropped, a later read can use its memory
/// again. Such reads are reads of parts of large bodies. Smaller mapped buffers are mostly batches
/// of writes, and no read needs a buffer of their size.
const REUSED_BYTES: usize = 1 << 20;

/// The memory of dropped large buffers, for later buffers.
static SPARES: Spares = Spares::new();

/// A page-aligned buffer of bytes with a fixed length.
pub struct IoBuffer {
    start: NonNull<u8>,
    length: usize,
    capacity: usize,
    /// The memory of a large buffer. A small buffer has none: the allocator owns its memory.
    mapping: Option<Mapping>,
}

impl IoBuffer {
    /// Creates a buffer of `length` zero bytes. The memory of the buffer is rounded up to whole
    /// pages.
    #[must_use]
    pub fn zeroed(length: usize) -> Self {
        Self::with(length, Mapping::new)
    }

    /// Creates a buffer of `length` bytes for a read. A large buffer may reuse the memory of a
    /// dropped buffer, and then still contains old bytes. So the caller must use only the bytes
    /// that the read returned.
    #[must_use]
    pub fn for_read(length: usize) -> Self {
        Self::with(length, |capacity| SPARES.take(capacity).or_else(|| Mapping::new(capacity)))
    }

    fn with(length: usize, map: impl FnOnce(usize) -> Option<Mapping>) -> Self {
        let capacity = length.next_multiple_of(ALIGNMENT).max(ALIGNMENT);
        let layout = Self::layout(capacity);
        let mapping = if capacity >= MAPPED_BYTES { map(capacity) } else { None };
        let start = match &mapping {
            Some(mapping) => Some(mapping.start()),
            None if capacity >= MAPPED_BYTES => None,
            // SAFETY: the layout's size is at least one page, so the size is not zero.
            None => NonNull::new(unsafe { alloc_zeroed(layout) }),
        };
        let Some(start) = start else { handle_alloc_error(layout) };
        Self { start, length, capacity, mapping }
    }

    /// Creates a buffer that contains a copy of `bytes`.
    #[must_use]
    pub fn copy_of(bytes: &[u8]) -> Self {
        let mut buffer = Self::zeroed(bytes.len());
        buffer.as_mut().copy_from_slice(bytes);
        buffer
    }

    /// Shortens the buffer to its first `length` bytes. The memory stays allocated.
    ///
    /// # Panics
    /// Panics if `length` exceeds the current length.
    pub fn truncate(&mut self, length: usize) {
        assert!(length <= self.length, "a buffer of {} cannot be cut to {length}", self.length);
        self.length = length;
    }

    /// Sets the length to `length` bytes and keeps the content. Returns `None` if the allocated
    /// memory is smaller than `length` bytes.
    #[must_use]
    pub fn resized(mut self, length: usize) -> Option<Self> {
        (length <= self.capacity).then(|| {
            self.length = length;
            self
        })
    }

    /// Returns the length of the buffer in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns whether the length of the buffer is 0.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Converts the buffer into shared immutable bytes without copying.
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
        // owns. Mapped memory is always initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl AsMut<[u8]> for IoBuffer {
    fn as_mut(&mut self) -> &mut [u8] {
        // SAFETY: `start` points to `capacity >= length` initialised bytes that this buffer alone
        // owns. `&mut self` makes the access exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl Drop for IoBuffer {
    fn drop(&mut self) {
        match self.mapping.take() {
            Some(mapping) if self.capacity >= REUSED_BYTES => SPARES.keep(mapping),
            Some(mapping) => drop(mapping),
            // SAFETY: `with` allocated this memory with this layout, and only this call frees it.
            None => unsafe { dealloc(self.start.as_ptr(), Self::layout(self.capacity)) },
        }
    }
}

// SAFETY: the buffer is the only owner of its memory, like a `Vec<u8>`.
unsafe impl Send for IoBuffer {}
// SAFETY: `&IoBuffer` allows only reads of the memory.
unsafe impl Sync for IoBuffer {}

impl fmt::Debug for IoBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuffer({} bytes)", self.length)
    }
}

/// Shortest and longest pause between two calls of `release_freed_memory`. The shortest pause
/// limits the cost of the calls. The longest pause limits the delay until freed memory is returned.
const PAUSE: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(30));

/// The pause after a call of `release_freed_memory` lasts this many times as long as the call. So
/// the calls take about 0.2 % of the calling thread's time.
const PAUSE_FACTOR: u32 = 500;

/// Gives unused memory back to the operating system: the calling thread's freed memory, and the
/// memory of dropped large buffers that nobody used since the last call. Returns the time to wait
/// before the next call.
///
/// mimalloc, the program's allocator, gives memory back only when the thread calls the allocator. A
/// thread that sleeps after a peak of memory would keep its memory. A call takes microseconds for
/// each 64 KiB that the thread uses. With another allocator, the call affects only large buffers.
#[must_use]
pub fn release_freed_memory() -> Duration {
    let begun = clock::monotonic();
    SPARES.release();
    // SAFETY: the function takes no pointer, and any thread may call it at any time. The call
    // changes only free memory of mimalloc; blocks in use stay in place.
    unsafe { libmimalloc_sys::mi_collect(true) };
    (clock::monotonic().since(begun) * PAUSE_FACTOR).clamp(PAUSE.0, PAUSE.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_of_any_size_are_zeroed_and_writable() {
        for length in [0, 1, ALIGNMENT, MAPPED_BYTES - 1, MAPPED_BYTES, (1 << 20) + 1] {
            let mut buffer = IoBuffer::zeroed(length);
            assert!(buffer.len() == length && buffer.as_ref().iter().all(|byte| *byte == 0));
            buffer.as_mut().fill(7);
            assert!(buffer.freeze().iter().all(|byte| *byte == 7));
        }
    }

    #[test]
    fn a_new_buffer_is_zeroed_even_if_a_dropped_buffer_was_not() {
        const LENGTH: usize = (3 << 20) + 5;
        let mut dropped = IoBuffer::for_read(LENGTH);
        dropped.as_mut().fill(7);
        drop(dropped);
        assert!(IoBuffer::zeroed(LENGTH).as_ref().iter().all(|byte| *byte == 0));
        let mut small = IoBuffer::for_read(9);
        assert_eq!((small.len(), small.as_ref()), (9, &[0; 9][..]));
        small.as_mut().fill(7);
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

    #[test]
    fn releasing_memory_keeps_memory_in_use_and_pauses_for_seconds() {
        let in_use = vec![7_u8; 1 << 20];
        assert!((PAUSE.0..=PAUSE.1).contains(&release_freed_memory()));
        assert!(in_use.iter().all(|byte| *byte == 7));
    }
}
