//! The bytes of one file in memory. Pages that were never written use no memory.

use std::collections::BTreeMap;
use std::sync::Arc;

const PAGE: usize = 4096;

/// The content of a file. Clones share the pages until one of them writes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content {
    size: u64,
    pages: BTreeMap<u64, Arc<[u8; PAGE]>>,
}

/// The part of a byte range that lies within one page.
struct Piece {
    page: u64,
    within: std::ops::Range<usize>,
    of_range: std::ops::Range<usize>,
}

fn pieces(offset: u64, length: usize) -> impl Iterator<Item = Piece> {
    let mut done = 0;
    std::iter::from_fn(move || {
        if done == length {
            return None;
        }
        let at = offset + done as u64;
        let start = usize::try_from(at % PAGE as u64).expect("below a page");
        let count = (PAGE - start).min(length - done);
        let piece = Piece {
            page: at / PAGE as u64,
            within: start..start + count,
            of_range: done..done + count,
        };
        done += count;
        Some(piece)
    })
}

impl Content {
    pub(crate) const fn size(&self) -> u64 {
        self.size
    }

    /// Fills the start of `out` with the bytes from `offset`. Returns the number of bytes read,
    /// which is smaller than `out` only at the end of the file.
    pub(crate) fn read(&self, offset: u64, out: &mut [u8]) -> usize {
        let left = usize::try_from(self.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        let count = out.len().min(left);
        for piece in pieces(offset, count) {
            match self.pages.get(&piece.page) {
                Some(page) => out[piece.of_range].copy_from_slice(&page[piece.within]),
                None => out[piece.of_range].fill(0),
            }
        }
        count
    }

    /// Writes `bytes` at `offset`. A gap between the old end and `offset` reads as zero.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for piece in pieces(offset, bytes.len()) {
            let page = self.pages.entry(piece.page).or_insert_with(|| Arc::new([0; PAGE]));
            Arc::make_mut(page)[piece.within].copy_from_slice(&bytes[piece.of_range]);
        }
        if !bytes.is_empty() {
            self.extend(offset + bytes.len() as u64);
        }
    }

    pub(crate) fn extend(&mut self, size: u64) {
        self.size = self.size.max(size);
    }

    /// Empties the file. The new content is `size` bytes that read as zero.
    pub(crate) fn restart(&mut self, size: u64) {
        self.pages.clear();
        self.size = size;
    }

    /// Makes a range read as zero. The size stays the same.
    pub(crate) fn zero(&mut self, offset: u64, length: u64) {
        let end = offset.saturating_add(length).min(self.size);
        if offset >= end {
            return;
        }
        let page_size = PAGE as u64;
        let touched: Vec<u64> = self
            .pages
            .range(offset / page_size..end.div_ceil(page_size))
            .map(|(&page, _)| page)
            .collect();
        for page in touched {
            let start = page * page_size;
            if offset <= start && end >= start + page_size {
                self.pages.remove(&page);
            } else if let Some(bytes) = self.pages.get_mut(&page) {
                let from = usize::try_from(offset.saturating_sub(start)).expect("below a page");
                let to = usize::try_from((end - start).min(page_size)).expect("at most a page");
                Arc::make_mut(bytes)[from..to].fill(0);
            }
        }
    }

    /// Flips the bits of `mask` in one byte. Returns false if the byte is beyond the end of the
    /// file.
    pub(crate) fn flip(&mut self, offset: u64, mask: u8) -> bool {
        let mut byte = [0];
        let inside = self.read(offset, &mut byte) == 1;
        if inside {
            self.write(offset, &[byte[0] ^ mask]);
        }
        inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_read_as_zero_and_reads_stop_at_the_end() {
        let mut content = Content::default();
        content.write(5000, b"fox");
        let mut out = [9; 8];
        assert_eq!(content.read(4997, &mut out), 6);
        assert_eq!(&out, b"\0\0\0fox\x09\x09");
        assert_eq!(content.read(9999, &mut out), 0);
    }

    #[test]
    fn zeroing_touches_only_its_range() {
        let mut content = Content::default();
        content.write(0, &[7; 3 * PAGE]);
        content.zero(PAGE as u64 - 1, PAGE as u64 + 2);
        let mut out = vec![1; 3 * PAGE];
        assert_eq!(content.read(0, &mut out), 3 * PAGE);
        let expected = |at: usize| if (PAGE - 1..=2 * PAGE).contains(&at) { 0 } else { 7 };
        assert!(out.iter().enumerate().all(|(at, &byte)| byte == expected(at)));
    }

    #[test]
    fn clones_do_not_see_later_writes() {
        let mut content = Content::default();
        content.write(0, b"old");
        let before = content.clone();
        content.write(0, b"new");
        let mut out = [0; 3];
        before.read(0, &mut out);
        assert_eq!(&out, b"old");
    }
}
