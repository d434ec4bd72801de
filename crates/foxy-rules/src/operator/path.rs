//! Paths: the normal form that conditions compare, and the rewriting of a path.

use regex::bytes::Regex;
use std::borrow::Cow;

/// Returns a path in the form that conditions compare (RFC 3986 §6.2.2): percent-encoded unreserved
/// characters and slashes are decoded, and dot segments and repeated slashes are removed. So no
/// spelling of a path avoids a rule.
pub fn normal_path(path: &[u8]) -> Cow<'_, [u8]> {
    let is_plain =
        !path.contains(&b'%') && !path.windows(2).any(|pair| pair == b"/." || pair == b"//");
    if is_plain {
        return Cow::Borrowed(path);
    }
    let decoded = decoded(path);
    let mut segments: Vec<&[u8]> = Vec::new();
    let mut ends_in_folder = false;
    for segment in decoded.split(|&byte| byte == b'/').skip(1) {
        ends_in_folder = matches!(segment, b"" | b"." | b"..");
        match segment {
            b"" | b"." => {}
            b".." => {
                segments.pop();
            }
            segment => segments.push(segment),
        }
    }
    let mut normal = Vec::with_capacity(decoded.len());
    for segment in &segments {
        normal.push(b'/');
        normal.extend_from_slice(segment);
    }
    if ends_in_folder || segments.is_empty() {
        normal.push(b'/');
    }
    Cow::Owned(normal)
}

/// Decodes percent-encoded unreserved characters (RFC 3986 §2.3) and slashes.
fn decoded(path: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let mut out = Vec::with_capacity(path.len());
    let mut rest = path;
    while let [first, tail @ ..] = rest {
        let byte = match rest {
            [b'%', high, low, ..] => digit(*high).zip(digit(*low)).map(|(h, l)| h << 4 | l),
            _ => None,
        };
        let is_decoded = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~/".contains(byte);
        if let Some(byte) = byte.filter(is_decoded) {
            out.push(byte);
            rest = &rest[3..];
        } else {
            out.push(*first);
            rest = tail;
        }
    }
    out
}

/// A rewriting of paths: a regular expression for the whole path, and the new path.
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
        let regex = Regex::new(&format!("^(?:{from})$"))
            .map_err(|error| format!("`{from}` is no regular expression: {error}"))?;
        let is_path = to.starts_with('/') && to.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_path || to.contains(['?', '#']) {
            return Err(format!("`{to}` is no path; begin with / and leave out ? and #"));
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
    fn spellings_of_a_path_have_one_normal_form() {
        for path in ["/a/b", "/%61/b", "//a//b", "/a/./b", "/x/../a/b", "/a%2fb", "/../a/b"] {
            assert_eq!(normal(path), "/a/b", "{path}");
        }
        assert_eq!(normal("/a/."), "/a/");
        assert_eq!(normal("/a/.."), "/");
        assert_eq!(normal("//"), "/");
        assert_eq!(normal("/.well-known/x"), "/.well-known/x");
        assert_eq!(normal("/a%20b%zz%"), "/a%20b%zz%", "other bytes stay encoded");
        assert_eq!(normal("/%2561"), "/%2561", "a path is decoded once");
    }

    #[test]
    fn a_rewriting_replaces_the_whole_path_and_keeps_the_query() {
        let rewrite = Rewrite::new("/old/(.*)", "/new/$1").expect("sound");
        assert_eq!(rewrite.apply(b"/old/a?q=1").as_deref(), Some(&b"/new/a?q=1"[..]));
        assert_eq!(rewrite.apply(b"/older/a"), None);
        assert!(Rewrite::new("(", "/a").is_err());
        for to in ["a", "/a b", "/a?b", "/a\r\n"] {
            assert!(Rewrite::new("/", to).is_err(), "{to:?}");
        }
    }
}
