//! Encodes and decodes a record of a ring (log file of fixed size). A record contains its length,
//! its checksum, numbers, the lengths of its texts, and the texts.

use super::{u32_at, u64_at};
use crate::transaction::{Kept, TEXTS, Text, Transaction};
use std::borrow::Cow;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Size in bytes of a record's length and checksum together.
const FRAME: usize = 8;
/// Size in bytes of a record's numbers: eight numbers of 8 bytes, three numbers of 4 bytes, and 4
/// bytes for the status, the reason and padding.
const NUMBERS: usize = 8 * 8 + 3 * 4 + 4;
const TEXTS_AT: usize = FRAME + NUMBERS + TEXTS * 2;
/// Largest size in bytes of a record's text other than the URL. Longer texts are cut.
const MAX_TEXT: usize = 512;
/// Largest size in bytes of a record's URL. Longer URLs are cut.
const MAX_URL: usize = 4096;
/// The value that stands for an unknown number in a record.
const UNKNOWN: u64 = u64::MAX;

/// Appends the record of a transaction to `out`. The record's checksum is added later by the
/// writer.
pub fn encode(transaction: &Transaction<'_>, out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; FRAME]);
    let known = |number: Option<u64>| number.unwrap_or(UNKNOWN);
    let numbers = [
        transaction.end,
        known(transaction.elapsed),
        transaction.bytes,
        known(transaction.body),
        known(transaction.origin_status),
        known(transaction.origin_ttfb),
        known(transaction.origin_connect),
        known(transaction.origin_start),
    ];
    numbers.iter().for_each(|number| out.extend_from_slice(&number.to_le_bytes()));
    let counts = [transaction.weight, transaction.seen, transaction.lost];
    counts.iter().for_each(|count| out.extend_from_slice(&count.to_le_bytes()));
    out.extend_from_slice(&transaction.status.to_le_bytes());
    out.extend_from_slice(&[transaction.kept as u8, 0]);
    let texts = transaction.texts.iter().enumerate();
    let cut = texts.clone().map(|(number, text)| {
        cut(text, if number == Text::Url as usize { MAX_URL } else { MAX_TEXT })
    });
    for text in cut.clone() {
        let length = u16::try_from(text.len()).unwrap_or(0);
        out.extend_from_slice(&length.to_le_bytes());
    }
    cut.for_each(|text| out.extend_from_slice(text.as_bytes()));
    let length = u32::try_from(out.len() - begin).unwrap_or(0);
    out[begin..begin + 4].copy_from_slice(&length.to_le_bytes());
}

/// Returns at most the first `longest` bytes of a text, without a cut character.
fn cut(text: &str, longest: usize) -> &str {
    let mut ends = (0..=longest.min(text.len())).rev();
    &text[..ends.find(|&end| text.is_char_boundary(end)).unwrap_or(0)]
}

/// Returns the transactions of consecutive records that [`encode`] has written.
pub fn decoded(mut records: &[u8]) -> impl Iterator<Item = Transaction<'_>> {
    let next = move || {
        let record = first(records)?;
        records = &records[record.len()..];
        Some(record)
    };
    std::iter::from_fn(next).filter_map(decode)
}

/// Returns the bytes of the first record in `bytes`, including its length and checksum. Returns
/// `None` if `bytes` does not begin with a whole record.
pub(super) fn first(bytes: &[u8]) -> Option<&[u8]> {
    let length = usize::try_from(u32_at(bytes, 0)).ok()?;
    bytes.get(..length).filter(|record| record.len() >= TEXTS_AT)
}

/// Returns whether the sizes of a record's texts add up to the size of the record. Unlike the
/// checksum, this test is cheap.
pub(super) fn has_sizes(record: &[u8]) -> bool {
    let sizes = record[FRAME + NUMBERS..TEXTS_AT].chunks_exact(2);
    let texts: usize = sizes.map(|two| usize::from(u16::from_le_bytes([two[0], two[1]]))).sum();
    TEXTS_AT + texts == record.len()
}

/// Returns the least number of records that were in these damaged bytes.
pub(super) fn count(mut damaged: &[u8]) -> u64 {
    let mut count = u64::from(!damaged.is_empty());
    while let Some(record) = first(damaged) {
        damaged = &damaged[record.len()..];
        count += u64::from(!damaged.is_empty());
    }
    count
}

pub(super) fn time(record: &[u8]) -> u64 {
    u64_at(record, FRAME)
}

/// Writes the checksum into a record that belongs in block number `block`. The checksum also covers
/// this number.
pub(super) fn seal(record: &mut [u8], block: u64) {
    let sum = checksum(record, block);
    record[4..FRAME].copy_from_slice(&sum.to_le_bytes());
}

/// Returns whether the record's checksum is correct for block number `block`.
pub(super) fn is_sealed(record: &[u8], block: u64) -> bool {
    u32_at(record, 4) == checksum(record, block)
}

/// Returns the checksum of a record in block number `block`: the low half of a hash.
fn checksum(record: &[u8], block: u64) -> u32 {
    (xxh3_64_with_seed(&record[FRAME..], block) & u64::from(u32::MAX)) as u32
}

pub(super) fn decode(record: &[u8]) -> Option<Transaction<'_>> {
    let number = |index: usize| u64_at(record, FRAME + index * 8);
    let known = |index: usize| Some(number(index)).filter(|number| *number != UNKNOWN);
    let count = |index: usize| u32_at(record, FRAME + 64 + index * 4);
    let kept = *record.get(FRAME + NUMBERS - 2)?;
    let texts = std::str::from_utf8(record.get(TEXTS_AT..)?).ok()?;
    let status = record.get(FRAME + NUMBERS - 4..FRAME + NUMBERS - 2)?;
    let mut transaction = Transaction {
        end: number(0),
        elapsed: known(1),
        status: u16::from_le_bytes(status.try_into().ok()?),
        bytes: number(2),
        body: known(3),
        origin_status: known(4),
        origin_ttfb: known(5),
        origin_connect: known(6),
        origin_start: known(7),
        kept: *Kept::ALL.get(usize::from(kept))?,
        weight: count(0),
        seen: count(1),
        lost: count(2),
        texts: Default::default(),
    };
    let mut begin = 0;
    let lengths = record.get(FRAME + NUMBERS..TEXTS_AT)?.chunks_exact(2);
    for (text, length) in transaction.texts.iter_mut().zip(lengths) {
        let end = begin + usize::from(u16::from_le_bytes([length[0], length[1]]));
        *text = Cow::Borrowed(texts.get(begin..end)?);
        begin = end;
    }
    Some(transaction)
}
