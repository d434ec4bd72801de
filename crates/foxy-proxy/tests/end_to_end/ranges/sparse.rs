//! A large object that uses no memory, because each byte is computed from its position. The origin
//! of the object serves ranges, and counts the body bytes that it sends.

use foxy_testkit::http::header;
use foxy_testkit::origin::TestOrigin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

pub const SLICE: u64 = 1 << 20;

/// The content of the object repeats after this number of bytes. The number is prime, so that no
/// two slices have the same content.
const PERIOD: u64 = 65_521;

static PATTERN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..2 * PERIOD).map(|at| byte(at % PERIOD)).collect()
});

pub fn bytes(first: u64, last: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (mut at, end) = (first, last + 1);
    while at < end {
        let start = usize::try_from(at % PERIOD).expect("small");
        let count = usize::try_from(PERIOD.min(end - at)).expect("small");
        bytes.extend_from_slice(&PATTERN[start..start + count]);
        at += count as u64;
    }
    bytes
}

/// An object, with the header lines of the responses that contain it.
#[derive(Clone, Debug)]
pub struct Sparse {
    pub length: u64,
    /// Header lines without the ETag.
    pub lines: String,
    pub etag: String,
}

impl Sparse {
    pub fn fresh(length: u64) -> Self {
        Self { length, lines: "Cache-Control: max-age=60\r\n".into(), etag: "\"one\"".into() }
    }

    /// Returns the header line with the ETag, or an empty text if the object has no ETag.
    fn tag_line(&self) -> String {
        if self.etag.is_empty() { String::new() } else { format!("ETag: {}\r\n", self.etag) }
    }

    /// Returns the answer to a request, as RFC 9110 requires. Supports If-None-Match, If-Range and
    /// one range.
    pub fn answer(&self, head: &str) -> Vec<u8> {
        let lines = format!("{}{}", self.lines, self.tag_line());
        if header(head, "if-none-match").is_some_and(|tag| tag == self.etag) {
            return format!("HTTP/1.1 304 Not Modified\r\n{lines}\r\n").into_bytes();
        }
        let same = header(head, "if-range").is_none_or(|tag| tag == self.etag);
        let range =
            header(head, "range").filter(|_| same).and_then(|range| range.strip_prefix("bytes="));
        let Some((first, last)) = range.and_then(|range| range.split_once('-')) else {
            let length = self.length;
            let text = format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: {length}\r\n\r\n");
            return [text.into_bytes(), bytes(0, length - 1)].concat();
        };
        let first: u64 = first.parse().expect("no suffix is asked for");
        if first >= self.length {
            let range = format!("Content-Range: bytes */{}\r\nContent-Length: 0\r\n", self.length);
            return format!("HTTP/1.1 416 Range Not Satisfiable\r\n{lines}{range}\r\n")
                .into_bytes();
        }
        let last = last.parse().unwrap_or(u64::MAX).min(self.length - 1);
        self.part(first, last, &format!("Content-Range: bytes {first}-{last}/{}\r\n", self.length))
    }

    /// Creates a 206 answer with the bytes `first..=last` and the additional header lines `lines`.
    pub fn part(&self, first: u64, last: u64, lines: &str) -> Vec<u8> {
        let body = bytes(first, last);
        let lines = format!("{}{}{lines}", self.lines, self.tag_line());
        let length = body.len();
        let head =
            format!("HTTP/1.1 206 Partial Content\r\n{lines}Content-Length: {length}\r\n\r\n");
        [head.into_bytes(), body].concat()
    }

    /// Starts the origin of the object. Also returns a counter of the body bytes that the origin
    /// has sent.
    pub fn origin(self) -> (TestOrigin, Arc<AtomicU64>) {
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let origin = TestOrigin::start(move |head, _| {
            let answer = self.answer(head);
            let text = String::from_utf8_lossy(&answer[..answer.len().min(1000)]).into_owned();
            let length =
                header(&text, "content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
            counted.fetch_add(length, Ordering::SeqCst);
            answer
        });
        (origin, sent)
    }
}
