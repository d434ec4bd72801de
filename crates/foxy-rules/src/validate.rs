//! Validation (RFC 9111 §4.3, RFC 9110 §13). Answers conditional requests from a stored response.
//! Selects the validators to send to the origin, and merges the fields of a 304 (§3.2).

use crate::date;
use crate::fields::{Fields, members};
use crate::freshness::date_of;
use foxy_base::WallTime;

/// The answer that the conditions in a client's request demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conditional {
    /// Send the whole response, because the conditions do not prevent it.
    Full,
    /// Send 304, because the client already has the response.
    NotModified,
}

/// Evaluates the conditions of a GET or HEAD for a stored 200 response (RFC 9110 §13.2.2).
/// If-None-Match decides if present, otherwise If-Modified-Since. If-Match and If-Unmodified-Since
/// are for origin servers (see [`must_reach_origin`]).
pub fn evaluate(
    request: &(impl Fields + ?Sized),
    status: u16,
    stored: &(impl Fields + ?Sized),
    received: WallTime,
) -> Conditional {
    if status != 200 {
        return Conditional::Full;
    }
    let holds = if request.has("if-none-match") {
        none_match(request, stored.single("etag"))
    } else {
        modified_since(request, stored, received)
    };
    if holds { Conditional::Full } else { Conditional::NotModified }
}

/// Returns whether the request has conditions that only the origin can decide (RFC 9110 §13.1.1,
/// §13.1.4).
pub fn must_reach_origin(request: &(impl Fields + ?Sized)) -> bool {
    request.has("if-match") || request.has("if-unmodified-since")
}

fn none_match(request: &(impl Fields + ?Sized), stored: Option<&[u8]>) -> bool {
    !tags(request.values("if-none-match"))
        .any(|tag| tag == b"*" || stored.is_some_and(|stored| weakly_equal(tag, stored)))
}

