//! Partial content (RFC 9110 §14.4, RFC 9111 §3.4): which bytes of which whole a 206 holds, and
//! when two of them are parts of the same. Whether a part may be stored is decided as for its
//! whole.

use crate::fields::Fields;
use crate::slice::strong_validator;

/// A part of a whole of known length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte.
    pub first: u64,
    /// Last byte; not before the first, and within the whole.
    pub last: u64,
    /// Length of the whole in bytes.
    pub complete: u64,
}

impl Part {
    /// What a 206's Content-Range says. `None` when it has none that can be read, several, or does
    /// not know how long the whole is; so for `multipart/byteranges`.
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

    /// Its length in bytes.
    pub const fn length(self) -> u64 {
        self.last - self.first + 1
    }

    /// Whether it holds the bytes from `first` to `last`.
    pub const fn holds(self, first: u64, last: u64) -> bool {
        self.first <= first && first <= last && last <= self.last
    }

    /// Whether it is all of the whole.
    pub const fn is_whole(self) -> bool {
        self.length() == self.complete
    }

    /// The two together, if they overlap or adjoin and are of wholes of one length.
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

/// Whether two responses are of the same representation, so that their parts may be combined: both
/// have the same strong validator (RFC 9111 §3.4), a tag or, where there is no tag, a date.
pub fn are_of_one(one: &(impl Fields + ?Sized), other: &(impl Fields + ?Sized)) -> bool {
    match (strong_validator(one), strong_validator(other)) {
        (Some(validator), Some(others)) => validator == others,
        _ => false,
    }
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
}
