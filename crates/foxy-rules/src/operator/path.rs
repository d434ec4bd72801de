//! Patterns for the paths of URLs, and the rewriting of a path.

use super::pattern::{IGNORE_CASE, Pattern};
use super::template::{TemplatePart, parts};
use super::url::unusable;
use percent_encoding::percent_decode;
use regex::bytes::{Regex, RegexBuilder};

/// Decodes percent-encoded bytes (RFC 3986 §2.1). Other text stays.
pub(super) fn decoded(text: &[u8]) -> Vec<u8> {
    percent_decode(text).collect()
}

/// Reads a pattern for paths. Decodes percent-encoded bytes in the pattern, as in paths.
///
/// # Errors
/// Returns a sentence that says what is wrong with the pattern.
pub fn path_pattern(text: &str) -> Result<Pattern, String> {
    let (mark, path) =
        text.strip_prefix(IGNORE_CASE).map_or(("", text), |path| (IGNORE_CASE, path));
    if !path.starts_with(['/', '*', '?', '[', '{']) {
        return Err(format!("`{text}` matches no path; begin with / or *"));
    }
    let decoded = decoded(path.as_bytes());
    let plain = String::from_utf8(decoded).map_err(|_| {
        format!("`{text}` is not UTF-8 after its percent-encoded bytes are decoded")
    })?;
    let has_new_wildcard = |mark: char| plain.matches(mark).count() != path.matches(mark).count();
    if ['*', '?', '[', '{', '\\'].into_iter().any(has_new_wildcard) {
        return Err(format!("`{text}` has a percent-encoded wildcard; write `\\*` for a star"));
    }
    format!("{mark}{plain}").parse()
}

/// Largest size in bytes of a compiled expression for a rewriting. A larger expression could need
/// seconds for a path.
const MAX_REGEX_BYTES: usize = 1 << 16;

/// Splits a path from its query, which begins with the question mark or is empty.
pub(super) fn split_query(path_and_query: &[u8]) -> (&[u8], &[u8]) {
    let mark = path_and_query.iter().position(|&byte| byte == b'?');
    path_and_query.split_at(mark.unwrap_or(path_and_query.len()))
}

/// Compiles an expression that must match the whole path.
pub(super) fn whole_path(from: &str) -> Result<Regex, String> {
    let unusable = |error| unusable(from, &error);
    // Compiles the expression alone first: an unbalanced `)` could close the group that is added
    // around it.
    Regex::new(from).map_err(unusable)?;
    let whole = format!("^(?:{from})$");
    RegexBuilder::new(&whole).size_limit(MAX_REGEX_BYTES).build().map_err(unusable)
}

/// A rewriting of paths: a regular expression that must match the whole path, and the new path. The
/// new path can contain groups of the expression.
#[derive(Clone, Debug)]
pub struct Rewrite {
    from: Regex,
    to: String,
}

impl Rewrite {
    /// Creates a rewriting. `from` must match the whole path. In `to`, `$1` or `${name}` stands for
    /// the text of a group.
    ///
    /// # Errors
    /// A sentence that says what is wrong with `from` or `to`.
    pub fn new(from: &str, to: &str) -> Result<Self, String> {
        let regex = whole_path(from)?;
        let is_path = to.starts_with('/') && to.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path || to.contains(['?', '#']) {
            return Err(format!("`{to}` is not a path; begin with / and leave out ? and #"));
        }
        let mut names = parts(to).into_iter().filter_map(|part| match part {
            TemplatePart::Variable(name) => Some(name),
            TemplatePart::Text(_) => None,
        });
        if let Some(name) = names.find(|name| !has_group(&regex, name)) {
            return Err(format!(
                "`{from}` has no group `{name}`; if letters follow a group, write `${{1}}`"
            ));
        }
        Ok(Self { from: regex, to: to.to_owned() })
    }

    /// Returns the new path and query. Returns `None` if `from` does not match the path.
    pub fn apply(&self, path_and_query: &[u8]) -> Option<Vec<u8>> {
        let (path, query) = split_query(path_and_query);
        let groups = self.from.captures(path)?;
        let mut new = Vec::new();
        groups.expand(self.to.as_bytes(), &mut new);
        new.extend_from_slice(query);
        Some(new)
    }
}

/// Returns whether the expression has a group with this name or number.
pub(super) fn has_group(regex: &Regex, name: &str) -> bool {
    match name.parse::<usize>() {
        Ok(number) => number < regex.captures_len(),
        Err(_) => regex.capture_names().flatten().any(|group| group == name),
    }
}

impl PartialEq for Rewrite {
    fn eq(&self, other: &Self) -> bool {
        self.from.as_str() == other.from.as_str() && self.to == other.to
    }
}

impl Eq for Rewrite {}

#[cfg(test)]
mod tests {
    use super::super::readings::normal_path;
    use super::*;

    #[test]
    fn a_pattern_is_decoded_like_a_path() {
        let matches = |pattern: &str, path: &str| {
            path_pattern(pattern).expect(pattern).matches(&normal_path(path.as_bytes()))
        };
        assert!(matches("/caf%C3%A9/*", "/caf%c3%a9/x"));
        assert!(matches("/a b/*", "/a%20b/x"));
        assert!(matches("/@admin/*", "/%40admin/x"));
        assert!(matches("(?i)*.PHP", "/x/a.Php"));
        for pattern in ["admin", "", "/%2A", "/%FF", "(?i)admin"] {
            assert!(path_pattern(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_rewriting_replaces_the_whole_path_and_keeps_the_query() {
        let rewrite = Rewrite::new("/old/(.*)", "/new/$1").expect("sound");
        assert_eq!(rewrite.apply(b"/old/a?q=1").as_deref(), Some(&b"/new/a?q=1"[..]));
        assert_eq!(rewrite.apply(b"/older/a"), None);
        for from in ["(", "a)|(b", "/(a{1,250}){1,250}"] {
            assert!(Rewrite::new(from, "/a").is_err(), "{from}");
        }
        assert!(Rewrite::new("/(?<n>.*)/(.*)", "/$n/${2}b/$$9").is_ok());
        for to in ["a", "/a b", "/a?b", "/a\r\n", "/$1", "/$0b", "/${name}"] {
            assert!(Rewrite::new("/", to).is_err(), "{to:?}");
        }
    }
}
