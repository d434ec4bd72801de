//! The superblock: a page with the store's secret and the number of the active journal half. The
//! first two pages of a store file contain one copy each. The first copy is durable before the
//! second copy is written, so one damaged copy loses nothing.

use crate::layout::PAGE;
use crate::record::{FORMAT_VERSION, Secret};
use crate::status::OpenStoreError;
use foxy_base::Random;
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: &[u8; 8] = b"FOXYSTOR";
const LENGTH: usize = 88;
/// Length in bytes of the fields of a resized store's superblock, which has more fields than other
/// superblocks.
const RESIZED_LENGTH: usize = 104;

/// The fields of a superblock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Superblock {
    /// The random number from which the seed of all checksums is derived.
    pub salt: u64,
    /// A number that grows with each write of the superblock. If both copies are undamaged, the
    /// copy with the larger number counts.
    pub generation: u64,
    /// The number of openings so far. A storage scheme uses it in sequence numbers, or writes it
    /// into each page to identify the opening that wrote the page (incarnation).
    pub opens: u64,
    /// The size in bytes that the settings requested.
    pub requested: u64,
    /// The actual size of the store in bytes.
    pub size: u64,
    /// The number of the active journal half, 0 or 1. The store writes new journal blocks there.
    pub journal_half: u32,
    /// The generation number in the blocks of the active journal half. Blocks with another number
    /// are from an earlier use of this half.
    pub journal_generation: u64,
    /// Records up to this sequence number are durable. The storage scheme webcosm instead stores
    /// the first segment that this opening writes in each log, as two numbers of 32 bits.
    pub durable: u64,
    /// For a resized store: the map from segments to places in the file, in the encoding of the
    /// storage scheme.
    pub turn: u64,
    /// The size in bytes at creation of a resized store. 0 if the store was never resized.
    pub origin: u64,
}

/// The result of reading both copies of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A valid superblock.
    Ours(Superblock),
    /// No superblock was ever written completely. The store counts as blank if all other pages of
    /// the file are also blank.
    Blank,
    /// Both copies are damaged. The opening may then discard the content and create an empty store.
    Damaged,
}

/// The content of one copy of the superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyState {
    /// A valid superblock.
    Sound(Superblock),
    /// A superblock of another format version.
    OtherVersion(u32),
    /// The page is blank.
    Blank,
    /// The page has any other content, so this copy is damaged.
    Damaged,
}

impl CopyState {
    /// Finds out what a page contains that should be a copy of the superblock. The page may be too
    /// short.
    pub fn of(page: &[u8]) -> Self {
        match (Superblock::decode(page), version(page)) {
            (Some(superblock), _) => Self::Sound(superblock),
            (None, Some(found))
                if page.starts_with(MAGIC) && found != FORMAT_VERSION && checksum_holds(page) =>
            {
                Self::OtherVersion(found)
            }
            _ if page.len() == PAGE && blank(page) => Self::Blank,
            _ => Self::Damaged,
        }
    }
}

impl Superblock {
    /// Returns the superblock of an empty store of `size` bytes that replaces the store with the
    /// superblock `old`. The new secret in this superblock makes all old records unreadable.
    pub fn fresh(old: &Self, seed: u64, requested: u64, size: u64) -> Self {
        let generation = old.generation + 1;
        Self {
            salt: Random::new(seed ^ old.salt.rotate_left(17) ^ generation).next_u64(),
            generation,
            opens: old.opens + 1,
            requested,
            size,
            journal_half: 0,
            journal_generation: generation,
            durable: 0,
            turn: 0,
            origin: 0,
        }
    }

    /// Returns the secret that seeds the checksums.
    pub fn secret(&self) -> Secret {
        Secret::new(self.salt)
    }

