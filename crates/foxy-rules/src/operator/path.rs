//! Paths of URLs: their normal form, in which conditions compare them, and the rewriting of a path.

use super::pattern::{IGNORE_CASE, Pattern};
use percent_encoding::percent_decode;
use regex::bytes::{Regex, RegexBuilder};
use std::borrow::Cow;

/// Returns a path in normal form, in which conditions compare it. Percent-encoded bytes are decoded
/// once; dot segments and repeated slashes are removed (RFC 3986 §6.2.2). So a different spelling
/// of a path does not avoid a rule.
pub fn normal_path(path: &[u8]) -> Cow<'_, [u8]> {
    normal_and_literal(path).0
}

/// Returns a path in normal form. If the path has `..` segments, also returns a second form, which
/// keeps these segments but is otherwise normal. A server that does not remove the segments reads
/// this form.
pub(super) fn normal_and_literal(path: &[u8]) -> (Cow<'_, [u8]>, Option<Vec<u8>>) {
    let is_plain =
        !path.contains(&b'%') && !path.windows(2).any(|pair| pair == b"/." || pair == b"//");
    if is_plain {
        return (Cow::Borrowed(path), None);
    }
    let decoded = decoded(path);
    let (mut segments, mut literal): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
    let (mut ends_in_folder, mut goes_up) = (false, false);
    for segment in decoded.split(|&byte| byte == b'/').skip(1) {
        ends_in_folder = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => continue,
            b".." => {
                goes_up = true;
                segments.pop();
            }
            segment => segments.push(segment),
        }
        literal.push(segment);
    }
    let literal = goes_up.then(|| joined(&literal, ends_in_folder));
    (Cow::Owned(joined(&segments, ends_in_folder)), literal)
}

fn joined(segments: &[&[u8]], ends_in_folder: bool) -> Vec<u8> {
    let mut path = Vec::with_capacity(segments.iter().map(|segment| segment.len() + 1).sum());
    for segment in segments {
        path.push(b'/');
        path.extend_from_slice(segment);
    }
    if ends_in_folder || segments.is_empty() {
        path.push(b'/');
    }
    path
}

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
        let unusable = |error| format!("`{from}` is not a usable regular expression: {error}");
        // Compiles the expression alone first: an unbalanced `)` could close the group that is
        // added around it.
        Regex::new(from).map_err(unusable)?;
        let whole = format!("^(?:{from})$");
        let regex = RegexBuilder::new(&whole).size_limit(MAX_REGEX_BYTES).build();
        let regex = regex.map_err(unusable)?;
        let is_path = to.starts_with('/') && to.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path || to.contains(['?', '#']) {
            return Err(format!("`{to}` is not a path; begin with / and leave out ? and #"));
        }
        let is_group = |name: &str| match name.parse::<usize>() {
            Ok(number) => number < regex.captures_len(),
            Err(_) => regex.capture_names().flatten().any(|group| group == name),
        };
        if let Some(name) = groups_of(to).find(|name| !is_group(name)) {
            return Err(format!(
                "`{from}` has no group `{name}`; if letters follow a group, write `${{1}}`"
            ));
        }
        Ok(Self { from: regex, to: to.to_owned() })
    }

    /// Returns the new path and query. Returns `None` if `from` does not match the path.
    pub fn apply(&self, path_and_query: &[u8]) -> Option<Vec<u8>> {
        let mark = path_and_query.iter().position(|&byte| byte == b'?');
        let (path, query) = path_and_query.split_at(mark.unwrap_or(path_and_query.len()));
        let groups = self.from.captures(path)?;
        let mut new = Vec::new();
        groups.expand(self.to.as_bytes(), &mut new);
        new.extend_from_slice(query);
        Some(new)
    }
}

/// Returns the names of the groups to which `to` refers, as [`Rewrite::apply`] reads them: `$name`
/// takes as many letters as possible, and `$$` is a dollar sign.
fn groups_of(to: &str) -> impl Iterator<Item = &str> {
    let mut rest = to;
    std::iter::from_fn(move || {
        loop {
            let (_, after) = rest.split_once('$')?;
            if let Some(next) = after.strip_prefix('$') {
                rest = next;
                continue;
            }
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let (name, next) = match after.strip_prefix('{') {
                Some(braced) => braced.split_once('}')?,
                None => after.split_at(after.find(|c| !is_name(c)).unwrap_or(after.len())),
            };
            rest = next;
            if !name.is_empty() {
                return Some(name);
            }
        }
    })
}

impl PartialEq for Rewrite {
    fn eq(&self, other: &Self) -> bool {
        self.from.as_str() == other.from.as_str() && self.to == other.to
    }
}

impl Eq for Rewrite {}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(path: &str) -> String {
        String::from_utf8_lossy(&normal_path(path.as_bytes())).into_owned()
    }

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
    fn spellings_of_a_path_have_one_normal_form() {
        for path in ["/a/b", "/%61/b", "//a//b", "/a/./b", "/x/../a/b", "/a%2fb", "/../a/b"] {
            assert_eq!(normal(path), "/a/b", "{path}");
        }
        assert_eq!(normal("/a/."), "/a/");
        assert_eq!(normal("/a/.."), "/");
        assert_eq!(normal("//"), "/");
        assert_eq!(normal("/.well-known/x"), "/.well-known/x");
        assert_eq!(normal("/a%20b%zz%"), "/a b%zz%");
        assert_eq!(normal("/%2561"), "/%61", "a path is decoded once");
    }

    #[test]
    fn a_path_with_parent_segments_has_a_second_reading() {
        let literal = |path: &str| {
            let literal = normal_and_literal(path.as_bytes()).1;
            literal.map(|path| String::from_utf8_lossy(&path).into_owned())
        };
        assert_eq!(literal("/x/.git/../y").as_deref(), Some("/x/.git/../y"));
        assert_eq!(literal("//x/./%2e%2e/%79/").as_deref(), Some("/x/../y/"));
        assert_eq!(literal("/x/..").as_deref(), Some("/x/../"));
        for path in ["/x/y", "//x", "/x/.git", "/%78/...", ""] {
            assert_eq!(literal(path), None, "{path}");
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
