//! Encodes and decodes the index of a closed store as one checksummed array of bytes, the image.
//! The record that would be evicted first comes first. The generation is a number that each opening
//! raises, so an image is valid for one opening only. The decoder trusts no input byte without a
//! check.

use super::entries::Pieces;
use super::layout::Piece;
use foxy_store::contract::{Key, Site};
use foxy_store::layout::PAGE;
use foxy_store::record::{SLOTS_LIMIT, Secret};

const MAGIC: &[u8; 8] = b"FOXYIDX\x02";
pub const HEAD: usize = 40;
const FIXED: usize = 16 + 8 + 8 + 4 + 2;
const PIECE: usize = 8 + 4 + 4;
const _: () = assert!(SLOTS_LIMIT <= u16::MAX as u32);

/// A record in the image (the index as bytes).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedSlot {
    pub key: Key,
    pub site: Site,
    /// Sequence number of the put that wrote the record.
    pub sequence: u64,
    /// Length of the record's head and body together, in bytes.
    pub content: u32,
    pub pieces: Pieces,
}

impl ListedSlot {
    pub fn bytes(&self) -> usize {
        FIXED + self.pieces.len() * PIECE
    }
}

/// Encodes records as an image (checksummed array of whole pages) that only the next opening of the
/// store accepts. `generation` is the number of this opening.
pub fn encode(records: &[ListedSlot], generation: u64, secret: &Secret) -> Vec<u8> {
    let length: usize = records.iter().map(ListedSlot::bytes).sum();
    let mut image = Vec::with_capacity((HEAD + length).next_multiple_of(PAGE));
    image.resize(HEAD, 0);
    for record in records {
        image.extend(record.key.0);
        image.extend(record.site.0.to_le_bytes());
        image.extend(record.sequence.to_le_bytes());
        image.extend(record.content.to_le_bytes());
        image.extend(
            u16::try_from(record.pieces.len()).expect("no more than SLOTS_LIMIT").to_le_bytes(),
        );
        for piece in &record.pieces {
            image.extend(piece.file.to_le_bytes());
            image.extend(piece.first.to_le_bytes());
            image.extend(piece.slots.to_le_bytes());
        }
    }
    image[..8].copy_from_slice(MAGIC);
    image[8..16].copy_from_slice(&generation.to_le_bytes());
    image[16..24].copy_from_slice(&(length as u64).to_le_bytes());
    let content = secret.checksum(&image[HEAD..]);
    image[24..32].copy_from_slice(&content.to_le_bytes());
    let head = secret.checksum(&image[..32]);
    image[32..40].copy_from_slice(&head.to_le_bytes());
    image.resize(image.len().next_multiple_of(PAGE), 0);
    image
}

/// Returns the number of bytes after the head of an image. Returns `None` if the head is damaged or
/// belongs to another generation (number of the opening).
pub fn length(head: &[u8], generation: u64, secret: &Secret) -> Option<u64> {
    let head = head.get(..HEAD)?;
    let sound = head[..8] == *MAGIC
        && number(&head[32..40])? == secret.checksum(&head[..32])
        && number(&head[8..16])? == generation;
    if sound { number(&head[16..24]) } else { None }
}

/// Decodes an image (checksummed array of bytes). Returns `None` if its generation (number of the
/// opening), a checksum or a value is wrong.
pub fn decode(image: &[u8], generation: u64, secret: &Secret) -> Option<Vec<ListedSlot>> {
    let length = usize::try_from(length(image, generation, secret)?).ok()?;
    let content = image.get(HEAD..HEAD.checked_add(length)?)?;
    if number(&image[24..32])? != secret.checksum(content) {
        return None;
    }
    let mut records = Vec::new();
    let mut rest = content;
    while !rest.is_empty() {
        let (fixed, after) = rest.split_at_checked(FIXED)?;
        let count = usize::from(u16::from_le_bytes(fixed[36..38].try_into().ok()?));
        let (pieces, after) = after.split_at_checked(count * PIECE)?;
        let pieces = pieces.chunks_exact(PIECE).map(|piece| {
            let part = |at: usize| Some(u32::from_le_bytes(piece[at..at + 4].try_into().ok()?));
            Some(Piece { file: number(&piece[..8])?, first: part(8)?, slots: part(12)? })
        });
        records.push(ListedSlot {
            key: Key(fixed[..16].try_into().ok()?),
            site: Site(number(&fixed[16..24])?),
            sequence: number(&fixed[24..32])?,
            content: u32::from_le_bytes(fixed[32..36].try_into().ok()?),
            pieces: pieces.collect::<Option<_>>()?,
        });
        rest = after;
    }
    Some(records)
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn records(count: u8) -> Vec<ListedSlot> {
        let piece = |file| Piece { file, first: 7, slots: 3 };
        let listed = |number: u8| ListedSlot {
            key: Key([number; 16]),
            site: Site(u64::from(number) << 17),
            sequence: u64::from(number) << 33,
            content: 1000,
            pieces: if number.is_multiple_of(3) {
                smallvec![piece(1), piece(2)]
            } else {
                smallvec![piece(u64::MAX)]
            },
        };
        (0..count).map(listed).collect()
    }

    #[test]
    fn an_image_reads_back_in_order_and_for_its_generation_only() {
        let secret = Secret::new(4);
        for count in [0, 1, 200] {
            let image = encode(&records(count), 9, &secret);
            assert_eq!(image.len() % PAGE, 0);
            assert_eq!(decode(&image, 9, &secret), Some(records(count)));
            assert_eq!(decode(&image, 8, &secret), None);
            assert_eq!(decode(&image, 9, &Secret::new(5)), None);
        }
    }

    #[test]
    fn a_damaged_or_short_image_is_none() {
        let secret = Secret::new(4);
        let image = encode(&records(5), 9, &secret);
        let used = HEAD + records(5).iter().map(ListedSlot::bytes).sum::<usize>();
        for bit in 0..used * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged, 9, &secret), None, "bit {bit}");
        }
        for length in [0, 7, HEAD, used - 1] {
            assert_eq!(decode(&image[..length], 9, &secret), None, "{length} bytes");
        }
    }
}
