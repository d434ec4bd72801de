//! Recognises answers that a correct cache may give although the origin answers differently. The
//! cause is a condition, a range or `only-if-cached` in the request. An origin may ignore
//! conditions and ranges (RFC 9110 §13.1, §14.2), and `only-if-cached` concerns only caches (RFC
//! 9111 §5.2.1.7).

use crate::leap::exchange::body;
use crate::leap::{Answer, Message};
use foxy_http::{Headers, Method};
use std::time::SystemTime;

/// Whether a correct cache may give `answer` although the reference `right` has another status or
/// body.
pub fn may_differ(asked: &Message, right: &Answer, answer: &Answer) -> bool {
    match (right.status, answer.status) {
        (504, _) | (_, 504) => asked.fields.has_token("cache-control", "only-if-cached"),
        (200 | 206, 304) => may_confirm(asked, right),
        (304, 200) => is_conditional(asked) && are_one_version(right, answer),
        (200, 206) => is_asked_for(asked, answer) && is_part_of(answer, right),
        (304, 206) => is_conditional(asked) && is_asked_for(asked, answer),
        (206, 200) => !ranges(asked).is_empty() && is_part_of(right, answer),
        (416, 200) => asked.method == Method::Get && asked.fields.contains("range"),
        (200, 416) => is_unsatisfiable(asked, right),
        // RFC 9110 does not fix the format of multipart bodies. So two answers with several ranges
        // cannot be compared.
        (206, 206) => ranges(asked).len() > 1,
        _ => false,
    }
}

fn date(headers: &Headers, name: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(headers.get_str(name)?).ok()
}

/// Returns an `ETag` without the mark `W/`, for weak comparison (RFC 9110 §8.8.3.2).
fn bare(tag: &[u8]) -> &[u8] {
    tag.strip_prefix(b"W/").unwrap_or(tag)
}

fn is_conditional(asked: &Message) -> bool {
    let has = |name| asked.fields.contains(name);
    matches!(asked.method, Method::Get | Method::Head)
        && (has("if-none-match") || has("if-modified-since"))
}

fn are_one_version(one: &Answer, other: &Answer) -> bool {
    ["etag", "last-modified"].iter().all(|name| {
        match (one.headers.get(name), other.headers.get(name)) {
            (Some(one), Some(other)) => bare(one) == bare(other),
            _ => true,
        }
    })
}

/// Whether a cache may answer the conditional request with 304. A condition must match the tag or
/// the date of the reference (the answer that counts as correct). Some caches compare only the
/// date.
fn may_confirm(asked: &Message, right: &Answer) -> bool {
    let tag = right.headers.get("etag").map(bare);
    let named =
        asked.fields.tokens("if-none-match").any(|named| named == b"*" || Some(bare(named)) == tag);
    let since = date(&asked.fields, "if-modified-since");
    let unchanged = since
        .is_some_and(|since| date(&right.headers, "last-modified").is_none_or(|at| at <= since));
    is_conditional(asked) && (named || unchanged)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    From(u64, Option<u64>),
    Last(u64),
}

/// Returns the byte ranges that the request asks for. Returns an empty list if it has no valid
/// range.
fn ranges(asked: &Message) -> Vec<Range> {
    let text = asked.fields.get_str("range").filter(|_| asked.method == Method::Get);
    let Some((unit, set)) = text.and_then(|text| text.split_once('=')) else { return Vec::new() };
    let range = |text: &str| {
        let (first, last) = text.trim().split_once('-')?;
        let found = match (first, last) {
            ("", last) => Range::Last(last.parse().ok()?),
            (first, "") => Range::From(first.parse().ok()?, None),
            (first, last) => Range::From(first.parse().ok()?, Some(last.parse().ok()?)),
        };
        (!matches!(found, Range::From(first, Some(last)) if last < first)).then_some(found)
    };
    let all: Option<Vec<Range>> =
        set.split(',').filter(|text| !text.trim().is_empty()).map(range).collect();
    all.filter(|_| unit.trim().eq_ignore_ascii_case("bytes")).unwrap_or_default()
}

/// Returns the first byte, last byte and total length from the `Content-Range` field of a 206.
fn content_range(answer: &Answer) -> Option<(u64, u64, Option<u64>)> {
    let (part, whole) =
        answer.headers.get_str("content-range")?.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = part.split_once('-')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    let whole = if whole == "*" { None } else { Some(whole.parse().ok()?) };
    (first <= last && whole.is_none_or(|whole| last < whole)).then_some((first, last, whole))
}

/// Whether a 206 contains a range that the request asks for, and as many bytes as it declares. A
/// multipart body names its ranges inside the body. So this code does not check them.
fn is_asked_for(asked: &Message, part: &Answer) -> bool {
    let ranges = ranges(asked);
    let Some((first, last, whole)) = content_range(part) else { return ranges.len() > 1 };
    let length = last - first + 1;
    let within = match ranges[..] {
        [] => false,
        [Range::From(from, to)] => from <= first && to.is_none_or(|to| last <= to),
        [Range::Last(count)] => length <= count && whole.is_none_or(|whole| last + 1 == whole),
        _ => true,
    };
    within && part.length == length
}

