//! Tests each limit. A message that just fits is accepted. A message with one more byte or line is
//! refused with the error of that limit.

use bytes::BytesMut;
use foxy_http::{DecodeError, Limits, RequestDecoder, RequestEvent};

/// Decodes a head under these limits, once as a whole and once byte by byte. Both results must be
/// equal.
#[track_caller]
fn decode(limits: Limits, input: &str) -> Result<bool, DecodeError> {
    let mut whole = RequestDecoder::new(limits);
    let at_once = whole
        .next(&mut BytesMut::from(input))
        .map(|event| matches!(event, Some(RequestEvent::Head(..))));
    let (mut slow, mut buffer, mut outcome) =
        (RequestDecoder::new(limits), BytesMut::new(), Ok(false));
    for byte in input.bytes() {
        buffer.extend_from_slice(&[byte]);
        outcome = slow.next(&mut buffer).map(|event| matches!(event, Some(RequestEvent::Head(..))));
        if outcome != Ok(false) {
            break;
        }
    }
    assert_eq!(at_once, outcome, "at once and byte by byte differ for {input:?}");
    at_once
}

#[test]
fn a_head_over_its_limit_is_refused() {
    let input = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    let limits = |head| Limits { head, ..Limits::default() };
    assert_eq!(decode(limits(input.len()), input), Ok(true));
    assert_eq!(decode(limits(input.len() - 1), input), Err(DecodeError::HeadTooLarge));
    assert_eq!(
        decode(limits(64), &format!("GET / HTTP/1.1\r\nX: {}", "a".repeat(100))),
        Err(DecodeError::HeadTooLarge)
    );
    assert_eq!(DecodeError::HeadTooLarge.status(), 431);
}

#[test]
fn a_request_line_over_its_limit_is_refused() {
    let input = "GET /abc HTTP/1.1\r\nHost: h\r\n\r\n";
    let limits = |request_line| Limits { request_line, ..Limits::default() };
    let line = "GET /abc HTTP/1.1\r\n".len();
    assert_eq!(decode(limits(line), input), Ok(true));
    assert_eq!(decode(limits(line - 1), input), Err(DecodeError::RequestLineTooLong));
    assert_eq!(
        decode(Limits::default(), &format!("GET /{}", "a".repeat(32 << 10))),
        Err(DecodeError::RequestLineTooLong)
    );
    assert_eq!(DecodeError::RequestLineTooLong.status(), 414);
}

#[test]
fn more_header_lines_than_allowed_are_refused() {
    let with =
        |count: usize| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(count - 1));
    assert_eq!(decode(Limits::default(), &with(256)), Ok(true));
    assert_eq!(decode(Limits::default(), &with(257)), Err(DecodeError::TooManyHeaders));
    assert_eq!(decode(Limits { headers: 1, ..Limits::default() }, &with(1)), Ok(true));
    assert_eq!(DecodeError::TooManyHeaders.status(), 431);
}

#[test]
fn endless_empty_lines_are_refused() {
    assert_eq!(
        decode(Limits::default(), &"\r\n".repeat(100)),
        Err(DecodeError::InvalidRequestLine)
    );
}

#[test]
fn a_length_of_the_whole_64_bits_is_taken() {
    let input = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 18446744073709551615\r\n\r\n";
    assert_eq!(decode(Limits::default(), input), Ok(true));
}
