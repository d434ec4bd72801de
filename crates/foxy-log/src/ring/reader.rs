//! Reads a ring (log file of fixed size), even while processes write to it.

use super::{BLOCK, BLOCK_HEAD, BlockHead, Geometry, NEXT_AT, record};
use crate::transaction::Transaction;
use std::fs::File;
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;

/// A ring (log file of fixed size) that is open for reading.
#[derive(Debug)]
pub struct Ring {
    file: File,
    geometry: Geometry,
}

impl Ring {
    /// Opens a ring. Returns `None` if the file is not a ring.
    pub fn open(file: File) -> io::Result<Option<Self>> {
        let geometry = Geometry::read(&file)?;
        Ok(geometry.map(|geometry| Self { file, geometry }))
    }

    /// Returns the heads of the blocks with records from the times `times`, in the order of
    /// writing.
    pub fn blocks(&self, times: &RangeInclusive<u64>) -> io::Result<Vec<BlockHead>> {
        let mut blocks = self.all_blocks(times)?;
        blocks.retain(|block| !block.is_damaged());
        Ok(blocks)
    }

    /// Returns the same as [`Self::blocks`], and also the blocks with a damaged head.
    fn all_blocks(&self, times: &RangeInclusive<u64>) -> io::Result<Vec<BlockHead>> {
        let mut next = [0; 8];
        self.read_at(&mut next, NEXT_AT)?;
        let next = u64::from_le_bytes(next);
        let mut blocks = Vec::new();
        for number in next.saturating_sub(self.geometry.blocks).max(1)..next {
            let is_wanted = |block: &BlockHead| {
                block.is_damaged() || block.first <= *times.end() && block.last >= *times.start()
            };
            blocks.extend(self.block(number)?.filter(is_wanted));
        }
        Ok(blocks)
    }

    /// Returns the head of the block `number`, or a head without times if the head is damaged.
    /// Returns `None` if no writer has filled this block yet.
    fn block(&self, number: u64) -> io::Result<Option<BlockHead>> {
        let mut bytes = [0; BLOCK_HEAD];
        // The first read may see a half of a write.
        for _ in 0..2 {
            self.read_at(&mut bytes, self.geometry.position(number))?;
            match BlockHead::decode(&bytes) {
                Some(head) => return Ok(Some(head).filter(|head| head.number == number)),
                None if bytes == [0; BLOCK_HEAD] => return Ok(None),
                None => (),
            }
        }
        Ok(Some(BlockHead { number, first: 0, last: 0 }))
    }

    /// Returns whether a writer may have begun to overwrite the block.
    fn is_overwritten(&self, head: BlockHead) -> io::Result<bool> {
        let mut next = [0; 8];
        self.read_at(&mut next, NEXT_AT)?;
        Ok(u64::from_le_bytes(next) > head.number + self.geometry.blocks)
    }

    /// Reads the bytes of a block into `out`. Call [`Block::records`] of the result to get the
    /// transactions.
    pub fn read<'a>(&self, head: BlockHead, out: &'a mut Vec<u8>) -> io::Result<Block<'a>> {
        out.resize(BLOCK as usize, 0);
        self.read_at(out, self.geometry.position(head.number))?;
        Ok(Block { head, records: &out[BLOCK_HEAD..] })
    }

    fn read_at(&self, bytes: &mut [u8], position: u64) -> io::Result<()> {
        self.file.read_exact_at(bytes, position).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => io::Error::new(
                error.kind(),
                "the file is damaged: it was cut, or its head is wrong",
            ),
            _ => error,
        })
    }

    /// Returns the size of the file in bytes.
    pub fn size(&self) -> u64 {
        self.geometry.position(self.geometry.blocks - 1) + BLOCK
    }
}

/// The bytes of a block of a ring (log file of fixed size).
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    head: BlockHead,
    records: &'a [u8],
}

