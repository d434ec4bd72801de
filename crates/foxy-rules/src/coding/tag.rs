//! Entity tags of coded responses. A strong tag names bytes, so a coded response needs another tag
//! than the response without coding (RFC 9110 §8.8.3.3).

use crate::coding::Coding;

/// Version of the coded bytes, which is part of each coded response's tag. If an encoder or its
/// level changes, this number must change, because a tag must not name two different bodies.
pub const REVISION: u32 = 1;

fn suffix(coding: Coding) -> String {
    format!(";foxy-{coding}-{REVISION}\"")
}

/// Returns the tag of the coded form (such as gzip) of a response with this tag. A weak tag stays
/// as it is, because it names all forms of the response. Returns `None` for an invalid tag.
pub fn coded_tag(tag: &[u8], coding: Coding) -> Option<Vec<u8>> {
    if tag.starts_with(b"W/\"") {
        return Some(tag.to_vec());
    }
    let inner = tag.strip_suffix(b"\"").filter(|inner| inner.starts_with(b"\""))?;
    Some([inner, suffix(coding).as_bytes()].concat())
}

/// Replaces the tags of coded forms (such as gzip) in a list of tags by the tags that the origin
/// knows.
pub fn uncoded_tags(list: &[u8]) -> Vec<u8> {
    Coding::ALL.into_iter().fold(list.to_vec(), |list, coding| {
        let suffix = suffix(coding);
        let (mut left, mut rest) = (Vec::new(), &list[..]);
        while let Some(at) = rest.windows(suffix.len()).position(|part| part == suffix.as_bytes()) {
            left.extend_from_slice(&rest[..at]);
            left.push(b'"');
            rest = &rest[at + suffix.len()..];
        }
        left.extend_from_slice(rest);
        left
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_coding_has_its_own_strong_tag() {
        let coded = |tag: &str, coding| {
            coded_tag(tag.as_bytes(), coding).map(|tag| String::from_utf8(tag).expect("text"))
        };
        assert_eq!(coded("\"a\"", Coding::Gzip).as_deref(), Some("\"a;foxy-gzip-1\""));
        assert_eq!(coded("\"a\"", Coding::Zstd).as_deref(), Some("\"a;foxy-zstd-1\""));
        assert_eq!(coded("\"\"", Coding::Brotli).as_deref(), Some("\";foxy-br-1\""));
        assert_eq!(coded("W/\"a\"", Coding::Gzip).as_deref(), Some("W/\"a\""));
        for bad in ["a", "\"a", "\"", ""] {
            assert_eq!(coded(bad, Coding::Gzip), None, "{bad}");
        }
    }

    #[test]
    fn the_origin_sees_its_own_tags() {
        let cases = [
            ("\"a;foxy-gzip-1\"", "\"a\""),
            ("\"a;foxy-zstd-1\", W/\"b\",\"c;foxy-br-1\"", "\"a\", W/\"b\",\"c\""),
            ("\"a\"", "\"a\""),
            ("*", "*"),
            ("\"a;foxy-gzip-1x\"", "\"a;foxy-gzip-1x\""),
        ];
        for (list, expected) in cases {
            assert_eq!(uncoded_tags(list.as_bytes()), expected.as_bytes(), "{list}");
        }
    }
}
