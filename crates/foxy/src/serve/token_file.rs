//! The file that holds the token of the admin server and of PURGE.

use crate::failure::Failure;
use crate::secret_file::{self, SecretError};
use foxy_proxy::core::token::{TOKEN_LEAST, Token};
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
    let name = path.display();
    let unusable =
        |what: &str| Failure::Unusable(format!("the token file {name} (admin-token-file) {what}"));
    let right = format!(
        "write one word of at least {TOKEN_LEAST} characters to it, as `openssl rand -hex 32` makes"
    );
    let content = secret_file::read(path).map_err(|error| match error {
        SecretError::Unreadable(_) => unusable(&format!("{error}; {right}")),
        _ => unusable(&error.to_string()),
    })?;
    let word = String::from_utf8_lossy(&content).trim().to_owned();
    Token::new(&word).map(|_| word).ok_or_else(|| unusable(&format!("holds no token; {right}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_token_is_read_without_its_line_end_and_nothing_else_is_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        let missing = read(&path).expect_err("no file").to_string();
        assert!(missing.contains("token (admin-token-file) cannot be read"), "{missing}");
        std::fs::write(&path, "0123456789abcdef\n").expect("written");
        std::fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changed");
        let public = read(&path).expect_err("every user may read it").to_string();
        assert!(public.contains("(admin-token-file) may be read by every user"), "{public}");
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
        assert!(read(&path).is_ok_and(|token| token.is(b"0123456789abcdef")));
        std::fs::write(&path, "too short\n").expect("written");
        assert!(read(&path).expect_err("too short").to_string().contains("at least 16 characters"));
    }
}
