//! The medium that contains a one-file store: a regular file or a block device.

use crate::layout::PAGE;
use crate::one_file::superblock::{Found, Superblock, written_by_another};
use crate::status::OpenStoreError;
use std::ops::Range;

/// A new store is created on a block device only if this number of bytes at its start are zero.
/// Partition tables, file systems, volumes and swap areas start in this range or at the end of the
/// device.
const BLANK_BEGINNING: u64 = 16 << 20;
/// A new store is created on a block device only if this number of bytes at its end are zero. RAID
/// members, second partition tables and ZFS labels are in this range.
const BLANK_END: u64 = 1 << 20;
const AT_ONCE: u64 = 1 << 20;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Medium {
    #[default]
    File,
    BlockDevice,
}

impl Medium {
    /// Returns the next range to read in order to find out whether a medium of `size` bytes is
    /// blank (zero). The range starts at byte `from` or later. All bytes of a file are read, but
    /// only the two ends of a device.
    pub fn next_blank(self, from: u64, size: u64) -> Option<Range<u64>> {
        let end = size.saturating_sub(BLANK_END) / PAGE as u64 * PAGE as u64;
        let (from, to) = match self {
            Self::BlockDevice if from >= BLANK_BEGINNING => (from.max(end), size),
            Self::BlockDevice => (from, size.min(BLANK_BEGINNING)),
            Self::File => (from, size),
        };
        (from < to).then(|| from..to.min(from + AT_ONCE))
    }

    /// Finds out from the first two pages of the medium whether it contains a store. If another
    /// program such as `mkswap` wrote one of these pages of a device, the device belongs to that
    /// program.
    pub fn judge(self, pages: &[u8]) -> Result<Found, OpenStoreError> {
        let (first, second) = pages.split_at(pages.len().min(PAGE));
        let by_another = || {
            let in_second = || written_by_another(second).map(|at| first.len() + at);
            written_by_another(first).or_else(in_second)
        };
        match (self, Superblock::judge(first, second)) {
            (_, Err(OpenStoreError::Foreign)) => {
                Err(self.foreign(first_written(pages).unwrap_or(0) as u64))
            }
            (Self::BlockDevice, Ok(found)) => {
                by_another().map_or(Ok(found), |at| Err(self.foreign(at as u64)))
            }
            (_, judged) => judged,
        }
    }

    /// Returns the error for data at byte offset `at` that foxy did not write.
    pub const fn foreign(self, at: u64) -> OpenStoreError {
        match self {
            Self::File => OpenStoreError::Foreign,
            Self::BlockDevice => OpenStoreError::ForeignDevice { at },
        }
    }
}

/// Returns the index of the first byte that is not zero.
pub(crate) fn first_written(bytes: &[u8]) -> Option<usize> {
    const ZEROS: [u8; PAGE] = [0; PAGE];
    let page = bytes.chunks(PAGE).position(|page| page != &ZEROS[..page.len()])? * PAGE;
    Some(page + bytes[page..].iter().position(|&byte| byte != 0)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    /// Returns all ranges that an opening reads after the first two pages to find out whether the
    /// medium is blank. Adjacent ranges are merged.
    fn looked_at(medium: Medium, size: u64) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        let mut from = 8192;
        while let Some(part) = medium.next_blank(from, size) {
            assert!(part.end - part.start <= MIB && part.start % 4096 == 0, "{part:?} of {size}");
            from = part.end;
            match parts.last_mut() {
                Some(last) if last.end == part.start => last.end = part.end,
                _ => parts.push(part),
            }
        }
        parts
    }

    #[test]
    fn all_of_a_file_and_both_ends_of_a_device_are_looked_at() {
        let all = |size| Vec::from_iter((size > 8192).then_some(8192..size));
        for size in [8192, 8193, 3 * MIB + 5, 40 * MIB] {
            assert_eq!(looked_at(Medium::File, size), all(size));
        }
        for size in [8192, 12_800, MIB, 16 * MIB, 16 * MIB + 512, 17 * MIB] {
            assert_eq!(
                looked_at(Medium::BlockDevice, size),
                all(size),
                "one that has little between its ends"
            );
        }
        for (size, end) in [(17 * MIB + 4096, 16 * MIB + 4096), (1 << 40, (1 << 40) - MIB)] {
            assert_eq!(looked_at(Medium::BlockDevice, size), [8192..16 * MIB, end..size]);
        }
        let odd = 32 * MIB + 512;
        assert_eq!(looked_at(Medium::BlockDevice, odd), [8192..16 * MIB, 31 * MIB..odd]);
    }

    #[test]
    fn the_first_byte_that_was_written_is_found() {
        let mut bytes = [0; 10_000];
        assert_eq!(first_written(&bytes), None);
        for at in [9_999, 8_192, 8_191, 1, 0] {
            bytes[at] = 7;
            assert_eq!(first_written(&bytes), Some(at));
        }
        assert_eq!(first_written(b""), None);
    }
}
