//! Chooses the places of inodes and pages on one simulated disk, like an FFS-like file system. The
//! disk is divided into cylinder groups (areas), and directories are spread over the groups. A
//! file's inode and pages are in its directory's group as long as space is left.

use super::bitmap::Bitmap;
use super::profile::{DiskProfile, SECTOR};

/// Size in bytes of a fragment, the smallest unit of disk space that a file can use.
pub(super) const FRAGMENT: u64 = 1024;

/// Number of fragments at the start of a cylinder group that contain its bitmaps and a copy of the
/// superblock.
const HEADER: u32 = 16;

/// Size of an inode on the disk in bytes.
const INODE: u64 = 128;

/// Maximum length in pages of a file whose last page may consist of fewer fragments than a whole
/// page. A longer file uses whole pages.
const FRAGMENTED_PAGES: u64 = 12;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DiskFull;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Inode {
    pub(super) group: u32,
    index: u32,
}

/// A cylinder group of the file system, with its free inodes and free fragments.
#[derive(Debug)]
struct Group {
    inodes: Bitmap,
    /// Free fragments of the group. Position 0 is the first fragment after the group's inodes.
    data: Bitmap,
    directories: u32,
}

/// The free and used space of the simulated file system, by cylinder group.
#[derive(Debug)]
pub(super) struct Layout {
    page_size: u64,
    page_fragments: u32,
    group_fragments: u32,
    data_start: u32,
    groups: Vec<Group>,
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("a disk's fragments are counted in 32 bits")
}

pub(super) fn sector_of(fragment: u32) -> u64 {
    u64::from(fragment) * (FRAGMENT / SECTOR)
}

impl Layout {
    /// Creates an empty file system on the whole disk.
    ///
    /// # Panics
    /// Panics if the profile's page size is not a multiple of a fragment, or if a cylinder group
    /// has no space for data.
    pub(super) fn new(profile: &DiskProfile) -> Self {
        let system = &profile.system;
        let page_size = u64::from(system.page_size);
        assert!(
            page_size > 0 && page_size.is_multiple_of(FRAGMENT),
            "a page of {page_size} bytes is not a whole number of fragments"
        );
        let track = u64::from(profile.sectors_per_track) * SECTOR;
        let group_bytes = u64::from(system.group_cylinders) * u64::from(profile.heads) * track;
        let inodes = group_bytes / system.bytes_per_inode;
        let data_start = HEADER + small((inodes * INODE).next_multiple_of(page_size) / FRAGMENT);
        let group_fragments = small(group_bytes / FRAGMENT);
        assert!(
            group_fragments > data_start,
            "a cylinder group needs room for data beside its inodes"
        );
        let group = || Group {
            inodes: Bitmap::new(small(inodes)),
            data: Bitmap::new(group_fragments - data_start),
            directories: 0,
        };
        let groups = (0..profile.capacity() / group_bytes).map(|_| group()).collect();
        let page_fragments = small(page_size / FRAGMENT);
        Self { page_size, page_fragments, group_fragments, data_start, groups }
    }

    /// Returns the number of bytes on the disk for files and directories. Inodes, bitmaps and an
    /// incomplete last cylinder group do not count.
    pub(super) fn room(&self) -> u64 {
        u64::from(self.group_fragments - self.data_start) * FRAGMENT * self.groups.len() as u64
    }

    pub(super) const fn page_fragments(&self) -> u32 {
        self.page_fragments
    }

    pub(super) fn inode_block(&self, inode: Inode) -> u64 {
        let block = u64::from(inode.index) / (self.page_size / INODE);
        let fragment =
            inode.group * self.group_fragments + HEADER + small(block) * self.page_fragments;
        sector_of(fragment)
    }

    pub(super) fn group_block(&self, group: u32) -> u64 {
        sector_of(group * self.group_fragments)
    }

    /// Takes a free inode in cylinder group `group`. If this group has no free inode, takes an
    /// inode in the next group with a free inode.
    pub(super) fn take_inode(&mut self, group: u32) -> Result<Inode, DiskFull> {
        for group in self.from(group) {
            if let Some(index) = self.groups[group as usize].inodes.take_run(1) {
                return Ok(Inode { group, index });
            }
        }
        Err(DiskFull)
    }

    /// Takes an inode for a new directory, as FFS does. Chooses the cylinder group with the fewest
    /// directories, among groups with at least the mean number of free inodes.
    pub(super) fn take_directory_inode(&mut self) -> Result<Inode, DiskFull> {
        let free: u64 = self.groups.iter().map(|group| u64::from(group.inodes.free())).sum();
        let mean = free / self.groups.len() as u64;
        let fit = |group: &Group| u64::from(group.inodes.free()) >= mean;
        let best = (0..).zip(&self.groups).filter(|(_, group)| fit(group));
        let (number, _) = best.min_by_key(|(_, group)| group.directories).ok_or(DiskFull)?;
        let inode = self.take_inode(number)?;
        self.groups[inode.group as usize].directories += 1;
        Ok(inode)
    }

