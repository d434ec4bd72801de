//! Compares the header fields of a proxy's answer with the fields of the reference, the answer that
//! counts as correct. Ignores fields that may differ, and fields that the server itself changes in
//! every answer.

use crate::leap::exchange::body::codings;
use foxy_http::Headers;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use xxhash_rust::xxh3::xxh3_64;

/// Fields that may differ between the origin's answer and a proxy's copy of it, in lower case, with
/// the reason.
pub const MAY_DIFFER: &[(&str, &str)] = &[
    ("date", "may be the proxy's own clock (RFC 9110 §6.6.1)"),
    ("age", "time in the cache (RFC 9111 §5.1)"),
    ("via", "names of the proxies (RFC 9110 §7.6.3)"),
    ("cache-status", "result of the look-up (RFC 9211)"),
    ("x-cache", "result of the look-up"),
    ("x-cache-lookup", "result of the look-up"),
    ("x-varnish", "result of the look-up"),
    ("server", "reverse proxies put their own name"),
    ("warning", "caches add it (RFC 7234 §5.5)"),
    ("accept-ranges", "a cache may cut ranges itself"),
    ("connection", "one hop only (RFC 9110 §7.6.1)"),
    ("keep-alive", "one hop only"),
    ("proxy-connection", "one hop only"),
    ("transfer-encoding", "framing; the body is compared without it (R111)"),
    ("content-length", "framing; the body itself is compared"),
    (
        "content-encoding",
        "decoded before bodies are compared (R111); a coding that cannot be decoded is compared \
         with the body",
    ),
    ("trailer", "framing"),
    ("upgrade", "one hop only"),
    ("x-foxy-request", "in a stored answer, the number of another request"),
];

/// Fields that control caches and clients, in lower case. A proxy must not add or change such a
/// field. A change always counts, even if the server itself varies the field.
pub const STEERING: &[&str] = &[
    "access-control-allow-origin",
    "alt-svc",
    "cache-control",
    "cdn-cache-control",
    "clear-site-data",
    "content-disposition",
    "content-language",
    "content-location",
    "content-range",
    "content-type",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "pragma",
    "refresh",
    "set-cookie",
    "strict-transport-security",
    "surrogate-control",
    "vary",
    "www-authenticate",
];

/// Fields whose values depend on the time of the request, in lower case. An answer must have such a
/// field if the reference has it. The value may differ.
pub const MAY_CHANGE: &[&str] = &["expires"];

/// The kind of server that gave the reference, the answer that counts as correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceSource {
    /// The reference is the origin's answer. A field that the origin varies by itself does not
    /// count. A proxy must not make the origin's weak `ETag` strong.
    Origin,
    /// A proxy, because no copy goes straight to the origin. Most proxies gave the same answer as
    /// this proxy. The proxy may have made a strong `ETag` of the origin weak.
    Proxy,
}

/// A difference between the fields of an answer and of the reference, the answer that counts as
/// correct. The name of the field is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The reference answer has the field, and the judged answer lacks it.
    Missing(String),
    /// The judged answer has the field, and the reference answer lacks it.
    Added(String),
    /// The values differ.
    Changed(String),
}

impl Difference {
    fn name(&self) -> &str {
        match self {
            Self::Missing(name) | Self::Added(name) | Self::Changed(name) => name,
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(name) => write!(f, "{name} is missing"),
            Self::Added(name) => write!(f, "{name} was added"),
            Self::Changed(name) => write!(f, "{name} has another value"),
        }
    }
}

fn is_one_of(name: &str, mut known: impl Iterator<Item = &'static str>) -> bool {
    known.any(|known| known.eq_ignore_ascii_case(name))
}

fn may_differ(name: &str) -> bool {
    is_one_of(name, MAY_DIFFER.iter().map(|(known, _)| *known))
}

fn steers(name: &str) -> bool {
    is_one_of(name, STEERING.iter().copied())
}

fn names(headers: &Headers) -> BTreeSet<String> {
    headers.iter().map(|(name, _)| name.to_ascii_lowercase()).collect()
}

