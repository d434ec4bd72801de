//! What of a client's Range goes to an origin when the cache cannot answer it. A set that an origin
//! would answer with more bytes than the object has, or with thousands of parts, never goes on (RFC
//! 9110 §17.15; the OBR attack of Li et al., "CDN Backfired", DSN 2020): merged it asks for no byte
//! twice, and where that cannot be known the whole is asked for, which costs an origin no more than
//! it costs the client.

use crate::range::{RangeSpec, Span, merged, range_set};

/// What to ask an origin for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamRange {
    /// The whole, without a Range.
    Whole,
    /// One range.
    One(RangeSpec),
    /// Several that do not touch, as the value of a Range.
    Several(String),
    /// A unit that only the origin may know: as the client sent it.
    Unknown,
}

/// Decides about the value of a client's Range.
pub fn upstream_range(range: &[u8]) -> UpstreamRange {
    let bytes =
        range.trim_ascii().get(..6).is_some_and(|unit| unit.eq_ignore_ascii_case(b"bytes="));
    if !bytes {
        return UpstreamRange::Unknown;
    }
    let Some(set) = range_set(range) else { return UpstreamRange::Whole };
    let (mut spans, mut suffix) = (Vec::new(), None);
    for spec in &set {
        match *spec {
            RangeSpec::Span(span) => spans.push(span),
            RangeSpec::Suffix(count) => suffix = suffix.max(Some(count)),
        }
    }
    match (&merged(spans)[..], suffix) {
        ([], Some(count)) => UpstreamRange::One(RangeSpec::Suffix(count)),
        ([span], None) => UpstreamRange::One(RangeSpec::Span(*span)),
        // Whether the last bytes are among the others only the object's length says.
        ([], None) | (_, Some(_)) => UpstreamRange::Whole,
        (spans, None) => UpstreamRange::Several(value(spans)),
    }
}

fn value(spans: &[Span]) -> String {
    let texts: Vec<_> = spans.iter().map(|span| range_text(*span)).collect();
    format!("bytes={}", texts.join(","))
}

/// The value of a Range for one range.
pub fn range_value(spec: RangeSpec) -> String {
    match spec {
        RangeSpec::Span(span) => format!("bytes={}", range_text(span)),
        RangeSpec::Suffix(count) => format!("bytes=-{count}"),
    }
}

fn range_text(Span { first, last }: Span) -> String {
    if last == u64::MAX { format!("{first}-") } else { format!("{first}-{last}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use UpstreamRange::{One, Several, Unknown, Whole};

    #[test]
    fn no_byte_is_asked_for_twice() {
        let span = |first, last| One(RangeSpec::Span(Span { first, last }));
        let cases = [
            ("bytes=0-9", span(0, 9)),
            ("bytes=5-", span(5, u64::MAX)),
            ("bytes=-5", One(RangeSpec::Suffix(5))),
            ("bytes=-5,-7", One(RangeSpec::Suffix(7))),
            ("bytes=0-,0-,0-", span(0, u64::MAX)),
            ("bytes=0-9,5-20,21-", span(0, u64::MAX)),
            ("bytes=1000-,0-9", Several("bytes=1000-,0-9".into())),
            ("bytes=0-9, 1000-1001,5-20", Several("bytes=0-20,1000-1001".into())),
            ("bytes=0-0,-1", Whole),
            ("bytes=9-5", Whole),
            ("bytes=", Whole),
            ("pages=1-2", Unknown),
        ];
        for (range, expected) in cases {
            assert_eq!(upstream_range(range.as_bytes()), expected, "{range}");
        }
        assert_eq!(upstream_range(format!("bytes=0-{}", ",0-".repeat(5000)).as_bytes()), Whole);
    }

    #[test]
    fn one_range_is_written_as_it_is_read() {
        for text in ["bytes=0-9", "bytes=5-", "bytes=-5"] {
            let One(spec) = upstream_range(text.as_bytes()) else { panic!("{text}") };
            assert_eq!(range_value(spec), text);
        }
    }
}