    pub(super) fn give_inode(&mut self, inode: Inode) {
        self.groups[inode.group as usize].inodes.give(inode.index, 1);
    }

    /// Assigns disk space to each page from `first` to `last` that has none yet. The space is near
    /// the file's other pages or in cylinder group `group`. If the disk becomes full, the file
    /// keeps the space that was already assigned.
    pub(super) fn grow(
        &mut self,
        extents: &mut Extents,
        group: u32,
        first: u64,
        last: u64,
    ) -> Result<(), DiskFull> {
        self.complete_tail(extents, last);
        let mut page = first;
        while page <= last {
            if extents.find(page, self.page_fragments).is_some() {
                page += 1;
                continue;
            }
            let group_pages = (self.group_fragments - self.data_start) / self.page_fragments;
            let missing = (page..=last)
                .take_while(|&page| extents.find(page, self.page_fragments).is_none())
                .take(group_pages as usize)
                .count();
            let (start, pages) = self.place(extents, group, page, small(missing as u64))?;
            let fragments = pages * self.page_fragments;
            extents.insert(Extent { page, start, fragments }, self.page_fragments);
            page += u64::from(pages);
        }
        Ok(())
    }

    /// Assigns disk space for `size` bytes to a file without pages. Uses the adjacent free
    /// fragments of each cylinder group, starting at `group`.
    pub(super) fn preallocate(
        &mut self,
        extents: &mut Extents,
        group: u32,
        size: u64,
    ) -> Result<(), DiskFull> {
        let mut left = size.div_ceil(self.page_size);
        let mut page = 0;
        for group in self.from(group) {
            let mut at = 0;
            while left > 0
                && let Some((start, length)) = self.groups[group as usize].data.run_from(at)
            {
                at = start + length;
                let pages = u64::from(length / self.page_fragments).min(left);
                let fragments = small(pages) * self.page_fragments;
                if fragments > 0 && self.groups[group as usize].data.take_at(start, fragments) {
                    let start = self.fragment(group, start);
                    extents.insert(Extent { page, start, fragments }, self.page_fragments);
                    page += pages;
                    left -= pages;
                }
            }
        }
        if left == 0 {
            return Ok(());
        }
        self.release(extents);
        Err(DiskFull)
    }

    /// Frees a part of a small file's last page: the fragments that lie beyond the file's end at
    /// `size` bytes.
    pub(super) fn trim_tail(&mut self, extents: &mut Extents, size: u64) {
        if size == 0 || size > FRAGMENTED_PAGES * self.page_size {
            return;
        }
        let page = (size - 1) / self.page_size;
        let needed = small((size - page * self.page_size).div_ceil(FRAGMENT));
        let Some((_, has)) = extents.find(page, self.page_fragments) else { return };
        let is_last = extents.find(page + 1, self.page_fragments).is_none()
            && extents.all().last().is_some_and(|last| last.page <= page);
        if is_last
            && has > needed
            && let Some(freed) = extents.shorten_last(has - needed)
        {
            self.give(freed, has - needed);
        }
    }

    pub(super) fn release(&mut self, extents: &mut Extents) {
        for extent in extents.take() {
            self.give(extent.start, extent.fragments);
        }
    }

    pub(super) fn take_block(&mut self, group: u32) -> Result<u32, DiskFull> {
        self.search(group, 1).map(|(start, _)| start)
    }

    /// Prepares a small file for new pages up to page `last`. The file's present last page may have
    /// fewer fragments than a whole page. If the next fragments on disk are free, the page grows in
    /// place. Otherwise the function frees the page's fragments, and the caller assigns a new place
    /// to the page.
    fn complete_tail(&mut self, extents: &mut Extents, last: u64) {
        let Some(tail) = extents.all().last().copied() else { return };
        let has = tail.fragments % self.page_fragments;
        if has == 0 || last < tail.page + u64::from(tail.fragments / self.page_fragments) {
            return;
        }
        let missing = self.page_fragments - has;
        let (group, at) = self.locate(tail.start);
        if self.groups[group as usize].data.take_at(at + tail.fragments, missing) {
            extents.lengthen_last(missing);
        } else if let Some(freed) = extents.shorten_last(has) {
            self.give(freed, has);
        }
    }

    /// Takes disk space for up to `pages` pages directly after the file's previous page. If that
    /// space is taken, takes space as near as possible. Returns the first fragment and the number
    /// of pages.
    fn place(
        &mut self,
        extents: &Extents,
        group: u32,
        page: u64,
        pages: u32,
    ) -> Result<(u32, u32), DiskFull> {
        let before =
            page.checked_sub(1).and_then(|before| extents.find(before, self.page_fragments));
        let Some((start, _)) = before else { return self.search(group, pages) };
        let behind = start + self.page_fragments;
        let (group, at) = self.locate(start);
        let fragments = pages * self.page_fragments;
        if self.groups[group as usize].data.take_at(at + self.page_fragments, fragments) {
            return Ok((behind, pages));
        }
        self.search(group, pages)
    }

