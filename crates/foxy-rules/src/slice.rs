//! Objects known by aligned slices: which slices a range touches, what may be believed of an
//! origin's answer to a request for one, and which responses are of one representation (RFC 9111
//! §3.4). Where slices are kept is not here.

use crate::fields::Fields;
use crate::partial::{Part, are_of_one};
use crate::range::{Span, strong_date};

/// The slice of `size` bytes that has this byte, in an object that does not end before it.
pub const fn slice_of(at: u64, size: u64) -> Span {
    let first = at / size * size;
    Span { first, last: first.saturating_add(size - 1) }
}

/// What stands for the very bytes of a response, for If-Range: a strong entity tag, or without any
/// tag a date that is a strong validator (RFC 9110 §13.1.5).
pub fn strong_validator(response: &(impl Fields + ?Sized)) -> Option<&[u8]> {
    match response.single("etag") {
        Some(tag) => {
            (tag.starts_with(b"\"") && tag.ends_with(b"\"") && tag.len() > 1).then_some(tag)
        }
        None if response.has("etag") => None,
        None => strong_date(response),
    }
}

/// What an origin's answer to a request for one slice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SliceAnswer {
    /// That slice, or as much of it as there is.
    Slice(Part),
    /// That slice of something else than the object's other slices.
    Changed,
    /// The object has no byte there.
    Unsatisfiable,
    /// Another response: the whole, a redirect, an error.
    Other,
    /// A 206 that does not hold what was asked for, and so nothing that can be used.
    Unusable(UnusableSlice),
}

/// Why a 206 cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnusableSlice {
    /// No Content-Range that says which bytes of how many: none, several, `multipart/byteranges`,
    /// an unknown length.
    NoContentRange,
    /// Other bytes than were asked for.
    OtherRange,
    /// Another length than its Content-Range says.
    OtherLength,
}

/// Judges the answer to a request for `asked`. `length` is its body's, where the origin said it.
/// `known` are the fields and the complete length of what the object's other slices are of.
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
