//! The bytes of a manifest: what one node has in the cold tier, and what nobody may read there any
//! more. All numbers are little-endian. The purges have the form of the purge list on disk.

use crate::cold::segment::{number, wide};
use bytes::{BufMut, Bytes, BytesMut};
use foxy_proxy::cache::cold::Key;
use foxy_proxy::cache::purge::Rule;
use foxy_proxy::cache::purge::journal::{self, Series};
use xxhash_rust::xxh3::xxh3_64;

const MAGIC: u64 = u64::from_le_bytes(*b"foxycol1");
const HEADER_BYTES: usize = 56;
const EARLIER_BYTES: usize = 16;
const SEGMENT_BYTES: usize = 16;
const REMOVAL_BYTES: usize = 24;

/// A segment in the list of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SegmentEntry {
    /// Number of the segment among those of its node.
    pub id: u64,
    /// Number of records.
    pub count: u32,
    /// Size in bytes.
    pub length: u32,
}

/// The content of a manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// Random number of the node's purge list.
    pub era: u64,
    /// The last position in the order of offers and removals.
    pub clock: u64,
    /// Records up to this position count as removed, on every node.
    pub floor: u64,
    pub segments: Vec<SegmentEntry>,
    /// Removed records, with the position of the removal.
    pub removals: Vec<(Key, u64)>,
    /// For each other node, the number of its last purge before this node's first record.
    pub earlier: Vec<(u64, u64)>,
    /// Number of the node's last purge.
    pub latest: u64,
    pub rules: Vec<Rule>,
}

impl Manifest {
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        let count = |length: usize| u32::try_from(length).expect("lists have limits");
        out.put_u64_le(MAGIC);
        out.put_u64_le(0);
        out.put_u64_le(self.era);
        out.put_u64_le(self.clock);
        out.put_u64_le(self.floor);
        out.put_u32_le(count(self.segments.len()));
        out.put_u32_le(count(self.removals.len()));
        out.put_u64_le(self.earlier.len() as u64);
        for segment in &self.segments {
            out.put_u64_le(segment.id);
            out.put_u32_le(segment.count);
            out.put_u32_le(segment.length);
        }
        for (key, order) in &self.removals {
            out.put_slice(&key.0);
            out.put_u64_le(*order);
        }
        for (era, moment) in &self.earlier {
            out.put_u64_le(*era);
            out.put_u64_le(*moment);
        }
        let mut purges = Vec::new();
        let series = Series { era: self.era, set: 0, place: 0 };
        journal::append(&mut purges, 0, series, self.latest, &self.rules);
        out.put_slice(&purges);
        let checksum = xxh3_64(&out[16..]);
        out[8..16].copy_from_slice(&checksum.to_le_bytes());
        out.freeze()
    }

    /// Reads a manifest. Returns `None` if it is damaged or has another format.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let is_sound = wide(bytes, 0)? == MAGIC && wide(bytes, 8)? == xxh3_64(bytes.get(16..)?);
        let (segments, removals) = (number(bytes, 40)? as usize, number(bytes, 44)? as usize);
        let begin = HEADER_BYTES + segments * SEGMENT_BYTES;
        let middle = begin + removals * REMOVAL_BYTES;
        let earlier = usize::try_from(wide(bytes, 48)?).ok()?.checked_mul(EARLIER_BYTES)?;
        let end = middle.checked_add(earlier)?;
        if !is_sound || bytes.len() < end {
            return None;
        }
        let segment = |part: &[u8]| {
            let (count, length) = (number(part, 8)?, number(part, 12)?);
            Some(SegmentEntry { id: wide(part, 0)?, count, length })
        };
        let removal = |part: &[u8]| Some((Key(part.get(..16)?.try_into().ok()?), wide(part, 16)?));
        let purges = journal::read(&bytes[end..]).ok()?;
        Some(Self {
            era: wide(bytes, 16)?,
            clock: wide(bytes, 24)?,
            floor: wide(bytes, 32)?,
            segments: bytes[HEADER_BYTES..begin]
                .chunks_exact(SEGMENT_BYTES)
                .map(segment)
                .collect::<Option<_>>()?,
            removals: bytes[begin..middle]
                .chunks_exact(REMOVAL_BYTES)
                .map(removal)
                .collect::<Option<_>>()?,
            earlier: bytes[middle..end]
                .chunks_exact(EARLIER_BYTES)
                .map(|part| Some((wide(part, 0)?, wide(part, 8)?)))
                .collect::<Option<_>>()?,
            latest: purges.latest,
            rules: purges.rules,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::WallTime;
    use foxy_proxy::cache::purge::{Named, Order, Strength};

    fn manifest() -> Manifest {
        let rule = |moment| {
            let scope = Named::Url.scopes("http://a.test/x").expect("a URL")[0];
            let order = Order { scope, strength: Strength::Hard, at: WallTime(9) };
            Rule { order, moment }
        };
        Manifest {
            era: 77,
            clock: 900,
            floor: 4,
            segments: (0..20)
                .map(|id| SegmentEntry { id, count: 3, length: 1000 + id as u32 })
                .collect(),
            removals: (0..30).map(|at| (Key::of(&[at]), u64::from(at) + 50)).collect(),
            earlier: (0..3).map(|era| (era, era + 9)).collect(),
            latest: 200,
            rules: (1..=200).map(rule).collect(),
        }
    }

    #[test]
    fn a_manifest_is_read_back() {
        let other = Manifest { era: 1, ..Manifest::default() };
        for manifest in [manifest(), other] {
            assert_eq!(Manifest::decode(&manifest.encode()), Some(manifest));
        }
    }

    #[test]
    fn a_damaged_or_cut_manifest_is_refused() {
        let bytes = manifest().encode();
        for place in (0..bytes.len()).step_by(37) {
            let mut damaged = bytes.to_vec();
            damaged[place] ^= 4;
            assert_eq!(Manifest::decode(&damaged), None, "byte {place}");
            assert_eq!(Manifest::decode(&bytes[..place]), None, "cut at {place}");
        }
    }
}
