//! Tests the chunked coding: the accepted, refused and dropped parts.

use crate::support::{show_request, show_response};
use foxy_http::Method;

const HEAD: &str = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n";

#[track_caller]
fn check(body: &str, expected: &str) {
    assert_eq!(
        show_request(format!("{HEAD}{body}").as_bytes()),
        format!("POST / chunked | {expected}"),
        "for {body:?}"
    );
}

#[test]
fn sizes_are_hexadecimal_in_either_case_with_leading_zeros() {
    check(
        "a\r\n0123456789\r\n000A\r\n0123456789\r\n000\r\n\r\n",
        "body 01234567890123456789 | end",
    );
}

#[test]
fn extensions_are_dropped() {
    check("1;a;b=c;d=\"e;f\"\r\nx\r\n0;last\r\n\r\n", "body x | end");
    check("1 ; a = b\r\nx\r\n0\r\n\r\n", "body x | end");
}

#[test]
fn blanks_after_a_size_are_refused_where_no_extension_follows() {
    for blanks in [" ", "\t", "  \t"] {
        check(&format!("1{blanks}\r\nx\r\n0\r\n\r\n"), "400 InvalidChunkSize");
        check(&format!("1\r\nx\r\n0{blanks}\r\n\r\n"), "body x | 400 InvalidChunkSize");
        check(&format!("1{blanks};a\r\nx\r\n0\r\n\r\n"), "body x | end");
    }
}

#[test]
fn a_line_feed_alone_in_chunk_lines_is_refused() {
    check("1\nx\r\n0\r\n\r\n", "400 InvalidChunkLine");
    check("1;a\nx\r\n0\r\n\r\n", "400 InvalidChunkLine");
    check("1\r\nx\n0\r\n\r\n", "body x | 400 InvalidChunkEnd");
    check("1\r\nx\r\n0\n\r\n", "body x | 400 InvalidChunkLine");
    check("1\r\nx\r\n0\r\n\n", "body x | 400 BareLineFeed");
}

#[test]
fn a_carriage_return_alone_in_chunk_lines_is_refused() {
    check("1\rx\r\n0\r\n\r\n", "400 InvalidChunkLine");
    check("1;a\rb\r\nx\r\n0\r\n\r\n", "400 InvalidChunkLine");
}

#[test]
fn a_size_that_is_not_hexadecimal_is_refused() {
    for size in ["", "g", "0x1", "+1", "-1", " 1", "1 1", "1,", ";a"] {
        check(&format!("{size}\r\nx\r\n0\r\n\r\n"), "400 InvalidChunkSize");
    }
}

#[test]
fn a_size_beyond_64_bits_is_refused() {
    check("10000000000000000\r\n", "400 InvalidChunkSize");
    check("00000000000000001\r\nx\r\n0\r\n\r\n", "400 InvalidChunkSize");
    check("ffffffffffffffff\r\nx", "body x | 400 TruncatedBody");
}

#[test]
fn data_longer_or_shorter_than_its_size_is_refused() {
    check("1\r\nxy\r\n0\r\n\r\n", "body x | 400 InvalidChunkEnd");
    check("3\r\nx\r\n0\r\n\r\n", "body x\\r\\n | 400 InvalidChunkEnd");
}

#[test]
fn extensions_beyond_the_limit_are_refused() {
    check(&format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(5000)), "400 ChunkExtensionsTooLarge");
    let shown =
        show_request(format!("{HEAD}{}0\r\n\r\n", "1;aaaaaaaaa\r\nx\r\n".repeat(1000)).as_bytes());
    assert!(shown.ends_with("400 ChunkExtensionsTooLarge"), "{shown}");
    check(&format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(4095)), "body x | end");
}

#[test]
fn trailers_that_would_change_the_message_are_dropped() {
    check(
        "0\r\nContent-Length: 9\r\nX-Sum: 1\r\nHost: evil\r\ntransfer-encoding: chunked\r\nAuthorization: x\r\n\r\n",
        "trailers X-Sum: 1 | end",
    );
    check("0\r\nHost: evil\r\n\r\n", "end");
    check("0\r\nCookie: a=b\r\nRange: bytes=0-0\r\nproxy-authorization: x\r\n\r\n", "end");
}

#[test]
fn malformed_trailers_are_refused() {
    check("0\r\nX : 1\r\n\r\n", "400 InvalidHeaderName");
    check("0\r\n X: 1\r\n\r\n", "400 ObsoleteFold");
    check("0\r\nX: 1\r\n 2\r\n\r\n", "400 ObsoleteFold");
    check("0\r\nX: \0\r\n\r\n", "400 NulByte");
    check("0\r\nX: \x01\r\n\r\n", "400 InvalidHeaderValue");
}

#[test]
fn trailers_beyond_the_limits_are_refused() {
    check(&format!("0\r\nX: {}\r\n\r\n", "a".repeat(16 << 10)), "431 TrailersTooLarge");
    check(&format!("0\r\n{}\r\n", "X: 1\r\n".repeat(257)), "431 TooManyHeaders");
}

#[test]
fn responses_are_read_as_strictly_but_for_padded_sizes() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let shown = |body: &str| show_response(&Method::Get, format!("{head}{body}").as_bytes());
    assert_eq!(shown("1\nx\r\n0\r\n\r\n"), "200 chunked | InvalidChunkLine");
    assert_eq!(shown("1\r\nx\r\n"), "200 chunked | body x | TruncatedBody");
    assert_eq!(
        shown("1  \t\r\nx\r\n0 \r\nA: b\r\n\r\n"),
        "200 chunked | body x | trailers A: b | end"
    );
}
