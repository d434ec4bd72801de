//! Tests the meter, which limits an origin's frames, with frames written by hand.

use super::*;
use crate::core::frames::HEADER_BYTES;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
    let mut bytes = u32::try_from(payload).expect("short").to_be_bytes()[1..].to_vec();
    bytes.extend([kind, flags]);
    bytes.extend(stream.to_be_bytes());
    bytes.resize(HEADER_BYTES + payload, kind);
    bytes
}

fn meter() -> (Meter, Instant) {
    let now = Instant::now();
    (Meter::new(now), now)
}

#[test]
fn frames_are_found_however_they_are_cut() {
    let stream: Vec<u8> =
        [frame(DATA, 0, 1, 300), frame(SETTINGS, 0, 0, 6), frame(GOAWAY, 0, 0, 8)].concat();
    for size in [1, 2, 8, 9, 10, 64, stream.len()] {
        let (mut meter, now) = meter();
        assert!(!meter.settled() && !meter.leaving());
        for piece in stream.chunks(size) {
            meter.received(piece, now).expect("little");
        }
        assert!(meter.settled() && meter.leaving(), "pieces of {size}");
    }
}

#[test]
fn an_acknowledgement_of_settings_is_none() {
    let (mut meter, now) = meter();
    meter.received(&frame(SETTINGS, 1, 0, 0), now).expect("little");
    assert!(!meter.settled());
}

#[test]
fn frames_without_a_message_are_a_flood_once_they_are_too_many() {
    let (mut meter, now) = meter();
    let ping = frame(PING, 0, 0, 8);
    let mut pings = (0..100_000).map(|_| meter.received(&ping, now));
    assert_eq!(pings.find(Result::is_err), Some(Err(Flood::Frames)));
    assert_eq!(meter.flood(), Some(Flood::Frames));
}

#[test]
fn the_last_block_of_a_stream_tells_what_its_trailers_began_with() {
    let (mut meter, now) = meter();
    meter.opened(5);
    let block = |flags, block: &[u8]| [&frame(HEADERS, flags, 5, 0)[3..], block].concat();
    for (fields, expected) in [(&b"\x88"[..], FirstField::Pseudo), (b"\x90", FirstField::Regular)] {
        for size in [1, 100] {
            let length = [0, 0, u8::try_from(fields.len()).expect("short")];
            let bytes = [&length[..], &block(4, fields)].concat();
            for piece in bytes.chunks(size) {
                meter.received(piece, now).expect("little");
            }
            assert_eq!(meter.last_block(5), expected);
        }
    }
}

#[test]
fn data_is_not_counted_here() {
    let (mut meter, now) = meter();
    for _ in 0..10_000 {
        meter.received(&frame(DATA, 0, 1, 3), now).expect("under flow control");
    }
}

#[test]
fn heads_nobody_reads_are_a_flood_and_heads_that_are_read_are_not() {
    let (mut meter, now) = meter();
    meter.opened(5);
    for _ in 0..10 * MAX_UNREAD_HEADS {
        meter.received(&frame(HEADERS, 4, 5, 1), now).expect("read at once");
        meter.read_head(5);
    }
    for _ in 0..MAX_UNREAD_HEADS {
        meter.received(&frame(HEADERS, 4, 5, 1), now).expect("may wait");
    }
    assert_eq!(meter.received(&frame(HEADERS, 4, 5, 1), now), Err(Flood::Heads));
}

#[test]
fn late_heads_of_a_stream_that_was_left_are_no_flood_of_heads() {
    let (mut meter, now) = meter();
    meter.opened(5);
    meter.closed(5);
    for _ in 0..2 * MAX_UNREAD_HEADS {
        meter.received(&frame(HEADERS, 4, 5, 1), now).expect("dropped by the library");
    }
}
