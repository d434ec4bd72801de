//! Finds records in the bytes of a segment. Finds one record at a place that a summary lists, or
//! all records of a segment without a summary. Bytes without a correct checksum are ignored.

use super::finding::Reason;
use crate::contract::Key;
use crate::layout::PAGE;
use crate::record::{HEADER, Header, RecordError, Secret};
use crate::webcosm::format::geometry::{Geometry, Position, Segment};
use crate::webcosm::format::incarnation::number;
use crate::webcosm::format::packed;
use crate::webcosm::format::summary::Listed;
use crate::webcosm::index::{Extent, Index, Tag};

/// A valid record that the check found.
#[derive(Clone, Copy, Debug)]
pub struct FoundRecord<'a> {
    pub key: Key,
    pub head: &'a [u8],
    pub body: &'a [u8],
}

pub struct Scan<'a> {
    pub secret: &'a Secret,
    pub geometry: &'a Geometry,
    pub segment: Segment,
    pub incarnation: u64,
}

impl Scan<'_> {
    fn stamp(&self, at: usize) -> u64 {
        Position::new(self.segment, u32::try_from(at / PAGE).unwrap_or(u32::MAX))
            .stamp(self.incarnation)
    }

    /// Verifies a record that a summary lists. `content` is the part of the segment that contains
    /// records. Returns the record, or the reason why it is invalid.
    pub fn listed<'a>(
        &self,
        content: &'a [u8],
        listed: Listed,
        tag_of: impl Fn(Key) -> Tag,
    ) -> Result<FoundRecord<'a>, Reason> {
        let at = listed.step as usize * 64;
        let rest =
            content.get(at..).filter(|rest| !rest.is_empty()).ok_or(Reason::EntryImpossible)?;
        match Extent::of_class(listed.class) {
            Extent::Packed => {
                let page = rest
                    .get(..PAGE)
                    .filter(|_| at.is_multiple_of(PAGE))
                    .ok_or(Reason::EntryImpossible)?;
                let entries = packed::entries(page, self.stamp(at), self.secret);
                let Some(mut entries) = entries else { return Err(self.instead_of_page(page, at)) };
                let found = entries
                    .find(|(key, ..)| tag_of(*key) == listed.tag)
                    .ok_or(Reason::OtherRecord)?;
                let (key, start, middle, end) = found;
                Ok(FoundRecord { key, head: &page[start..middle], body: &page[middle..end] })
            }
            Extent::Pages(_) => {
                let header = Header::decode(rest, self.secret).map_err(|error| match error {
                    RecordError::HeaderDamaged => Reason::HeaderDamaged,
                    _ => Reason::RecordNotThere,
                })?;
                if header.sequence != self.stamp(at) {
                    return Err(Reason::RecordNotThere);
                }
                let (whole, extent) = self.whole(&header, at, rest)?;
                let is_it = tag_of(header.key) == listed.tag && extent.class() == listed.class;
                if is_it { Ok(whole) } else { Err(Reason::OtherRecord) }
            }
        }
    }

    fn instead_of_page(&self, page: &[u8], at: usize) -> Reason {
        if number(page, 8) == Some(self.stamp(at)) {
            Reason::PageDamaged
        } else {
            Reason::RecordNotThere
        }
    }

    fn whole<'a>(
        &self,
        header: &Header,
        at: usize,
        rest: &'a [u8],
    ) -> Result<(FoundRecord<'a>, Extent), Reason> {
        let (head, body) = (header.head_length as usize, header.body_length as usize);
        let content = rest.get(HEADER..HEADER + head + body).ok_or(Reason::EntryImpossible)?;
        if self.secret.checksum(content) != header.content {
            return Err(Reason::ContentDamaged);
        }
        let pages = (at + HEADER + head + body).div_ceil(PAGE) - at / PAGE;
        let extent = Extent::Pages(u32::try_from(pages).unwrap_or(u32::MAX));
        let (head, body) = content.split_at(head);
        Ok((FoundRecord { key: header.key, head, body }, extent))
    }

    /// Returns all valid records of a segment without a summary (list of records), in writing
    /// order. An opening of the store must find the same records.
    pub fn all(&self, bytes: &[u8], index: &Index, salt: u64) -> Vec<Listed> {
        let tag_of = |key: Key| index.tag(key.hash(salt));
        let granule = usize::try_from(self.geometry.granule).unwrap_or(PAGE);
        let (mut records, mut at) = (Vec::new(), 0);
        while let Some(page) = bytes.get(at..at + PAGE) {
            let mut end = at;
            if let Some(entries) = packed::entries(page, self.stamp(at), self.secret) {
                let listed = |tag| Listed { tag, step: step(at), class: Extent::Packed.class() };
                records.extend(entries.map(|(key, ..)| listed(tag_of(key))));
            } else {
                let mut from = at;
                while let Some(Ok(header)) =
                    bytes.get(from..).map(|rest| Header::decode(rest, self.secret))
                {
                    if header.sequence != self.stamp(from) {
                        break;
                    }
                    let past =
                        from + HEADER + header.head_length as usize + header.body_length as usize;
                    let rest = bytes.get(from..).unwrap_or_default();
                    if let Ok((found, extent)) = self.whole(&header, from, rest) {
                        records.push(Listed {
                            tag: tag_of(found.key),
                            step: step(from),
                            class: extent.class(),
                        });
                    }
                    end = past - 1;
                    from = past.next_multiple_of(granule);
                }
            }
            at = (end + 1).next_multiple_of(PAGE);
        }
        records
    }
}

fn step(at: usize) -> u32 {
    u32::try_from(at / 64).unwrap_or(u32::MAX)
}
