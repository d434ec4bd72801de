//! The secret token that permits a client to purge, and the check whether a request contains the
//! token. This module reads no files.

use foxy_http::Headers;
use std::fmt;

/// Minimum length of a token in bytes.
pub const MIN_TOKEN_BYTES: usize = 16;

/// A purge token. The `Debug` output of a token never shows the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// Creates a token from `text`. Returns `None` if `text` contains a character other than
    /// visible ASCII, or is shorter than [`MIN_TOKEN_BYTES`].
    pub fn new(text: &str) -> Option<Self> {
        let sound =
            text.len() >= MIN_TOKEN_BYTES && text.bytes().all(|byte| byte.is_ascii_graphic());
        sound.then(|| Self(text.as_bytes().to_vec()))
    }

    /// Returns true if `given` equals the token. The comparison takes constant time, so that its
    /// duration does not reveal the token.
    pub fn is(&self, given: &[u8]) -> bool {
        let differences = self.0.iter().zip(given).fold(0, |all, (one, other)| all | (one ^ other));
        std::hint::black_box(differences) == 0 && self.0.len() == given.len()
    }

    /// Returns true if a field value is `Bearer` followed by this token (RFC 6750 §2.1).
    pub fn matches_bearer(&self, value: &[u8]) -> bool {
        let Some((scheme, given)) = value.split_at_checked(7) else { return false };
        scheme.eq_ignore_ascii_case(b"bearer ") && self.is(given.trim_ascii())
    }

    /// Returns true if a request contains the token in `Proxy-Authorization` or `Authorization`.
    pub(crate) fn is_in(&self, headers: &Headers) -> bool {
        let fields = headers.get_all("proxy-authorization").chain(headers.get_all("authorization"));
        fields.fold(false, |found, value| found | self.matches_bearer(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_counts() {
        let token = Token::new("0123456789abcdef").expect("long enough");
        for (value, expected) in [
            ("Bearer 0123456789abcdef", true),
            ("bearer  0123456789abcdef ", true),
            ("Bearer 0123456789abcdeF", false),
            ("Bearer 0123456789abcde", false),
            ("Bearer 0123456789abcdef0", false),
            ("Basic 0123456789abcdef", false),
            ("0123456789abcdef", false),
            ("Bearer ", false),
            ("", false),
        ] {
            assert_eq!(token.matches_bearer(value.as_bytes()), expected, "{value:?}");
        }
    }

    #[test]
    fn a_token_is_one_long_word() {
        for text in ["", "short", "0123456789 abcdef", "0123456789abcdé0"] {
            assert_eq!(Token::new(text), None, "{text:?}");
        }
        assert_eq!(format!("{:?}", Token::new("0123456789abcdef")), "Some(Token(…))");
    }
}
