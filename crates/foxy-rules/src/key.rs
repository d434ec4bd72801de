//! Computes the cache key of a URL (RFC 9111 §2), and the secondary key of a request. The secondary
//! key has the values of the request fields that Vary names (RFC 9110 §12.5.5, RFC 9111 §4.1).

use crate::fields::{Fields, is_token, members};

/// Largest number of field names in Vary. A response with more names is not stored, so that
/// secondary keys stay short.
const MAX_VARY_NAMES: usize = 16;

/// The reason why a response has no secondary key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryError {
    /// Vary contains `*` or an invalid name, so the response matches no other request.
    Star,
    /// Vary contains more than 16 names.
    TooLong,
}

/// The field names in a Vary header, in lower case, sorted and without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vary {
    names: Vec<String>,
}

impl Vary {
    /// Parses all Vary lines of a response.
    pub fn of(response: &(impl Fields + ?Sized)) -> Result<Self, VaryError> {
        let mut names: Vec<String> = Vec::new();
        for member in members(response.values("vary")) {
            if member == b"*" || !is_token(member) {
                return Err(VaryError::Star);
            }
            names.push(String::from_utf8_lossy(member).to_ascii_lowercase());
        }
        let vary = Self::from_names(names);
        if vary.names.len() > MAX_VARY_NAMES { Err(VaryError::TooLong) } else { Ok(vary) }
    }

    /// Creates a Vary from names that [`Vary::names`] returned earlier.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names.dedup();
        Self { names }
    }

    /// Returns whether Vary names no field, so that the response fits all requests.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Returns the field names that Vary contains, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the secondary key of a request. Two requests have the same key exactly if their
    /// fields named by Vary match (RFC 9111 §4.1). Splitting a list over several lines makes no
    /// difference. White space and case make a difference, except in the Accept fields. An absent
    /// field only matches an absent field.
    pub fn key(&self, request: &(impl Fields + ?Sized)) -> Vec<u8> {
        let mut key = Vec::new();
        for name in &self.names {
            key.extend_from_slice(name.as_bytes());
            if request.has(name) {
                let value = if LISTS.contains(&name.as_str()) {
                    members(request.values(name))
                        .map(|member| normalised(member, name != "accept"))
                        .collect::<Vec<_>>()
                        .join(&b',')
                } else {
                    request
                        .values(name)
                        .map(<[u8]>::trim_ascii)
                        .collect::<Vec<_>>()
                        .join(&b", "[..])
                };
                // The length keeps two different requests from having the same key: without it, a
                // value could imitate the fields that follow.
                key.extend_from_slice(format!("={}:", value.len()).as_bytes());
                key.extend_from_slice(&value);
            }
            key.push(b'\n');
        }
        key
    }
}

/// Fields where empty members, and white space next to `,`, `;` and `=`, have no meaning (RFC 9110
/// §12.5). Case has no meaning either, except in parameters of Accept.
const LISTS: [&str; 4] = ["accept", "accept-charset", "accept-encoding", "accept-language"];

/// Removes white space next to `;` and `=`. If `fold` is true, also converts letters to lower case.
/// Keeps quoted strings unchanged. Replaces other runs of white space, which the grammar does not
/// allow, by one blank.
fn normalised(member: &[u8], fold: bool) -> Vec<u8> {
    let mut text: Vec<u8> = Vec::with_capacity(member.len());
    let (mut quoted, mut escaped) = (false, false);
    for &byte in member {
        if !quoted && matches!(byte, b' ' | b'\t') {
            if !matches!(text.last(), None | Some(b' ' | b';' | b'=')) {
                text.push(b' ');
            }
            continue;
        }
        if !quoted && matches!(byte, b';' | b'=') && text.last() == Some(&b' ') {
            text.pop();
        }
        text.push(if fold && !quoted { byte.to_ascii_lowercase() } else { byte });
        quoted ^= byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
    }
    text
}

