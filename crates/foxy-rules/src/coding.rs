//! Content codings, such as gzip, that the proxy applies itself (RFC 9110 §8.4). This module
//! chooses the responses to compress and the coding that the client prefers (§12.5.3). It also
//! determines the header fields of a compressed response.

mod media_range;
mod negotiation;
mod tag;

pub use media_range::{BadMediaRange, MediaRange};
pub use negotiation::{Acceptance, acceptance};
pub use tag::{REVISION, coded_tag, uncoded_tags};

use crate::fields::{Fields, members, sets_cookie};
use std::fmt;
use std::str::FromStr;

/// A content coding that the proxy can apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// The coding is Brotli (RFC 7932).
    Brotli,
    /// The coding is gzip (RFC 1952).
    Gzip,
    /// The coding is Zstandard (RFC 8878).
    Zstd,
}

impl Coding {
    /// Every coding, in the order of the documentation.
    pub const ALL: [Self; 3] = [Self::Zstd, Self::Brotli, Self::Gzip];

    /// Returns the name of the coding in `Accept-Encoding` and `Content-Encoding`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

impl fmt::Display for Coding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a text that is not the name of a known coding. Contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownCoding(String);

impl fmt::Display for UnknownCoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not one of {}", self.0, Coding::ALL.map(Coding::name).join(", "))
    }
}

impl FromStr for Coding {
    type Err = UnknownCoding;

    fn from_str(text: &str) -> Result<Self, UnknownCoding> {
        let found = Self::ALL.into_iter().find(|coding| coding.name() == text);
        found.ok_or_else(|| UnknownCoding(text.to_owned()))
    }
}

/// The operator's settings: which responses the proxy compresses, and with which codings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The codings that the proxy may apply. If a client accepts several of them equally, the proxy
    /// applies the first in this list. If the list is empty, the proxy compresses nothing.
    pub codings: Vec<Coding>,
    /// Size in bytes of the smallest body that the proxy compresses.
    pub least: u64,
    /// The media types that the proxy compresses.
    pub types: Vec<MediaRange>,
}

/// The reason why the proxy sends a stored response without applying a coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NotCoded {
    /// The client accepts none of the codings, or prefers the response without coding.
    NotAccepted,
    /// The origin has already applied a coding, such as gzip.
    CodedByOrigin,
    /// `no-transform` forbids the proxy to change the content.
    NoTransform,
    /// The request asks for a range. The bytes of a range come from the response without coding.
    Range,
    /// The coded form (such as gzip) is not stored yet.
    NotReady,
    /// The coded form (such as gzip) is hardly smaller than the response without coding.
    NotSmaller,
    /// The response is private, so its size after compression could reveal a secret (BREACH).
    Private,
    /// The response sets a cookie, so its size after compression could reveal a secret (BREACH).
    SetsCookie,
    /// The status of the response is not 200.
    Status,
    /// The body is smaller than the operator's limit.
    TooSmall,
    /// The media type of the response is not in the operator's list.
    Type,
}

impl NotCoded {
    /// Returns the name of the reason in explanations. It never changes.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotAccepted => "coding-not-accepted",
            Self::CodedByOrigin => "coded-by-origin",
            Self::NoTransform => "no-transform",
            Self::Range => "range-of-uncoded",
            Self::NotReady => "coding-not-ready",
            Self::NotSmaller => "coding-not-smaller",
            Self::Private => "private-not-coded",
            Self::SetsCookie => "cookie-not-coded",
            Self::Status => "status-not-coded",
            Self::TooSmall => "too-small-to-code",
            Self::Type => "type-not-coded",
        }
    }

    /// Returns the place that describes the rule behind this reason: a section of an RFC, or a
    /// document of foxy.
    pub const fn section(self) -> &'static str {
        match self {
            Self::NotAccepted => "RFC 9110 §12.5.3",
            Self::CodedByOrigin => "RFC 9110 §8.4",
            Self::NoTransform => "RFC 9111 §5.2.2.6",
            Self::TooSmall | Self::Type => "docs/configuration.md",
            _ => "docs/decisions/compression.md",
        }
    }
}

impl fmt::Display for NotCoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAccepted => "the client accepts none of the codings in `compress`",
            Self::CodedByOrigin => "the origin has already applied a coding",
            Self::NoTransform => "`no-transform` of the request or response forbids compression",
            Self::Range => "the request asks for a range, which foxy serves without coding",
            Self::NotReady => "foxy has not stored the compressed form of this response yet",
            Self::NotSmaller => "compression makes the response hardly smaller",
            Self::Private => {
                "the response is private, so its compressed size could reveal a secret"
            }
            Self::SetsCookie => {
                "the response sets a cookie, so its compressed size could reveal a secret"
            }
            Self::Status => "foxy compresses only responses with status 200",
            Self::TooSmall => "the response is smaller than `compress-min`",
            Self::Type => "`compress-types` does not list the type of the response",
        })
    }
}

impl Compression {
    /// Returns true if the proxy compresses no response.
    pub fn is_off(&self) -> bool {
        self.codings.is_empty()
    }

