//! Tests the encoder: the bytes of heads and chunks.

use foxy_http::{BodyLength, Headers, Method, ResponseHead, encode, framing};

fn headers(lines: &[(&str, &str)]) -> Headers {
    lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("ASCII")
}

#[test]
fn a_request_head_is_written_in_order() {
    let mut out = Vec::new();
    encode::request_head(&Method::Get, b"/p?q", &headers(&[("Host", "h"), ("x-Y", "")]), &mut out);
    assert_eq!(text(out), "GET /p?q HTTP/1.1\r\nHost: h\r\nx-Y: \r\n\r\n");
}

#[test]
fn a_response_head_is_written_with_the_usual_reason() {
    let mut head = ResponseHead::new(404);
    head.headers.append("A", "b");
    let mut out = Vec::new();
    encode::response_head(&head, &mut out);
    assert_eq!(text(out), "HTTP/1.1 404 Not Found\r\nA: b\r\n\r\n");
}

#[test]
fn a_head_can_be_kept_open_and_completed() {
    let mut out = Vec::new();
    encode::status_line(200, b"OK", &mut out);
    encode::header_lines(&headers(&[("ETag", "\"1\"")]), &mut out);
    encode::header_line("Age", b"3", &mut out);
    encode::end_of_head(&mut out);
    assert_eq!(text(out), "HTTP/1.1 200 OK\r\nETag: \"1\"\r\nAge: 3\r\n\r\n");
}

#[test]
fn chunks_are_written_with_hexadecimal_sizes() {
    let mut out = Vec::new();
    encode::chunk(&[b'x'; 26], &mut out);
    encode::chunk(b"", &mut out);
    encode::last_chunk(&headers(&[("X-Sum", "1")]), &mut out);
    assert_eq!(text(out), format!("1a\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n", "x".repeat(26)));
    assert_eq!(encode::ChunkHeader::new(usize::MAX).as_bytes(), b"ffffffffffffffff\r\n");
}

#[test]
fn a_body_length_sets_exactly_its_headers() {
    let set = |length| {
        let mut headers =
            headers(&[("content-length", "1"), ("transfer-encoding", "gzip"), ("A", "b")]);
        framing::set_body_length(&mut headers, length);
        crate::support::lines(&headers)
    };
    assert_eq!(set(BodyLength::Length(7)), "Content-Length: 7\nA: b\n");
    assert_eq!(set(BodyLength::Chunked), "A: b\nTransfer-Encoding: chunked\n");
    assert_eq!(set(BodyLength::None), "A: b\n");
    assert_eq!(set(BodyLength::UntilClose), "A: b\n");
}

#[test]
#[should_panic(expected = "has a line end")]
fn a_line_end_in_a_line_of_our_own_is_a_defect() {
    encode::header_line("Age", b"1\r\nX: y", &mut Vec::new());
}

#[test]
#[should_panic(expected = "is not one word")]
fn a_target_that_would_be_another_request_is_a_defect() {
    encode::request_head(&Method::Get, b"/ HTTP/1.1\r\nX: y", &Headers::new(), &mut Vec::new());
}
