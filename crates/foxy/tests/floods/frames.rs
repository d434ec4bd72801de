//! Builds HTTP/2 frames byte by byte (RFC 9113 §6), for hostile clients. Libraries for HTTP/2
//! refuse to behave like these clients.

use foxy_testkit::http2::{END_HEADERS, END_STREAM, PREFACE, frame, kind};
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;

/// A frame type that no standard defines.
pub const UNKNOWN: u8 = 0xbb;

pub const ACK: u8 = 1;

/// Identifier of the HTTP/2 setting for the initial flow-control window of a stream, in bytes.
const INITIAL_WINDOW_SIZE: u16 = 4;

/// Error code in foxy's GOAWAY frame to a client that sends too many costly frames.
pub const ENHANCE_YOUR_CALM: u32 = 11;

/// Builds a SETTINGS frame that sets the initial window of streams to `bytes`.
pub fn window(bytes: u32) -> Vec<u8> {
    frame(
        kind::SETTINGS,
        0,
        0,
        &[&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat(),
    )
}

/// Builds the start of a connection whose streams have a window of 0 bytes.
pub fn opening() -> Vec<u8> {
    [PREFACE, &window(0)[..]].concat()
}

/// Builds a complete GET request.
pub fn get(stream: u32, origin: SocketAddr, path: &str) -> Vec<u8> {
    frame(kind::HEADERS, END_STREAM | END_HEADERS, stream, &block(origin, path))
}

/// Builds the header block of a GET request (RFC 7541): two indexed fields, and two literal fields
/// that the receiver must not index.
fn block(origin: SocketAddr, path: &str) -> Vec<u8> {
    let mut block = vec![0x82, 0x86];
    for (name, value) in [(4, path), (1, &origin.to_string())] {
        block.extend([name, u8::try_from(value.len()).expect("short")]);
        block.extend(value.bytes());
    }
    block
}

/// Builds a GET request whose head never ends. The HEADERS and CONTINUATION frames of the request
/// have `bytes` bytes in total.
pub fn endless_head(origin: SocketAddr, bytes: usize) -> Vec<u8> {
    const VALUE: usize = 4_000;
    let mut frames = frame(kind::HEADERS, END_STREAM, 1, &block(origin, "/1/head"));
    while frames.len() < bytes {
        // A literal field with a new name. The length of the name takes a full prefix and two more
        // bytes (RFC 7541 §5.1).
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

/// Splits received bytes into HTTP/2 frames.
#[derive(Default)]
pub struct Reader {
    buffer: Vec<u8>,
}

impl Reader {
    /// Adds received bytes. Returns the code of a complete GOAWAY frame, and whether the client
    /// must acknowledge a SETTINGS frame.
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

/// Sends an acknowledgement of a SETTINGS frame.
pub async fn acknowledge(stream: &mut (impl AsyncWriteExt + Unpin)) -> std::io::Result<()> {
    stream.write_all(&frame(kind::SETTINGS, ACK, 0, &[])).await
}
