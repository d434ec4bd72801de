//! What a segment says of itself in its last pages: which records are in it, in the order of
//! writing, and what was forgotten while it was written. From these a store is known again without
//! reading its records.
//!
//! Each page stands for itself: checksum, stamp, kind, count, then entries of 8 bytes (a record: 40
//! bits of tag, place in the segment, class) or of 24 (a fact: tag and a position in each log). The
//! last page of the segment counts the others.

use crate::layout::PAGE;
use crate::record::Secret;
use crate::webcosm::format::geometry::{LogName, Position};
use crate::webcosm::index::Tag;

const HEADER: usize = 24;

/// Records listed in a page.
const RECORDS_A_PAGE: usize = (PAGE - HEADER) / 8;

/// Facts listed in a page.
const FACTS_A_PAGE: usize = (PAGE - HEADER) / FACT;

/// Bytes of a fact.
const FACT: usize = 24;

/// A record as a summary lists it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key as the index knows it.
    pub tag: Tag,
    /// Where it begins in its segment, in steps of 64 bytes.
    pub step: u32,
    /// The class of its extent.
    pub class: u8,
}

/// One fact: what the index knows under that tag from before those positions is forgotten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fact {
    /// Whose records.
    pub tag: Tag,
    /// The first position of each log that it does not reach.
    pub up_to: [Position; 2],
}

impl Fact {
    /// Whether what lies at a position is forgotten.
    #[must_use]
    pub fn reaches(&self, position: Position) -> bool {
        position < self.up_to[position.segment().log as usize]
    }

    /// The same, reaching as far as another fact of the tag as well.
    pub fn join(&mut self, other: Self) {
        for log in LogName::ALL {
            let up_to = &mut self.up_to[log as usize];
            *up_to = other.up_to[log as usize].max(*up_to);
        }
    }
}

/// What a segment's last page says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    /// Pages of records.
    pub record_pages: u32,
    /// Pages of facts.
    pub fact_pages: u32,
}

impl Trailer {
    /// All pages of the summary.
    #[must_use]
    pub const fn pages(&self) -> u32 {
        self.record_pages + self.fact_pages + 1
    }
}

/// What kind of page it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Records,
    Facts,
    Trailer,
}

impl Kind {
    const fn mark(self) -> [u8; 4] {
        match self {
            Self::Records => *b"recs",
            Self::Facts => *b"fact",
            Self::Trailer => *b"last",
        }
    }
}

/// Pages that a summary of that many records and facts takes.
#[must_use]
pub const fn pages_for(records: usize, facts: usize) -> u32 {
    (records.div_ceil(RECORDS_A_PAGE) + facts.div_ceil(FACTS_A_PAGE) + 1) as u32
}

/// Facts that fit into that many pages.
#[must_use]
pub const fn facts_in(pages: u32) -> usize {
    pages as usize * FACTS_A_PAGE
}

/// Whether a page carries that stamp and its own checksum.
#[must_use]
pub fn sealed(page: &[u8], stamp: u64, secret: &Secret) -> bool {
    page.len() == PAGE
        && page[8..16] == stamp.to_le_bytes()
        && page[..8] == secret.checksum(&page[8..]).to_le_bytes()
}

fn seal(page: &mut [u8], kind: Kind, count: usize, stamp: u64, secret: &Secret) {
    page[8..16].copy_from_slice(&stamp.to_le_bytes());
    page[16..20].copy_from_slice(&kind.mark());
    page[20..24]
        .copy_from_slice(&u32::try_from(count).expect("few entries fit a page").to_le_bytes());
    let checksum = secret.checksum(&page[8..]);
    page[..8].copy_from_slice(&checksum.to_le_bytes());
}

fn count(page: &[u8]) -> usize {
    u32::from_le_bytes([page[20], page[21], page[22], page[23]]) as usize
}

/// Writes a summary that ends with the page at `last`, into exactly its pages.
///
/// # Panics
/// When `out` does not have that many bytes.
pub fn encode(
    out: &mut [u8],
    records: &[Listed],
    facts: &[Fact],
    last: Position,
    life: u64,
    secret: &Secret,
) {
    let pages = u64::from(pages_for(records.len(), facts.len()));
    assert_eq!(out.len() as u64, pages * PAGE as u64, "a summary has its own pages");
    let stamp = |number: u64| Position(last.0 + 1 + number - pages).stamp(life);
    let mut pages = (0..).zip(out.chunks_exact_mut(PAGE));
    let mut next = || pages.next().expect("counted");
    for part in records.chunks(RECORDS_A_PAGE) {
        let (number, page) = next();
        for (entry, out) in part.iter().zip(page[HEADER..].chunks_exact_mut(8)) {
            let word = entry.tag.0 << 24 | u64::from(entry.step) << 6 | u64::from(entry.class);
            out.copy_from_slice(&word.to_le_bytes());
        }
        seal(page, Kind::Records, part.len(), stamp(number), secret);
    }
    for part in facts.chunks(FACTS_A_PAGE) {
        let (number, page) = next();
        for (fact, out) in part.iter().zip(page[HEADER..].chunks_exact_mut(FACT)) {
            out[..8].copy_from_slice(&fact.tag.0.to_le_bytes());
            out[8..16].copy_from_slice(&fact.up_to[0].0.to_le_bytes());
            out[16..].copy_from_slice(&fact.up_to[1].0.to_le_bytes());
        }
        seal(page, Kind::Facts, part.len(), stamp(number), secret);
    }
    let (number, page) = next();
    let counts = [records.len().div_ceil(RECORDS_A_PAGE), facts.len().div_ceil(FACTS_A_PAGE)];
    for (count, out) in counts.iter().zip(page[HEADER..].chunks_exact_mut(8)) {
        out.copy_from_slice(&(*count as u64).to_le_bytes());
    }
    seal(page, Kind::Trailer, 0, stamp(number), secret);
}

