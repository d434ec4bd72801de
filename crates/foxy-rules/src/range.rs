//! Range requests (RFC 9110 §14): the answer from a complete stored response, and the Range to send
//! to an origin. Ranges that overlap are merged, so that no byte is sent twice. A set of too many
//! ranges is ignored, because it may be an attack (§14.2). The module `multipart` lays out an
//! answer with several ranges.

use crate::date;
use crate::fields::Fields;
use crate::validate::strongly_equal;
use foxy_base::WallTime;

/// Largest number of ranges in a set. A larger set is ignored, because it may be an attack (RFC
/// 9110 §14.2).
const MAX_RANGES: usize = 16;

/// Largest gap in bytes between two ranges that are merged. A separate part would need a head that
/// is longer than this gap (RFC 9110 §15.3.7.2).
const MAX_MERGED_GAP_BYTES: u64 = 80;

/// Time that is passed to the date parser as `now`. A year with two digits then always counts as
/// 20YY. So Last-Modified never looks older than it is, and does not count as a strong validator by
/// mistake.
const YEAR_2100: WallTime = WallTime::from_seconds(4_102_444_800);

/// A range of a body: the bytes `first..=last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Position of the range's first byte in the body.
    pub first: u64,
    /// Position of the range's last byte in the body. Never before `first`.
    pub last: u64,
}

impl Span {
    /// Returns the number of bytes in the range.
    pub const fn length(self) -> u64 {
        (self.last - self.first).saturating_add(1)
    }
}

/// The answer to a Range header for a body of known length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeAnswer {
    /// Send 200 with the whole body: the request has no Range, or its Range is ignored.
    Whole,
    /// Send 206 with one range.
    Part(Span),
    /// Send 206 with at least two separate ranges, in this order.
    Several(Vec<Span>),
    /// Send 416, because no range is within the body.
    Unsatisfiable,
}

/// A range in a Range header, for a body whose length is not known yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSpec {
    /// A range from a first to a last byte. For a range to the end of the body, the last byte is
    /// `u64::MAX`.
    Span(Span),
    /// The last bytes of the body. Contains the number of these bytes.
    Suffix(u64),
}

impl RangeSpec {
    /// Returns the part of the range that is within a body of `length` bytes. Returns `None` if no
    /// byte of the range is within the body.
    pub fn within(self, length: u64) -> Option<Span> {
        let (first, last) = match self {
            Self::Span(Span { first, last }) => (first, last.min(length.checked_sub(1)?)),
            Self::Suffix(count) => (length - count.min(length), length.checked_sub(1)?),
        };
        (first <= last).then_some(Span { first, last })
    }
}

/// Decides on Range and If-Range of a GET, for a stored response of `length` bytes.
pub fn requested_range(
    request: &(impl Fields + ?Sized),
    stored: &(impl Fields + ?Sized),
    length: u64,
) -> RangeAnswer {
    let Some(range) = request.single("range") else { return RangeAnswer::Whole };
    if request.has("if-range") && !if_range_holds(request, stored) {
        return RangeAnswer::Whole;
    }
    let Some(set) = range_set(range) else { return RangeAnswer::Whole };
    let spans = merged(set.into_iter().filter_map(|spec| spec.within(length)).collect());
    match spans[..] {
        [] => RangeAnswer::Unsatisfiable,
        [span] => RangeAnswer::Part(span),
        _ => RangeAnswer::Several(spans),
    }
}

/// Returns whether the If-Range condition holds (RFC 9110 §13.1.5). An entity tag must match
/// strongly. A date must have the same text as the stored Last-Modified, which must be a strong
/// validator.
fn if_range_holds(request: &(impl Fields + ?Sized), stored: &(impl Fields + ?Sized)) -> bool {
    let Some(condition) = request.single("if-range") else { return false };
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        return stored.single("etag").is_some_and(|tag| strongly_equal(condition, tag));
    }
    strong_date(stored) == Some(condition)
}

/// Returns the Last-Modified of a response if it is a strong validator: at least one second before
/// Date (RFC 9110 §8.8.2.2).
pub(crate) fn strong_date(response: &(impl Fields + ?Sized)) -> Option<&[u8]> {
    let seconds = |text: &[u8]| date::parse(text, YEAR_2100).map(WallTime::seconds);
    let changed = response.single("last-modified")?;
    let sent = response.single("date").and_then(seconds)?;
    seconds(changed).is_some_and(|changed| changed < sent).then_some(changed)
}

