//! The layout of a store in one file that is divided into slots. The file has superblocks, two
//! journal halves, two areas for checkpoints (copies of the index), and the pages of records.

/// Size of a page in bytes. Stores read, write and allocate whole pages, because disks write at
/// least this much at once.
pub const PAGE: usize = 4096;

/// Size of a slot in bytes. Every record starts at a multiple of the slot size (storage scheme
/// STREAM, requirement R22 of `foxy figure requirements`).
pub const SLOT: usize = 512;

/// Number of slots in a page.
pub const SLOTS_PER_PAGE: u32 = 8;

/// A range of pages of the store file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first page of the range, counted from the start of the file.
    pub first: u32,
    /// Number of pages in the range.
    pub pages: u32,
}

impl Region {
    /// Returns the byte offset of the range in the file.
    pub const fn offset(self) -> u64 {
        self.first as u64 * PAGE as u64
    }

    /// Returns the length of the range in bytes.
    pub const fn bytes(self) -> usize {
        self.pages as usize * PAGE
    }
}

/// The layout of a store file. The file's size determines the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The two halves of the journal of removed records.
    pub journal: [Region; 2],
    /// The two areas for checkpoints of the index. The store writes checkpoints alternately to
    /// these areas, so one of them is always complete.
    pub checkpoints: [Region; 2],
    /// The pages for records.
    pub data: Region,
}

const SUPERBLOCK_PAGES: u32 = 2;
const MAX_PAGES: u64 = 1 << 29;
/// Size in bytes of the largest store with this layout. In a larger store, slot numbers would
/// overflow.
pub const MAX_STORE_BYTES: u64 = MAX_PAGES * PAGE as u64;

impl Layout {
    /// Divides a file of `size` bytes: 1/128 for the journal, 1/32 for checkpoints (copies of the
    /// index), all other pages for records. A size above [`MAX_STORE_BYTES`] is reduced to that
    /// limit.
    pub fn of(size: u64) -> Self {
        let total = u32::try_from((size / PAGE as u64).min(MAX_PAGES)).unwrap_or(u32::MAX);
        let half = (total / 256).clamp(4, 4096) & !1;
        let checkpoint = (total / 64).max(2);
        let mut next = SUPERBLOCK_PAGES;
        let mut take = |pages| {
            let region = Region { first: next, pages };
            next += pages;
            region
        };
        let journal = [take(half), take(half)];
        let checkpoints = [take(checkpoint), take(checkpoint)];
        let data = Region { first: next, pages: total.saturating_sub(next) };
        Self { journal, checkpoints, data }
    }

    /// Returns the byte offset in the file of a page of the record area. `page` counts from the
    /// start of this area.
    pub const fn data_offset(&self, page: u32) -> u64 {
        (self.data.first as u64 + page as u64) * PAGE as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::MINIMUM_SIZE;

    #[test]
    fn regions_follow_each_other_and_fill_the_file() {
        for size in [MINIMUM_SIZE, 1 << 20, 10 << 30, (1 << 40) + 12_345] {
            let layout = Layout::of(size);
            let all = [
                layout.journal[0],
                layout.journal[1],
                layout.checkpoints[0],
                layout.checkpoints[1],
                layout.data,
            ];
            let mut next = SUPERBLOCK_PAGES;
            for region in all {
                assert_eq!(region.first, next, "size {size}");
                assert!(region.pages >= 2);
                next += region.pages;
            }
            assert_eq!(u64::from(next), size / 4096);
            assert!(
                u64::from(layout.data.pages) * 4096 * 10 > size * 6,
                "most of it is for records"
            );
        }
    }
}
