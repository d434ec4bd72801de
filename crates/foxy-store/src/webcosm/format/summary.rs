//! Encodes and decodes the summary in the last pages of a segment. The summary lists the segment's
//! records in writing order. It also contains tombstones, which mark old records as removed. An
//! opening rebuilds the index from summaries, without reading records.
//!
//! Each page of a summary is valid alone: checksum, stamp, kind, count, then the entries. The entry
//! of a record has 8 bytes: tag, start and class. The tag is a shortened key of 40 bits, the start
//! is in the segment, and the class encodes the number of pages. The entry of a tombstone has 24
//! bytes: the tag and a position in each log. The last page of the segment is the trailer. It
//! contains the numbers of the other pages of the summary.

use crate::layout::PAGE;
use crate::record::Secret;
use crate::webcosm::format::geometry::{LogName, Position};
use crate::webcosm::index::{Extent, Tag};

const HEADER: usize = 24;
const RECORDS_PER_PAGE: usize = (PAGE - HEADER) / 8;
const TOMBSTONES_PER_PAGE: usize = (PAGE - HEADER) / TOMBSTONE_BYTES;
const TOMBSTONE_BYTES: usize = 24;

/// The entry of a record in a segment's summary (list of records).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub tag: Tag,
    /// Start of the record in its segment, in units of 64 bytes.
    pub step: u32,
    /// A code for the number of pages that contain the record (see [`Extent`]).
    pub class: u8,
}

impl Listed {
    /// Creates the entry of a record that starts at byte offset `at` of its segment.
    pub const fn new(tag: Tag, at: usize, extent: Extent) -> Self {
        Self { tag, step: (at / 64) as u32, class: extent.class() }
    }
}

/// A tombstone marks old records of a tag (shortened key) as removed: all records before the given
/// position in each log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tombstone {
    pub tag: Tag,
    /// For each log, the first position whose records are not removed.
    pub up_to: [Position; 2],
}

impl Tombstone {
    /// Returns whether the tombstone (mark of a removal) removes a record at `position`.
    pub fn reaches(&self, position: Position) -> bool {
        position < self.up_to[position.segment().log as usize]
    }

    /// Extends this tombstone to all records that `other` marks as removed.
    pub fn join(&mut self, other: Self) {
        for log in LogName::ALL {
            let up_to = &mut self.up_to[log as usize];
            *up_to = other.up_to[log as usize].max(*up_to);
        }
    }
}

/// The last page of a segment. States how many other pages the segment's summary has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trailer {
    pub record_pages: u32,
    pub tombstone_pages: u32,
}

