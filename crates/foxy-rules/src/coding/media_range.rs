//! Sets of media types that the operator lists. An entry is a type (`text/css`), all types with a
//! beginning (`text/*`), or all types with a suffix (`*+json`).

use std::fmt;
use std::str::FromStr;

/// A set of media types, such as `text/*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaRange(String);

/// The error for a text that is not a set of media types. Contains the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadMediaRange(String);

impl fmt::Display for BadMediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a media type; write text/css, text/* or *+json", self.0)
    }
}

impl std::error::Error for BadMediaRange {}

impl MediaRange {
    /// Returns whether the set contains the media type in the `content_type` of a response. Ignores
    /// parameters such as `charset`.
    pub fn contains(&self, content_type: &str) -> bool {
        let given = content_type.split(';').next().unwrap_or_default().trim();
        let given = given.to_ascii_lowercase();
        match (self.0.strip_prefix('*'), self.0.strip_suffix('*')) {
            (Some(suffix), _) => given.ends_with(suffix),
            (None, Some(prefix)) => given.starts_with(prefix),
            (None, None) => given == self.0,
        }
    }
}

impl FromStr for MediaRange {
    type Err = BadMediaRange;

    fn from_str(text: &str) -> Result<Self, BadMediaRange> {
        let is_token = |part: &str| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
        };
        let is_sound = match text.split_once('/') {
            Some((kind, "*")) => is_token(kind),
            Some((kind, subtype)) => is_token(kind) && is_token(subtype),
            None => text.strip_prefix("*+").is_some_and(is_token),
        };
        is_sound.then(|| Self(text.to_ascii_lowercase())).ok_or_else(|| BadMediaRange(text.into()))
    }
}

impl fmt::Display for MediaRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_contains_types_without_their_parameters() {
        let cases = [
            ("text/css", "Text/CSS; charset=utf-8", true),
            ("text/css", "text/csss", false),
            ("text/*", "text/plain", true),
            ("text/*", "texts/plain", false),
            ("*+json", "application/ld+json;x=y", true),
            ("*+json", "application/json", false),
            ("application/JSON", "application/json", true),
        ];
        for (range, given, expected) in cases {
            let range: MediaRange = range.parse().expect("a range");
            assert_eq!(range.contains(given), expected, "{range} {given}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "text", "*", "*/*", "text/", "/css", "text/a b", "*+", "text/css;x"] {
            assert!(text.parse::<MediaRange>().is_err(), "{text}");
        }
    }
}
