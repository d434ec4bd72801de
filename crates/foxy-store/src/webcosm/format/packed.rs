//! Encodes and decodes a page that several small records share. The page contains a checksum, a
//! directory of keys and lengths, and the records. So a get reads only one page to find a small
//! record.
//!
//! ```text
//! 0        8        16     20      22      24
//! checksum | stamp  | mark | count | zeros | count x (key 16, head length 2, body length 2) | contents in that order
//! ```

use crate::contract::{AbsentReason, Key, Record};
use crate::layout::PAGE;
use crate::record::Secret;
use crate::webcosm::format::summary::sealed;
use bytes::Bytes;

const MARK: [u8; 4] = *b"pack";
const HEADER: usize = 24;
const ENTRY: usize = 20;

/// Number of bytes in a shared page for records and their directory entries.
pub const ROOM: usize = PAGE - HEADER;

/// Returns how many of the [`ROOM`] bytes a record needs, including its directory entry.
pub fn cost(record: &Record) -> usize {
    ENTRY + record.len()
}

/// Encodes records into one page.
///
/// # Panics
/// If the records do not fit. The caller must first add up their costs.
pub fn encode<'a>(
    page: &mut [u8],
    stamp: u64,
    records: impl Iterator<Item = (Key, &'a Record)> + Clone,
    secret: &Secret,
) {
    page.fill(0);
    let count = records.clone().count();
    let mut at = HEADER + count * ENTRY;
    for ((key, record), entry) in records.zip(page_entries(HEADER, count)) {
        let (head, body) = (&record.head, &record.body);
        page[entry..entry + 16].copy_from_slice(&key.0);
        page[entry + 16..entry + 18].copy_from_slice(&short(head.len()));
        page[entry + 18..entry + 20].copy_from_slice(&short(body.len()));
        page[at..at + head.len()].copy_from_slice(head);
        at += head.len();
        page[at..at + body.len()].copy_from_slice(body);
        at += body.len();
    }
    page[8..16].copy_from_slice(&stamp.to_le_bytes());
    page[16..20].copy_from_slice(&MARK);
    page[20..22].copy_from_slice(&short(count));
    let checksum = secret.checksum(&page[8..]);
    page[..8].copy_from_slice(&checksum.to_le_bytes());
}

fn page_entries(from: usize, count: usize) -> impl Iterator<Item = usize> {
    (0..count).map(move |number| from + number * ENTRY)
}

fn short(length: usize) -> [u8; 2] {
    u16::try_from(length).expect("a page is shorter than 64 KiB").to_le_bytes()
}

fn number(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Returns the records of a shared page. Each record is a tuple: its key, then three byte offsets
/// in the page: start of the head, start of the body, end. Returns `None` if the page is damaged or
/// is not a shared page.
pub fn entries<'a>(
    page: &'a [u8],
    stamp: u64,
    secret: &Secret,
) -> Option<impl Iterator<Item = (Key, usize, usize, usize)> + use<'a>> {
    if !sealed(page, stamp, secret) || page[16..20] != MARK {
        return None;
    }
    let count = number(page, 20);
    let mut at = HEADER + count * ENTRY;
    (at <= PAGE).then(|| {
        page_entries(HEADER, count).map_while(move |entry| {
            let mut key = [0; 16];
            key.copy_from_slice(&page[entry..entry + 16]);
            let (head, body) = (number(page, entry + 16), number(page, entry + 18));
            let start = at;
            at += head + body;
            (at <= PAGE).then_some((Key(key), start, start + head, at))
        })
    })
}

/// Returns a copy of the record of `key` in a shared page, so that the page's memory can be freed.
pub fn decode(page: &[u8], key: Key, stamp: u64, secret: &Secret) -> Result<Record, AbsentReason> {
    let Some(mut entries) = entries(page, stamp, secret) else {
        let whole = page.len() == PAGE && page[..8] == secret.checksum(&page[8..]).to_le_bytes();
        return Err(if whole { AbsentReason::KeyMismatch } else { AbsentReason::ChecksumMismatch });
    };
    let found = entries.find(|(other, ..)| *other == key);
    let (_, start, middle, end) = found.ok_or(AbsentReason::KeyMismatch)?;
    let content = Bytes::copy_from_slice(&page[start..end]);
    Ok(Record { head: content.slice(..middle - start), body: content.slice(middle - start..) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(head: usize, body: usize) -> Record {
        Record { head: vec![b'h'; head].into(), body: vec![b'b'; body].into() }
    }

    #[test]
    fn each_record_of_a_page_comes_back_and_no_other() {
        let secret = Secret::new(3);
        let records: Vec<_> = (0..15).map(|n| (Key([n; 16]), record(n as usize, 230))).collect();
        assert!(records.iter().map(|(_, record)| cost(record)).sum::<usize>() <= ROOM);
        let mut page = vec![7; PAGE];
        encode(&mut page, 9, records.iter().map(|(key, record)| (*key, record)), &secret);
        for (key, record) in &records {
            assert_eq!(decode(&page, *key, 9, &secret).as_ref(), Ok(record));
        }
        assert_eq!(decode(&page, Key([99; 16]), 9, &secret), Err(AbsentReason::KeyMismatch));
        assert_eq!(decode(&page, Key([1; 16]), 8, &secret), Err(AbsentReason::KeyMismatch));
        assert_eq!(
            decode(&page, Key([1; 16]), 9, &Secret::new(4)),
            Err(AbsentReason::ChecksumMismatch)
        );
        assert_eq!(
            decode(&page[..4000], Key([1; 16]), 9, &secret),
            Err(AbsentReason::ChecksumMismatch)
        );
        page[4000] ^= 1;
        assert_eq!(decode(&page, Key([1; 16]), 9, &secret), Err(AbsentReason::ChecksumMismatch));
    }

    #[test]
    fn a_record_may_fill_a_page_or_be_empty() {
        let secret = Secret::new(3);
        for record in [record(0, ROOM - ENTRY), record(ROOM - ENTRY, 0), record(0, 0)] {
            let mut page = vec![0; PAGE];
            encode(&mut page, 1, std::iter::once((Key([1; 16]), &record)), &secret);
            assert_eq!(decode(&page, Key([1; 16]), 1, &secret), Ok(record));
        }
    }
}