impl Trailer {
    /// Returns the number of pages in the summary, including the trailer.
    pub const fn pages(&self) -> u32 {
        self.record_pages + self.tombstone_pages + 1
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageKind {
    Records,
    Tombstones,
    Trailer,
}

impl PageKind {
    const fn mark(self) -> [u8; 4] {
        match self {
            Self::Records => *b"recs",
            Self::Tombstones => *b"fact",
            Self::Trailer => *b"last",
        }
    }
}

/// Returns the number of pages in a summary that lists `records` records and `tombstones`
/// tombstones (marks of removals).
pub const fn pages_for(records: usize, tombstones: usize) -> u32 {
    (records.div_ceil(RECORDS_PER_PAGE) + tombstones.div_ceil(TOMBSTONES_PER_PAGE) + 1) as u32
}

/// Returns the number of tombstones (marks of removed records) that fit in `pages` pages of a
/// summary (list of records).
pub const fn tombstones_in(pages: u32) -> usize {
    pages as usize * TOMBSTONES_PER_PAGE
}

/// Returns whether a page has a correct checksum and the given stamp. The stamp contains the page's
/// position and the opening of the store (incarnation) that wrote the page.
pub fn sealed(page: &[u8], stamp: u64, secret: &Secret) -> bool {
    page.len() == PAGE
        && page[8..16] == stamp.to_le_bytes()
        && page[..8] == secret.checksum(&page[8..]).to_le_bytes()
}

fn seal(page: &mut [u8], kind: PageKind, count: usize, stamp: u64, secret: &Secret) {
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

/// Encodes a summary into `out`. `last` is the position of the segment's last page, the trailer.
///
/// # Panics
/// If the length of `out` differs from the length of the summary.
pub fn encode(
    out: &mut [u8],
    records: &[Listed],
    tombstones: &[Tombstone],
    last: Position,
    incarnation: u64,
    secret: &Secret,
) {
    let pages = u64::from(pages_for(records.len(), tombstones.len()));
    assert_eq!(out.len() as u64, pages * PAGE as u64, "a summary has its own pages");
    let stamp = |number: u64| Position(last.0 + 1 + number - pages).stamp(incarnation);
    let mut pages = (0..).zip(out.chunks_exact_mut(PAGE));
    let mut next = || pages.next().expect("counted");
    for part in records.chunks(RECORDS_PER_PAGE) {
        let (number, page) = next();
        for (entry, out) in part.iter().zip(page[HEADER..].chunks_exact_mut(8)) {
            let word = entry.tag.0 << 24 | u64::from(entry.step) << 6 | u64::from(entry.class);
            out.copy_from_slice(&word.to_le_bytes());
        }
        seal(page, PageKind::Records, part.len(), stamp(number), secret);
    }
    for part in tombstones.chunks(TOMBSTONES_PER_PAGE) {
        let (number, page) = next();
        for (tombstone, out) in part.iter().zip(page[HEADER..].chunks_exact_mut(TOMBSTONE_BYTES)) {
            out[..8].copy_from_slice(&tombstone.tag.0.to_le_bytes());
            out[8..16].copy_from_slice(&tombstone.up_to[0].0.to_le_bytes());
            out[16..].copy_from_slice(&tombstone.up_to[1].0.to_le_bytes());
        }
        seal(page, PageKind::Tombstones, part.len(), stamp(number), secret);
    }
    let (number, page) = next();
    let counts =
        [records.len().div_ceil(RECORDS_PER_PAGE), tombstones.len().div_ceil(TOMBSTONES_PER_PAGE)];
    for (count, out) in counts.iter().zip(page[HEADER..].chunks_exact_mut(8)) {
        out.copy_from_slice(&(*count as u64).to_le_bytes());
    }
    seal(page, PageKind::Trailer, 0, stamp(number), secret);
}

fn word(page: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Decodes the trailer, the last page of a segment of `most` pages. Returns `None` if the page is
/// damaged or no trailer. Also returns `None` if the summary would have more pages than the
/// segment.
pub fn trailer(
    page: &[u8],
    last: Position,
    incarnation: u64,
    secret: &Secret,
    most: u32,
) -> Option<Trailer> {
    let sound =
        sealed(page, last.stamp(incarnation), secret) && page[16..20] == PageKind::Trailer.mark();
    let (records, tombstones) = sound.then(|| (word(page, HEADER), word(page, HEADER + 8)))?;
    let fits = records.checked_add(tombstones).is_some_and(|pages| pages < u64::from(most));
    fits.then_some(Trailer { record_pages: records as u32, tombstone_pages: tombstones as u32 })
}

/// The list of records and tombstones at the end of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The records of the segment, in writing order.
    pub records: Vec<Listed>,
    pub tombstones: Vec<Tombstone>,
}

/// Decodes a summary (list of records) from all of its pages. Returns `None` if a page is damaged.
pub fn decode(
    pages: &[u8],
    trailer: Trailer,
    last: Position,
    incarnation: u64,
    secret: &Secret,
) -> Option<Summary> {
    let mut summary = Summary::default();
    let count_of = u64::from(trailer.pages());
    for (number, page) in (0..count_of - 1).zip(pages.chunks_exact(PAGE)) {
        let stamp = Position(last.0 + 1 + number - count_of).stamp(incarnation);
        let is_records = number < u64::from(trailer.record_pages);
        let (kind, most) = if is_records {
            (PageKind::Records, RECORDS_PER_PAGE)
        } else {
            (PageKind::Tombstones, TOMBSTONES_PER_PAGE)
        };
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
            summary.tombstones.extend(
                page[HEADER..].chunks_exact(TOMBSTONE_BYTES).take(count(page)).map(|entry| {
                    Tombstone {
                        tag: Tag(word(entry, 0)),
                        up_to: [8, 16].map(|at| Position(word(entry, at))),
                    }
                }),
            );
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
        let tombstones: Vec<_> = (0..300)
            .map(|n| Tombstone { tag: Tag(n), up_to: [Position(n * 7), Position(n)] })
            .collect();
        let last = Position::new(Segment { log: LogName::Main, sequence: 5 }, 4095);
        let mut pages = vec![0; pages_for(1200, 300) as usize * PAGE];
        encode(&mut pages, &records, &tombstones, last, 2, &secret);
        let end = pages.len() - PAGE;
        let found = trailer(&pages[end..], last, 2, &secret, 4096).expect("its last page");
        assert_eq!(found, Trailer { record_pages: 3, tombstone_pages: 2 });
        assert_eq!(trailer(&pages[end..], last, 3, &secret, 4096), None, "another incarnation");
        assert_eq!(trailer(&pages[end..], last, 2, &secret, 5), None, "longer than a segment");
        let whole = Summary { records, tombstones };
        assert_eq!(decode(&pages, found, last, 2, &secret), Some(whole));
        assert_eq!(decode(&pages[..2 * PAGE], found, last, 2, &secret), None);
        for place in [100, 2 * PAGE + 9, 4 * PAGE] {
            pages[place] ^= 1;
            assert_eq!(decode(&pages, found, last, 2, &secret), None);
            pages[place] ^= 1;
        }
    }
}