/// Parses a Range header with the unit bytes. Returns `None` for another unit, a syntax error, or
/// more than 16 ranges.
pub fn range_set(range: &[u8]) -> Option<Vec<RangeSpec>> {
    let text = std::str::from_utf8(range).ok()?.trim();
    let (unit, set) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let members = set.split(',').map(|member| member.trim_matches([' ', '\t']));
    let mut specs = Vec::new();
    for member in members.filter(|member| !member.is_empty()) {
        if specs.len() == MAX_RANGES {
            return None;
        }
        specs.push(range_spec(member)?);
    }
    (!specs.is_empty()).then_some(specs)
}

fn range_spec(text: &str) -> Option<RangeSpec> {
    let (first, last) = text.split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    if first.is_empty() {
        return number(last).map(RangeSpec::Suffix);
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    (first <= last).then_some(RangeSpec::Span(Span { first, last }))
}

/// Merges ranges that overlap or are close. The merged ranges keep the order of the request (RFC
/// 9110 §15.3.7.2).
fn merged(spans: Vec<Span>) -> Vec<Span> {
    let mut ascending: Vec<(usize, Span)> = spans.into_iter().enumerate().collect();
    ascending.sort_by_key(|(_, span)| span.first);
    let mut apart: Vec<(usize, Span)> = Vec::new();
    for (named, span) in ascending {
        match apart.last_mut() {
            Some((first_named, last))
                if span.first <= last.last.saturating_add(1 + MAX_MERGED_GAP_BYTES) =>
            {
                last.last = last.last.max(span.last);
                *first_named = named.min(*first_named);
            }
            _ => apart.push((named, span)),
        }
    }
    apart.sort_by_key(|(named, _)| *named);
    apart.into_iter().map(|(_, span)| span).collect()
}

/// The Range header to send to an origin. Some sets of ranges are not forwarded, because an origin
/// could answer with more bytes than the object has, or with thousands of parts. See RFC 9110
/// §17.15 and the OBR attack (Li et al., "CDN Backfired", DSN 2020).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UpstreamRange {
    /// Send no Range header, and so request the whole object.
    Whole,
    /// Send a Range header with one range.
    One(RangeSpec),
    /// Send this value of a Range header, with several separate ranges.
    Several(String),
    /// Forward the client's Range header, because its unit is not bytes.
    Unknown,
}

/// Merges the ranges of a client's Range header. Requests the whole object if ranges might overlap.
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
        // The length of the object is unknown, so a suffix may overlap the other ranges.
        ([], None) | (_, Some(_)) => UpstreamRange::Whole,
        (spans, None) => {
            let texts: Vec<_> = spans.iter().map(|span| range_text(*span)).collect();
            UpstreamRange::Several(format!("bytes={}", texts.join(",")))
        }
    }
}

