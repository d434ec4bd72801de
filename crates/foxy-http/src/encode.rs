//! Writes heads and chunks. The caller sets the framing headers
//! ([`crate::framing::set_body_length`]) and removes the hop-by-hop headers. The written version is
//! always HTTP/1.1.
//!
//! A caller that sends the same head often can encode it once without its final empty line
//! ([`status_line`], [`header_lines`]), and keep the bytes. For each response, [`header_line`] adds
//! Age or Date, and [`end_of_head`] ends the head.

use crate::headers::Headers;
use crate::message::{Method, ResponseHead};
use bytes::BufMut;

/// The line end of HTTP/1.1. It also follows the data of each chunk.
pub const CRLF: &[u8] = b"\r\n";

/// Writes a whole request head. `target` is the form to send, such as
/// [`crate::RequestHead::origin_form`].
///
/// # Panics
/// If the target is empty, or contains a blank or control byte, because the bytes would be another
/// request. Targets of decoded heads pass this check.
pub fn request_head(method: &Method, target: &[u8], headers: &Headers, out: &mut impl BufMut) {
    let is_one_word = !target.is_empty() && target.iter().all(|&byte| byte > b' ' && byte != 0x7f);
    assert!(is_one_word, "the request target is not one word");
    out.put_slice(method.as_str().as_bytes());
    out.put_slice(b" ");
    out.put_slice(target);
    out.put_slice(b" HTTP/1.1\r\n");
    header_lines(headers, out);
    end_of_head(out);
}

/// Writes a whole response head.
pub fn response_head(head: &ResponseHead, out: &mut impl BufMut) {
    status_line(head.status, &head.reason, out);
    header_lines(&head.headers, out);
    end_of_head(out);
}

/// Writes a status line.
///
/// # Panics
/// If the status is not between 100 and 999, or the reason has a CR or LF.
pub fn status_line(status: u16, reason: &[u8], out: &mut impl BufMut) {
    assert!((100..1000).contains(&status), "the status {status} has no three digits");
    assert!(memchr::memchr2(b'\r', b'\n', reason).is_none(), "the reason phrase has a line end");
    let digit = |value: u16| b'0' + (value % 10) as u8;
    out.put_slice(b"HTTP/1.1 ");
    out.put_slice(&[digit(status / 100), digit(status / 10), digit(status), b' ']);
    out.put_slice(reason);
    out.put_slice(CRLF);
}

/// Writes all header lines, in order.
pub fn header_lines(headers: &Headers, out: &mut impl BufMut) {
    for field in headers.fields() {
        match headers.line_of(field) {
            Some(line) => out.put_slice(line),
            None => put_line(headers.name_of(field), headers.value_of(field), out),
        }
    }
}

/// Writes one header line that foxy itself adds, such as Age or Date.
///
/// # Panics
/// If the value has a CR or LF.
pub fn header_line(name: &str, value: &[u8], out: &mut impl BufMut) {
    assert!(memchr::memchr2(b'\r', b'\n', value).is_none(), "the value of {name} has a line end");
    put_line(name.as_bytes(), value, out);
}

pub(crate) fn put_line(name: &[u8], value: &[u8], out: &mut impl BufMut) {
    out.put_slice(name);
    out.put_slice(b": ");
    out.put_slice(value);
    out.put_slice(CRLF);
}

/// Writes the empty line that ends a head.
pub fn end_of_head(out: &mut impl BufMut) {
    out.put_slice(CRLF);
}

/// The size line that precedes a chunk's data. Stores the line without an allocation. A vectored
/// write sends this line, the data, and [`CRLF`].
#[derive(Clone, Copy, Debug)]
pub struct ChunkHeader {
    text: [u8; 18],
    start: usize,
}

impl ChunkHeader {
    /// Creates the size line for a chunk of `length` bytes.
    ///
    /// # Panics
    /// If `length` is 0, because an empty chunk would end the body. Use [`last_chunk`] to end the
    /// body.
    pub fn new(length: usize) -> Self {
        assert!(length > 0, "a chunk of no bytes ends the body");
        let mut text = *b"0000000000000000\r\n";
        let mut start = 16;
        let mut rest = length;
        while rest > 0 {
            start -= 1;
            text[start] = b"0123456789abcdef"[rest % 16];
            rest /= 16;
        }
        Self { text, start }
    }

    /// Returns the bytes of the size line.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[self.start..]
    }
}

/// Writes one chunk with its data. Writes nothing if `data` is empty, because an empty chunk would
/// end the body.
pub fn chunk(data: &[u8], out: &mut impl BufMut) {
    if !data.is_empty() {
        out.put_slice(ChunkHeader::new(data.len()).as_bytes());
        out.put_slice(data);
        out.put_slice(CRLF);
    }
}

/// Writes the end of a chunked body: the last chunk and the trailers.
pub fn last_chunk(trailers: &Headers, out: &mut impl BufMut) {
    out.put_slice(b"0\r\n");
    header_lines(trailers, out);
    out.put_slice(CRLF);
}
