//! Tests that `FieldBlocks` finds the kind of the first field in HPACK blocks written by hand.

use super::*;
use crate::core::frames::kind;

const PSEUDO: FirstField = FirstField::Pseudo;
const REGULAR: FirstField = FirstField::Regular;

/// Returns the kind of the first field of each block. The blocks follow each other on one
/// connection, and arrive in pieces of `size` bytes.
fn first_of(blocks: &[&[u8]], size: usize) -> Vec<FirstField> {
    let mut all = FieldBlocks::new();
    let first = blocks.iter().map(|block| {
        let frame =
            Frame { kind: kind::HEADERS, flags: flag::END_HEADERS, stream: 1, length: block.len() };
        all.frame(frame, false);
        block.chunks(size).for_each(|piece| all.payload(piece));
        all.first()
    });
    first.collect()
}

fn check(blocks: &[&[u8]], expected: &[FirstField]) {
    for size in [1, 2, 3, 1000] {
        assert_eq!(first_of(blocks, size), expected, "pieces of {size}");
    }
}

#[test]
fn every_way_to_write_a_field_is_read() {
    check(&[b"\x82"], &[PSEUDO]);
    check(&[b"\x90"], &[REGULAR]);
    check(&[b""], &[REGULAR]);
    check(&[b"\x04\x01/", b"\x44\x01/", b"\x14\x01/"], &[PSEUDO; 3]);
    check(&[b"\x0f\x00\x01x", b"\x4f\x01x", b"\x1f\x00\x01x"], &[REGULAR; 3]);
    check(&[b"\x00\x05:path\x01/", b"\x40\x05:path\x01/"], &[PSEUDO; 2]);
    check(&[b"\x00\x01x\x05:path", b"\x00\x01x\x00\x82"], &[REGULAR; 2]);
    check(&[b"\x20\x3f\xe1\x1f\x82", b"\x20\x90"], &[PSEUDO, REGULAR]);
}

#[test]
fn a_name_in_huffman_coding_is_known_by_its_first_letter() {
    // The second block has the name `custom-key`, an example from RFC 7541, appendix C.4.3.
    check(&[b"\x00\x84\xb9\x58\xd3\x3f\x01/"], &[PSEUDO]);
    check(&[b"\x40\x88\x25\xa8\x49\xe9\x5b\xa9\x7d\x7f\x01v"], &[REGULAR]);
}

#[test]
fn entries_of_the_dynamic_table_are_remembered_in_their_order() {
    let long = [&b"\x00\x01x\x7f\x81\x01"[..], &[b':'; 256], b"\x82"].concat();
    check(
        &[
            b"\x40\x05:path\x01a\x40\x01x\x01b",
            b"\xbf",
            b"\xbe",
            &long,
            b"\x7f\x00\x01c",
            b"\xbe",
            b"\xbf\x82",
        ],
        &[PSEUDO, PSEUDO, REGULAR, REGULAR, PSEUDO, PSEUDO, REGULAR],
    );
}

#[test]
fn padding_and_priority_are_not_of_the_block_and_continuations_are() {
    let mut blocks = FieldBlocks::new();
    let frame = |flags, length| Frame { kind: kind::HEADERS, flags, stream: 1, length };
    for size in [1, 100] {
        let padded = b"\x03\x00\x00\x00\x00\x10\x40\x05:p\x82\x82\x82";
        blocks.frame(frame(flag::PADDED | flag::PRIORITY, padded.len()), false);
        padded.chunks(size).for_each(|piece| blocks.payload(piece));
        blocks.frame(frame(flag::END_HEADERS, 5), true);
        b"ath\x01/".chunks(size).for_each(|piece| blocks.payload(piece));
        assert_eq!(blocks.first(), PSEUDO);
        blocks.frame(frame(flag::END_HEADERS | flag::PADDED, 4), false);
        b"\x02\x90\x82\x82".chunks(size).for_each(|piece| blocks.payload(piece));
        assert_eq!(blocks.first(), REGULAR);
    }
}