/// Returns the cache key `scheme://authority/path?query`. The scheme and host are in lower case,
/// without dots at the end of the host, without the default port and without zeros before a port.
/// The path and query stay byte for byte, so URLs that an origin can tell apart have different keys.
pub fn cache_key(scheme: &str, authority: &[u8], path_and_query: &[u8]) -> Vec<u8> {
    let scheme = scheme.to_ascii_lowercase();
    let authority = authority.to_ascii_lowercase();
    let default_port: &[u8] = if scheme == "https" { b"443" } else { b"80" };
    let (host, port) = match authority.iter().rposition(|byte| matches!(byte, b':' | b']')) {
        Some(colon) if authority[colon] == b':' => (&authority[..colon], &authority[colon + 1..]),
        _ => (&authority[..], &[][..]),
    };
    let zeros = port.iter().take_while(|byte| **byte == b'0').count();
    let port = &port[zeros.min(port.len().saturating_sub(1))..];
    let dots = host.iter().rev().take_while(|byte| **byte == b'.').count();
    let mut key = Vec::with_capacity(
        scheme.len() + 3 + host.len() + 1 + port.len() + path_and_query.len().max(1),
    );
    key.extend_from_slice(scheme.as_bytes());
    key.extend_from_slice(b"://");
    key.extend_from_slice(&host[..host.len() - dots]);
    if !port.is_empty() && port != default_port {
        key.push(b':');
        key.extend_from_slice(port);
    }
    if !path_and_query.starts_with(b"/") {
        key.push(b'/');
    }
    key.extend_from_slice(path_and_query);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vary(value: &str) -> Vary {
        Vary::of(&[("Vary", value)][..]).expect("a list of names")
    }

    fn same(names: &str, one: &[(&str, &str)], other: &[(&str, &str)]) -> bool {
        vary(names).key(one) == vary(names).key(other)
    }

    #[test]
    fn names_are_sorted_once_each_and_stars_refused_anywhere() {
        assert_eq!(vary("Foo, ,bar, FOO").names(), ["bar", "foo"]);
        assert_eq!(Vary::of(&[("Vary", "a"), ("Vary", "b, *")][..]), Err(VaryError::Star));
        for malformed in ["x-a x-b", "a;q=1", "\"a\"", "a, (b)"] {
            assert_eq!(Vary::of(&[("Vary", malformed)][..]), Err(VaryError::Star), "{malformed}");
        }
        let long: Vec<String> = (0..=MAX_VARY_NAMES).map(|number| format!("n{number}")).collect();
        assert_eq!(Vary::of(&[("Vary", long.join(",").as_str())][..]), Err(VaryError::TooLong));
    }

    #[test]
    fn requests_match_when_their_lists_do() {
        assert!(same("foo", &[("Foo", "1"), ("Foo", "2")], &[("foo", " 1, 2 ")]));
        assert!(same("accept", &[("Accept", "a;q = 1")], &[("Accept", "a; q=1")]));
        assert!(same(
            "accept-encoding",
            &[("Accept-Encoding", "gzip,, BR")],
            &[("Accept-Encoding", "gzip , br")]
        ));
        assert!(same("foo", &[("Bar", "1")], &[("Bar", "2")]));
        assert!(!same("foo", &[("Foo", "1")], &[("Foo", "2")]));
        assert!(!same("foo", &[("Foo", "1,2")], &[("Foo", "2,1")]));
        assert!(!same("foo", &[("Foo", "")], &[]));
    }

    #[test]
    fn where_the_grammar_is_unknown_every_character_counts() {
        assert!(!same("foo", &[("Foo", "1, 2")], &[("foo", "1,2")]));
        assert!(!same("accept", &[("Accept", "a;b=C")], &[("Accept", "a;b=c")]));
        assert!(!same("accept", &[("Accept", "a/ b")], &[("Accept", "a/b")]));
        assert!(!same("cookie", &[("Cookie", "a=B")], &[("Cookie", "a=b")]));
        assert!(!same("accept", &[("Accept", "a;b=\"X  Y\"")], &[("Accept", "a;b=\"x y\"")]));
        assert!(!same("accept", &[("Accept", "a;b=\"\\\" C\"")], &[("Accept", "a;b=\"\\\"c\"")]));
    }

    #[test]
    fn a_value_cannot_pass_for_another_field() {
        assert!(!same("a, b", &[("a", "1\nb=1:2")], &[("a", "1"), ("b", "2")]));
        assert!(!same("a, b", &[("a", "1"), ("a", "b=1:2")], &[("a", "1"), ("b", "2")]));
    }

    fn text_key(scheme: &str, authority: &str, path: &str) -> String {
        String::from_utf8(cache_key(scheme, authority.as_bytes(), path.as_bytes()))
            .expect("ASCII in, ASCII out")
    }

    #[test]
    fn case_and_default_ports_do_not_matter_and_everything_else_does() {
        assert_eq!(text_key("HTTP", "A.Test:80", "/x"), "http://a.test/x");
        assert_eq!(text_key("http", "a.test", ""), "http://a.test/");
        assert_eq!(text_key("http", "a.test", "?q"), "http://a.test/?q");
        assert_eq!(text_key("https", "a.test:443", "/X?Y"), "https://a.test/X?Y");
        assert_eq!(text_key("http", "a.test:443", "/"), "http://a.test:443/");
        assert_eq!(text_key("http", "[::1]:80", "/"), "http://[::1]/");
        assert_eq!(text_key("http", "[::1]:81", "/"), "http://[::1]:81/");
        assert_eq!(text_key("http", "a.test.", "/"), "http://a.test/");
        assert_eq!(text_key("http", "a.test..:81", "/"), "http://a.test:81/");
        assert_eq!(text_key("http", "a.test.:0080", "/"), "http://a.test/");
        assert_eq!(text_key("https", "[::1]:08443", "/"), "https://[::1]:8443/");
        assert_eq!(text_key("http", "a.test:", "/"), "http://a.test/");
        assert_eq!(text_key("http", "a.test:00", "/"), "http://a.test:0/");
        assert_ne!(text_key("http", "a.test", "/x"), text_key("https", "a.test", "/x"));
        assert_ne!(text_key("http", "a.test", "/%61"), text_key("http", "a.test", "/a"));
    }
}