    fn search(&mut self, group: u32, pages: u32) -> Result<(u32, u32), DiskFull> {
        for group in self.from(group) {
            let mut wanted = pages;
            while wanted > 0 {
                if let Some(start) =
                    self.groups[group as usize].data.take_run(wanted * self.page_fragments)
                {
                    return Ok((self.fragment(group, start), wanted));
                }
                wanted /= 2;
            }
        }
        Err(DiskFull)
    }

    fn give(&mut self, start: u32, fragments: u32) {
        let (group, at) = self.locate(start);
        self.groups[group as usize].data.give(at, fragments);
    }

    /// Returns the numbers of all cylinder groups, starting at `group` and wrapping around.
    fn from(&self, group: u32) -> impl Iterator<Item = u32> + use<> {
        let count = small(self.groups.len() as u64);
        (0..count).map(move |step| (group + step) % count)
    }

    const fn fragment(&self, group: u32, at: u32) -> u32 {
        group * self.group_fragments + self.data_start + at
    }

    const fn locate(&self, fragment: u32) -> (u32, u32) {
        (fragment / self.group_fragments, fragment % self.group_fragments - self.data_start)
    }
}

/// A run of consecutive pages of a file that are also consecutive on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Number of the first page in the file.
    pub(super) page: u64,
    /// Number of the first fragment on the disk.
    pub(super) start: u32,
    /// Number of fragments of the run. In a small file, the last page may have fewer fragments than
    /// a whole page.
    pub(super) fragments: u32,
}

/// The extents of a file in the order of its pages.
#[derive(Debug, Default)]
pub(super) struct Extents(Vec<Extent>);

impl Extents {
    pub(super) fn all(&self) -> &[Extent] {
        &self.0
    }

    fn position(&self, page: u64, page_fragments: u32) -> Option<usize> {
        let index = self.0.partition_point(|extent| extent.page <= page).checked_sub(1)?;
        let extent = &self.0[index];
        let pages = u64::from(extent.fragments.div_ceil(page_fragments));
        (page < extent.page + pages).then_some(index)
    }

    /// Returns the first fragment of a page on the disk and the page's number of fragments.
    pub(super) fn find(&self, page: u64, page_fragments: u32) -> Option<(u32, u32)> {
        let extent = &self.0[self.position(page, page_fragments)?];
        let before = u32::try_from(page - extent.page).ok()? * page_fragments;
        Some((extent.start + before, (extent.fragments - before).min(page_fragments)))
    }

    /// Adds pages of a file that have just received disk space. If they follow an existing extent
    /// in the file and on the disk, that extent becomes longer.
    pub(super) fn insert(&mut self, new: Extent, page_fragments: u32) {
        let index = self.0.partition_point(|extent| extent.page < new.page);
        if let Some(before) = index.checked_sub(1).map(|before| &mut self.0[before]) {
            let whole = before.fragments.is_multiple_of(page_fragments);
            let next_page = before.page + u64::from(before.fragments / page_fragments);
            if whole && next_page == new.page && before.start + before.fragments == new.start {
                before.fragments += new.fragments;
                return;
            }
        }
        self.0.insert(index, new);
    }

    /// Shortens the last extent by `fragments` fragments. Returns the number of the first freed
    /// fragment.
    pub(super) fn shorten_last(&mut self, fragments: u32) -> Option<u32> {
        let last = self.0.last_mut()?;
        last.fragments -= fragments;
        let freed = last.start + last.fragments;
        if last.fragments == 0 {
            self.0.pop();
        }
        Some(freed)
    }

    pub(super) fn lengthen_last(&mut self, fragments: u32) {
        if let Some(last) = self.0.last_mut() {
            last.fragments += fragments;
        }
    }

    pub(super) fn take(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.0)
    }
}

impl DiskProfile {
    /// Returns the number of bytes on the disk for files and directories. Inodes and bitmaps do not
    /// count.
    ///
    /// # Panics
    /// Panics if the profile's page size is not a multiple of a fragment, or a cylinder group has
    /// no space for data.
    #[must_use]
    pub fn room(&self) -> u64 {
        Layout::new(self).room()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_found_where_they_were_put_and_neighbours_join() {
        let mut extents = Extents::default();
        extents.insert(Extent { page: 4, start: 100, fragments: 16 }, 8);
        extents.insert(Extent { page: 0, start: 32, fragments: 8 }, 8);
        extents.insert(Extent { page: 6, start: 116, fragments: 11 }, 8);
        assert_eq!(extents.all().len(), 2);
        let found = [0, 1, 4, 5, 7, 8].map(|page| extents.find(page, 8));
        assert_eq!(
            found,
            [Some((32, 8)), None, Some((100, 8)), Some((108, 8)), Some((124, 3)), None]
        );
    }
}
