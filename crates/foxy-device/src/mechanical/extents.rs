//! Where a file's pages lie on its disk. It takes and frees nothing itself.

/// A run of pages that lie one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    /// Its first page in the file.
    pub(super) page: u64,
    /// Its first fragment on the disk.
    pub(super) start: u32,
    /// How many fragments; the last page of a small file may have fewer than a page's.
    pub(super) fragments: u32,
}

/// A file's extents in the order of their pages.
#[derive(Debug, Default)]
pub(super) struct Extents(Vec<Extent>);

impl Extents {
    pub(super) fn all(&self) -> &[Extent] {
        &self.0
    }

    /// The extent that holds a page.
    fn position(&self, page: u64, page_fragments: u32) -> Option<usize> {
        let index = self.0.partition_point(|extent| extent.page <= page).checked_sub(1)?;
        let extent = &self.0[index];
        let pages = u64::from(extent.fragments.div_ceil(page_fragments));
        (page < extent.page + pages).then_some(index)
    }

    /// Where a page lies: its first fragment, and how many of its fragments there are.
    pub(super) fn find(&self, page: u64, page_fragments: u32) -> Option<(u32, u32)> {
        let extent = &self.0[self.position(page, page_fragments)?];
        let before = u32::try_from(page - extent.page).ok()? * page_fragments;
        Some((extent.start + before, (extent.fragments - before).min(page_fragments)))
    }

    /// Adds pages that have no place yet; they join an extent that they continue in the file and on
    /// the disk.
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

    /// Shortens the last extent by so many fragments, and gives the first one that is free now.
    pub(super) fn shorten_last(&mut self, fragments: u32) -> Option<u32> {
        let last = self.0.last_mut()?;
        last.fragments -= fragments;
        let freed = last.start + last.fragments;
        if last.fragments == 0 {
            self.0.pop();
        }
        Some(freed)
    }

    /// Lengthens the last extent on the disk.
    pub(super) fn lengthen_last(&mut self, fragments: u32) {
        if let Some(last) = self.0.last_mut() {
            last.fragments += fragments;
        }
    }

    /// Forgets all of them.
    pub(super) fn take(&mut self) -> Vec<Extent> {
        std::mem::take(&mut self.0)
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
