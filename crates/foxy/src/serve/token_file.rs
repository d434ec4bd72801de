//! The file that holds the token of the admin server and of PURGE.

use crate::failure::Failure;
use foxy_proxy::token::{TOKEN_LEAST, Token};
use std::path::Path;

/// Reads it.
///
/// # Errors
/// It cannot be read, or holds no token; the message says what would be right.
pub fn read(path: &Path) -> Result<Token, Failure> {
    Ok(Token::new(&word(path)?).expect("a word is a token"))
}

/// Reads it, to be sent.
///
/// # Errors
/// The same.
pub fn word(path: &Path) -> Result<String, Failure> {
    let unusable = |what: &str| {
        let text = format!(
            "the token file {} (admin-token-file) {what}; write one word of at least {TOKEN_LEAST} characters to it, \
             as `openssl rand -hex 32` makes",
            path.display()
        );
        Failure::Unusable(text)
    };
    let text =
        std::fs::read_to_string(path).map_err(|error| unusable(&format!("cannot be read: {error}")))?;
    let word = text.trim().to_owned();
    Token::new(&word).map(|_| word).ok_or_else(|| unusable("holds no token"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_without_its_line_end_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let missing = read(&path).expect_err("no file").to_string();
        assert!(missing.contains("token (admin-token-file) cannot be read"), "{missing}");
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        assert!(read(&path).is_ok_and(|token| token.is(b"0123456789abcdef")));
        std::fs::write(&path, "too short\n").expect("written");
        assert!(read(&path).expect_err("too short").to_string().contains("at least 16 characters"));
    }
}