/// Returns all values of a field, joined by commas (RFC 9110 §5.3).
fn value<'a>(headers: &'a Headers, name: &'a str) -> Cow<'a, [u8]> {
    let mut values = headers.get_all(name);
    let first = values.next().unwrap_or_default();
    let rest: Vec<&[u8]> = values.collect();
    if !rest.is_empty() {
        return Cow::Owned([&[first][..], &rest].concat().join(&b", "[..]));
    }
    // A proxy that transforms a body makes a strong `ETag` weak. This is allowed, because LEAP also
    // compares the bodies. So the weakness mark is left out.
    let weak = first.strip_prefix(b"W/").filter(|_| name.eq_ignore_ascii_case("etag"));
    Cow::Borrowed(weak.unwrap_or(first))
}

/// Whether the value is a weak `ETag`. A proxy that transforms a body may make a strong tag weak,
/// but not a weak tag strong (RFC 9110 §8.8.1). The origin itself may send a weak tag with its
/// coded body and a strong tag with its plain body.
fn is_weak(headers: &Headers, name: &str) -> bool {
    headers.get(name).is_some_and(|tag| tag.starts_with(b"W/"))
}

/// Returns the first difference that matters, in the order of field names. Values of fields for
/// which `ignored` returns true may differ; a missing or added field still counts. The comparison
/// of equal fields allocates no memory.
pub fn difference(
    reference: &Headers,
    source: ReferenceSource,
    answer: &Headers,
    ignored: &dyn Fn(&str) -> bool,
) -> Option<Difference> {
    let matters = |name: &str| {
        let name = name.to_ascii_lowercase();
        (!may_differ(&name)).then_some(name)
    };
    let lost = reference.iter().filter_map(|(name, _)| {
        if !answer.contains(name) {
            return Some(Difference::Missing(matters(name)?));
        }
        let stronger = name.eq_ignore_ascii_case("etag")
            && is_weak(reference, name)
            && !is_weak(answer, name)
            && source == ReferenceSource::Origin
            && codings(reference).eq(codings(answer));
        let same = value(reference, name) == value(answer, name) && !stronger;
        if same || is_one_of(name, MAY_CHANGE.iter().copied()) {
            return None;
        }
        matters(name).filter(|name| !ignored(name)).map(Difference::Changed)
    });
    let lost = lost.min_by(|one, other| one.name().cmp(other.name()));
    let added = answer.iter().filter(|(name, _)| steers(name) && !reference.contains(name));
    lost.or_else(|| added.filter_map(|(name, _)| matters(name)).min().map(Difference::Added))
}

/// Fields of a 200 answer that a 304 answer must repeat (RFC 9110 §15.4.5). A cache may omit other
/// fields from its own 304.
const CONFIRMING: [&str; 5] = ["cache-control", "content-location", "etag", "expires", "vary"];
/// Fields that a 304 answer may repeat or omit.
const CONFIRMED: [&str; 4] =
    ["content-disposition", "content-language", "content-type", "last-modified"];

/// Returns the fields that must be equal in two 304 answers: first the fields of the reference
/// answer, then the fields of the proxy's answer.
pub fn of_304(reference: &Headers, answer: &Headers) -> (Headers, Headers) {
    let (mut own, mut expected) = (answer.clone(), reference.clone());
    expected.retain(|name, _| is_one_of(name, CONFIRMING.into_iter()) || answer.contains(name));
    own.retain(|name, _| !is_one_of(name, CONFIRMED.into_iter()) || reference.contains(name));
    (expected, own)
}

/// Fields that identify the version of a resource, in lower case (RFC 9110 §8.8).
pub const VALIDATORS: [&str; 2] = ["etag", "last-modified"];

/// Whether the validators (`ETag`, `Last-Modified`) of two answers name different versions of the
/// resource.
pub fn versions_differ(one: &Headers, other: &Headers, ignored: &dyn Fn(&str) -> bool) -> bool {
    VALIDATORS.iter().any(|name| !ignored(name) && value(one, name) != value(other, name))
}

/// Returns a digest of the validators (`ETag`, `Last-Modified`) of an answer.
pub fn version(headers: &Headers) -> u64 {
    xxh3_64(&VALIDATORS.map(|name| value(headers, name)).join(&b'\n'))
}

