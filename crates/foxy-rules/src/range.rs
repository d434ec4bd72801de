//! Range requests (RFC 9110 §14) against a complete stored response. One range is answered; several, or what cannot be
//! read, are answered with the whole, as §14.2 allows, which also leaves overlapping-range abuse without a lever.

use crate::date;
use crate::fields::Fields;
use crate::validate::strongly_equal;
use foxy_base::WallTime;

/// The year 2100: dates with two-digit years read as this century's, so that none looks older than it is.
const FAR: WallTime = WallTime::from_seconds(4_102_444_800);

/// What a Range asks of a body of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeAnswer {
    /// No range, or one to be ignored: 200 with everything.
    Whole,
    /// 206 with the bytes `first..=last`.
    Part {
        /// First byte.
        first: u64,
        /// Last byte.
        last: u64,
    },
    /// 416.
    Unsatisfiable,
}

/// Reads Range and If-Range of a GET against a stored response of `length` bytes.
#[must_use]
pub fn requested_range(
    request: &(impl Fields + ?Sized),
    stored: &(impl Fields + ?Sized),
    length: u64,
) -> RangeAnswer {
    let Some(range) = request.single("range") else { return RangeAnswer::Whole };
    if request.has("if-range") && !if_range_holds(request, stored) {
        return RangeAnswer::Whole;
    }
    parse(range, length).unwrap_or(RangeAnswer::Whole)
}

/// If-Range (§13.1.5): a strong match of the tag, or the very text of a Last-Modified that is a strong validator: at
/// least a second before the response's Date (§8.8.2.2).
fn if_range_holds(request: &(impl Fields + ?Sized), stored: &(impl Fields + ?Sized)) -> bool {
    let Some(condition) = request.single("if-range") else { return false };
    if condition.starts_with(b"\"") || condition.starts_with(b"W/") {
        return stored.single("etag").is_some_and(|tag| strongly_equal(condition, tag));
    }
    let seconds = |text: &[u8]| date::parse(text, FAR).map(WallTime::seconds);
    let dates = stored.single("last-modified").and_then(seconds).zip(stored.single("date").and_then(seconds));
    stored.single("last-modified") == Some(condition) && dates.is_some_and(|(changed, sent)| changed < sent)
}

fn parse(range: &[u8], length: u64) -> Option<RangeAnswer> {
    let text = std::str::from_utf8(range).ok()?.trim();
    let (unit, set) = text.split_once('=')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (first, last) = set.trim().split_once('-')?;
    let number = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().unwrap_or(u64::MAX))
    };
    if first.is_empty() {
        let suffix = number(last)?;
        return Some(match suffix.min(length) {
            0 => RangeAnswer::Unsatisfiable,
            count => RangeAnswer::Part { first: length - count, last: length - 1 },
        });
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    if last < first {
        return None;
    }
    Some(if first >= length {
        RangeAnswer::Unsatisfiable
    } else {
        RangeAnswer::Part { first, last: last.min(length - 1) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use RangeAnswer::{Part, Unsatisfiable, Whole};

    type Lines<'a> = &'a [(&'a str, &'a str)];
    const STORED: Lines<'static> = &[
        ("ETag", "\"a\""),
        ("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("Date", "Sun, 06 Nov 1994 08:49:38 GMT"),
    ];

    #[test]
    fn one_range_is_cut_to_the_body() {
        let cases = [
            ("bytes=0-0", Part { first: 0, last: 0 }),
            ("bytes=10-19", Part { first: 10, last: 19 }),
            ("bytes=90-1000", Part { first: 90, last: 99 }),
            ("bytes=90-", Part { first: 90, last: 99 }),
            ("bytes=-10", Part { first: 90, last: 99 }),
            ("bytes=-1000", Part { first: 0, last: 99 }),
            ("bytes=0-99999999999999999999999", Part { first: 0, last: 99 }),
            ("bytes=100-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=5-4", Whole),
            ("bytes=0-1,3-4", Whole),
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
    fn if_range_needs_a_strong_match() {
        let cases = [
            ("\"a\"", Part { first: 0, last: 0 }),
            ("\"b\"", Whole),
            ("W/\"a\"", Whole),
            ("Sun, 06 Nov 1994 08:49:37 GMT", Part { first: 0, last: 0 }),
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
}
