//! Text patterns: `*` stands for any text, `?` for one character, `[a-z]` for a class, and `{a,b}`
//! for alternatives. A pattern matches a whole text.

use globset::{Candidate, Glob, GlobBuilder, GlobMatcher};
use std::fmt;
use std::str::FromStr;

/// A pattern for texts such as paths and field values.
#[derive(Clone, Debug)]
pub struct Pattern {
    glob: Glob,
    shape: Shape,
}

/// The most frequent shapes of patterns need no general matcher.
#[derive(Clone, Debug)]
enum Shape {
    Literal,
    /// A literal text, then `*`.
    Beginning,
    /// `*`, then a literal text.
    End,
    Other(GlobMatcher),
}

impl Shape {
    fn of(glob: &Glob) -> Self {
        let text = glob.glob();
        let is_literal = |text: &str| !text.contains(['*', '?', '[', ']', '{', '}', '\\']);
        match (text.strip_suffix('*'), text.strip_prefix('*')) {
            _ if is_literal(text) => Self::Literal,
            (Some(literal), _) if is_literal(literal) => Self::Beginning,
            (_, Some(literal)) if is_literal(literal) => Self::End,
            _ => Self::Other(glob.compile_matcher()),
        }
    }
}

impl Pattern {
    /// Returns whether the pattern matches the whole `text`.
    pub fn matches(&self, text: &[u8]) -> bool {
        let pattern = self.as_str().as_bytes();
        match &self.shape {
            Shape::Literal => text == pattern,
            Shape::Beginning => text.starts_with(&pattern[..pattern.len() - 1]),
            Shape::End => text.ends_with(&pattern[1..]),
            Shape::Other(matcher) => matcher.is_match_candidate(&Candidate::from_bytes(text)),
        }
    }

    /// Returns the pattern as the operator wrote it.
    pub fn as_str(&self) -> &str {
        self.glob.glob()
    }

    pub(super) const fn glob(&self) -> &Glob {
        &self.glob
    }
}

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let glob = GlobBuilder::new(text)
            .literal_separator(false)
            .backslash_escape(true)
            .build()
            .map_err(|error| format!("`{text}` is no pattern: {}", error.kind()))?;
        Ok(Self { shape: Shape::of(&glob), glob })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
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
    fn the_shapes_match_as_the_general_matcher_does() {
        let texts = ["", "a", "ab", "abc", "/a/b", "/a/b.css", "b.css", "a*", "/a/"];
        for pattern in ["", "a", "*", "a*", "/a/*", "*b", "*.css", "a*c", "?b", "[a-b]", "{a,ab}"] {
            let parsed: Pattern = pattern.parse().expect(pattern);
            let general = parsed.glob.compile_matcher();
            for text in texts {
                let expected = general.is_match(text);
                assert_eq!(parsed.matches(text.as_bytes()), expected, "{pattern} {text}");
            }
        }
    }
}
