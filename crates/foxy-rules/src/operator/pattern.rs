//! Patterns for texts: `*` stands for any text, `?` for one character, `[a-z]` for a class of
//! characters, and `{a,b}` for alternatives. `\*` is a star. A pattern must match the whole text.
//! After `(?i)` at its beginning, a pattern ignores the case of ASCII letters.

use globset::{Candidate, Glob, GlobBuilder, GlobSet};
use std::fmt;
use std::str::FromStr;

const MAX_PATTERN_BYTES: usize = 1024;

/// The beginning of a pattern that ignores the case of letters.
pub(super) const IGNORE_CASE: &str = "(?i)";

/// A pattern for texts such as paths and field values.
#[derive(Clone, Debug)]
pub struct Pattern {
    glob: Glob,
    ignores_case: bool,
    shape: Shape,
}

/// The shape of a pattern. The most frequent shapes need no general matcher, which is slower.
#[derive(Clone, Debug)]
enum Shape {
    Literal,
    /// The pattern is a literal text, then `*`.
    Beginning,
    /// The pattern is `*`, then a literal text.
    End,
    Other(GlobSet),
}

impl Shape {
    fn of(glob: &Glob, ignores_case: bool) -> Result<Self, globset::Error> {
        let text = glob.glob();
        let is_literal = |text: &str| !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        Ok(match (text.strip_suffix('*'), text.strip_prefix('*')) {
            _ if !ignores_case && is_literal(text) => Self::Literal,
            (Some(literal), _) if !ignores_case && is_literal(literal) => Self::Beginning,
            (_, Some(literal)) if !ignores_case && is_literal(literal) => Self::End,
            // A `GlobSet` returns an error for a pattern that is too large. A single matcher would
            // panic.
            _ => Self::Other(GlobSet::builder().add(glob.clone()).build()?),
        })
    }
}

impl Pattern {
    /// Returns whether the pattern matches the whole `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        let pattern = self.glob.glob().as_bytes();
        match &self.shape {
            Shape::Literal => text == pattern,
            Shape::Beginning => text.starts_with(&pattern[..pattern.len() - 1]),
            Shape::End => text.ends_with(&pattern[1..]),
            Shape::Other(matcher) => matcher.is_match_candidate(&Candidate::from_bytes(text)),
        }
    }

    /// Returns whether the pattern ignores the case of ASCII letters.
    pub(super) const fn ignores_case(&self) -> bool {
        self.ignores_case
    }

    /// Returns the pattern without the prefix `(?i)`, which makes a pattern ignore case.
    pub(super) const fn glob(&self) -> &Glob {
        &self.glob
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "a pattern has at most {MAX_PATTERN_BYTES} bytes; write several patterns"
            ));
        }
        let unusable =
            |error: globset::Error| format!("`{text}` is not a usable pattern: {}", error.kind());
        let unmarked = text.strip_prefix(IGNORE_CASE);
        let ignores_case = unmarked.is_some();
        let mut builder = GlobBuilder::new(unmarked.unwrap_or(text));
        builder.literal_separator(false).backslash_escape(true).case_insensitive(ignores_case);
        let glob = builder.build().map_err(unusable)?;
        Ok(Self { shape: Shape::of(&glob, ignores_case).map_err(unusable)?, ignores_case, glob })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.ignores_case { IGNORE_CASE } else { "" })?;
        f.write_str(self.glob.glob())
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.glob == other.glob
    }
}

impl Eq for Pattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_of_any_size_is_accepted_or_refused() {
        for pattern in ["?".repeat(300_000), "*a".repeat(500), "{a,b}".repeat(200)] {
            let _either = pattern.parse::<Pattern>();
        }
        assert!("a".repeat(1025).parse::<Pattern>().is_err());
    }

    #[test]
    fn the_shapes_match_as_the_general_matcher_does() {
        let texts = ["", "a", "ab", "AB", "abc", "/a/b", "/A/b.CSS", "b.css", "a*", "/a/"];
        let patterns = [
            "",
            "a",
            "*",
            "a*",
            "/a/*",
            "*b",
            "*.css",
            "a*c",
            "?b",
            "[a-b]",
            "{a,ab}",
            "(?i)ab",
            "(?i)/A/*",
            "(?i)*.css",
        ];
        for pattern in patterns {
            let parsed: Pattern = pattern.parse().expect(pattern);
            let general = parsed.glob.compile_matcher();
            for text in texts {
                let expected = general.is_match(text);
                assert_eq!(parsed.matches(text.as_bytes()), expected, "{pattern} {text}");
            }
        }
    }

    #[test]
    fn a_marked_pattern_ignores_case_and_is_shown_with_its_mark() {
        let matches = |pattern: &str, text: &str| {
            let parsed: Pattern = pattern.parse().expect(pattern);
            assert_eq!(parsed.to_string(), pattern);
            parsed.matches(text.as_bytes())
        };
        assert!(matches("(?i)*BadBot*", "x badbot/2") && matches("(?i)[a-c]x", "BX"));
        assert!(!matches("*BadBot*", "x badbot/2") && !matches("(?i)badbot", "goodbot"));
    }
}
