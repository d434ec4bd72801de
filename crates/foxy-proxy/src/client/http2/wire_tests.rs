//! Tests `Wire`, which watches the bytes of an HTTP/2 connection, with frames written by hand.

use super::*;
use foxy_testkit::http2::frame;
use std::time::Duration;

const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;

/// Creates a `Wire` that has already received the client's connection preface.
fn wire() -> (Wire, Instant) {
    let now = Instant::now();
    let wire = Wire::new(now);
    wire.received(PREFACE, now);
    (wire, now)
}

/// Returns how often the `Wire` can receive `bytes` before it decides that the client sends too
/// many frames.
fn until_flooded(bytes: &[u8]) -> usize {
    let (wire, now) = wire();
    (0..100_000)
        .take_while(|_| {
            wire.received(bytes, now);
            !wire.is_flooded()
        })
        .count()
}

#[test]
fn frames_that_carry_nothing_are_a_flood_and_data_and_requests_are_not() {
    let window = &[0, 0, 0, 1];
    for (kind, flags, payload) in [
        (PING, 0, &[0; 8][..]),
        (2, 0, &[0; 5]),
        (WINDOW_UPDATE, 0, window),
        (77, 0, b"unknown"),
        (kind::RST_STREAM, 0, window),
        (kind::DATA, 0, &[]),
        (kind::DATA, flag::PADDED, &[3, 0, 0, 0]),
        (kind::CONTINUATION, 0, &[]),
    ] {
        assert_eq!(until_flooded(&frame(kind, flags, 1, payload)), 1000, "{kind}");
    }
    let settings = frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 1]);
    assert_eq!(until_flooded(&settings), 62);
    assert_eq!(until_flooded(&frame(kind::DATA, 0, 1, b"x")), 100_000);
    let (wire, now) = wire();
    for stream in 0..10_000 {
        wire.received(&frame(kind::HEADERS, flag::END_HEADERS, 2 * stream + 1, b"\x82"), now);
        wire.received(&frame(WINDOW_UPDATE, 0, 2 * stream + 1, window), now);
    }
    assert!(!wire.is_flooded(), "a request pays for its windows");
}

#[test]
fn a_client_that_updates_its_windows_for_each_piece_of_a_download_is_no_flood() {
    let (wire, now) = wire();
    let data = frame(kind::DATA, 0, 1, &[0; 1024]);
    for _ in 0..10_000 {
        wire.sent(&data);
        wire.received(&frame(WINDOW_UPDATE, 0, 0, &[0, 0, 4, 0]).repeat(2), now);
    }
    assert!(!wire.is_flooded());
    wire.received(&frame(PING, 0, 0, &[0; 8]).repeat(1001), now + Duration::from_millis(1));
    assert!(wire.is_flooded());
}

#[test]
fn trailers_that_begin_with_a_pseudo_field_are_known_until_their_stream_is_over() {
    let (wire, now) = wire();
    let head = |stream, block: &[u8]| frame(kind::HEADERS, flag::END_HEADERS, stream, block);
    wire.received(&head(1, b"\x82\x84"), now);
    wire.received(&head(3, b"\x82\x84"), now);
    assert!(!wire.has_malformed_trailers(1));
    wire.received(&head(3, b"\x00\x01x\x01y"), now);
    let [begin, end] =
        [(kind::HEADERS, 0, &b"\x04"[..]), (kind::CONTINUATION, flag::END_HEADERS, b"\x01/")]
            .map(|(kind, flags, block)| frame(kind, flags, 1, block));
    wire.received(&begin, now);
    wire.received(&end, now);
    assert!(wire.has_malformed_trailers(1) && !wire.has_malformed_trailers(3));
    wire.end_request(1);
    assert!(!wire.has_malformed_trailers(1));
}

#[test]
fn answers_that_the_socket_does_not_take_leave_no_room() {
    let (wire, now) = wire();
    let context = Context::from_waker(Waker::noop());
    wire.handed_head(1, 1000);
    wire.handed_data(1, MAX_UNSENT_BYTES - 2000);
    assert_eq!(wire.poll_room(&context), Poll::Ready(1000));
    wire.handed_data(3, 1000);
    assert_eq!(wire.poll_room(&context), Poll::Pending);
    wire.sent(&frame(kind::HEADERS, flag::END_HEADERS, 1, b"\x88"));
    wire.sent(&frame(kind::DATA, 0, 1, &[0; 500]));
    assert_eq!(wire.poll_room(&context), Poll::Ready(1500));
    wire.received(&frame(kind::RST_STREAM, 0, 3, &[0; 4]), now);
    assert_eq!(wire.poll_room(&context), Poll::Ready(2500));
    wire.reset(1);
    assert_eq!(wire.poll_room(&context), Poll::Ready(MAX_UNSENT_BYTES));
    wire.sent(&frame(kind::DATA, 0, 1, &[0; 500]));
    assert_eq!(
        wire.poll_room(&context),
        Poll::Ready(MAX_UNSENT_BYTES),
        "late for a stream that is gone"
    );
}
