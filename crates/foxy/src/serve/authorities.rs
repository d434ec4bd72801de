//! Whose certificates are trusted: the system's authorities and the operator's files. It reads them
//! once, at start-up.

use crate::failure::Failure;
use crate::terminal::{self, Level};
use foxy_proxy::upstream::{Authorities, OriginTls};
use std::path::PathBuf;

/// TLS to origins, as the system and these files have it.
///
/// # Errors
/// A file cannot be read or used. Trouble with the system's authorities is only reported: plain
/// HTTP needs none.
pub fn origin_tls(files: &[PathBuf]) -> Result<OriginTls, Failure> {
    let mut authorities = Authorities::none();
    let found = rustls_native_certs::load_native_certs();
    if authorities.add(found.certs) == 0 && files.is_empty() {
        let text = "foxy: the system has no certificate authorities, so no https:// origin is trusted; \
                    install them (ca-certificates), name their file in SSL_CERT_FILE, or give origin-ca";
        terminal::report(Level::Warning, text);
    }
    for file in files {
        let refuse = |what: String| {
            let path = file.display();
            Failure::Unusable(format!(
                "{path} (origin-ca): {what}; give a readable file of certificates in PEM"
            ))
        };
        let pem = std::fs::read(file).map_err(|error| refuse(error.to_string()))?;
        authorities.add_pem(&pem).map_err(|error| refuse(error.to_string()))?;
    }
    Ok(OriginTls::trusting(authorities))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_gives_no_authority_is_named_with_what_is_wrong() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing.pem");
        let empty = folder.path().join("empty.pem");
        std::fs::write(&empty, "nothing").expect("written");
        for (file, expected) in [(missing, "No such file"), (empty, "holds no certificate")] {
            let Err(Failure::Unusable(text)) = origin_tls(&[file]) else {
                panic!("{expected}: taken")
            };
            assert!(text.contains("(origin-ca): ") && text.contains(expected), "{text}");
        }
    }
}
