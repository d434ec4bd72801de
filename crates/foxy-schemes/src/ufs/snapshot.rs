//! Encodes and decodes the index of a closed store as one checksummed array of bytes, the image,
//! like Squid's swap.state. The record that would be evicted first comes first. The generation is a
//! number that each opening raises, so an image is valid for one opening only. The decoder trusts
//! no input byte without a check.

use super::index::FileRecord;
use foxy_store::contract::Key;
use foxy_store::record::Secret;

const MAGIC: &[u8; 8] = b"FOXYSWAP";
const HEAD: usize = 32;
const ENTRY: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListedFile {
    pub(super) number: u32,
    pub(super) record: FileRecord,
}

pub(super) const fn bytes_for(records: u32) -> u64 {
    HEAD as u64 + records as u64 * ENTRY as u64
}

/// Encodes records as an image (checksummed array of bytes) that only the next opening of the store
/// accepts. `generation` is the number of this opening.
pub(super) fn encode(
    records: impl Iterator<Item = ListedFile>,
    generation: u64,
    secret: &Secret,
) -> Vec<u8> {
    let mut image = vec![0; HEAD];
    for ListedFile { number, record } in records {
        image.extend(record.key.0);
        image.extend(record.sequence.to_le_bytes());
        image.extend(record.place.to_le_bytes());
        image.extend(number.to_le_bytes());
        image.extend(record.content.to_le_bytes());
    }
    let length = (image.len() - HEAD) as u64;
    image[8..16].copy_from_slice(MAGIC);
    image[16..24].copy_from_slice(&generation.to_le_bytes());
    image[24..32].copy_from_slice(&length.to_le_bytes());
    let checksum = secret.checksum(&image[8..]);
    image[..8].copy_from_slice(&checksum.to_le_bytes());
    image
}

/// Decodes an image (checksummed array of bytes). Returns `None` if its generation (number of the
/// opening), the checksum or a value is wrong.
pub(super) fn decode(image: &[u8], generation: u64, secret: &Secret) -> Option<Vec<ListedFile>> {
    let entries = image.get(HEAD..)?;
    let sound = number(&image[..8])? == secret.checksum(&image[8..])
        && image[8..16] == *MAGIC
        && number(&image[16..24])? == generation
        && number(&image[24..32])? == entries.len() as u64
        && entries.len().is_multiple_of(ENTRY);
    if !sound {
        return None;
    }
    entries.chunks_exact(ENTRY).map(listed).collect()
}

fn listed(entry: &[u8]) -> Option<ListedFile> {
    let record = FileRecord {
        key: Key(entry[..16].try_into().ok()?),
        sequence: number(&entry[16..24])?,
        place: number(&entry[24..32])?,
        content: u32::from_le_bytes(entry[36..40].try_into().ok()?),
    };
    Some(ListedFile { number: u32::from_le_bytes(entry[32..36].try_into().ok()?), record })
}

fn number(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(count: u32) -> Vec<ListedFile> {
        let listed = |number: u32| {
            let record = FileRecord {
                key: Key([number.to_le_bytes()[0]; 16]),
                sequence: u64::from(number) << 33,
                place: u64::MAX - u64::from(number),
                content: number * 7,
            };
            ListedFile { number, record }
        };
        (0..count).map(listed).collect()
    }

    #[test]
    fn an_image_reads_back_in_order_and_for_its_generation_only() {
        let secret = Secret::new(4);
        for count in [0, 1, 200] {
            let image = encode(records(count).into_iter(), 9, &secret);
            assert_eq!(image.len() as u64, bytes_for(count));
            assert_eq!(decode(&image, 9, &secret), Some(records(count)));
            assert_eq!(decode(&image, 8, &secret), None);
            assert_eq!(decode(&image, 9, &Secret::new(5)), None);
        }
    }

    #[test]
    fn a_damaged_short_or_long_image_is_none() {
        let secret = Secret::new(4);
        let image = encode(records(3).into_iter(), 9, &secret);
        for bit in 0..image.len() * 8 {
            let mut damaged = image.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(&damaged, 9, &secret), None, "bit {bit}");
        }
        for length in 0..image.len() {
            assert_eq!(decode(&image[..length], 9, &secret), None, "{length} bytes");
        }
        assert_eq!(decode(&[&image[..], &[0]].concat(), 9, &secret), None);
    }
}
