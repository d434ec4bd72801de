//! HTTP/2 frames written by hand (RFC 9113 §6), for clients that no library would play.

use foxy_testkit::http2::{END_HEADERS, END_STREAM, PREFACE, frame, kind};
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;

/// A kind that no document gives a meaning.
pub const UNKNOWN: u8 = 0xbb;

pub const ACK: u8 = 1;

/// The setting that says how much a stream may send unasked.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// The code of a GOAWAY to a client that sends too much of what is costly.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// SETTINGS with a window for each stream.
pub fn window(bytes: u32) -> Vec<u8> {
    frame(
        kind::SETTINGS,
        0,
        0,
        &[&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat(),
    )
}

/// The beginning of a connection whose streams have no window.
pub fn opening() -> Vec<u8> {
    [PREFACE, &window(0)[..]].concat()
}

/// A GET that is complete.
pub fn get(stream: u32, origin: SocketAddr, path: &str) -> Vec<u8> {
    frame(kind::HEADERS, END_STREAM | END_HEADERS, stream, &block(origin, path))
}

/// The field block of a GET (RFC 7541): two fields of the static table, two literals that no table
/// takes.
fn block(origin: SocketAddr, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(4, path), (1, &origin.to_string())] {
        block.extend([name, u8::try_from(value.len()).expect("short")]);
        block.extend(value.bytes());
    }
    block
}

/// A GET whose fields never end: HEADERS and CONTINUATIONs of `bytes` bytes together.
pub fn endless_head(origin: SocketAddr, bytes: usize) -> Vec<u8> {
    const VALUE: usize = 4_000;
    let mut frames = frame(kind::HEADERS, END_STREAM, 1, &block(origin, "/1/head"));
    while frames.len() < bytes {
        // A literal of a new name, whose length takes two bytes more than its prefix (RFC 7541
        // §5.1).
        let mut field = vec![0, 5];
        field.extend(b"x-pad");
        let rest = VALUE - 127;
        field.extend([
            127,
            u8::try_from(rest % 128 + 128).expect("a byte"),
            u8::try_from(rest / 128).expect("a byte"),
        ]);
        field.extend(std::iter::repeat_n(b'a', VALUE));
        frames.extend(frame(kind::CONTINUATION, 0, 1, &field));
    }
    frames
}

/// Takes frames apart as they come.
#[derive(Default)]
pub struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// Adds bytes; the code of a GOAWAY among the frames that they end, and whether SETTINGS must
    /// be acknowledged.
    pub fn add(&mut self, bytes: &[u8]) -> (Option<u32>, bool) {
        self.buffer.extend_from_slice(bytes);
        let (mut goaway, mut settings) = (None, false);
        while let Some((kind, flags, payload)) = self.next() {
            match kind {
                kind::GOAWAY if payload.len() >= 8 => {
                    let code: [u8; 4] = payload[4..8].try_into().expect("four bytes");
                    goaway = Some(u32::from_be_bytes(code));
                }
                kind::SETTINGS => settings |= flags & ACK == 0,
                _ => {}
            }
        }
        (goaway, settings)
    }

    fn next(&mut self) -> Option<(u8, u8, Vec<u8>)> {
        let head = self.buffer.get(..9)?;
        let length = usize::from(head[0]) << 16 | usize::from(head[1]) << 8 | usize::from(head[2]);
        let (kind, flags) = (head[3], head[4]);
        let payload = self.buffer.get(9..9 + length)?.to_vec();
        self.buffer.drain(..9 + length);
        Some((kind, flags, payload))
    }
}

/// Acknowledges SETTINGS.
pub async fn acknowledge(stream: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    stream.write_all(&frame(kind::SETTINGS, ACK, 0, &[])).await
}