fn word(page: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Reads a segment's last page; `None` when it is not that, or damaged, or says more than a segment
/// of that many pages holds.
#[must_use]
pub fn trailer(
    page: &[u8],
    last: Position,
    life: u64,
    secret: &Secret,
    most: u32,
) -> Option<Trailer> {
    let sound = sealed(page, last.stamp(life), secret) && page[16..20] == Kind::Trailer.mark();
    let (records, facts) = sound.then(|| (word(page, HEADER), word(page, HEADER + 8)))?;
    let fits = records.checked_add(facts).is_some_and(|pages| pages < u64::from(most));
    fits.then_some(Trailer { record_pages: records as u32, fact_pages: facts as u32 })
}

/// What a summary says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The records of its segment, in the order of writing.
    pub records: Vec<Listed>,
    /// What was forgotten while it was written.
    pub facts: Vec<Fact>,
}

/// Reads a summary from all its pages, whose trailer has been read; `None` when any of them is
/// damaged.
#[must_use]
pub fn decode(
    pages: &[u8],
    trailer: Trailer,
    last: Position,
    life: u64,
    secret: &Secret,
) -> Option<Summary> {
    let mut summary = Summary::default();
    let count_of = u64::from(trailer.pages());
    for (number, page) in (0..count_of - 1).zip(pages.chunks_exact(PAGE)) {
        let stamp = Position(last.0 + 1 + number - count_of).stamp(life);
        let is_records = number < u64::from(trailer.record_pages);
        let (kind, most) =
            if is_records { (Kind::Records, RECORDS_A_PAGE) } else { (Kind::Facts, FACTS_A_PAGE) };
        if !sealed(page, stamp, secret) || page[16..20] != kind.mark() || count(page) > most {
            return None;
        }
        if is_records {
            summary.records.extend(page[HEADER..].chunks_exact(8).take(count(page)).map(|entry| {
                let word = word(entry, 0);
                Listed {
                    tag: Tag(word >> 24),
                    step: (word >> 6) as u32 & 0x3_ffff,
                    class: word as u8 & 63,
                }
            }));
        } else {
            summary.facts.extend(page[HEADER..].chunks_exact(FACT).take(count(page)).map(
                |entry| Fact {
                    tag: Tag(word(entry, 0)),
                    up_to: [8, 16].map(|at| Position(word(entry, at))),
                },
            ));
        }
    }
    (pages.len() >= (count_of as usize - 1) * PAGE).then_some(summary)
}

#[cfg(test)]
mod tests {
    use super::super::geometry::Segment;
    use super::*;

    #[test]
    fn a_summary_comes_back_and_damage_is_noticed() {
        let secret = Secret::new(8);
        let records: Vec<_> = (0..1200)
            .map(|n| Listed {
                tag: Tag(n << 20 | n),
                step: (n * 200) as u32,
                class: (n % 64) as u8,
            })
            .collect();
        let facts: Vec<_> =
            (0..300).map(|n| Fact { tag: Tag(n), up_to: [Position(n * 7), Position(n)] }).collect();
        let last = Position::new(Segment { log: LogName::Main, sequence: 5 }, 4095);
        let mut pages = vec![0; pages_for(1200, 300) as usize * PAGE];
        encode(&mut pages, &records, &facts, last, 2, &secret);
        let end = pages.len() - PAGE;
        let found = trailer(&pages[end..], last, 2, &secret, 4096).expect("its last page");
        assert_eq!(found, Trailer { record_pages: 3, fact_pages: 2 });
        assert_eq!(trailer(&pages[end..], last, 3, &secret, 4096), None, "another life");
        assert_eq!(trailer(&pages[end..], last, 2, &secret, 5), None, "longer than a segment");
        let whole = Summary { records, facts };
        assert_eq!(decode(&pages, found, last, 2, &secret), Some(whole));
        assert_eq!(decode(&pages[..2 * PAGE], found, last, 2, &secret), None);
        for place in [100, 2 * PAGE + 9, 4 * PAGE] {
            pages[place] ^= 1;
            assert_eq!(decode(&pages, found, last, 2, &secret), None);
            pages[place] ^= 1;
        }
    }
}
