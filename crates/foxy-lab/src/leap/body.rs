//! The digest of a body, taken as it comes in constant memory (R110): content codings are undone first where they can be.

use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use foxy_http::Headers;
use std::io::{self, Write};
use xxhash_rust::xxh3::Xxh3;

/// Takes bytes into a digest.
#[derive(Clone, Default)]
struct Sink {
    digest: Box<Xxh3>,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.digest.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

enum Coding {
    None(Sink),
    Gzip(MultiGzDecoder<Sink>),
    Zlib(ZlibDecoder<Sink>),
    /// `deflate` without the zlib wrapper, as some servers send it.
    Raw(DeflateDecoder<Sink>),
    /// `deflate` of which nothing came yet: its first byte says which.
    Deflate,
}

/// A body that is being read.
pub struct BodyDigest {
    coding: Coding,
    length: u64,
    intact: bool,
}

/// What a body came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digested {
    /// Bytes as they came, without chunk framing.
    pub length: u64,
    /// XXH3-128 of the bytes without content codings.
    pub digest: u128,
    /// False when the content coding was broken.
    pub intact: bool,
}

impl BodyDigest {
    /// A body with these header fields. `br`, `zstd` and several codings at once are not undone: the digest is then of
    /// the bytes as they came.
    #[must_use]
    pub fn new(headers: &Headers) -> Self {
        let one =
            headers.get_str("content-encoding").filter(|_| headers.get_all("content-encoding").count() == 1);
        let coding = match one.map(str::to_ascii_lowercase).as_deref() {
            Some("gzip" | "x-gzip") => Coding::Gzip(MultiGzDecoder::new(Sink::default())),
            Some("deflate") => Coding::Deflate,
            _ => Coding::None(Sink::default()),
        };
        Self { coding, length: 0, intact: true }
    }

    /// Takes a piece; pieces may be cut anywhere.
    pub fn take(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let (Coding::Deflate, Some(first)) = (&self.coding, bytes.first()) {
            let wrapped = first & 0x0f == 8;
            self.coding = if wrapped {
                Coding::Zlib(ZlibDecoder::new(Sink::default()))
            } else {
                Coding::Raw(DeflateDecoder::new(Sink::default()))
            };
        }
        let taken = match &mut self.coding {
            Coding::None(sink) => sink.write_all(bytes),
            Coding::Gzip(decoder) => decoder.write_all(bytes),
            Coding::Zlib(decoder) => decoder.write_all(bytes),
            Coding::Raw(decoder) => decoder.write_all(bytes),
            Coding::Deflate => Ok(()),
        };
        self.intact &= taken.is_ok();
    }

    /// The body is complete.
    #[must_use]
    pub fn finish(self) -> Digested {
        let empty = self.length == 0;
        let sink = match self.coding {
            Coding::None(sink) => Ok(sink),
            _ if empty => Ok(Sink::default()),
            Coding::Gzip(decoder) => decoder.finish(),
            Coding::Zlib(decoder) => decoder.finish(),
            Coding::Raw(decoder) => decoder.finish(),
            Coding::Deflate => Ok(Sink::default()),
        };
        let intact = self.intact && sink.is_ok();
        Digested { length: self.length, digest: sink.unwrap_or_default().digest.digest128(), intact }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    const TEXT: &[u8] = b"semantically equivalent data in syntactically different formats";

    fn digest(coding: &str, bytes: &[u8], piece: usize) -> Digested {
        let headers: Headers = [("Content-Encoding", coding.as_bytes())].into_iter().collect();
        let mut body = BodyDigest::new(&headers);
        bytes.chunks(piece).for_each(|bytes| body.take(bytes));
        body.finish()
    }

    #[test]
    fn lesson_7_digests_are_taken_piece_by_piece_and_codings_undone_wherever_they_are_cut() {
        let plain = digest("identity", TEXT, 7).digest;
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        for encoder in [&mut gzip as &mut dyn Write, &mut zlib, &mut raw] {
            encoder.write_all(TEXT).expect("written");
        }
        let coded = [
            ("gzip", gzip.finish().expect("whole")),
            ("deflate", zlib.finish().expect("whole")),
            ("deflate", raw.finish().expect("whole")),
        ];
        for (coding, bytes) in coded {
            for piece in [1, 2, 70, 1000] {
                let found = digest(coding, &bytes, piece);
                assert_eq!((found.digest, found.intact), (plain, true), "{coding} by {piece}");
                assert_eq!(found.length, bytes.len() as u64);
            }
        }
    }

    #[test]
    fn what_is_no_gzip_is_not_intact_and_an_empty_body_is() {
        assert!(!digest("gzip", TEXT, 10).intact);
        assert!(digest("gzip", b"", 1).intact);
    }
}