/// Returns the noise: fields whose values differ in two answers of one server to the same request.
/// A field that only one answer has is a fault and no noise.
pub fn noise<'a>(
    first: &'a Headers,
    second: &'a Headers,
    source: ReferenceSource,
) -> impl Iterator<Item = String> + 'a {
    names(first).into_iter().filter(move |name| {
        second.contains(name)
            && !may_differ(name)
            && (source == ReferenceSource::Origin || !steers(name))
            && value(first, name) != value(second, name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(lines: &[(&str, &str)]) -> Headers {
        lines.iter().map(|(name, value)| (*name, value.as_bytes())).collect()
    }

    fn check(reference: &[(&str, &str)], answer: &[(&str, &str)], expected: Option<&str>) {
        let found =
            difference(&headers(reference), ReferenceSource::Origin, &headers(answer), &|name| {
                name == "x-id"
            });
        assert_eq!(
            found.map(|found| found.to_string()).as_deref(),
            expected,
            "{reference:?} {answer:?}"
        );
    }

    #[test]
    fn lost_changed_and_added_steering_fields_are_the_only_differences() {
        check(
            &[("Vary", "Accept")],
            &[("vary", "Accept"), ("Age", "5"), ("X-Served-By", "7")],
            None,
        );
        check(&[("Vary", "Accept")], &[], Some("vary is missing"));
        check(&[("X-Mine", "1")], &[("X-Mine", "2")], Some("x-mine has another value"));
        check(&[], &[("Set-Cookie", "a=b")], Some("set-cookie was added"));
        check(&[("X-Id", "1")], &[("X-Id", "2")], None);
        check(&[("X-Id", "1")], &[], Some("x-id is missing"));
        check(&[("Content-Length", "5")], &[("Transfer-Encoding", "chunked")], None);
        check(&[("Expires", "1")], &[("Expires", "2")], None);
        check(&[("Expires", "1")], &[], Some("expires is missing"));
        check(&[("ETag", "\"a\"")], &[("ETag", "W/\"a\"")], None);
        check(&[("ETag", "W/\"a\"")], &[("ETag", "\"a\"")], Some("etag has another value"));
        check(&[("ETag", "W/\"a\""), ("Content-Encoding", "gzip")], &[("ETag", "\"a\"")], None);
        check(&[("Link", "a"), ("Link", "b")], &[("Link", "a, b")], None);
    }

    #[test]
    fn added_fields_with_effects_beyond_the_answer_are_steering() {
        let far = [
            "refresh",
            "clear-site-data",
            "access-control-allow-origin",
            "strict-transport-security",
        ];
        for name in
            [&far[..], &["cdn-cache-control", "surrogate-control", "pragma", "link", "alt-svc"]]
                .concat()
        {
            check(&[], &[(name, "x")], Some(&format!("{name} was added")));
        }
    }

    #[test]
    fn among_proxies_nobody_knows_whose_tag_was_weak_at_first() {
        let [weak, strong] = ["W/\"a\"", "\"a\""].map(|tag| headers(&[("ETag", tag)]));
        assert_eq!(difference(&weak, ReferenceSource::Proxy, &strong, &|_| false), None);
    }

    #[test]
    fn a_304_lacks_what_need_not_be_in_it_and_has_nothing_else_that_steers() {
        let check =
            |reference: &[(&str, &str)], answer: &[(&str, &str)], expected: Option<&str>| {
                let (reference, answer) = of_304(&headers(reference), &headers(answer));
                let found = difference(&reference, ReferenceSource::Origin, &answer, &|_| false);
                assert_eq!(
                    found.map(|found| found.to_string()).as_deref(),
                    expected,
                    "{reference:?} {answer:?}"
                );
            };
        check(
            &[("Link", "a"), ("Last-Modified", "1"), ("X-Id", "1")],
            &[("Content-Type", "a")],
            None,
        );
        check(&[("Vary", "a")], &[], Some("vary is missing"));
        check(
            &[("Last-Modified", "1")],
            &[("Last-Modified", "2")],
            Some("last-modified has another value"),
        );
        check(&[], &[("Set-Cookie", "a=b")], Some("set-cookie was added"));
    }

    #[test]
    fn noise_is_what_changes_by_itself_and_of_a_proxy_steers_nothing() {
        let first = headers(&[
            ("X-Id", "1"),
            ("ETag", "1"),
            ("Date", "1"),
            ("X-Lost", "1"),
            ("X-Same", "1"),
        ]);
        let second = headers(&[("X-Id", "2"), ("ETag", "2"), ("Date", "2"), ("X-Same", "1")]);
        let learned = |source| noise(&first, &second, source).collect::<Vec<_>>();
        assert_eq!(learned(ReferenceSource::Proxy), ["x-id"]);
        assert_eq!(learned(ReferenceSource::Origin), ["etag", "x-id"]);
    }
}
