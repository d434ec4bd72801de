//! Computes the digest of a body in constant memory. Decodes the body first if its content coding
//! is supported.

use crate::leap::Answer;
use crate::leap::verdict::fields::Difference;
use flate2::write::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};
use foxy_http::Headers;
use std::io::{self, Write};
use xxhash_rust::xxh3::Xxh3;

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
    /// The `deflate` decoder for data without the zlib wrapper, which some servers send.
    Raw(DeflateDecoder<Sink>),
    /// A body with `deflate` of which no byte has arrived. The first byte shows whether the data
    /// has a zlib wrapper.
    Deflate,
}

/// Whether LEAP could decode a body. LEAP compares decoded bodies, because proxies may change the
/// content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decoding {
    /// LEAP decoded the body, or the body had no coding. The digest covers the decoded body.
    Undone,
    /// The coding is not supported. The digest covers the received bytes.
    Kept,
    /// The bytes do not match their coding. The digest covers the received bytes.
    Broken,
}

pub struct BodyDigest {
    coding: Coding,
    raw: Sink,
    length: u64,
    decoding: Decoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Digested {
    /// The number of bytes received, without chunk framing.
    pub length: u64,
    /// The XXH3-128 digest of the body, decoded if the coding is supported.
    pub digest: u128,
    pub decoding: Decoding,
}

impl BodyDigest {
    /// Creates a digest that decodes a single `gzip` or `deflate` coding. A body with another
    /// coding or several codings stays encoded.
    pub fn new(headers: &Headers) -> Self {
        let mut codings = codings(headers);
        let (first, second) = (codings.next(), codings.next());
        let (coding, decoding) = match (first.as_deref(), second) {
            (None, _) => (Coding::None(Sink::default()), Decoding::Undone),
            (Some("gzip"), None) => {
                (Coding::Gzip(MultiGzDecoder::new(Sink::default())), Decoding::Undone)
            }
            (Some("deflate"), None) => (Coding::Deflate, Decoding::Undone),
            _ => (Coding::None(Sink::default()), Decoding::Kept),
        };
        Self { coding, raw: Sink::default(), length: 0, decoding }
    }

    pub fn take(&mut self, bytes: &[u8]) {
        self.length += bytes.len() as u64;
        if let Coding::None(sink) = &mut self.coding {
            return sink.digest.update(bytes);
        }
        self.raw.digest.update(bytes);
        if let (Coding::Deflate, Some(first)) = (&self.coding, bytes.first()) {
            let wrapped = first & 0x0f == 8;
            self.coding = if wrapped {
                Coding::Zlib(ZlibDecoder::new(Sink::default()))
            } else {
                Coding::Raw(DeflateDecoder::new(Sink::default()))
            };
        }
        if self.decoding == Decoding::Broken {
            return;
        }
        let taken = match &mut self.coding {
            Coding::None(_) | Coding::Deflate => Ok(()),
            Coding::Gzip(decoder) => decoder.write_all(bytes),
            Coding::Zlib(decoder) => decoder.write_all(bytes),
            Coding::Raw(decoder) => decoder.write_all(bytes),
        };
        if taken.is_err() {
            self.decoding = Decoding::Broken;
        }
    }

    pub fn finish(self) -> Digested {
        let sink = match self.coding {
            Coding::None(sink) => Ok(sink),
            _ if self.length == 0 => Ok(Sink::default()),
            Coding::Gzip(decoder) => decoder.finish(),
            Coding::Zlib(mut decoder) => ended(decoder.write(&[0])).and_then(|()| decoder.finish()),
            Coding::Raw(mut decoder) => ended(decoder.write(&[0])).and_then(|()| decoder.finish()),
            Coding::Deflate => Ok(Sink::default()),
        };
        let (sink, decoding) = match sink {
            Ok(sink) if self.decoding != Decoding::Broken => (sink, self.decoding),
            _ => (self.raw, Decoding::Broken),
        };
        Digested { length: self.length, digest: sink.digest.digest128(), decoding }
    }
}

/// Checks that the decoder consumed a complete body. The decoders themselves report no
/// error for truncated data.
fn ended(taken: io::Result<usize>) -> io::Result<()> {
    if taken? == 0 { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Returns the content codings in the order in which the server applied them. The alias `x-gzip`
/// counts as `gzip`.
pub fn codings(headers: &Headers) -> impl Iterator<Item = String> {
    let lines =
        headers.get_all("content-encoding").flat_map(|line| line.split(|&byte| byte == b','));
    let names = lines.map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase());
    names.filter(|name| !name.is_empty() && name != "identity").map(|name| match name.as_str() {
        "x-gzip" => "gzip".to_owned(),
        _ => name,
    })
}

/// Returns a difference if the content codings of two answers differ. Returns `None` if LEAP
/// decoded both bodies, if the codings are equal, or if `right` is a 304.
pub fn coding_difference(answer: &Answer, right: &Answer) -> Option<Difference> {
    let undone = answer.decoding == Decoding::Undone && right.decoding == Decoding::Undone;
    let alike = || codings(&answer.headers).eq(codings(&right.headers));
    if undone || right.status == 304 || alike() {
        return None;
    }
    let has = |answer: &Answer| codings(&answer.headers).next().is_some();
    let how = match (has(right), has(answer)) {
        (false, _) => Difference::Added,
        (true, false) => Difference::Missing,
        (true, true) => Difference::Changed,
    };
    Some(how("content-encoding".to_owned()))
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
    fn lesson_7_digests_are_taken_by_piece_and_codings_undone_wherever_they_are_cut() {
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
                assert_eq!(
                    (found.digest, found.decoding),
                    (plain, Decoding::Undone),
                    "{coding} by {piece}"
                );
                assert_eq!(found.length, bytes.len() as u64);
                for wrong in [&bytes[..bytes.len() - 1], &[&bytes[..], b"more"].concat()] {
                    assert_eq!(
                        digest(coding, wrong, piece).decoding,
                        Decoding::Broken,
                        "{coding} by {piece}"
                    );
                }
            }
        }
    }

    #[test]
    fn bad_gzip_is_broken_and_unknown_codings_are_digested_as_received() {
        let plain = digest("", TEXT, 7).digest;
        for (coding, decoding) in [
            (" IDENTITY", Decoding::Undone),
            ("gzip", Decoding::Broken),
            ("deflate", Decoding::Broken),
            ("br", Decoding::Kept),
            ("gzip, x-gzip", Decoding::Kept),
        ] {
            for piece in [1, 10, 1000] {
                let found = digest(coding, TEXT, piece);
                assert_eq!(
                    (found.digest, found.decoding),
                    (plain, decoding),
                    "{coding} by {piece}"
                );
            }
        }
        assert_eq!(digest("X-GZip", b"", 1).decoding, Decoding::Undone);
    }
}
