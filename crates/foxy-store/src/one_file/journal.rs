//! The forget journal: a list of removed keys, each with a sequence number. All records of the key
//! up to that number are deleted. The journal is a list of blocks. Each block has two copies, so
//! one damaged copy loses nothing. A torn last block is ignored, because the removals in it were
//! never answered. If an earlier block is damaged, the storage scheme must discard all records.

use crate::contract::Key;
use crate::layout::PAGE;
use crate::record::Secret;
use foxy_device::{IoBuffer, IoError};

/// An entry of the journal: every record of `key` with a sequence number up to `up_to` is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forget {
    pub key: Key,
    pub up_to: u64,
}

const HEADER: usize = 40;
const ENTRY: usize = 24;

/// Number of entries that fit in one block of the journal.
pub const BLOCK_ENTRIES: usize = (PAGE - HEADER) / ENTRY;

/// Size of a block on disk in bytes. A block consists of two copies of one page.
pub const BLOCK_BYTES: usize = 2 * PAGE;

/// The error for an unreadable block that is not the last. The removals in such a block were
/// answered, so removed records could return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalDamaged;

/// The content of one half of the journal, as read from the disk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JournalContent {
    /// The journal entries, oldest first.
    pub facts: Vec<Forget>,
    /// Records up to this sequence number were durable when the last block was written.
    pub durable: u64,
    /// Number of readable blocks. A journal half without a readable block is lost.
    pub blocks: u32,
}

/// The header fields that all journal blocks of a write share.
#[derive(Clone, Copy, Debug)]
pub struct BlockStamp {
    pub generation: u64,
    /// Records up to this sequence number are durable.
    pub durable: u64,
}

/// Returns the number of journal blocks for `facts` entries, but at least 1.
pub const fn blocks_for(facts: usize) -> u32 {
    if facts == 0 { 1 } else { facts.div_ceil(BLOCK_ENTRIES) as u32 }
}

/// Encodes journal entries as blocks. The first block has the number `first_block`.
pub fn encode(facts: &[Forget], first_block: u32, stamp: BlockStamp, secret: &Secret) -> IoBuffer {
    let mut buffer = IoBuffer::zeroed(blocks_for(facts.len()) as usize * BLOCK_BYTES);
    let mut rest = facts;
    for (number, out) in (first_block..).zip(buffer.as_mut().chunks_exact_mut(BLOCK_BYTES)) {
        let (part, more) = rest.split_at(rest.len().min(BLOCK_ENTRIES));
        rest = more;
        let (block, copy) = out.split_at_mut(PAGE);
        encode_block(part, number, stamp, secret, block);
        copy.copy_from_slice(block);
    }
    buffer
}

