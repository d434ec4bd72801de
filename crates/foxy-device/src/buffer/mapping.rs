//! Memory of large buffers: mapped from the operating system, and used again by later buffers. New
//! memory is expensive, because the kernel zeroes each page at its first use.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Largest total size in bytes of the unused mappings that are kept for later buffers.
const MAX_SPARE_BYTES: usize = 8 << 20;

/// Memory that was mapped from the operating system. It is unmapped when dropped.
pub(super) struct Mapping {
    start: NonNull<u8>,
    length: usize,
}

impl Mapping {
    /// Maps `length` zero bytes. `length` must be a multiple of the page size, and not 0.
    pub(super) fn new(length: usize) -> Option<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: no address is requested, so the call changes no existing mapping. New pages
        // contain zeros.
        let mapped = unsafe { mmap_anonymous(std::ptr::null_mut(), length, protection, flags) };
        Some(Self { start: NonNull::new(mapped.ok()?.cast())?, length })
    }

    pub(super) const fn start(&self) -> NonNull<u8> {
        self.start
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped this memory with this length, and only this call unmaps it. The
        // owner of the mapping has no other pointer to the memory any more.
        let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "the mapping was whole: {unmapped:?}");
    }
}

// SAFETY: the mapping is the only owner of its memory, like a `Vec<u8>`.
unsafe impl Send for Mapping {}

/// Unused mappings that are kept for later buffers. The newest mapping is the last.
pub(super) struct Spares(Mutex<Stack>);

struct Stack {
    mappings: Vec<Mapping>,
    bytes: usize,
    /// The number of mappings, counted from the oldest, that no buffer has used since the last call
    /// of `release`.
    unneeded: usize,
}

impl Spares {
    pub(super) const fn new() -> Self {
        Self(Mutex::new(Stack { mappings: Vec::new(), bytes: 0, unneeded: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, Stack> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the newest kept mapping of exactly `length` bytes. The mapping may
    /// contain any bytes.
    pub(super) fn take(&self, length: usize) -> Option<Mapping> {
        let mut stack = self.lock();
        let at = stack.mappings.iter().rposition(|mapping| mapping.length == length)?;
        let mapping = stack.mappings.remove(at);
        stack.bytes -= length;
        stack.unneeded = stack.unneeded.min(at);
        Some(mapping)
    }

    /// Keeps a mapping for a later buffer. If the kept mappings exceed the size limit, unmaps the
    /// oldest.
    pub(super) fn keep(&self, mapping: Mapping) {
        let mut stack = self.lock();
        stack.bytes += mapping.length;
        stack.mappings.push(mapping);
        let mut count = 0;
        while stack.bytes > MAX_SPARE_BYTES {
            stack.bytes -= stack.mappings[count].length;
            count += 1;
        }
        let unmapped = stack.remove_oldest(count);
        drop(stack);
        drop(unmapped);
    }

    /// Unmaps the kept mappings that no buffer has used since the last call.
    pub(super) fn release(&self) {
        let mut stack = self.lock();
        let count = stack.unneeded;
        stack.bytes -= stack.mappings[..count].iter().map(|mapping| mapping.length).sum::<usize>();
        let unmapped = stack.remove_oldest(count);
        stack.unneeded = stack.mappings.len();
        drop(stack);
        drop(unmapped);
    }
}

impl Stack {
    fn remove_oldest(&mut self, count: usize) -> Vec<Mapping> {
        self.unneeded = self.unneeded.saturating_sub(count);
        self.mappings.drain(..count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LENGTH: usize = 1 << 20;

    fn mapping() -> Mapping {
        Mapping::new(LENGTH).expect("there is memory")
    }

    /// Returns the number of kept mappings, and their total size in units of `LENGTH`.
    fn left(spares: &Spares) -> (usize, usize) {
        let stack = spares.lock();
        (stack.mappings.len(), stack.bytes / LENGTH)
    }

    #[test]
    fn only_a_mapping_of_the_same_length_is_used_again() {
        let spares = Spares::new();
        let (first, second) = (mapping(), mapping());
        let newest = second.start();
        spares.keep(first);
        spares.keep(second);
        assert!(spares.take(LENGTH - 4096).is_none() && spares.take(LENGTH + 4096).is_none());
        assert_eq!(spares.take(LENGTH).map(|mapping| mapping.start()), Some(newest));
        assert_eq!(left(&spares), (1, 1));
    }

    #[test]
    fn the_bytes_of_spare_mappings_have_a_limit() {
        let spares = Spares::new();
        for _ in 0..2 * MAX_SPARE_BYTES / LENGTH {
            spares.keep(mapping());
            assert!(spares.lock().bytes <= MAX_SPARE_BYTES);
        }
        let last = mapping();
        let newest = last.start();
        spares.keep(last);
        assert_eq!(spares.take(LENGTH).map(|mapping| mapping.start()), Some(newest));
        spares.keep(Mapping::new(2 * MAX_SPARE_BYTES).expect("there is memory"));
        assert_eq!(left(&spares), (0, 0), "too large");
    }

    #[test]
    fn a_release_unmaps_what_nobody_needed_since_the_last_release() {
        let spares = Spares::new();
        (0..4).for_each(|_| spares.keep(mapping()));
        spares.release();
        assert_eq!(left(&spares), (4, 4), "all were in use since");
        let used = [spares.take(LENGTH), spares.take(LENGTH)];
        used.into_iter().flatten().for_each(|mapping| spares.keep(mapping));
        spares.release();
        assert_eq!(left(&spares), (2, 2));
        spares.release();
        assert_eq!(left(&spares), (0, 0));
    }
}
