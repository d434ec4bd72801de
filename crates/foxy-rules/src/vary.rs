//! Vary (RFC 9110 §12.5.5, RFC 9111 §4.1): which request fields chose a response, and the secondary
//! key they make.

use crate::fields::{Fields, is_token, members};

/// Vary lists longer than this are not compared.
pub const LONGEST_VARY: usize = 16;

/// Why no secondary key can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VaryError {
    /// `*`, or a name that is no token, so that nobody knows what chose the response: it matches no
    /// other request.
    Star,
    /// More than [`LONGEST_VARY`] names.
    TooLong,
}

/// The names of a Vary field: lower case, sorted, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Vary {
    names: Vec<String>,
}

impl Vary {
    /// Reads a response's Vary over all its lines.
    ///
    /// # Errors
    /// [`VaryError`].
    pub fn of(response: &(impl Fields + ?Sized)) -> Result<Self, VaryError> {
        let mut names: Vec<String> = Vec::new();
        for member in members(response.values("vary")) {
            if member == b"*" || !is_token(member) {
                return Err(VaryError::Star);
            }
            names.push(String::from_utf8_lossy(member).to_ascii_lowercase());
        }
        names.sort();
        names.dedup();
        if names.len() > LONGEST_VARY { Err(VaryError::TooLong) } else { Ok(Self { names }) }
    }

    /// A list from names as [`Vary::names`] gave them.
    pub fn from_names(names: impl IntoIterator<Item = String>) -> Self {
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        names.dedup();
        Self { names }
    }

    /// Whether every request gets the same response.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, sorted.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The secondary key of a request: equal for two requests exactly when their selecting fields
    /// match (§4.1). The division into lines never counts. White space and case count, but in
    /// [`LISTS`], whose grammar says that they mean nothing. A missing field matches only a missing
    /// one.
    pub fn key(&self, request: &(impl Fields + ?Sized)) -> Vec<u8> {
        let mut key = Vec::new();
        for name in &self.names {
            key.extend_from_slice(name.as_bytes());
            if request.has(name) {
                let value = if LISTS.contains(&name.as_str()) {
                    members(request.values(name))
                        .map(|member| normal(member, name != "accept"))
                        .collect::<Vec<_>>()
                        .join(&b',')
                } else {
                    request
                        .values(name)
                        .map(<[u8]>::trim_ascii)
                        .collect::<Vec<_>>()
                        .join(&b", "[..])
                };
                // The length keeps a value from passing for the fields after it.
                key.extend_from_slice(format!("={}:", value.len()).as_bytes());
                key.extend_from_slice(&value);
            }
            key.push(b'\n');
        }
        key
    }
}

/// Lists of members with parameters, in which empty members and white space beside `,`, `;` and `=`
/// mean nothing (RFC 9110 §12.5). Case means nothing in them but in Accept, where a parameter may
/// have it.
pub const LISTS: [&str; 4] = ["accept", "accept-charset", "accept-encoding", "accept-language"];

/// A member of one of [`LISTS`] without white space beside `;` and `=`, and in lower case if
/// `fold`; what is quoted stays. White space elsewhere is no part of the grammar, and kept.
fn normal(member: &[u8], fold: bool) -> Vec<u8> {
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
        let long: Vec<String> = (0..=LONGEST_VARY).map(|number| format!("n{number}")).collect();
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
}