fn encode_block(facts: &[Forget], number: u32, stamp: BlockStamp, secret: &Secret, out: &mut [u8]) {
    out[8..16].copy_from_slice(&stamp.generation.to_le_bytes());
    out[16..20].copy_from_slice(&number.to_le_bytes());
    let count = u32::try_from(facts.len()).expect("at most BLOCK_ENTRIES");
    out[20..24].copy_from_slice(&count.to_le_bytes());
    out[24..32].copy_from_slice(b"forgets\0");
    out[32..40].copy_from_slice(&stamp.durable.to_le_bytes());
    for (fact, place) in facts.iter().zip(out[HEADER..].chunks_exact_mut(ENTRY)) {
        place[..16].copy_from_slice(&fact.key.0);
        place[16..].copy_from_slice(&fact.up_to.to_le_bytes());
    }
    let checksum = secret.checksum(&out[8..]);
    out[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Decodes one copy of a journal block. Returns the sequence number up to which records are
/// durable, and the entries. Returns `None` if the copy is damaged, or has another number or
/// generation.
pub(crate) fn decode_block<'a>(
    page: &'a [u8],
    number: u32,
    generation: u64,
    secret: &Secret,
) -> Option<(u64, impl Iterator<Item = Forget> + use<'a>)> {
    let field = |from: usize, to: usize| page.get(from..to);
    let checksum = secret.checksum(page.get(8..PAGE)?);
    let sound = field(0, 8)? == checksum.to_le_bytes()
        && field(8, 16)? == generation.to_le_bytes()
        && field(16, 20)? == number.to_le_bytes()
        && field(24, 32)? == b"forgets\0";
    let count = u32::from_le_bytes(field(20, 24)?.try_into().ok()?) as usize;
    let durable = u64::from_le_bytes(field(32, 40)?.try_into().ok()?);
    (sound && count <= BLOCK_ENTRIES).then(|| {
        let facts = page[HEADER..].chunks_exact(ENTRY).take(count).map(|entry| {
            let (mut key, mut up_to) = ([0; 16], [0; 8]);
            key.copy_from_slice(&entry[..16]);
            up_to.copy_from_slice(&entry[16..]);
            Forget { key: Key(key), up_to: u64::from_le_bytes(up_to) }
        });
        (durable, facts)
    })
}

/// Decodes all entries from a journal half. Ignores blocks of other generations (earlier uses of
/// this half).
///
/// # Errors
/// If a block is unreadable although a later block is readable.
pub fn decode(
    half: &[u8],
    generation: u64,
    secret: &Secret,
) -> Result<JournalContent, JournalDamaged> {
    let mut content = JournalContent::default();
    let mut hole = false;
    for (number, pair) in (0..).zip(half.chunks_exact(BLOCK_BYTES)) {
        let (block, copy) = pair.split_at(PAGE);
        let found = decode_block(block, number, generation, secret)
            .or_else(|| decode_block(copy, number, generation, secret));
        match found {
            Some(_) if hole => return Err(JournalDamaged),
            Some((durable, facts)) => {
                content.blocks += 1;
                content.durable = content.durable.max(durable);
                content.facts.extend(facts);
            }
            None => hole = true,
        }
    }
    Ok(content)
}

/// Number of attempts to read a journal half. After the last failed attempt, the half counts as
/// lost.
pub const MAX_READS: u32 = 3;

/// Returns the content of the active journal half, which has `length` bytes. Returns `None` if the
/// half is lost. A half without a readable block is lost, because the store writes the first block
/// before it uses a half.
pub fn content(
    half: Result<IoBuffer, IoError>,
    length: usize,
    generation: u64,
    secret: &Secret,
) -> Option<JournalContent> {
    let half = half.ok().filter(|half| half.len() == length)?;
    decode(half.as_ref(), generation, secret).ok().filter(|content| content.blocks > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(count: u64) -> Vec<Forget> {
        (0..count).map(|n| Forget { key: Key(u128::from(n).to_le_bytes()), up_to: n * 3 }).collect()
    }

    fn half(facts: &[Forget]) -> Vec<u8> {
        let stamp = BlockStamp { generation: 7, durable: 5 };
        let mut bytes = encode(facts, 0, stamp, &Secret::new(1)).as_ref().to_vec();
        bytes.resize(10 * BLOCK_BYTES, 0);
        bytes
    }

    fn read(half: &[u8]) -> Result<Vec<Forget>, JournalDamaged> {
        let content = decode(half, 7, &Secret::new(1))?;
        assert_eq!(content.durable, 5);
        Ok(content.facts)
    }

    #[test]
    fn facts_come_back_and_other_generations_do_not() {
        let facts = facts(400);
        let half = half(&facts);
        assert_eq!(read(&half), Ok(facts));
        assert_eq!(decode(&half, 8, &Secret::new(1)), Ok(JournalContent::default()));
        assert_eq!(decode(&half, 7, &Secret::new(2)), Ok(JournalContent::default()));
    }

    #[test]
    fn no_facts_are_a_block_and_no_block_is_told_from_that() {
        let blocks = |half: &[u8]| decode(half, 7, &Secret::new(1)).map(|content| content.blocks);
        assert_eq!(blocks(&half(&[])), Ok(1));
        assert_eq!(blocks(&half(&facts(400))), Ok(3));
        assert_eq!(blocks(&[0; 4 * BLOCK_BYTES]), Ok(0));
    }

    #[test]
    fn one_damaged_copy_of_each_block_costs_nothing() {
        let facts = facts(400);
        let mut half = half(&facts);
        for (block, copy) in [(0, 0), (1, 1), (2, 0)] {
            half[block * BLOCK_BYTES + copy * PAGE + 100] ^= 4;
        }
        assert_eq!(read(&half), Ok(facts));
    }

    #[test]
    fn a_torn_tail_is_left_out_and_damage_before_it_is_a_doubt() {
        let facts = facts(400);
        let mut torn = half(&facts);
        torn[2 * BLOCK_BYTES + 512..3 * BLOCK_BYTES].fill(0);
        assert_eq!(read(&torn), Ok(facts[..2 * BLOCK_ENTRIES].to_vec()));
        let mut damaged = half(&facts);
        damaged[BLOCK_BYTES + 50] ^= 1;
        damaged[BLOCK_BYTES + PAGE + 51] ^= 1;
        assert_eq!(read(&damaged), Err(JournalDamaged));
    }
}
