//! A synthetic object, which the benchmark's origin serves. The path of its URL contains all data
//! that an origin needs for the response. The object's number and version determine the bytes of
//! the body, so a client can check each received byte.

use foxy_base::random::split_mix;
use std::fmt;

/// A synthetic object with the path `/o/ID/SIZE/VERSION`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Object {
    /// Number of the object.
    pub id: u64,
    /// Body length in bytes.
    pub size: u64,
    /// Number of the version. Each version has another body.
    pub version: u64,
}

impl Object {
    /// Parses a path, and ignores its query. Returns `None` if the path names no object.
    pub fn parse(path: &str) -> Option<Self> {
        let path = path.split('?').next()?;
        let mut parts = path.strip_prefix("/o/")?.split('/');
        let mut number =
            || parts.next().filter(|text| text.bytes().all(|b| b.is_ascii_digit()))?.parse().ok();
        let object = Self { id: number()?, size: number()?, version: number()? };
        parts.next().is_none().then_some(object)
    }
}

/// The next requested object of a workload, with its server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Draw {
    pub object: Object,
    pub server: u32,
    pub is_repeat: bool,
}

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/o/{}/{}/{}", self.id, self.size, self.version)
    }
}

/// The endless stream of pseudo-random bytes that belongs to one version of an object. A body of n
/// bytes is the first n bytes of this stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyStream {
    seed: u64,
}

impl BodyStream {
    /// Returns the bytes of object `id` at `version`.
    pub fn new(id: u64, version: u64) -> Self {
        let mut state = id ^ version.rotate_left(32) ^ 0x666f_7879;
        Self { seed: split_mix(&mut state) ^ version }
    }

    fn word(self, index: u64) -> u64 {
        let mixed = (self.seed ^ index.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_mul(0xd6e8_feb8_6659_fd93);
        (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93)
    }

    /// Fills `out` with the bytes of the stream from `offset` on.
    pub fn fill(self, offset: u64, out: &mut [u8]) {
        let skip = usize::try_from(offset % 8).unwrap_or(0);
        let mut index = offset / 8;
        let (first, rest) = out.split_at_mut(if skip == 0 { 0 } else { out.len().min(8 - skip) });
        if !first.is_empty() {
            first.copy_from_slice(&self.word(index).to_le_bytes()[skip..skip + first.len()]);
            index += 1;
        }
        for piece in rest.chunks_mut(8) {
            let bytes = self.word(index).to_le_bytes();
            match <&mut [u8; 8]>::try_from(&mut *piece) {
                Ok(whole) => *whole = bytes,
                Err(_) => piece.copy_from_slice(&bytes[..piece.len()]),
            }
            index += 1;
        }
    }

    /// Compares `data` with the bytes of the stream from `offset` on. Returns the position in
    /// `data` of the first byte that differs, or `None` if all bytes are equal.
    pub fn mismatch(self, offset: u64, data: &[u8]) -> Option<usize> {
        let mut block = [0; 1024];
        for (number, piece) in data.chunks(block.len()).enumerate() {
            let at = number * block.len();
            let expected = &mut block[..piece.len()];
            self.fill(offset + at as u64, expected);
            if expected != piece {
                return (0..piece.len())
                    .find(|&position| expected[position] != piece[position])
                    .map(|position| at + position);
            }
        }
        None
    }
}

/// Compares a received body with the expected bytes, piece by piece and in constant memory.
#[derive(Clone, Debug)]
pub struct BodyCheck {
    stream: BodyStream,
    position: u64,
    wrong: u64,
}

impl BodyCheck {
    /// Makes a check of a body that starts at byte `offset` of `stream`.
    pub const fn new(stream: BodyStream, offset: u64) -> Self {
        Self { stream, position: offset, wrong: 0 }
    }

    /// Checks the next piece of the body.
    pub fn take(&mut self, data: &[u8]) {
        let mut rest = data;
        while let Some(at) = self.stream.mismatch(self.position, rest) {
            self.wrong += 1;
            self.position += at as u64 + 1;
            rest = &rest[at + 1..];
        }
        self.position += rest.len() as u64;
    }

    /// Number of wrong bytes so far.
    pub const fn wrong_bytes(&self) -> u64 {
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_round_trip_and_strangers_are_refused() {
        let object = Object { id: 12, size: 8192, version: 3 };
        assert_eq!(Object::parse(&object.to_string()), Some(object));
        assert_eq!(Object::parse("/o/12/8192/3?max-age=1"), Some(object));
        for stranger in [
            "/",
            "/o/1/2",
            "/o/1/2/3/4",
            "/o/x/2/3",
            "/o/+1/2/3",
            "/o//2/3",
            "/o/1/2/99999999999999999999",
        ] {
            assert_eq!(Object::parse(stranger), None, "{stranger}");
        }
    }

    #[test]
    fn any_part_of_a_body_can_be_made_alone() {
        let stream = BodyStream::new(7, 1);
        let mut whole = [0u8; 100];
        stream.fill(0, &mut whole);
        for (from, to) in [(0, 100), (1, 9), (13, 64), (99, 100), (50, 50), (3, 5), (8, 15)] {
            let mut part = vec![0u8; to - from];
            stream.fill(from as u64, &mut part);
            assert_eq!(part, whole[from..to], "{from}..{to}");
        }
    }

    #[test]
    fn objects_and_versions_differ() {
        let mut bodies = [[0u8; 64]; 3];
        for (body, (id, version)) in bodies.iter_mut().zip([(1, 1), (1, 2), (2, 1)]) {
            BodyStream::new(id, version).fill(0, body);
        }
        assert!(bodies[0] != bodies[1] && bodies[0] != bodies[2] && bodies[1] != bodies[2]);
    }

    #[test]
    fn every_wrong_byte_is_counted_wherever_the_pieces_are_cut() {
        let stream = BodyStream::new(3, 9);
        let mut body = [0u8; 1000];
        stream.fill(16, &mut body);
        body[0] ^= 1;
        body[500] ^= 0x80;
        body[501] ^= 0x80;
        body[999] ^= 1;
        for cut in [0, 1, 8, 500, 501, 999, 1000] {
            let mut check = BodyCheck::new(stream, 16);
            check.take(&body[..cut]);
            check.take(&body[cut..]);
            assert_eq!(check.wrong_bytes(), 4, "cut at {cut}");
        }
    }
}
