//! The readings of a path. Servers read unusual spellings in different ways. So a rule compares the
//! readings of common servers.

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

/// When a server decodes a path. Its other steps handle backslashes, parameters and dot segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Decoding {
    /// Drops parameters and splits at backslashes both before and after it decodes the path.
    Between,
    /// Decodes the path before all other steps.
    First,
    /// Splits the path into segments and resolves `..`, as in RFC 3986 and WHATWG URL. So an
    /// encoded slash or backslash does not split a segment.
    PerSegment,
    /// Decodes the path twice before all other steps, as two servers do together.
    Twice,
}

impl Decoding {
    const ALL: [Self; 4] = [Self::Between, Self::First, Self::PerSegment, Self::Twice];
}

/// How a server reads a path. Every server decodes percent-encoded bytes, and ignores `.` segments
/// and, at the latest after `..`, empty segments.
#[derive(Clone, Copy, Debug)]
struct Reader {
    decoding: Decoding,
    /// Whether `..` removes the segment before it (RFC 3986 §5.2.4).
    goes_up: bool,
    /// Whether repeated slashes count as one slash before `..` (nginx). Otherwise `..` removes the
    /// empty segment between two slashes (RFC 3986).
    merges_slashes: bool,
    /// Whether `\` separates segments like `/`, as in browsers (WHATWG URL) and on Windows.
    splits_at_backslashes: bool,
    /// Whether `;` and the text after it are no part of a segment, as in Java's servers.
    drops_parameters: bool,
}

/// Values of `goes_up` and `merges_slashes` for a path with `..`.
const OF_PARENTS: [(bool, bool); 3] = [(true, true), (false, true), (true, false)];

impl Reader {
    fn read(self, path: &[u8]) -> Vec<u8> {
        match self.decoding {
            Decoding::Between => {
                let decoded = decoded(&self.prepared(path));
                self.resolved(&self.prepared(&decoded))
            }
            Decoding::First => self.resolved(&self.prepared(&decoded(path))),
            Decoding::Twice => self.resolved(&self.prepared(&decoded(&decoded(path)))),
            Decoding::PerSegment => {
                let prepared = self.prepared(path);
                let segments: Vec<_> = prepared.split(|&byte| byte == b'/').map(decoded).collect();
                self.resolved_segments(segments.iter().map(Vec::as_slice))
            }
        }
    }

    fn resolved(self, path: &[u8]) -> Vec<u8> {
        self.resolved_segments(path.split(|&byte| byte == b'/'))
    }

    /// Joins the segments of a path. The segment before the first slash is ignored.
    fn resolved_segments<'a>(self, path: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let (mut segments, mut ends_in_folder) = (Vec::new(), false);
        for segment in path.skip(1) {
            ends_in_folder = matches!(segment, b"" | b"." | b"..");
            match segment {
                b"." => {}
                b"" if self.merges_slashes => {}
                b".." if self.goes_up => {
                    segments.pop();
                }
                segment => segments.push(segment),
            }
        }
        segments.retain(|segment| !segment.is_empty());
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
/// once; dot segments and repeated slashes are removed (RFC 3986 §6.2.2). So different spellings of
/// a path have the same form.
pub fn normal_path(path: &[u8]) -> Cow<'_, [u8]> {
    readings_of(path).0
}

/// Returns a path in normal form, and its other readings. These keep `..` segments, remove an empty
/// segment for `..`, take `\` for a slash, drop the parameters of segments, or decode the path at
/// another time or twice. Most paths have no other reading, and none has more than 47.
pub(super) fn readings_of(path: &[u8]) -> (Cow<'_, [u8]>, Vec<Vec<u8>>) {
    let is_plain = !path.iter().any(|byte| matches!(byte, b'%' | b'\\' | b';'))
        && !path.windows(2).any(|pair| pair == b"/." || pair == b"//");
    if is_plain {
        return (Cow::Borrowed(path), Vec::new());
    }
    let once = decoded(path);
    // Bytes that only a second decoding shows also make further readings.
    let decoded = if once.contains(&b'%') { decoded(&once) } else { once };
    let either = |is_possible: bool| [false].into_iter().chain(is_possible.then_some(true));
    let has = |byte: u8| decoded.contains(&byte);
    let (has_parents, has_backslashes, has_parameters) =
        (decoded.windows(2).any(|pair| pair == b".."), has(b'\\'), has(b';'));
    // Without percent-encoded bytes, the time of the decoding changes nothing.
    let decodings = if path.contains(&b'%') { &Decoding::ALL[..] } else { &Decoding::ALL[..1] };
    // Without `..`, empty segments change nothing.
    let of_parents = if has_parents { &OF_PARENTS[..] } else { &OF_PARENTS[..1] };
    let mut readings: Vec<Vec<u8>> = Vec::new();
    for &decoding in decodings {
        for splits_at_backslashes in either(has_backslashes) {
            for drops_parameters in either(has_parameters) {
                for &(goes_up, merges_slashes) in of_parents {
                    let reader = Reader {
                        decoding,
                        goes_up,
                        merges_slashes,
                        splits_at_backslashes,
                        drops_parameters,
                    };
                    let reading = reader.read(path);
                    if !readings.contains(&reading) {
                        readings.push(reading);
                    }
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
        assert_eq!(others("/%2561"), ["/a"], "some servers decode it twice");
        for path in ["/x/%252e%252e/admin/x", "/x%252f..%252fadmin/x", "/x/..%253b/admin/x"] {
            assert!(others(path).contains(&"/admin/x".to_owned()), "{path} {:?}", others(path));
        }
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
    fn a_parent_segment_after_repeated_slashes_has_a_third_reading() {
        assert_eq!(normal("/b/c//../../admin/x"), "/admin/x");
        for path in [
            "/b/c//../../admin/x",
            "/b//../admin//x",
            "/b/%2f../admin/x",
            "/b/.//%2e%2e/admin/x",
            "/b\\\\..\\admin/x",
        ] {
            let others = others(path);
            assert!(others.contains(&"/b/admin/x".to_owned()), "{path} {others:?}");
            assert!(others.len() <= 47, "{path}");
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
            "/a%2fb/../admin/x",
            "/a%5cb\\..\\admin/x",
            "/;x%2fadmin/x",
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