/// Whether a 206 can be a part of this whole answer. The total lengths must be equal. If the 206
/// covers the whole body, the bytes must be equal too.
fn is_part_of(part: &Answer, whole: &Answer) -> bool {
    let plain = |answer: &Answer| body::codings(&answer.headers).next().is_none();
    let Some((_, _, said)) = content_range(part) else { return true };
    if !are_one_version(part, whole) || !plain(part) || !plain(whole) {
        return true;
    }
    said.is_none_or(|said| said == whole.length)
        && (part.length != whole.length || part.digest == whole.digest)
}

fn is_unsatisfiable(asked: &Message, right: &Answer) -> bool {
    let beyond = |range: &Range| match *range {
        Range::From(first, _) => first >= right.length,
        Range::Last(count) => count == 0 || right.length == 0,
    };
    let ranges = ranges(asked);
    !ranges.is_empty() && ranges.iter().all(beyond)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leap::tests::answer;

    const BODY: &[u8] = b"0123456789";
    const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const NEW: &str = "Mon, 07 Nov 1994 08:49:37 GMT";

    type Fields<'a> = &'a [(&'a str, &'a str)];

    /// Whether a cache may answer a GET with `status` and `body`, if the origin answers 200 with
    /// [`BODY`].
    fn may(field: (&str, &str), status: u16, body: &[u8], fields: Fields<'_>) -> bool {
        let right = answer(200, BODY, &[("ETag", "\"a\""), ("Last-Modified", NEW)]);
        may_differ(&with(Method::Get, field), &right, &answer(status, body, fields))
    }

    fn with(method: Method, (name, value): (&str, &str)) -> Message {
        Message {
            method,
            fields: [(name, value.as_bytes())].into_iter().collect(),
            ..Message::default()
        }
    }

    #[test]
    fn a_cache_may_confirm_what_its_client_has_unless_the_reference_is_another() {
        for (name, value, expected) in [
            ("If-None-Match", "\"x, y\", W/\"a\"", true),
            ("If-None-Match", "*", true),
            ("If-None-Match", "\"b\"", false),
            ("If-Modified-Since", NEW, true),
            ("If-Modified-Since", OLD, false),
            ("If-Modified-Since", "yesterday", false),
            ("If-Match", "\"a\"", false),
            ("Accept", "*/*", false),
        ] {
            assert_eq!(may((name, value), 304, b"", &[]), expected, "{name}: {value}");
        }
        let (get, post) = [Method::Get, Method::Post]
            .map(|method| with(method, ("If-None-Match", "\"a\"")))
            .into();
        let (right, confirmed) =
            (answer(200, BODY, &[("ETag", "\"a\"")]), answer(304, b"", &[("ETag", "W/\"a\"")]));
        assert!(!may_differ(&post, &right, &confirmed));
        // Here the origin answers 304, and the cache ignores the condition.
        assert!(may_differ(&get, &confirmed, &right));
        assert!(!may_differ(&get, &confirmed, &answer(200, BODY, &[("ETag", "\"b\"")])));
    }

    #[test]
    fn a_cache_may_cut_a_range_unless_it_is_not_the_one_that_was_asked_for() {
        for (range, body, said, expected) in [
            ("bytes=2-4", &BODY[2..5], "bytes 2-4/10", true),
            ("bytes=2-4", &BODY[2..5], "bytes 2-4/*", true),
            ("bytes=2-", &BODY[2..], "bytes 2-9/10", true),
            ("bytes=-3", &BODY[7..], "bytes 7-9/10", true),
            ("bytes=0-", BODY, "bytes 0-9/10", true),
            ("bytes=0-", b"012345678x", "bytes 0-9/10", false),
            ("bytes=2-4", &BODY[1..5], "bytes 1-4/10", false),
            ("bytes=2-4", &BODY[2..6], "bytes 2-4/10", false),
            ("bytes=2-4", &BODY[2..5], "bytes 2-4/11", false),
            ("bytes=-3", &BODY[5..8], "bytes 5-7/10", false),
            ("bytes=4-2", &BODY[2..5], "bytes 2-4/10", false),
            ("lines=2-4", &BODY[2..5], "bytes 2-4/10", false),
            ("bytes=2-4", &BODY[2..5], "", false),
            ("bytes=0-1,8-9", b"--parts--", "", true),
        ] {
            let fields = [("Content-Range", said)];
            let found = may(("Range", range), 206, body, &fields[..usize::from(!said.is_empty())]);
            assert_eq!(found, expected, "{range}: {said}");
        }
        assert!(!may(("Accept", "*/*"), 206, &BODY[2..5], &[("Content-Range", "bytes 2-4/10")]));
        assert!(
            may(("Range", "bytes=10-"), 416, b"", &[])
                && !may(("Range", "bytes=9-"), 416, b"", &[])
        );
        // Here the origin sends only the range, and the cache sends the whole body.
        let (asked, part) = (
            with(Method::Get, ("Range", "bytes=2-4")),
            answer(206, &BODY[2..5], &[("Content-Range", "bytes 2-4/10")]),
        );
        assert!(may_differ(&asked, &part, &answer(200, BODY, &[])));
        assert!(!may_differ(&asked, &part, &answer(200, b"012345678", &[])));
    }

    #[test]
    fn a_cache_may_have_nothing_for_who_wants_it_from_a_cache_only() {
        assert!(may(("Cache-Control", "max-stale, Only-If-Cached"), 504, b"", &[]));
        assert!(!may(("Cache-Control", "no-cache"), 504, b"", &[]));
        assert!(!may(("Cache-Control", "only-if-cached"), 502, b"", &[]));
    }
}
