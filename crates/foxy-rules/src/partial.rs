//! Partial content (RFC 9110 §14.4, RFC 9111 §3.4): which bytes a 206 contains, and which parts can
//! be combined. Also decides whether the origin's answer to a request for a slice (a part at a
//! fixed position of an object) can be used.

use crate::fields::Fields;
use crate::range::{Span, strong_date};

/// A part of a body whose complete length is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Position of the part's first byte in the complete body.
    pub first: u64,
    /// Position of the part's last byte in the complete body.
    pub last: u64,
    /// Length of the complete body in bytes.
    pub complete: u64,
}

impl Part {
    /// Parses the Content-Range of a 206. Returns `None` if the field is invalid, repeated or
    /// missing (as in `multipart/byteranges`), or does not give the complete length.
    pub fn of(response: &(impl Fields + ?Sized)) -> Option<Self> {
        let text = std::str::from_utf8(response.single("content-range")?).ok()?.trim();
        let (unit, rest) = text.split_once(' ')?;
        let (range, complete) = rest.split_once('/')?;
        let (first, last) = range.split_once('-')?;
        let number = |text: &str| {
            let digits = text.bytes().all(|byte| byte.is_ascii_digit());
            digits.then(|| text.parse::<u64>().ok()).flatten()
        };
        let part = Self { first: number(first)?, last: number(last)?, complete: number(complete)? };
        let sound = part.first <= part.last && part.last < part.complete;
        (unit.eq_ignore_ascii_case("bytes") && sound).then_some(part)
    }

    /// Returns the number of bytes in the part.
    pub const fn length(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns whether the part contains the bytes `first..=last`.
    pub const fn holds(self, first: u64, last: u64) -> bool {
        self.first <= first && first <= last && last <= self.last
    }

    /// Returns whether the part is the complete body.
    pub const fn is_whole(self) -> bool {
        self.length() == self.complete
    }

    /// Returns the union of two parts. Returns `None` if they do not touch or their complete
    /// lengths differ.
    pub fn joined(self, other: Self) -> Option<Self> {
        let touch = self.first <= other.last.saturating_add(1)
            && other.first <= self.last.saturating_add(1);
        (touch && self.complete == other.complete).then(|| Self {
            first: self.first.min(other.first),
            last: self.last.max(other.last),
            complete: self.complete,
        })
    }
}

/// Returns whether two responses have the same strong validator. If so, their parts may be combined
/// (RFC 9111 §3.4).
pub fn are_of_one(one: &(impl Fields + ?Sized), other: &(impl Fields + ?Sized)) -> bool {
    strong_validator(one).is_some_and(|validator| strong_validator(other) == Some(validator))
}

/// Returns the slice that contains the byte at `at`. Slices have `size` bytes and start at
/// multiples of `size`.
pub const fn slice_of(at: u64, size: u64) -> Span {
    let first = at / size * size;
    Span { first, last: first.saturating_add(size - 1) }
}

/// Returns the strong entity tag of a response. Without a tag, returns its Last-Modified if that is
/// a strong validator (RFC 9110 §13.1.5). Returns `None` for a weak tag.
pub fn strong_validator(response: &(impl Fields + ?Sized)) -> Option<&[u8]> {
    match response.single("etag") {
        Some(tag) => {
            (tag.starts_with(b"\"") && tag.ends_with(b"\"") && tag.len() > 1).then_some(tag)
        }
        None if response.has("etag") => None,
        None => strong_date(response),
    }
}

/// The result of checking an origin's answer to a request for one slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAnswer {
    /// The answer is the requested slice, which may be shorter at the end of the object.
    Slice(Part),
    /// The object has changed: the slice belongs to a different version than the slices fetched
    /// before.
    Changed,
    /// The object ends before the requested slice.
    Unsatisfiable,
    /// The answer has a status other than 206 and 416. It is the whole object, a redirect or an
    /// error, for example.
    Other,
    /// The answer is a 206 that does not contain the requested slice.
    Unusable(UnusableSlice),
}

