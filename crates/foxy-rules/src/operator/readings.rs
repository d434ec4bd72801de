//! The readings of a path. Servers read unusual spellings in different ways, and no spelling may
//! avoid a rule.

use super::path::decoded;
use std::borrow::Cow;

/// How many of a path's readings must match a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readings {
    /// The normal form of the path must match.
    Normal,
    /// At least one reading of the path must match.
    Any,
    /// Each reading of the path must match.
    Every,
}

/// How a server reads a path. Every server decodes percent-encoded bytes, and ignores `.` segments
/// and repeated slashes.
#[derive(Clone, Copy, Debug)]
struct Reader {
    /// Whether `..` removes the segment before it (RFC 3986 §5.2.4).
    goes_up: bool,
    /// Whether `\` separates segments like `/`, as in browsers (WHATWG URL) and on Windows.
    splits_at_backslashes: bool,
    /// Whether `;` and the text after it are no part of a segment, as in Java's servers.
    drops_parameters: bool,
}

impl Reader {
    fn read(self, path: &[u8]) -> Vec<u8> {
        // Servers differ in what they do first, so both steps run before and after the decoding.
        let decoded = decoded(&self.prepared(path));
        let decoded = self.prepared(&decoded);
        let (mut segments, mut ends_in_folder) = (Vec::new(), false);
        for segment in decoded.split(|&byte| byte == b'/').skip(1) {
            ends_in_folder = matches!(segment, b"" | b"." | b"..");
            match segment {
                b"" | b"." => {}
                b".." if self.goes_up => {
                    segments.pop();
                }
                segment => segments.push(segment),
            }
        }
        joined(&segments, ends_in_folder)
    }

    fn prepared(self, path: &[u8]) -> Cow<'_, [u8]> {
        if !self.splits_at_backslashes && !self.drops_parameters {
            return Cow::Borrowed(path);
        }
        let mut prepared = Vec::with_capacity(path.len());
        let mut is_in_parameters = false;
        for &byte in path {
            let byte = if self.splits_at_backslashes && byte == b'\\' { b'/' } else { byte };
            is_in_parameters =
                byte != b'/' && (is_in_parameters || (self.drops_parameters && byte == b';'));
            if !is_in_parameters {
                prepared.push(byte);
            }
        }
        Cow::Owned(prepared)
    }
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

/// Returns a path in normal form, in which conditions compare it. Percent-encoded bytes are decoded
/// once; dot segments and repeated slashes are removed (RFC 3986 §6.2.2). So a different spelling
/// of a path does not avoid a rule.
pub fn normal_path(path: &[u8]) -> Cow<'_, [u8]> {
    readings_of(path).0
}

/// Returns a path in normal form, and its other readings. These keep `..` segments, take `\` for a
/// slash, or drop the parameters of segments. Most paths have no other reading.
pub(super) fn readings_of(path: &[u8]) -> (Cow<'_, [u8]>, Vec<Vec<u8>>) {
    let is_plain = !path.iter().any(|byte| matches!(byte, b'%' | b'\\' | b';'))
        && !path.windows(2).any(|pair| pair == b"/." || pair == b"//");
    if is_plain {
        return (Cow::Borrowed(path), Vec::new());
    }
    let decoded = decoded(path);
    let either = |is_possible: bool| [false].into_iter().chain(is_possible.then_some(true));
    let has = |byte: u8| decoded.contains(&byte);
    let (has_parents, has_backslashes, has_parameters) =
        (decoded.windows(2).any(|pair| pair == b".."), has(b'\\'), has(b';'));
    let mut readings: Vec<Vec<u8>> = Vec::new();
    for splits_at_backslashes in either(has_backslashes) {
        for drops_parameters in either(has_parameters) {
            for keeps_parents in either(has_parents) {
                let goes_up = !keeps_parents;
                let reading =
                    Reader { goes_up, splits_at_backslashes, drops_parameters }.read(path);
                if !readings.contains(&reading) {
                    readings.push(reading);
                }
            }
        }
    }
    let others = readings.split_off(1);
    (Cow::Owned(readings.swap_remove(0)), others)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(path: &[u8]) -> String {
        String::from_utf8_lossy(path).into_owned()
    }

    fn normal(path: &str) -> String {
        text(&normal_path(path.as_bytes()))
    }

    fn others(path: &str) -> Vec<String> {
        readings_of(path.as_bytes()).1.iter().map(|path| text(path)).collect()
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
        assert_eq!(normal("/a;b=1/..;/c\\d"), "/a;b=1/..;/c\\d");
    }

    #[test]
    fn a_path_with_parent_segments_has_a_second_reading() {
        assert_eq!(others("/x/.git/../y"), ["/x/.git/../y"]);
        assert_eq!(others("//x/./%2e%2e/%79/"), ["/x/../y/"]);
        assert_eq!(others("/x/.."), ["/x/../"]);
        for path in ["/x/y", "//x", "/x/.git", "/%78/...", "/x/a..b", ""] {
            assert!(others(path).is_empty(), "{path}");
        }
    }

    #[test]
    fn backslashes_and_parameters_have_further_readings() {
        for path in [
            "/\\admin/x",
            "/%5Cadmin/x",
            "/admin\\x",
            "/a\\..\\admin/x",
            "/x/..;/admin/x",
            "/x/..;a=b/admin/x",
            "/x/%2e%2e;/admin/x",
            "/x/..%3b/admin/x",
            "/x/..;%2fy/admin/x",
            "/;/admin/x",
            "/admin;a=b/x;c",
            "/x\\..;\\admin/x",
        ] {
            assert!(others(path).contains(&"/admin/x".to_owned()), "{path} {:?}", others(path));
        }
        assert_eq!(
            others("/a;b/../c\\d"),
            ["/a;b/../c\\d", "/a/../c\\d", "/c/d", "/a;b/../c/d", "/a/../c/d"]
        );
        assert_eq!(
            others("/admin/x;\\..\\..\\b"),
            ["/admin/x", "/b", "/admin/x;/../../b", "/admin/x/../../b"]
        );
    }
}