    /// Encodes the superblock as a page.
    pub fn encode(&self) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[..8].copy_from_slice(MAGIC);
        page[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        page[12..16].copy_from_slice(&self.journal_half.to_le_bytes());
        let numbers = [
            self.salt,
            self.generation,
            self.opens,
            self.requested,
            self.size,
            self.journal_generation,
            self.durable,
            self.turn,
        ];
        for (place, number) in page[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let checksum = xxh3_64(&page[..LENGTH - 8]);
        page[LENGTH - 8..LENGTH].copy_from_slice(&checksum.to_le_bytes());
        if self.origin > 0 {
            page[LENGTH..LENGTH + 8].copy_from_slice(&self.origin.to_le_bytes());
            let checksum = xxh3_64(&page[..LENGTH + 8]);
            page[LENGTH + 8..RESIZED_LENGTH].copy_from_slice(&checksum.to_le_bytes());
        }
        page
    }

    fn decode(page: &[u8]) -> Option<Self> {
        let bytes = page.first_chunk::<LENGTH>()?;
        let number = |at: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(field)
        };
        let sound = bytes[..8] == *MAGIC
            && version(page) == Some(FORMAT_VERSION)
            && number(LENGTH - 8) == xxh3_64(&bytes[..LENGTH - 8])
            && page.iter().skip(RESIZED_LENGTH).all(|&byte| byte == 0);
        let origin = Self::origin_in(page)?;
        let journal_half = u32::from(bytes[12]);
        (sound && journal_half < 2).then(|| Self {
            salt: number(16),
            generation: number(24),
            opens: number(32),
            requested: number(40),
            size: number(48),
            journal_half,
            journal_generation: number(56),
            durable: number(64),
            turn: number(72),
            origin,
        })
    }

    /// Returns the size of the store at its creation, or 0 if the store was never resized. Returns
    /// `None` if the checksum of this field is wrong.
    fn origin_in(page: &[u8]) -> Option<u64> {
        let Some(more) =
            page.get(LENGTH..RESIZED_LENGTH).filter(|more| more.iter().any(|&byte| byte != 0))
        else {
            return Some(0);
        };
        let (origin, checksum) = more.split_at(8);
        let sound = checksum == xxh3_64(&page[..LENGTH + 8]).to_le_bytes();
        sound.then(|| origin.try_into().map(u64::from_le_bytes).ok()).flatten()
    }

    /// Finds out from the first two pages of a file whether it is a store. If the file has fewer
    /// than two pages of bytes, the caller passes only the bytes that exist.
    ///
    /// # Errors
    /// If the file is not a store, has another format version, or is a truncated store. The caller
    /// must then leave the file unchanged.
    pub fn judge(first: &[u8], second: &[u8]) -> Result<Found, OpenStoreError> {
        let copies = [first, second];
        let whole = copies.iter().all(|copy| copy.len() == PAGE);
        let newest = copies.into_iter().filter_map(Self::decode).max_by_key(|copy| copy.generation);
        if !whole && first.starts_with(MAGIC) {
            let (found, least) = ((first.len() + second.len()) as u64, 2 * PAGE as u64);
            let expected = newest.map_or(least, |superblock| superblock.size.max(least));
            return Err(OpenStoreError::Truncated { found, expected });
        }
        // This check comes first, because a program with another format version may have changed
        // anything else in the store.
        for copy in copies {
            if let CopyState::OtherVersion(found) = CopyState::of(copy) {
                return Err(OpenStoreError::OtherVersion { found, expected: FORMAT_VERSION });
            }
        }
        if let Some(superblock) = newest.filter(|_| whole) {
            return Ok(Found::Ours(superblock));
        }
        if copies.iter().any(|copy| copy.starts_with(MAGIC)) {
            return Ok(Found::Damaged);
        }
        if whole && copies.iter().all(|copy| blank(copy)) {
            return Ok(Found::Blank);
        }
        Err(OpenStoreError::Foreign)
    }
}

/// Returns the offset in the page of the first byte that another program wrote. In a superblock,
/// even if torn or damaged, all bytes after the fields are zero.
pub(crate) fn written_by_another(page: &[u8]) -> Option<usize> {
    let ours = if page.starts_with(MAGIC) { RESIZED_LENGTH } else { 0 };
    let known = blank(page)
        || matches!(CopyState::of(page), CopyState::Sound(_) | CopyState::OtherVersion(_));
    let at = page.iter().skip(ours).position(|&byte| byte != 0).map(|at| ours + at);
    at.filter(|_| !known)
}