/// The reason why a 206 cannot be used as a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableSlice {
    /// The Content-Range is missing, or [`Part::of`] cannot parse it.
    NoContentRange,
    /// The 206 contains other bytes than the request asked for.
    OtherRange,
    /// The Content-Length of the 206 contradicts its Content-Range.
    OtherLength,
}

/// Checks an origin's answer to a request for the range `asked`. `length` is the answer's
/// Content-Length, if present. `known` has the fields and the complete length of the slices fetched
/// before.
pub fn slice_answer<K: Fields + ?Sized>(
    asked: Span,
    status: u16,
    response: &(impl Fields + ?Sized),
    length: Option<u64>,
    known: Option<(&K, u64)>,
) -> SliceAnswer {
    match (status, known) {
        (206, _) => {}
        (416, None) => return SliceAnswer::Unsatisfiable,
        (416, Some(_)) => return SliceAnswer::Changed,
        _ => return SliceAnswer::Other,
    }
    let Some(part) = Part::of(response) else {
        return SliceAnswer::Unusable(UnusableSlice::NoContentRange);
    };
    if part.first != asked.first || part.last != asked.last.min(part.complete - 1) {
        return SliceAnswer::Unusable(UnusableSlice::OtherRange);
    }
    if length.is_some_and(|length| length != part.length()) {
        return SliceAnswer::Unusable(UnusableSlice::OtherLength);
    }
    let same = known
        .is_none_or(|(fields, complete)| complete == part.complete && are_of_one(response, fields));
    if same { SliceAnswer::Slice(part) } else { SliceAnswer::Changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn part(first: u64, last: u64, complete: u64) -> Part {
        Part { first, last, complete }
    }

    #[test]
    fn content_range_is_read_or_not_believed() {
        let of = |text: &str| Part::of(&[("Content-Range", text)][..]);
        assert_eq!(of("bytes 4-9/10"), Some(part(4, 9, 10)));
        assert_eq!(of(" BYTES 0-0/1 "), Some(part(0, 0, 1)));
        for text in [
            "",
            "bytes",
            "bytes */10",
            "bytes 4-9/*",
            "bytes 4-10/10",
            "bytes 9-4/10",
            "bytes -9/10",
            "bytes 4-/10",
            "bytes +4-9/10",
            "items 4-9/10",
            "bytes=4-9/10",
            "bytes 4-9/99999999999999999999",
        ] {
            assert_eq!(of(text), None, "{text:?}");
        }
        assert_eq!(
            Part::of(&[("Content-Range", "bytes 0-1/4"), ("Content-Range", "bytes 2-3/4")][..]),
            None
        );
    }

    #[test]
    fn parts_that_touch_are_one() {
        let cases = [
            (part(0, 4, 10), part(5, 9, 10), Some(part(0, 9, 10))),
            (part(5, 9, 10), part(0, 4, 10), Some(part(0, 9, 10))),
            (part(0, 6, 10), part(3, 9, 10), Some(part(0, 9, 10))),
            (part(0, 9, 10), part(3, 4, 10), Some(part(0, 9, 10))),
            (part(0, 3, 10), part(5, 9, 10), None),
            (part(0, 4, 10), part(5, 9, 11), None),
        ];
        for (one, other, expected) in cases {
            assert_eq!(one.joined(other), expected, "{one:?} {other:?}");
        }
        assert!(
            part(0, 9, 10).is_whole() && !part(1, 9, 10).is_whole() && part(1, 9, 10).length() == 9
        );
        assert!(
            part(2, 5, 10).holds(2, 5)
                && !part(2, 5, 10).holds(1, 5)
                && !part(2, 5, 10).holds(2, 6)
        );
    }

    #[test]
    fn only_a_strong_validator_makes_two_responses_one() {
        let same =
            |one: &str, other: &str| are_of_one(&[("ETag", one)][..], &[("ETag", other)][..]);
        assert!(same("\"a\"", "\"a\""));
        for (one, other) in [("\"a\"", "\"b\""), ("W/\"a\"", "W/\"a\""), ("a", "a")] {
            assert!(!same(one, other), "{one} {other}");
        }
        let dated =
            |day: &'static str| [("Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Date", day)];
        let [younger, older] =
            [dated("Mon, 07 Nov 1994 08:49:37 GMT"), dated("Tue, 08 Nov 1994 08:49:37 GMT")];
        assert!(are_of_one(&younger[..], &older[..]));
        assert!(!are_of_one(&younger[..1], &older[..1]));
        let tagged = [&[("ETag", "\"a\"")][..], &older].concat();
        assert!(!are_of_one(&younger[..], &tagged[..]), "a tag is not compared with a date");
    }

    use SliceAnswer::{Changed, Other, Slice, Unsatisfiable, Unusable};

    type Lines<'a> = &'a [(&'a str, &'a str)];
    const KNOWN: Lines<'static> = &[("ETag", "\"a\"")];
    const ASKED: Span = Span { first: 100, last: 199 };

    fn judge(status: u16, lines: Lines<'_>, length: Option<u64>) -> SliceAnswer {
        slice_answer(ASKED, status, lines, length, Some((KNOWN, 1000)))
    }

    fn judge_first(status: u16, lines: Lines<'_>) -> SliceAnswer {
        slice_answer(ASKED, status, lines, None, None::<(&[(&str, &str)], u64)>)
    }

    #[test]
    fn slices_are_aligned() {
        assert_eq!(slice_of(0, 100), Span { first: 0, last: 99 });
        assert_eq!(slice_of(199, 100), ASKED);
        assert_eq!(slice_of(u64::MAX, 1 << 20).last, u64::MAX);
    }

    #[test]
    fn only_the_slice_of_the_same_is_believed() {
        let range = |text: &'static str| [("Content-Range", text), ("ETag", "\"a\"")];
        let good = Part { first: 100, last: 199, complete: 1000 };
        assert_eq!(judge(206, &range("bytes 100-199/1000"), Some(100)), Slice(good));
        assert_eq!(judge(206, &range("bytes 100-199/1000"), None), Slice(good));
        let cases: [(&str, Option<u64>, SliceAnswer); 6] = [
            ("bytes 100-199/1000", Some(99), Unusable(UnusableSlice::OtherLength)),
            ("bytes 100-198/1000", None, Unusable(UnusableSlice::OtherRange)),
            ("bytes 0-99/1000", None, Unusable(UnusableSlice::OtherRange)),
            ("bytes 100-299/1000", None, Unusable(UnusableSlice::OtherRange)),
            ("bytes 100-199/*", None, Unusable(UnusableSlice::NoContentRange)),
            ("bytes 100-199/2000", None, Changed),
        ];
        for (text, length, expected) in cases {
            assert_eq!(judge(206, &range(text), length), expected, "{text}");
        }
        assert_eq!(judge(206, KNOWN, None), Unusable(UnusableSlice::NoContentRange));
        let other = [("Content-Range", "bytes 100-199/1000"), ("ETag", "\"b\"")];
        assert_eq!(judge(206, &other, None), Changed);
        assert_eq!((judge(416, &[], None), judge_first(416, &[])), (Changed, Unsatisfiable));
        assert_eq!((judge(200, KNOWN, None), judge(404, &[], None)), (Other, Other));
    }

    #[test]
    fn the_first_slice_says_how_long_the_object_is() {
        let short = Part { first: 100, last: 149, complete: 150 };
        assert_eq!(judge_first(206, &[("Content-Range", "bytes 100-149/150")]), Slice(short));
    }

    #[test]
    fn a_validator_for_if_range_is_strong() {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        let later = "Sun, 06 Nov 1994 08:49:38 GMT";
        let cases: [(Lines<'_>, Option<&str>); 6] = [
            (&[("ETag", "\"a\"")], Some("\"a\"")),
            (&[("ETag", "W/\"a\""), ("Last-Modified", date), ("Date", later)], None),
            (
                &[("ETag", "\"a\""), ("ETag", "\"b\""), ("Last-Modified", date), ("Date", later)],
                None,
            ),
            (&[("Last-Modified", date), ("Date", later)], Some(date)),
            (&[("Last-Modified", date), ("Date", date)], None),
            (&[], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(strong_validator(lines), expected.map(str::as_bytes), "{lines:?}");
        }
    }
}
