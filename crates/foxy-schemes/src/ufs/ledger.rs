//! The ledger says which record files are valid. For each file number, it contains the lowest valid
//! sequence number. A record with a lower sequence number was removed, replaced or evicted. If its
//! file returns after a power failure, the scan ignores it. The ledger needs no compaction, because
//! each file number has one entry that is overwritten. File number n has entry n + 1. Entry 0
//! applies to file numbers whose block does not exist yet.
//!
//! The file has two superblock pages, then two pages for each block of entries. Writes of a block
//! alternate between its two pages. So after a torn write, the other page contains the previous
//! state.

use foxy_device::IoBuffer;
use foxy_store::layout::PAGE;
use foxy_store::record::Secret;
use std::collections::BTreeSet;

const HEADER: usize = 24;
pub(super) const NUMBERS: usize = (PAGE - HEADER) / 8;
/// Offset in bytes of the first block of entries in the ledger's file.
pub(super) const BLOCKS_AT: u64 = 2 * PAGE as u64;
pub(super) const BLOCK_BYTES: usize = 2 * PAGE;

/// The lowest valid sequence number for each file number. Records with this file number and a lower
/// sequence number are invalid.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    blocks: Vec<Block>,
    changed: BTreeSet<u32>,
    committing: BTreeSet<u32>,
}

#[derive(Clone, Debug)]
struct Block {
    /// Number of durable writes of the block. Odd and even writes use different pages.
    turns: u64,
    lowest: Box<[u64]>,
}

impl Block {
    fn starting_at(lowest: u64) -> Self {
        Self { turns: 0, lowest: vec![lowest; NUMBERS].into_boxed_slice() }
    }
}

pub(super) const fn bytes_for(numbers: u32) -> u64 {
    BLOCKS_AT + (numbers as usize + 1).div_ceil(NUMBERS) as u64 * BLOCK_BYTES as u64
}

impl Ledger {
    /// Reads the blocks that follow the superblocks. If both pages of a block are zero, the block
    /// was never written. If the block has neither zero pages nor a valid page, it is damaged. Then
    /// no record with an entry in this block is valid.
    pub(super) fn load(&mut self, bytes: &[u8], secret: &Secret) {
        for pair in bytes.chunks(BLOCK_BYTES) {
            let number = u32::try_from(self.blocks.len()).unwrap_or(u32::MAX);
            let pages = pair.chunks(PAGE);
            let newest = pages
                .filter_map(|page| decode(page, number, secret))
                .max_by_key(|block| block.turns);
            let blank = pair.iter().all(|&byte| byte == 0);
            self.blocks.push(
                newest.unwrap_or_else(|| Block::starting_at(if blank { 0 } else { u64::MAX })),
            );
        }
    }

    /// Returns the lowest sequence number of a valid record with this file number.
    pub(super) fn lowest(&self, number: u32) -> u64 {
        let (block, place) = place_of(number);
        self.blocks.get(block as usize).map_or_else(|| self.beyond(), |block| block.lowest[place])
    }

    fn beyond(&self) -> u64 {
        self.blocks.first().map_or(0, |block| block.lowest[0])
    }

    /// Returns the highest sequence number in all undamaged blocks. New puts must have higher
    /// numbers.
    pub(super) fn highest_mentioned(&self) -> u64 {
        let all = self.blocks.iter().flat_map(|block| block.lowest.iter().copied());
        all.filter(|&lowest| lowest != u64::MAX).max().unwrap_or(0)
    }

