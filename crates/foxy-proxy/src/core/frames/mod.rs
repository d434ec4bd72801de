//! Watches the HTTP/2 frames of a connection while their bytes pass. This code finds frame
//! boundaries (RFC 9113 §4.1), limits how many frames a peer may send, and finds the first field of
//! trailers. The HTTP/2 library decodes the frames; this code changes no byte.

mod field_blocks;

pub(crate) use field_blocks::{FieldBlocks, FirstField};

use std::time::Duration;
use tokio::time::Instant;

/// First bytes that an HTTP/2 client sends (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Length of an HTTP/2 frame header in bytes (RFC 9113 §4.1).
pub(crate) const HEADER_BYTES: usize = 9;

/// Frame types (RFC 9113 §6).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const CONTINUATION: u8 = 9;
}

pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

/// The header of an HTTP/2 frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    /// Number of payload bytes.
    pub(crate) length: usize,
}

impl Frame {
    fn parse(header: [u8; HEADER_BYTES]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        Self { kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1), length }
    }

    pub(crate) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FrameEvent<'a> {
    Header(Frame),
    /// A piece of the current frame's payload, at least one byte long.
    Payload(&'a [u8]),
}

/// Finds the frame boundaries in one direction of a connection.
#[derive(Debug)]
pub(crate) struct FrameReader {
    header: [u8; HEADER_BYTES],
    filled: usize,
    /// Payload bytes of the current frame that have not arrived yet.
    payload: usize,
}

impl FrameReader {
    /// Creates a reader. The first frame begins after `preface` bytes.
    pub(crate) const fn after(preface: usize) -> Self {
        Self { header: [0; HEADER_BYTES], filled: 0, payload: preface }
    }

    /// Removes the next event from `bytes`. Returns `None` once all bytes are used.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<FrameEvent<'a>> {
        if self.payload > 0 && !bytes.is_empty() {
            let (payload, rest) = bytes.split_at(self.payload.min(bytes.len()));
            *bytes = rest;
            self.payload -= payload.len();
            return Some(FrameEvent::Payload(payload));
        }
        let (taken, rest) = bytes.split_at((HEADER_BYTES - self.filled).min(bytes.len()));
        *bytes = rest;
        self.header[self.filled..self.filled + taken.len()].copy_from_slice(taken);
        self.filled += taken.len();
        if self.filled < HEADER_BYTES {
            return None;
        }
        let frame = Frame::parse(self.header);
        (self.filled, self.payload) = (0, frame.length);
        Some(FrameEvent::Header(frame))
    }

    /// Returns true if all bytes of the last frame have passed.
    pub(crate) const fn is_at_boundary(&self) -> bool {
        self.payload == 0
    }
}

/// The proxy limits the frames without message content that a peer may send, such as PING. The peer
/// may send one more such frame for each `FRAME_PRICE` bytes that the proxy sends to the peer. The
/// price is larger than the proxy's answer to a PING (17 bytes) or to SETTINGS (9 bytes). So the
/// answer to a frame never permits another frame.
const FRAME_PRICE: u64 = 64;

pub(crate) const FRAMES_AT_ONCE: u64 = 1000;
pub(crate) const FRAMES_A_SECOND: u64 = 100;

/// Number of extra frames without message content that a peer may send for each request: a reset
/// and a few window updates.
pub(crate) const FRAMES_A_REQUEST: u64 = 4;

/// Number of frames without message content that a peer may still send. The number grows with time.
/// It also grows with the bytes that the proxy sends to the peer, because the peer must acknowledge
/// them with window updates.
#[derive(Debug)]
pub(crate) struct Allowance {
    left: u64,
    counted: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooMany;

impl Allowance {
    pub(crate) const fn new(now: Instant) -> Self {
        Self { left: FRAMES_AT_ONCE * FRAME_PRICE, counted: now }
    }

    pub(crate) fn sent(&mut self, bytes: usize) {
        self.earn(bytes as u64);
    }

    /// Permits `frames` more frames, because the client sent a request.
    pub(crate) fn pays_for(&mut self, frames: u64) {
        self.earn(frames * FRAME_PRICE);
    }

    /// Subtracts `frames` frames from the allowance. Fails if the allowance has fewer frames.
    pub(crate) fn take(&mut self, frames: u64, now: Instant) -> Result<(), TooMany> {
        let since = now
            .saturating_duration_since(self.counted)
            .min(Duration::from_secs(FRAMES_AT_ONCE / FRAMES_A_SECOND));
        self.counted = now;
        self.earn(
            u64::try_from(since.as_micros()).unwrap_or(0) * FRAMES_A_SECOND * FRAME_PRICE
                / 1_000_000,
        );
        self.left = self.left.checked_sub(frames * FRAME_PRICE).ok_or(TooMany)?;
        Ok(())
    }

    fn earn(&mut self, amount: u64) {
        self.left = (self.left + amount).min(FRAMES_AT_ONCE * FRAME_PRICE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_however_they_are_cut() {
        let bytes =
            [&b"preface"[..], &[0, 0, 2, 0, 1, 0x80, 0, 0, 5, 7, 8], &[0, 0, 0, 4, 1, 0, 0, 0, 0]]
                .concat();
        for size in 1..=bytes.len() {
            let mut reader = FrameReader::after(7);
            let (mut headers, mut payload) = (Vec::new(), Vec::new());
            for mut piece in bytes.chunks(size) {
                while let Some(event) = reader.next(&mut piece) {
                    match event {
                        FrameEvent::Header(frame) => headers.push(frame),
                        FrameEvent::Payload(bytes) => payload.extend_from_slice(bytes),
                    }
                }
            }
            let data = Frame { kind: kind::DATA, flags: flag::END_STREAM, stream: 5, length: 2 };
            let settings = Frame { kind: kind::SETTINGS, flags: flag::ACK, stream: 0, length: 0 };
            assert_eq!(headers, [data, settings], "pieces of {size}");
            assert_eq!(payload, b"preface\x07\x08", "pieces of {size}");
            assert!(reader.is_at_boundary());
        }
    }

    #[test]
    fn frames_are_too_many_once_they_are_for_the_time() {
        let now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..FRAMES_AT_ONCE {
            allowance.take(1, now).expect("not yet too many");
        }
        let later = now + Duration::from_secs(1);
        for _ in 0..FRAMES_A_SECOND {
            allowance.take(1, later).expect("time has passed");
        }
        assert_eq!(allowance.take(1, later), Err(TooMany));
    }

    #[test]
    fn a_frame_is_not_paid_for_by_its_answer_but_by_what_windows_are_for() {
        let run = |sent: usize| {
            let now = Instant::now();
            let mut allowance = Allowance::new(now);
            let mut frames = (0..100 * FRAMES_AT_ONCE).map(|_| {
                allowance.sent(sent);
                allowance.take(1, now)
            });
            frames.all(|taken| taken.is_ok())
        };
        assert!(!run(17), "the answer to a ping");
        assert!(run(1024));
    }
}