/// Returns whether nothing was written to the page, or whether the first write of a superblock
/// stopped within the magic number.
fn blank(page: &[u8]) -> bool {
    let written = page.iter().zip(MAGIC).take_while(|(a, b)| a == b).count();
    page[written..].iter().all(|&byte| byte == 0)
}

/// Returns whether the checksum of the superblock is correct. The magic number, the version and the
/// checksum have the same offsets in all format versions.
fn checksum_holds(page: &[u8]) -> bool {
    page.get(..LENGTH)
        .is_some_and(|bytes| bytes[LENGTH - 8..] == xxh3_64(&bytes[..LENGTH - 8]).to_le_bytes())
}

fn version(page: &[u8]) -> Option<u32> {
    page.get(8..12).map(|bytes| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn superblock(generation: u64) -> Superblock {
        Superblock {
            salt: 1,
            generation,
            opens: 3,
            requested: 9,
            size: 8,
            journal_half: 1,
            journal_generation: 2,
            durable: 6,
            turn: 4,
            origin: 7,
        }
    }

    #[test]
    fn one_sound_copy_is_enough_and_the_newest_counts() {
        let (old, new) = (superblock(4), superblock(5));
        let mut damaged = new.encode();
        damaged[20] ^= 1;
        let check = |a: &[u8], b: &[u8], expected| assert_eq!(Superblock::judge(a, b), expected);
        check(&old.encode(), &new.encode(), Ok(Found::Ours(new)));
        check(&new.encode(), &old.encode(), Ok(Found::Ours(new)));
        check(&old.encode(), &damaged, Ok(Found::Ours(old)));
        check(&damaged, &damaged, Ok(Found::Damaged));
        let mut damaged_behind = new.encode();
        damaged_behind[LENGTH + 1] ^= 1;
        check(&old.encode(), &damaged_behind, Ok(Found::Ours(old)));
        check(&damaged, &[0; PAGE], Ok(Found::Damaged));
        let mut torn = [0; PAGE];
        torn[..3].copy_from_slice(b"FOX");
        check(&torn, &[0; PAGE], Ok(Found::Blank));
        check(&torn, &[7; PAGE], Err(OpenStoreError::Foreign));
    }

    #[test]
    fn a_truncated_store_differs_from_a_store_and_a_foreign_file() {
        let page = Superblock { size: 1 << 20, ..superblock(4) }.encode();
        let truncated = |found, expected| Err(OpenStoreError::Truncated { found, expected });
        let check = |a: &[u8], b: &[u8], expected| assert_eq!(Superblock::judge(a, b), expected);
        check(&page[..8], b"", truncated(8, 8192));
        check(&page[..50], b"", truncated(50, 8192));
        check(&page[..100], b"", truncated(100, 1 << 20));
        check(&page, &page[..100], truncated(4196, 1 << 20));
        check(&page[..7], b"", Err(OpenStoreError::Foreign));
        check(&[0; 100], b"", Err(OpenStoreError::Foreign));
    }

    #[test]
    fn foreign_files_are_recognised() {
        let check = |a: &[u8], b: &[u8], expected| assert_eq!(Superblock::judge(a, b), expected);
        check(&[0; PAGE], &[0; PAGE], Ok(Found::Blank));
        check(&[7; PAGE], &[0; PAGE], Err(OpenStoreError::Foreign));
        check(b"#!/bin/sh", b"", Err(OpenStoreError::Foreign));
        check(b"", b"", Err(OpenStoreError::Foreign));
        let mut later = superblock(1).encode();
        later[8] = 2;
        let checksum = xxh3_64(&later[..LENGTH - 8]);
        later[LENGTH - 8..LENGTH].copy_from_slice(&checksum.to_le_bytes());
        let other = OpenStoreError::OtherVersion { found: 2, expected: 1 };
        for page in [&later, &[0; PAGE], &superblock(2).encode()] {
            check(&later, page, Err(other));
            check(page, &later, Err(other));
        }
    }
}
