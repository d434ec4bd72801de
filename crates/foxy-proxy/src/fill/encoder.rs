//! Encoders of content codings. An encoder takes a body piece by piece, so that a large body needs
//! little memory.

use brotli::CompressorWriter;
use bytes::Bytes;
use flate2::write::GzEncoder;
use foxy_rules::coding::Coding;
use std::io::{self, Write};

// A change of a level or of an encoder's version may change the coded bytes. The test below then
// fails, and `REVISION` in foxy-rules must change.

/// Compression level of Brotli, from 0 to 11.
const BROTLI_QUALITY: u32 = 5;
/// Binary logarithm of Brotli's window in bytes.
const BROTLI_WINDOW: u32 = 22;
/// Compression level of gzip, from 0 to 9.
const GZIP_LEVEL: u32 = 6;
/// Compression level of Zstandard, from 1 to 22. At this level, the window of Zstandard is at most
/// 8 MiB, the limit of RFC 9659.
const ZSTD_LEVEL: i32 = 6;

pub(crate) enum Encoder {
    Brotli(Box<CompressorWriter<Vec<u8>>>),
    Gzip(GzEncoder<Vec<u8>>),
    Zstd(zstd::Encoder<'static, Vec<u8>>),
}

impl Encoder {
    /// Creates an encoder for a body of `length` bytes.
    pub(crate) fn new(coding: Coding, length: u64) -> io::Result<Self> {
        let out = Vec::new();
        Ok(match coding {
            Coding::Brotli => Self::Brotli(Box::new(CompressorWriter::new(
                out,
                4096,
                BROTLI_QUALITY,
                BROTLI_WINDOW,
            ))),
            Coding::Gzip => Self::Gzip(GzEncoder::new(out, flate2::Compression::new(GZIP_LEVEL))),
            Coding::Zstd => {
                let mut encoder = zstd::Encoder::new(out, ZSTD_LEVEL)?;
                encoder.set_pledged_src_size(Some(length))?;
                Self::Zstd(encoder)
            }
        })
    }

    /// Takes more of the body. Returns the coded bytes that are ready.
    pub(crate) fn take(&mut self, data: &[u8]) -> io::Result<Bytes> {
        let out = match self {
            Self::Brotli(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
            Self::Gzip(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
            Self::Zstd(encoder) => {
                encoder.write_all(data)?;
                encoder.get_mut()
            }
        };
        Ok(std::mem::take(out).into())
    }

    /// Returns the last coded bytes.
    pub(crate) fn finish(self) -> io::Result<Bytes> {
        Ok(match self {
            Self::Brotli(encoder) => encoder.into_inner(),
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_rules::coding::REVISION;
    use std::io::Read;
    use xxhash_rust::xxh3::xxh3_64;

    /// Encodes `body`. The encoder receives the body in pieces of `piece` bytes.
    fn coded(coding: Coding, body: &[u8], piece: usize) -> Vec<u8> {
        let mut encoder = Encoder::new(coding, body.len() as u64).expect("an encoder");
        let mut out = Vec::new();
        for piece in body.chunks(piece) {
            out.extend_from_slice(&encoder.take(piece).expect("coded"));
        }
        out.extend_from_slice(&encoder.finish().expect("the end"));
        out
    }

    fn decoded(coding: Coding, coded: &[u8]) -> Vec<u8> {
        let mut body = Vec::new();
        match coding {
            Coding::Brotli => brotli::Decompressor::new(coded, 4096).read_to_end(&mut body),
            Coding::Gzip => flate2::read::GzDecoder::new(coded).read_to_end(&mut body),
            Coding::Zstd => zstd::Decoder::new(coded).expect("zstd").read_to_end(&mut body),
        }
        .expect("sound");
        body
    }

    fn text(lines: usize) -> Vec<u8> {
        (0..lines)
            .flat_map(|line| format!("line {line} of {}\n", line * line).into_bytes())
            .collect()
    }

    #[test]
    fn decoders_restore_the_body() {
        for coding in Coding::ALL {
            for body in [Vec::new(), b"x".to_vec(), text(20_000)] {
                let coded = coded(coding, &body, 100_000);
                assert_eq!(decoded(coding, &coded), body, "{coding}");
            }
        }
    }

    /// A changed digest means that the coded bytes changed, but not the ETag of the compressed
    /// response. Then `REVISION` must change together with the digests.
    #[test]
    fn a_revision_has_the_same_bytes_for_ever() {
        const DIGESTS: [u64; 3] =
            [9_372_695_959_110_119_360, 13_268_698_335_440_368_151, 3_059_063_491_340_983_049];
        let body = text(20_000);
        let digests = Coding::ALL.map(|coding| xxh3_64(&coded(coding, &body, 1 << 20)));
        assert_eq!((REVISION, digests), (1, DIGESTS));
    }
}
