//! Encodes and decodes a checkpoint: a copy of the index on disk, so that a store opens without a
//! scan of all records. A checkpoint is a head page, then checksummed pages of entries. An entry
//! may be outdated, because every read of a record verifies its bytes. A store that closes writes a
//! complete checkpoint, which lists every record on disk.

use foxy_store::contract::Key;
use foxy_store::layout::PAGE;
use foxy_store::record::Secret;

/// A record that a checkpoint lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub key: Key,
    /// Sequence number of the put that wrote the record.
    pub sequence: u64,
    pub first_slot: u32,
    pub slots: u16,
    /// True if a get may return the record. Otherwise the record is a leftover: still on disk, but
    /// no longer valid.
    pub live: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointHead {
    /// Number of the checkpoint. A later checkpoint has a higher number.
    pub number: u64,
    /// Number of times that the store had been opened when it wrote the checkpoint.
    pub opens: u64,
    /// Number of entry pages that follow the head page.
    pub pages: u32,
    /// Whether the checkpoint lists every record on disk.
    pub complete: bool,
    /// Every record up to this sequence number was durable at the time of the checkpoint.
    pub durable: u64,
}

const HEADER: usize = 32;
const ENTRY: usize = 32;

pub const PAGE_ENTRIES: usize = (PAGE - HEADER) / ENTRY;

impl CheckpointHead {
    pub fn encode(&self, secret: &Secret) -> [u8; PAGE] {
        let mut page = [0; PAGE];
        page[8..16].copy_from_slice(b"foxyhead");
        page[16..24].copy_from_slice(&self.number.to_le_bytes());
        page[24..32].copy_from_slice(&self.opens.to_le_bytes());
        page[32..36].copy_from_slice(&self.pages.to_le_bytes());
        page[36] = u8::from(self.complete);
        page[40..48].copy_from_slice(&self.durable.to_le_bytes());
        let checksum = secret.checksum(&page[8..]);
        page[..8].copy_from_slice(&checksum.to_le_bytes());
        page
    }

    /// Decodes a head page. Returns `None` if the page is damaged or is another kind of page.
    pub fn decode(page: &[u8], secret: &Secret) -> Option<Self> {
        let checksum = secret.checksum(page.get(8..PAGE)?);
        let sound = page[..8] == checksum.to_le_bytes() && page[8..16] == *b"foxyhead";
        sound.then(|| Self {
            number: number(page, 16),
            opens: number(page, 24),
            pages: u32::from_le_bytes([page[32], page[33], page[34], page[35]]),
            complete: page[36] == 1,
            durable: number(page, 40),
        })
    }
}

fn number(page: &[u8], at: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&page[at..at + 8]);
    u64::from_le_bytes(field)
}

/// Encodes up to [`PAGE_ENTRIES`] entries as entry page number `place` of checkpoint number
/// `checkpoint`. `out` must be zeroed.
pub fn encode_page(
    entries: &[Listed],
    checkpoint: u64,
    place: u32,
    secret: &Secret,
    out: &mut [u8],
) {
    out[8..16].copy_from_slice(&checkpoint.to_le_bytes());
    out[16..20].copy_from_slice(&place.to_le_bytes());
    let count = u32::try_from(entries.len()).expect("at most PAGE_ENTRIES");
    out[20..24].copy_from_slice(&count.to_le_bytes());
    out[24..32].copy_from_slice(b"foxylist");
    for (entry, place) in entries.iter().zip(out[HEADER..PAGE].chunks_exact_mut(ENTRY)) {
        place[..16].copy_from_slice(&entry.key.0);
        place[16..24].copy_from_slice(&entry.sequence.to_le_bytes());
        place[24..28].copy_from_slice(&entry.first_slot.to_le_bytes());
        place[28..30].copy_from_slice(&entry.slots.to_le_bytes());
        place[30] = u8::from(entry.live);
    }
    let checksum = secret.checksum(&out[8..PAGE]);
    out[..8].copy_from_slice(&checksum.to_le_bytes());
}

/// Decodes entry page number `place` of checkpoint number `checkpoint`. Returns `None` if the page
/// is damaged, or belongs to another checkpoint or place.
pub fn decode_page<'a>(
    page: &'a [u8],
    checkpoint: u64,
    place: u32,
    secret: &Secret,
) -> Option<impl Iterator<Item = Listed> + use<'a>> {
    let checksum = secret.checksum(page.get(8..PAGE)?);
    let count = u32::from_le_bytes([page[20], page[21], page[22], page[23]]) as usize;
    let sound = page[..8] == checksum.to_le_bytes()
        && number(page, 8) == checkpoint
        && page[16..20] == place.to_le_bytes()
        && page[24..32] == *b"foxylist"
        && count <= PAGE_ENTRIES;
    sound.then(|| {
        page[HEADER..].chunks_exact(ENTRY).take(count).map(|entry| {
            let mut key = [0; 16];
            key.copy_from_slice(&entry[..16]);
            Listed {
                key: Key(key),
                sequence: number(entry, 16),
                first_slot: u32::from_le_bytes([entry[24], entry[25], entry[26], entry[27]]),
                slots: u16::from_le_bytes([entry[28], entry[29]]),
                live: entry[30] == 1,
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_and_are_not_taken_for_others() {
        let secret = Secret::new(4);
        let entries: Vec<_> = (0..PAGE_ENTRIES as u32)
            .map(|n| Listed {
                key: Key(u128::from(n).to_le_bytes()),
                sequence: u64::from(n) << 40,
                first_slot: n * 8,
                slots: 7,
                live: n % 2 == 0,
            })
            .collect();
        let mut page = [0; PAGE];
        encode_page(&entries, 9, 2, &secret, &mut page);
        let read = |page: &[u8], checkpoint, place| {
            decode_page(page, checkpoint, place, &secret).map(Iterator::collect::<Vec<_>>)
        };
        assert_eq!(read(&page, 9, 2), Some(entries));
        assert_eq!(read(&page, 8, 2), None);
        assert_eq!(read(&page, 9, 1), None);
        page[2000] ^= 1;
        assert_eq!(read(&page, 9, 2), None);
        assert_eq!(read(&page[..100], 9, 2), None);
    }

    #[test]
    fn heads_come_back_and_damage_is_noticed() {
        let head = CheckpointHead { number: 3, opens: 2, pages: 77, complete: true, durable: 8 };
        let mut page = head.encode(&Secret::new(4));
        assert_eq!(CheckpointHead::decode(&page, &Secret::new(4)), Some(head));
        assert_eq!(CheckpointHead::decode(&page, &Secret::new(5)), None);
        page[33] ^= 1;
        assert_eq!(CheckpointHead::decode(&page, &Secret::new(4)), None);
    }
}
