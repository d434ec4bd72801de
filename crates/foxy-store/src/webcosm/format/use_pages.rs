//! Encodes and decodes pages of use counters. A use counter says how often a record was requested.
//! Each page is valid alone: checksum, kind, count, first tag (shortened key), then the entries. An
//! entry is a varint that contains the distance from the previous tag and two bits of uses. The
//! store writes the counters in rounds. A page without entries marks the end of a round.

use crate::layout::PAGE;
use crate::record::Secret;
use crate::webcosm::index::Tag;

const HEADER: usize = 24;
const KIND: [u8; 4] = *b"uses";

/// Largest size in bytes of an entry (the use counter of one record).
const ENTRY: usize = 9;

/// Encodes use counters as pages.
#[derive(Debug)]
pub struct UsePages {
    bytes: Vec<u8>,
    most: usize,
    count: u32,
    last: u64,
    full: bool,
}

impl UsePages {
    /// Creates an encoder that fills at most `most` pages.
    pub const fn new(most: usize) -> Self {
        Self { bytes: Vec::new(), most: most * PAGE, count: 0, last: 0, full: false }
    }

    pub const fn is_full(&self) -> bool {
        self.full
    }

    /// Adds the use counter of a record. The tag (shortened key) must be larger than the previous
    /// tag. Returns `false` if the pages are full.
    pub fn add(&mut self, Tag(tag): Tag, uses: u8, secret: &Secret) -> bool {
        if self.count == 0
            || self.bytes.len() % PAGE > PAGE - ENTRY
            || self.bytes.len().is_multiple_of(PAGE)
        {
            self.seal(secret);
            if self.bytes.len() >= self.most {
                self.full = true;
                return false;
            }
            self.begin(tag);
        }
        let mut rest = (tag - self.last) << 2 | u64::from(uses);
        while rest > 127 {
            self.bytes.push(rest as u8 | 128);
            rest >>= 7;
        }
        self.bytes.push(rest as u8);
        (self.last, self.count) = (tag, self.count + 1);
        true
    }

    fn begin(&mut self, first: u64) {
        let start = self.bytes.len();
        self.bytes.resize(start + HEADER, 0);
        self.bytes[start + 8..start + 12].copy_from_slice(&KIND);
        self.bytes[start + 16..start + 24].copy_from_slice(&first.to_le_bytes());
        (self.last, self.count) = (first, 0);
    }

    /// Pads the last page with zeros and writes its checksum.
    fn seal(&mut self, secret: &Secret) {
        if self.count == 0 {
            return;
        }
        let start = (self.bytes.len() - 1) / PAGE * PAGE;
        self.bytes.resize(start + PAGE, 0);
        let page = &mut self.bytes[start..];
        page[12..16].copy_from_slice(&self.count.to_le_bytes());
        let checksum = secret.checksum(&page[8..]);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
        self.count = 0;
    }

    pub fn finish(mut self, secret: &Secret) -> Vec<u8> {
        self.seal(secret);
        self.bytes
    }

    /// Returns the page without entries that marks the end of a round (one pass over the index).
    pub fn end(mut self, secret: &Secret) -> Vec<u8> {
        self.begin(0);
        self.bytes.resize(PAGE, 0);
        let checksum = secret.checksum(&self.bytes[8..]);
        self.bytes[..8].copy_from_slice(&checksum.to_le_bytes());
        self.bytes
    }
}

/// Returns the entries of a page of use counters. The page at the end of a round has no entries.
/// Returns `None` if the page is damaged or no page of use counters.
pub fn decode(page: &[u8], secret: &Secret) -> Option<Vec<(Tag, u8)>> {
    let number = |at: usize| page.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
    let sound = number(0)? == secret.checksum(page.get(8..PAGE)?) && page[8..12] == KIND;
    let count = sound.then(|| u32::from_le_bytes([page[12], page[13], page[14], page[15]]))?;
    let (mut tag, mut bytes) = (number(16)?, page[HEADER..].iter());
    let mut entries = Vec::new();
    for _ in 0..count {
        let (mut word, mut shift) = (0_u64, 0);
        loop {
            let byte = *bytes.next()?;
            word |= u64::from(byte & 127).checked_shl(shift)?;
            shift += 7;
            if byte < 128 {
                break;
            }
        }
        tag = tag.checked_add(word >> 2)?;
        entries.push((Tag(tag), word as u8 & 3));
    }
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_damage_is_noticed() {
        let secret = Secret::new(3);
        let entries: Vec<_> =
            (1..3_000_u64).map(|n| (Tag(n * n * 40_000 + n), (n % 3 + 1) as u8)).collect();
        let mut pages = UsePages::new(9);
        assert!(entries.iter().all(|&(tag, uses)| pages.add(tag, uses, &secret)));
        let mut bytes = pages.finish(&secret);
        let read = |bytes: &[u8]| -> Option<Vec<_>> {
            let pages: Option<Vec<_>> =
                bytes.chunks(PAGE).map(|page| decode(page, &secret)).collect();
            pages.map(|pages| pages.concat())
        };
        assert_eq!(read(&bytes), Some(entries));
        let end = UsePages::new(1).end(&secret);
        assert_eq!(decode(&end, &secret), Some(Vec::new()));
        bytes[PAGE + 900] ^= 1;
        assert!(read(&bytes[..PAGE]).is_some() && read(&bytes).is_none());
        assert_eq!(decode(&end[..100], &secret), None);
    }

    #[test]
    fn entries_without_room_are_reported() {
        let secret = Secret::new(3);
        let mut pages = UsePages::new(1);
        let taken = (0..9_000).take_while(|&n| pages.add(Tag(n << 20), 1, &secret)).count();
        assert!((900..1_100).contains(&taken) && pages.is_full(), "{taken}");
        assert_eq!(pages.finish(&secret).len(), PAGE);
    }
}