/// Returns the entity tags, and `*`, in a list (RFC 9110 §8.8.3). Unlike in quoted strings, a
/// backslash is an ordinary character. Invalid tags are returned too; they equal no tag.
fn tags<'a>(lines: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = &'a [u8]> {
    lines.flat_map(|line| {
        let mut rest = line;
        std::iter::from_fn(move || {
            let start = rest.iter().position(|byte| !b", \t".contains(byte))?;
            rest = &rest[start..];
            let quote = if rest.starts_with(b"W/") { 2 } else { 0 };
            let quoted = rest.get(quote) == Some(&b'"');
            let ends = |from: usize, end: u8| {
                rest[from..].iter().position(|&byte| byte == end).map(|at| from + at)
            };
            let end = if quoted { ends(quote + 1, b'"').map(|at| at + 1) } else { ends(0, b',') };
            let (tag, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            Some(tag.trim_ascii())
        })
    })
}

fn opaque(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

/// Compares two entity tags weakly (RFC 9110 §8.8.3.2). An invalid tag equals no tag.
fn weakly_equal(one: &[u8], other: &[u8]) -> bool {
    let (one, other) = (opaque(one), opaque(other));
    one.len() >= 2 && one.first() == Some(&b'"') && one.last() == Some(&b'"') && one == other
}

/// Compares two entity tags strongly: they must be equal, and neither may be weak.
pub(crate) fn strongly_equal(one: &[u8], other: &[u8]) -> bool {
    !one.starts_with(b"W/") && !other.starts_with(b"W/") && weakly_equal(one, other)
}

/// Returns whether the response was modified after If-Modified-Since. Ignores an invalid
/// If-Modified-Since (RFC 9110 §13.1.3). Without Last-Modified, Date counts instead (RFC 9111
/// §4.3.2).
fn modified_since(
    request: &(impl Fields + ?Sized),
    stored: &(impl Fields + ?Sized),
    received: WallTime,
) -> bool {
    let Some(since) =
        request.single("if-modified-since").and_then(|text| date::parse(text, received))
    else {
        return true;
    };
    let modified = stored.single("last-modified").and_then(|text| date::parse(text, received));
    modified.unwrap_or_else(|| date_of(stored, received)) > since
}

/// The validators of a stored response, which the cache sends to the origin (RFC 9111 §4.3.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Validators<'a> {
    /// The stored entity tag, which the cache sends in If-None-Match.
    pub etag: Option<&'a [u8]>,
    /// The stored time, which the cache sends in If-Modified-Since.
    pub last_modified: Option<&'a [u8]>,
}

impl<'a> Validators<'a> {
    /// Returns the validators of a stored response.
    pub fn of(stored: &'a (impl Fields + ?Sized)) -> Self {
        Self { etag: stored.single("etag"), last_modified: stored.single("last-modified") }
    }

    /// Returns whether the stored response has no validator, so that the origin cannot validate it.
    pub const fn is_empty(&self) -> bool {
        self.etag.is_none() && self.last_modified.is_none()
    }
}

/// Returns whether a 304 confirms the stored response (RFC 9111 §4.3.4). A strong tag in the 304
/// must match strongly, a weak tag weakly. Without tags, the texts of Last-Modified must be equal.
/// A 304 without validators confirms the response; with repeated validators it does not.
pub fn is_about(answer: &(impl Fields + ?Sized), stored: &(impl Fields + ?Sized)) -> bool {
    match (answer.single("etag"), stored.single("etag")) {
        (Some(answer), Some(stored)) if !answer.starts_with(b"W/") => {
            strongly_equal(answer, stored)
        }
        (Some(answer), Some(stored)) => weakly_equal(answer, stored),
        (Some(_), None) => false,
        (None, _) if answer.has("etag") || answer.values("last-modified").count() > 1 => false,
        (None, _) => {
            let dates = answer.single("last-modified").zip(stored.single("last-modified"));
            dates.is_none_or(|(answer, stored)| answer == stored)
        }
    }
}

/// Returns whether a field of `answer` replaces the field of the stored response (RFC 9111 §3.2).
/// The answer is a 304, or a response to HEAD that updates the stored response. Fields about the
/// connection, the framing and the stored bytes are not replaced. Vary is not replaced either,
/// because the secondary key depends on the stored Vary.
pub fn merges_into_stored(name: &str, answer: &(impl Fields + ?Sized)) -> bool {
    const KEPT: [&str; 13] = [
        "connection",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
        "proxy-authenticate",
        "proxy-authentication-info",
        "content-length",
        "content-encoding",
        "content-range",
        "vary",
    ];
    let named = members(answer.values("connection"))
        .any(|option| option.eq_ignore_ascii_case(name.as_bytes()));
    !named && !KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: WallTime = WallTime::from_seconds(1_795_219_200);
    type Lines<'a> = &'a [(&'a str, &'a str)];

    fn conditional(request: Lines<'_>) -> Conditional {
        let stored: Lines<'_> =
            &[("ETag", "\"a\""), ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT")];
        evaluate(request, 200, stored, NOW)
    }

    #[test]
    fn entity_tags_decide_before_dates() {
        let cases: [(Lines<'_>, Conditional); 12] = [
            (&[], Conditional::Full),
            (&[("If-None-Match", "\"a\"")], Conditional::NotModified),
            (&[("If-None-Match", "W/\"a\"")], Conditional::NotModified),
            (&[("If-None-Match", "\"x\", \"a\"")], Conditional::NotModified),
            (&[("If-None-Match", "*")], Conditional::NotModified),
            (&[("If-None-Match", "a")], Conditional::Full),
            (
                &[
                    ("If-None-Match", "\"b\""),
                    ("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ],
                Conditional::Full,
            ),
            (&[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT")], Conditional::NotModified),
            (&[("If-Modified-Since", "Sunday, 06-Nov-94 08:49:38 GMT")], Conditional::NotModified),
            (&[("If-Modified-Since", "Sun, 06 Nov 1994 08:49:36 GMT")], Conditional::Full),
            (&[("If-Modified-Since", "yesterday")], Conditional::Full),
            (&[("Range", "bytes=0-1")], Conditional::Full),
        ];
        for (request, expected) in cases {
            assert_eq!(conditional(request), expected, "{request:?}");
        }
    }

    #[test]
    fn tag_lists_are_split_outside_the_tags_only() {
        let lines: [&[u8]; 2] = [br#""a,b" , W/"c\","d""e", ,f"#, b"*"];
        let found: Vec<_> = tags(lines.into_iter()).collect();
        assert_eq!(found, [&br#""a,b""#[..], br#"W/"c\""#, b"\"d\"", b"\"e\"", b"f", b"*"]);
        assert_eq!(tags([&b"W/"[..], b"\"open", b""].into_iter()).count(), 2);
    }

    #[test]
    fn only_a_stored_200_answers_conditions() {
        let request: Lines<'_> = &[("If-None-Match", "*")];
        assert_eq!(evaluate(request, 404, &[][..] as Lines<'_>, NOW), Conditional::Full);
    }

    #[test]
    fn a_304_must_be_about_what_is_stored() {
        let cases: [(Lines<'_>, Lines<'_>, bool); 8] = [
            (&[("ETag", "\"a\""), ("ETag", "\"a\"")], &[("ETag", "\"a\"")], false),
            (&[("Last-Modified", "x"), ("Last-Modified", "y")], &[("Last-Modified", "x")], false),
            (&[("ETag", "\"a\"")], &[("ETag", "\"a\"")], true),
            (&[("ETag", "\"b\"")], &[("ETag", "\"a\"")], false),
            (&[("ETag", "W/\"a\"")], &[("ETag", "W/\"a\"")], true),
            (&[("ETag", "\"a\"")], &[("ETag", "W/\"a\"")], false),
            (&[("Last-Modified", "x")], &[("Last-Modified", "y")], false),
            (&[], &[("ETag", "\"a\"")], true),
        ];
        for (answer, stored, expected) in cases {
            assert_eq!(is_about(answer, stored), expected, "{answer:?} {stored:?}");
        }
    }

    #[test]
    fn connection_framing_and_content_fields_stay_as_stored() {
        let answer: Lines<'_> = &[("Connection", "X-Hop")];
        for kept in
            ["x-hop", "Content-Length", "transfer-encoding", "Content-Encoding", "connection"]
        {
            assert!(!merges_into_stored(kept, answer), "{kept}");
        }
        for replaced in ["Cache-Control", "Content-Type", "ETag", "Expires", "X-Other", "Date"] {
            assert!(merges_into_stored(replaced, answer), "{replaced}");
        }
    }
}
