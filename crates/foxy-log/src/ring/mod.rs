//! A *ring*: a file of fixed size with the newest transactions. The file is divided into blocks. A
//! writer fills block after block, and then overwrites the oldest block. Several processes may
//! write at once, each into a block of its own. A reader needs no lock: each record has a checksum,
//! which depends on the block's number in the order of writing.
//!
//! The file begins with a head: magic bytes, size and number of blocks, and the number of the next
//! block. A block begins with its number, the times of its first and last record, and a checksum of
//! these numbers. The records follow. All numbers are little-endian.

pub mod reader;
pub mod record;
pub mod writer;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use xxhash_rust::xxh3::xxh3_64_with_seed;

const MAGIC: [u8; 8] = *b"foxylog2";
/// Size in bytes of the file's head, before the first block.
const HEAD: u64 = 4096;
/// Position in bytes of the next block's number in the head of the file.
const NEXT_AT: u64 = 16;
const BLOCK: u64 = 64 << 10;
/// Size in bytes of a block's head, before the block's first record.
const BLOCK_HEAD: usize = 32;

/// Smallest size of a ring in bytes.
pub const MIN_SIZE: u64 = HEAD + 4 * BLOCK;

/// The division of a ring (log file of fixed size) into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Geometry {
    blocks: u64,
}

impl Geometry {
    /// Divides a ring of `size` bytes into blocks.
    fn of_size(size: u64) -> Self {
        Self { blocks: (size.max(MIN_SIZE) - HEAD) / BLOCK }
    }

    /// Reads the head of a ring. Returns `None` if the file has no valid head.
    fn read(file: &File) -> io::Result<Option<Self>> {
        let mut head = [0; NEXT_AT as usize];
        match file.read_exact_at(&mut head, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        let blocks = u64::from(u32_at(&head, 12));
        let is_valid = head[..8] == MAGIC && u64::from(u32_at(&head, 8)) == BLOCK && blocks > 0;
        Ok(is_valid.then_some(Self { blocks }))
    }

    fn head(self) -> Vec<u8> {
        let mut head = MAGIC.to_vec();
        head.extend_from_slice(&(BLOCK as u32).to_le_bytes());
        head.extend_from_slice(&u32::try_from(self.blocks).unwrap_or(u32::MAX).to_le_bytes());
        head.extend_from_slice(&1_u64.to_le_bytes());
        head
    }

    /// Returns the position in bytes, in the file, of the block with this number.
    const fn position(self, number: u64) -> u64 {
        HEAD + number % self.blocks * BLOCK
    }
}

/// The head of a block: its number, and the times of its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BlockHead {
    /// Number of the block in the order of writing, from 1.
    number: u64,
    /// Time of the first record in milliseconds since the Unix epoch.
    first: u64,
    /// Time of the last record in milliseconds since the Unix epoch.
    last: u64,
}

impl BlockHead {
    /// Returns whether the reader found a damaged head, so that the times are unknown.
    const fn is_damaged(&self) -> bool {
        self.last == 0
    }

    fn encode(self) -> [u8; BLOCK_HEAD] {
        let mut bytes = [0; BLOCK_HEAD];
        for (field, value) in [self.number, self.first, self.last].into_iter().enumerate() {
            bytes[field * 8..][..8].copy_from_slice(&value.to_le_bytes());
        }
        let sum = xxh3_64_with_seed(&bytes[..24], BLOCK);
        bytes[24..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; BLOCK_HEAD]) -> Option<Self> {
        let is_whole = xxh3_64_with_seed(&bytes[..24], BLOCK) == u64_at(bytes, 24);
        let head =
            Self { number: u64_at(bytes, 0), first: u64_at(bytes, 8), last: u64_at(bytes, 16) };
        (is_whole && head.number > 0).then_some(head)
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()).map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests;