    /// Returns the reason why the proxy never compresses a response. Returns `None` if the proxy
    /// may compress it. `length` is the length of the body in bytes, if known.
    pub fn why_never(
        &self,
        status: u16,
        response: &(impl Fields + ?Sized),
        length: Option<u64>,
    ) -> Option<NotCoded> {
        let is_listed = || {
            let given = response.single("content-type").and_then(|text| str::from_utf8(text).ok());
            given.is_some_and(|given| self.types.iter().any(|range| range.contains(given)))
        };
        if status != 200 {
            return Some(NotCoded::Status);
        }
        if response.has("content-encoding") {
            return Some(NotCoded::CodedByOrigin);
        }
        if !is_listed() {
            return Some(NotCoded::Type);
        }
        if length.is_some_and(|length| length < self.least.max(1)) {
            return Some(NotCoded::TooSmall);
        }
        if forbids_transform(response) {
            return Some(NotCoded::NoTransform);
        }
        if has_directive(response, b"private") {
            return Some(NotCoded::Private);
        }
        sets_cookie(response).then_some(NotCoded::SetsCookie)
    }
}

/// Returns whether `Cache-Control` of a request or response has `no-transform` (RFC 9111 §5.2.1.6,
/// §5.2.2.6).
pub fn forbids_transform(message: &(impl Fields + ?Sized)) -> bool {
    has_directive(message, b"no-transform")
}

fn has_directive(message: &(impl Fields + ?Sized), name: &[u8]) -> bool {
    members(message.values("cache-control")).any(|member| {
        let given = member.split(|&byte| byte == b'=').next().unwrap_or(member);
        given.trim_ascii().eq_ignore_ascii_case(name)
    })
}

/// Fields that a coded response must not have. They describe the bytes before the coding (RFC 9530
/// §3, RFC 3230 §4.3.2), or promise ranges.
pub const FIELDS_OF_UNCODED: [&str; 6] =
    ["accept-ranges", "content-digest", "content-md5", "digest", "etag", "repr-digest"];

/// Returns whether Vary names Accept-Encoding.
pub fn varies_by_coding(response: &(impl Fields + ?Sized)) -> bool {
    members(response.values("vary")).any(|name| name.eq_ignore_ascii_case(b"accept-encoding"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compression() -> Compression {
        let types = ["text/*", "*+json"].map(|text| text.parse().expect("a range"));
        Compression { codings: Coding::ALL.to_vec(), least: 100, types: types.to_vec() }
    }

    /// A test case: status, header fields and length of a response, and the expected reason not to
    /// compress it.
    type Case<'a> = (u16, &'a [(&'a str, &'a str)], Option<u64>, Option<NotCoded>);

    #[test]
    fn only_suitable_responses_are_coded() {
        const TEXT: (&str, &str) = ("Content-Type", "text/html; charset=utf-8");
        let control = |value| [TEXT, ("Cache-Control", value)];
        let cases: &[Case<'_>] = &[
            (200, &[TEXT], Some(100), None),
            (200, &[TEXT], None, None),
            (200, &[("Content-Type", "application/problem+json")], Some(100), None),
            (200, &[TEXT], Some(99), Some(NotCoded::TooSmall)),
            (206, &[TEXT], Some(100), Some(NotCoded::Status)),
            (404, &[TEXT], Some(100), Some(NotCoded::Status)),
            (200, &[], Some(100), Some(NotCoded::Type)),
            (200, &[("Content-Type", "image/png")], Some(100), Some(NotCoded::Type)),
            (200, &[TEXT, TEXT], Some(100), Some(NotCoded::Type)),
            (200, &[TEXT, ("Content-Encoding", "gzip")], None, Some(NotCoded::CodedByOrigin)),
            (200, &[TEXT, ("Content-Encoding", "identity")], None, Some(NotCoded::CodedByOrigin)),
            (200, &[TEXT, ("Set-Cookie", "a=b")], None, Some(NotCoded::SetsCookie)),
            (200, &[TEXT, ("Set-Cookie2", "a=b")], None, Some(NotCoded::SetsCookie)),
            (200, &control("max-age=9"), None, None),
            (200, &control("max-age=9, No-Transform"), None, Some(NotCoded::NoTransform)),
            (200, &control("private=\"x\", max-age=9"), None, Some(NotCoded::Private)),
        ];
        for (status, fields, length, expected) in cases {
            let found = compression().why_never(*status, *fields, *length);
            assert_eq!(found, *expected, "{status} {fields:?} {length:?}");
        }
    }

    #[test]
    fn an_empty_body_is_never_coded() {
        let compression = Compression { least: 0, ..compression() };
        let fields = [("Content-Type", "text/css")];
        assert_eq!(compression.why_never(200, &fields[..], Some(0)), Some(NotCoded::TooSmall));
        assert_eq!(compression.why_never(200, &fields[..], Some(1)), None);
    }

    #[test]
    fn vary_names_the_request_field_in_any_case() {
        for (value, expected) in [
            ("Accept-Encoding", true),
            ("cookie, accept-encoding", true),
            ("Accept", false),
            ("", false),
        ] {
            assert_eq!(varies_by_coding(&[("Vary", value)][..]), expected, "{value}");
        }
    }

    #[test]
    fn codings_are_read_by_their_names() {
        for coding in Coding::ALL {
            assert_eq!(coding.to_string().parse(), Ok(coding));
        }
        let error = "deflate".parse::<Coding>().expect_err("not known");
        assert_eq!(error.to_string(), "\"deflate\" is not one of zstd, br, gzip");
    }
}
