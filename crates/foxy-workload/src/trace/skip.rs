//! Decides which lines of a log become requests, and names the reasons to skip other lines.

use std::fmt;

/// The reason why a line is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Skip {
    /// The line has only white space, or a comment after `#`.
    Blank,
    /// The line is longer than [`MAX_LINE_BYTES`](super::read::MAX_LINE_BYTES).
    TooLong,
    /// A field is missing.
    MissingField,
    /// A quoted field has no closing quote.
    OpenQuote,
    /// The time has no known format.
    BadTime,
    /// The number of bytes is invalid.
    BadSize,
    /// The status is not a number of three digits.
    BadStatus,
    /// The URL is empty or `-`.
    NoUrl,
    /// The method is not GET. A builder may collect other methods, if the request succeeded.
    NotGet,
    /// The status does not stand for a whole object: it is not 200, 203 or 304.
    StatusNotUsed,
    /// The transfer was aborted, so the object's size is unknown.
    BrokenOff,
    /// The status is 304, and no earlier line has the URL's size.
    SizeNotKnown,
    /// The log has more than 2^32 different clients or URLs.
    TooManyNames,
    /// Compressed or columnar data cannot be decoded. The reader stops at this place.
    Damaged,
}

impl Skip {
    /// All reasons to skip a line, in the order of the enum.
    pub const ALL: [Self; 14] = [
        Self::Blank,
        Self::TooLong,
        Self::MissingField,
        Self::OpenQuote,
        Self::BadTime,
        Self::BadSize,
        Self::BadStatus,
        Self::NoUrl,
        Self::NotGet,
        Self::StatusNotUsed,
        Self::BrokenOff,
        Self::SizeNotKnown,
        Self::TooManyNames,
        Self::Damaged,
    ];

    /// Returns whether the reader could not parse the line.
    pub fn is_broken(self) -> bool {
        match self {
            Self::TooLong
            | Self::MissingField
            | Self::OpenQuote
            | Self::BadTime
            | Self::BadSize
            | Self::BadStatus
            | Self::NoUrl
            | Self::Damaged => true,
            Self::Blank
            | Self::NotGet
            | Self::StatusNotUsed
            | Self::BrokenOff
            | Self::SizeNotKnown
            | Self::TooManyNames => false,
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Blank => "blank or comment",
            Self::TooLong => "line too long",
            Self::MissingField => "field missing",
            Self::OpenQuote => "quote that does not end",
            Self::BadTime => "no valid time",
            Self::BadSize => "no valid size",
            Self::BadStatus => "no valid status",
            Self::NoUrl => "no URL",
            Self::NotGet => "not a GET",
            Self::StatusNotUsed => "status other than 200, 203 and 304",
            Self::BrokenOff => "transfer broken off",
            Self::SizeNotKnown => "304, and no earlier line has the object's size",
            Self::TooManyNames => "client or URL beyond the first 2^32",
            Self::Damaged => "the rest of the log is damaged",
        })
    }
}

/// The size of an object as a logged response shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The response has the whole object, with this number of bytes.
    Whole(u64),
    /// The status is 304, so the object still has its earlier size.
    NotModified,
    /// The response answers another method than GET, with this number of bytes.
    Other(Verb, u64),
}

/// A method besides GET that a replay can repeat.
#[expect(missing_docs, reason = "the known methods are their own documentation")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Head,
    Post,
    Put,
    Delete,
}

impl Verb {
    /// Methods with their names in requests.
    pub const NAMES: [(&'static str, Self); 4] =
        [("HEAD", Self::Head), ("POST", Self::Post), ("PUT", Self::Put), ("DELETE", Self::Delete)];
}

/// A parsed line of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Time in microseconds since the Unix epoch.
    pub time: i64,
    /// Name of the client.
    pub client: &'a str,
    /// URL or path.
    pub url: &'a str,
    /// The facts about the object's size that follow from the line's method, status and size.
    pub answer: Answer,
}

/// Interprets method and status of a line. 200 and 203 carry the whole object, and 304 confirms its
/// size. Other methods than GET need a status from 200 to 204.
pub(super) fn answer(method: &str, status: &str, size: &str) -> Result<Answer, Skip> {
    let size = bytes(size)?;
    let digits = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        return Err(Skip::BadStatus);
    }
    if !method.eq_ignore_ascii_case("GET") {
        let verb = Verb::NAMES.iter().find(|(name, _)| method.eq_ignore_ascii_case(name));
        let done = matches!(status, "200" | "201" | "202" | "203" | "204");
        return verb
            .filter(|_| done)
            .map(|&(_, verb)| Answer::Other(verb, size))
            .ok_or(Skip::NotGet);
    }
    match status {
        "200" | "203" => Ok(Answer::Whole(size)),
        "304" => Ok(Answer::NotModified),
        _ => Err(Skip::StatusNotUsed),
    }
}

/// Parses a number of bytes. `-` stands for zero.
pub(super) fn bytes(text: &str) -> Result<u64, Skip> {
    if text == "-" { Ok(0) } else { text.parse().map_err(|_| Skip::BadSize) }
}

pub(super) fn url(text: &str) -> Result<&str, Skip> {
    if text.is_empty() || text == "-" { Err(Skip::NoUrl) } else { Ok(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_or_unchanged_answers_to_get_and_successes_of_other_methods_are_used() {
        let cases = [
            ("GET", "200", "10", Ok(Answer::Whole(10))),
            ("get", "203", "-", Ok(Answer::Whole(0))),
            ("GET", "304", "0", Ok(Answer::NotModified)),
            ("GET", "206", "10", Err(Skip::StatusNotUsed)),
            ("GET", "404", "10", Err(Skip::StatusNotUsed)),
            ("POST", "200", "10", Ok(Answer::Other(Verb::Post, 10))),
            ("delete", "204", "-", Ok(Answer::Other(Verb::Delete, 0))),
            ("POST", "404", "10", Err(Skip::NotGet)),
            ("CONNECT", "200", "10", Err(Skip::NotGet)),
            ("GET", "20", "10", Err(Skip::BadStatus)),
            ("GET", "2x0", "10", Err(Skip::BadStatus)),
            ("GET", "200", "-5", Err(Skip::BadSize)),
            ("GET", "200", "99999999999999999999", Err(Skip::BadSize)),
        ];
        for (method, status, size, expected) in cases {
            assert_eq!(answer(method, status, size), expected, "{method} {status} {size}");
        }
    }

    #[test]
    fn every_reason_has_its_own_number_and_words() {
        for (number, reason) in Skip::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, number);
            let same = Skip::ALL.iter().filter(|other| other.to_string() == reason.to_string());
            assert_eq!(same.count(), 1, "{reason}");
        }
    }
}