/// Returns the value of a Range header with one range.
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
    use RangeAnswer::{Several, Unsatisfiable, Whole};

    type Lines<'a> = &'a [(&'a str, &'a str)];
    const STORED: Lines<'static> = &[
        ("ETag", "\"a\""),
        ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Date", "Sun, 06 Nov 1994 08:49:38 GMT"),
    ];

    const fn span(first: u64, last: u64) -> Span {
        Span { first, last }
    }

    const fn part(first: u64, last: u64) -> RangeAnswer {
        RangeAnswer::Part(span(first, last))
    }

    #[test]
    fn one_range_is_cut_to_the_body() {
        let cases = [
            ("bytes=0-0", part(0, 0)),
            ("bytes=10-19", part(10, 19)),
            ("bytes=90-1000", part(90, 99)),
            ("bytes=90-", part(90, 99)),
            ("bytes=-10", part(90, 99)),
            ("bytes=-1000", part(0, 99)),
            ("bytes=0-99999999999999999999999", part(0, 99)),
            ("bytes=100-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=5-4", Whole),
            ("bytes=5-4,0-1", Whole),
            ("bytes=,", Whole),
            ("bytes=a-b", Whole),
            ("bytes=-", Whole),
            ("bytes=+1-2", Whole),
            ("lines=1-2", Whole),
        ];
        for (range, expected) in cases {
            assert_eq!(requested_range(&[("Range", range)][..], STORED, 100), expected, "{range}");
        }
        assert_eq!(requested_range(&[("Range", "bytes=0-")][..], STORED, 0), Unsatisfiable);
    }

    #[test]
    fn several_ranges_are_merged_and_keep_their_order() {
        let cases = [
            ("bytes=0-1,500-501", Several(vec![span(0, 1), span(500, 501)])),
            ("bytes=500-501,0-1", Several(vec![span(500, 501), span(0, 1)])),
            (
                "bytes=500-501,0-1,490-510,900-",
                Several(vec![span(490, 510), span(0, 1), span(900, 999)]),
            ),
            ("bytes= 0-1 ,, -1\t", Several(vec![span(0, 1), span(999, 999)])),
            ("bytes=0-1,2-3", part(0, 3)),
            ("bytes=0-1,82-83", part(0, 83)),
            ("bytes=0-1,83-84", Several(vec![span(0, 1), span(83, 84)])),
            ("bytes=0-,0-,-1000", part(0, 999)),
            ("bytes=0-1,5000-", part(0, 1)),
            ("bytes=5000-,-0", Unsatisfiable),
        ];
        for (range, expected) in cases {
            assert_eq!(requested_range(&[("Range", range)][..], STORED, 1000), expected, "{range}");
        }
    }

    #[test]
    fn a_set_of_too_many_ranges_is_ignored() {
        let set = |count: u64| {
            let members: Vec<_> =
                (0..count).map(|at| format!("{}-{}", at * 1000, at * 1000)).collect();
            format!("bytes={}", members.join(","))
        };
        let answer =
            |count| requested_range(&[("Range", set(count).as_str())][..], STORED, 1 << 40);
        assert!(matches!(answer(16), Several(spans) if spans.len() == 16));
        assert_eq!(answer(17), Whole);
        let killer = format!("bytes=0-{}", ",5-0,0-0".repeat(8000));
        assert_eq!(requested_range(&[("Range", killer.as_str())][..], STORED, 1 << 40), Whole);
    }

    #[test]
    fn if_range_needs_a_strong_match() {
        let cases = [
            ("\"a\"", part(0, 0)),
            ("\"b\"", Whole),
            ("W/\"a\"", Whole),
            ("Sun, 06 Nov 1994 08:49:37 GMT", part(0, 0)),
            ("Sun, 06 Nov 1994 08:49:38 GMT", Whole),
        ];
        for (condition, expected) in cases {
            let request: Lines<'_> = &[("Range", "bytes=0-0"), ("If-Range", condition)];
            assert_eq!(requested_range(request, STORED, 100), expected, "{condition}");
        }
    }

    #[test]
    fn a_date_as_young_as_the_response_could_stand_for_two_states() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let request: Lines<'_> = &[("Range", "bytes=0-0"), ("If-Range", date)];
        for stored in [&[("Last-Modified", date), ("Date", date)][..], &[("Last-Modified", date)]] {
            assert_eq!(requested_range(request, stored, 100), Whole, "{stored:?}");
        }
    }

    #[test]
    fn no_byte_is_asked_for_twice() {
        let span = |first, last| UpstreamRange::One(RangeSpec::Span(Span { first, last }));
        let cases = [
            ("bytes=0-9", span(0, 9)),
            ("bytes=5-", span(5, u64::MAX)),
            ("bytes=-5", UpstreamRange::One(RangeSpec::Suffix(5))),
            ("bytes=-5,-7", UpstreamRange::One(RangeSpec::Suffix(7))),
            ("bytes=0-,0-,0-", span(0, u64::MAX)),
            ("bytes=0-9,5-20,21-", span(0, u64::MAX)),
            ("bytes=1000-,0-9", UpstreamRange::Several("bytes=1000-,0-9".into())),
            ("bytes=0-9, 1000-1001,5-20", UpstreamRange::Several("bytes=0-20,1000-1001".into())),
            ("bytes=0-0,-1", UpstreamRange::Whole),
            ("bytes=9-5", UpstreamRange::Whole),
            ("bytes=", UpstreamRange::Whole),
            ("pages=1-2", UpstreamRange::Unknown),
        ];
        for (range, expected) in cases {
            assert_eq!(upstream_range(range.as_bytes()), expected, "{range}");
        }
        assert_eq!(
            upstream_range(format!("bytes=0-{}", ",0-".repeat(5000)).as_bytes()),
            UpstreamRange::Whole
        );
    }

    #[test]
    fn one_range_is_written_as_it_is_read() {
        for text in ["bytes=0-9", "bytes=5-", "bytes=-5"] {
            let UpstreamRange::One(spec) = upstream_range(text.as_bytes()) else {
                panic!("{text}")
            };
            assert_eq!(range_value(spec), text);
        }
    }
}