    /// Sets all entries after the scan of an opening. The entry of a live record becomes the
    /// record's sequence number. All other entries become `next`, the sequence number of the next
    /// put. So a file that the scan did not see stays invalid if it returns after a power failure.
    pub(super) fn settle(&mut self, numbers: u32, next: u64, live: impl Fn(u32) -> Option<u64>) {
        let (last, _) = place_of(numbers);
        let blocks = self.blocks.len().max(last as usize + 1);
        self.blocks.resize(blocks, Block::starting_at(next));
        for (block, content) in (0..).zip(&mut self.blocks) {
            for (place, lowest) in (0..).zip(&mut content.lowest) {
                let entry = block * NUMBERS as u32 + place;
                *lowest = entry.checked_sub(1).and_then(&live).unwrap_or(next);
            }
            self.changed.insert(block);
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.blocks.capacity() * (size_of::<Block>() + NUMBERS * 8)
    }

    /// Raises the lowest valid sequence number of a file number, because its record was removed.
    /// The next commit makes the change durable.
    pub(super) fn raise(&mut self, number: u32, lowest: u64) {
        let (block, place) = place_of(number);
        if self.blocks.len() <= block as usize {
            let beyond = Block::starting_at(self.beyond());
            self.blocks.resize(block as usize + 1, beyond);
        }
        let entry = &mut self.blocks[block as usize].lowest[place];
        if *entry < lowest {
            *entry = lowest;
            self.changed.insert(block);
        }
    }

    /// Returns whether an entry changed since the last commit began.
    pub(super) fn has_changed(&self) -> bool {
        !self.changed.is_empty()
    }

    /// Starts a commit of all changes. Returns the numbers of the blocks to write.
    pub(super) fn begin(&mut self) -> Vec<u32> {
        self.committing = std::mem::take(&mut self.changed);
        self.committing.iter().copied().collect()
    }

    /// Returns the bytes that the current commit writes for a block, and their offset in the file.
    pub(super) fn page_of(&self, block: u32, secret: &Secret) -> (u64, IoBuffer) {
        self.page(block, self.blocks[block as usize].turns + 1, secret)
    }

    /// Returns the number of the first block at or after `block` that was read from a valid page,
    /// and this page with its offset. The page may exist only in the system's cache, so the caller
    /// writes it again to the same place and syncs. A torn write does no harm, because the bytes
    /// are equal.
    pub(super) fn page_again(&self, block: u32, secret: &Secret) -> Option<(u32, u64, IoBuffer)> {
        let read =
            (0..).zip(&self.blocks).skip(block as usize).find(|(_, content)| content.turns > 0);
        read.map(|(block, content)| {
            let (offset, buffer) = self.page(block, content.turns, secret);
            (block, offset, buffer)
        })
    }

    fn page(&self, block: u32, turns: u64, secret: &Secret) -> (u64, IoBuffer) {
        let content = &self.blocks[block as usize];
        let page = turns % 2;
        let offset = BLOCKS_AT + u64::from(block) * BLOCK_BYTES as u64 + page * PAGE as u64;
        let mut buffer = IoBuffer::zeroed(PAGE);
        let bytes = buffer.as_mut();
        bytes[8..16].copy_from_slice(&turns.to_le_bytes());
        bytes[16..20].copy_from_slice(&block.to_le_bytes());
        bytes[20..24].copy_from_slice(b"ufs\0");
        for (place, lowest) in bytes[HEADER..].chunks_exact_mut(8).zip(&content.lowest) {
            place.copy_from_slice(&lowest.to_le_bytes());
        }
        let checksum = secret.checksum(&bytes[8..]);
        bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        (offset, buffer)
    }

    /// Notes the end of a commit. After a failure, a later commit writes its blocks again.
    pub(super) fn finish(&mut self, durable: bool) {
        for block in std::mem::take(&mut self.committing) {
            if durable {
                self.blocks[block as usize].turns += 1;
            } else {
                self.changed.insert(block);
            }
        }
    }
}

const fn place_of(number: u32) -> (u32, usize) {
    let entry = number as usize + 1;
    ((entry / NUMBERS) as u32, entry % NUMBERS)
}

fn decode(page: &[u8], block: u32, secret: &Secret) -> Option<Block> {
    let checksum = secret.checksum(page.get(8..PAGE)?);
    let sound = page[..8] == checksum.to_le_bytes()
        && page[16..20] == block.to_le_bytes()
        && page[20..24] == *b"ufs\0";
    let number = |bytes: &[u8]| bytes.try_into().map_or(u64::MAX, u64::from_le_bytes);
    sound.then(|| Block {
        turns: number(&page[8..16]),
        lowest: page[HEADER..].chunks_exact(8).map(number).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(ledger: &mut Ledger, file: &mut [u8], durable: bool) {
        let secret = Secret::new(1);
        for block in ledger.begin() {
            let (offset, page) = ledger.page_of(block, &secret);
            let at = usize::try_from(offset - BLOCKS_AT).expect("small");
            file[at..at + PAGE].copy_from_slice(page.as_ref());
        }
        ledger.finish(durable);
    }

    fn loaded(file: &[u8]) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.load(file, &Secret::new(1));
        ledger
    }

    #[test]
    fn raised_entries_stay_raised() {
        let mut file = vec![0; 3 * BLOCK_BYTES];
        let mut ledger = Ledger::default();
        for (number, lowest) in [(3, 10), (NUMBERS as u32 + 5, 12), (3, 11), (3, 4)] {
            ledger.raise(number, lowest);
            written(&mut ledger, &mut file, true);
        }
        let again = loaded(&file);
        assert_eq!(
            (again.lowest(3), again.lowest(4), again.lowest(NUMBERS as u32 + 5)),
            (11, 0, 12)
        );
        assert_eq!(again.highest_mentioned(), 12);
    }

    #[test]
    fn a_torn_page_leaves_the_state_before_it_even_when_written_again() {
        let mut file = vec![0; BLOCK_BYTES];
        let mut ledger = Ledger::default();
        ledger.raise(1, 5);
        written(&mut ledger, &mut file, true);
        let durable = file.clone();
        for lowest in [6, 7] {
            ledger.raise(1, lowest);
            written(&mut ledger, &mut file, false);
            let changed: Vec<_> = (0..BLOCK_BYTES).filter(|&at| file[at] != durable[at]).collect();
            assert!(changed.iter().all(|at| at / PAGE == changed[0] / PAGE), "one page only");
            let mut torn = file.clone();
            torn[changed[0]] ^= 1;
            assert_eq!(loaded(&torn).lowest(1), 5);
        }
        assert!(ledger.has_changed());
    }

    #[test]
    fn blocks_that_were_read_are_written_again_in_place() {
        let mut file = vec![0; 2 * BLOCK_BYTES];
        let mut ledger = Ledger::default();
        for number in [3, NUMBERS as u32 + 5, 4] {
            ledger.raise(number, 10);
            written(&mut ledger, &mut file, true);
        }
        let again = loaded(&file);
        let (mut next, mut pages) = (0, 0);
        while let Some((block, offset, page)) = again.page_again(next, &Secret::new(1)) {
            let at = usize::try_from(offset - BLOCKS_AT).expect("small");
            assert_eq!(&file[at..at + PAGE], page.as_ref());
            (next, pages) = (block + 1, pages + 1);
        }
        assert_eq!(pages, 2);
    }

    #[test]
    fn a_damaged_block_forgets_everything_in_it() {
        let mut file = vec![0; BLOCK_BYTES];
        file[100] = 1;
        let mut ledger = loaded(&file);
        assert_eq!(ledger.lowest(7), u64::MAX);
        ledger.settle(3, 40, |number| (number == 1).then_some(33));
        assert_eq!((ledger.lowest(0), ledger.lowest(1), ledger.lowest(7)), (40, 33, 40));
        assert!(ledger.has_changed());
    }

    #[test]
    fn numbers_without_an_entry_count_from_where_the_store_was_opened() {
        let mut ledger = Ledger::default();
        ledger.settle(0, 40, |_| None);
        let far = 5 * NUMBERS as u32;
        assert_eq!(ledger.lowest(far), 40);
        ledger.raise(far, 50);
        assert_eq!((ledger.lowest(far), ledger.lowest(far - NUMBERS as u32)), (50, 40));
    }
}
