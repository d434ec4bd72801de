//! HTTP/2 frames as their bytes pass a connection: where each begins (RFC 9113 §4.1), what may come
//! of them, and whether trailers begin as trailers may. The library decodes the frames; nothing
//! here changes a byte.

mod allowance;
mod field_blocks;

pub(crate) use allowance::{Allowance, FRAMES_A_REQUEST};
pub(crate) use field_blocks::{FieldBlocks, StartsWith};

/// The length of a frame's header.
pub(crate) const HEADER: usize = 9;

/// Types of frames (RFC 9113 §6).
pub(crate) mod kind {
    pub(crate) const DATA: u8 = 0;
    pub(crate) const HEADERS: u8 = 1;
    pub(crate) const RST_STREAM: u8 = 3;
    pub(crate) const SETTINGS: u8 = 4;
    pub(crate) const GOAWAY: u8 = 7;
    pub(crate) const CONTINUATION: u8 = 9;
}

/// Flags of frames.
pub(crate) mod flag {
    pub(crate) const ACK: u8 = 1;
    pub(crate) const END_STREAM: u8 = 1;
    pub(crate) const END_HEADERS: u8 = 4;
    pub(crate) const PADDED: u8 = 8;
    pub(crate) const PRIORITY: u8 = 32;
}

/// What a frame's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    /// Bytes of its payload.
    pub(crate) length: usize,
}

impl Frame {
    fn parse(header: [u8; HEADER]) -> Self {
        let [high, middle, low, kind, flags, stream @ ..] = header;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        Self { kind, flags, stream: u32::from_be_bytes(stream) & (u32::MAX >> 1), length }
    }

    /// Whether it has a flag.
    pub(crate) const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// What passes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Passing<'a> {
    /// The header of a frame.
    Header(Frame),
    /// Some of the payload of the last frame, more than nothing.
    Payload(&'a [u8]),
}

/// Where in a frame the bytes of one direction are.
#[derive(Debug)]
pub(crate) struct FrameReader {
    header: [u8; HEADER],
    filled: usize,
    /// Bytes of the present frame's payload that are still to come.
    payload: usize,
}

impl FrameReader {
    /// Frames begin after so many bytes.
    pub(crate) const fn after(preface: usize) -> Self {
        Self { header: [0; HEADER], filled: 0, payload: preface }
    }

    /// Takes what passes next from `bytes`; `None` once all were taken.
    pub(crate) fn next<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<Passing<'a>> {
        if self.payload > 0 && !bytes.is_empty() {
            let (payload, rest) = bytes.split_at(self.payload.min(bytes.len()));
            *bytes = rest;
            self.payload -= payload.len();
            return Some(Passing::Payload(payload));
        }
        let (taken, rest) = bytes.split_at((HEADER - self.filled).min(bytes.len()));
        *bytes = rest;
        self.header[self.filled..self.filled + taken.len()].copy_from_slice(taken);
        self.filled += taken.len();
        if self.filled < HEADER {
            return None;
        }
        let frame = Frame::parse(self.header);
        (self.filled, self.payload) = (0, frame.length);
        Some(Passing::Header(frame))
    }

    /// Whether the last frame has passed whole.
    pub(crate) const fn is_between(&self) -> bool {
        self.payload == 0
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
                while let Some(passing) = reader.next(&mut piece) {
                    match passing {
                        Passing::Header(frame) => headers.push(frame),
                        Passing::Payload(bytes) => payload.extend_from_slice(bytes),
                    }
                }
            }
            let data = Frame { kind: kind::DATA, flags: flag::END_STREAM, stream: 5, length: 2 };
            let settings = Frame { kind: kind::SETTINGS, flags: flag::ACK, stream: 0, length: 0 };
            assert_eq!(headers, [data, settings], "pieces of {size}");
            assert_eq!(payload, b"preface\x07\x08", "pieces of {size}");
            assert!(reader.is_between());
        }
    }
}