impl<'a> Block<'a> {
    /// Returns the transactions of the block in the order of writing. Stops at the first bytes that
    /// are not a record of this block, for example after the last record or at a torn write.
    pub fn records(self) -> impl Iterator<Item = Transaction<'a>> {
        self.raw().filter_map(record::decode)
    }

    /// Passes the transactions of the block to `take`, also those after damaged bytes. Returns the
    /// least number of records that the damaged bytes have destroyed.
    fn salvage(self, mut take: impl FnMut(Transaction<'a>)) -> u64 {
        let (mut at, mut last, mut destroyed) = (0, 0, 0);
        while let Some((begin, record)) = self.sealed_after(at) {
            destroyed += record::count(&self.records[at..begin]);
            match record::decode(record) {
                Some(transaction) => take(transaction),
                None => destroyed += 1,
            }
            last = last.max(record::time(record));
            at = begin + record.len();
        }
        let lacks_last = at == 0 || last < self.head.last;
        destroyed + u64::from(lacks_last)
    }

    /// Returns the first intact record that begins at byte `from` or later, and its position.
    fn sealed_after(self, from: usize) -> Option<(usize, &'a [u8])> {
        (from..self.records.len()).find_map(|begin| {
            let record = record::first(&self.records[begin..])?;
            let is_whole = record::has_sizes(record) && record::is_sealed(record, self.head.number);
            is_whole.then_some((begin, record))
        })
    }

    fn raw(self) -> impl Iterator<Item = &'a [u8]> {
        let (mut rest, number) = (self.records, self.head.number);
        std::iter::from_fn(move || {
            let record = record::first(rest).filter(|record| record::is_sealed(record, number))?;
            rest = &rest[record.len()..];
            Some(record)
        })
    }
}

/// Reads a ring (log file of fixed size) repeatedly. Each call returns only the records that were
/// written after the previous call.
#[derive(Debug, Default)]
pub struct Follower {
    /// Numbers of the blocks that the previous call read. For each block, also the number of
    /// records.
    read: Vec<(u64, usize)>,
}

impl Follower {
    /// Passes transactions to `take`, but only those that ended at `since` or later. Each
    /// transaction is passed only once, even over several calls.
    pub fn poll(
        &mut self,
        ring: &Ring,
        since: u64,
        mut take: impl FnMut(&Transaction<'_>),
    ) -> io::Result<()> {
        let mut bytes = Vec::new();
        let mut read = Vec::new();
        for head in ring.blocks(&(since..=u64::MAX))? {
            let known = self.read.iter().find(|(number, _)| *number == head.number);
            let known = known.map_or(0, |(_, count)| *count);
            let mut count = 0;
            for transaction in ring.read(head, &mut bytes)?.records() {
                if count >= known && transaction.end >= since {
                    take(&transaction);
                }
                count += 1;
            }
            read.push((head.number, count));
        }
        self.read = read;
        Ok(())
    }
}

/// Distributes the transactions from the times `times` over several threads. Each thread reads
/// consecutive blocks, and adds their transactions to its own value. Returns these values in the
/// order of the blocks, and the least number of records that damaged bytes have destroyed.
pub fn scan<T: Send>(
    ring: &Ring,
    times: &RangeInclusive<u64>,
    threads: usize,
    begin: impl Fn() -> T + Sync,
    add: impl Fn(&mut T, &Transaction<'_>) + Sync,
) -> io::Result<(Vec<T>, u64)> {
    let blocks = ring.all_blocks(times)?;
    let share = blocks.len().div_ceil(threads.max(1)).max(1);
    let run = |blocks: &[BlockHead]| {
        let (mut value, mut bytes, mut all_destroyed) = (begin(), Vec::new(), 0);
        for head in blocks {
            let destroyed = ring.read(*head, &mut bytes)?.salvage(|transaction| {
                if times.contains(&transaction.end) {
                    add(&mut value, &transaction);
                }
            });
            if destroyed > 0 && !ring.is_overwritten(*head)? {
                all_destroyed += destroyed;
            }
        }
        Ok((value, all_destroyed))
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            blocks.chunks(share).map(|blocks| scope.spawn(move || run(blocks))).collect();
        let ended = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        let parts = ended.collect::<io::Result<Vec<_>>>()?;
        let (values, destroyed): (Vec<_>, Vec<_>) = parts.into_iter().unzip();
        Ok((values, destroyed.iter().sum()))
    })
}
