//! TLS on both sides of a proxy that is started: what it is given for that, and what it speaks
//! within.

use foxy_authority::MadeCertificate;
use foxy_lab::wire::tls::{Trust, TrustError};
use std::fmt;
use std::path::Path;

/// The name of its origin for those that compare names alone, and not addresses.
pub const NAME: &str = "localhost";

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const AUTHORITY: &str = "authority.pem";

/// What a proxy speaks within TLS that it ends itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    /// It ends none.
    Nothing,
    /// HTTP/1.1.
    Http1,
    /// HTTP/1.1 and HTTP/2.
    Http2,
}

impl Ends {
    /// What it is not able to where it ends TLS and is asked in HTTP/2, or not; none where it is.
    pub const fn lacks(self, http2: bool) -> Option<&'static str> {
        match self {
            Self::Nothing => Some("it ends no TLS itself"),
            Self::Http1 if http2 => Some("it speaks no HTTP/2 with clients"),
            Self::Http1 | Self::Http2 => None,
        }
    }
}

/// What a proxy is given to speak TLS on both sides.
#[derive(Clone)]
pub struct Papers {
    /// The certificate for where it listens, and its key.
    pub own: MadeCertificate,
    /// The authority in PEM that its clients trust, and that its origin must be vouched for by.
    pub authority: String,
}

impl fmt::Debug for Papers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Papers").finish_non_exhaustive()
    }
}

impl Papers {
    /// As files in the proxy's folder: name, text, and who may read it.
    pub fn files(&self) -> [(&'static str, &str, u32); 3] {
        [
            (CERTIFICATE, &self.own.certificate, 0o644),
            (KEY, &self.own.key, 0o600),
            (AUTHORITY, &self.authority, 0o644),
        ]
    }

    /// Whom its clients trust.
    ///
    /// # Errors
    /// [`TrustError`], when what should be the authority is none.
    pub fn trust(&self) -> Result<Trust, TrustError> {
        let mut trust = Trust::default();
        trust.add_pem(self.authority.as_bytes()).map(|()| trust)
    }
}

/// The same where it lies, as a proxy's plan says it.
#[derive(Clone, Debug)]
pub struct TlsFiles {
    /// The certificate that it shows.
    pub certificate: String,
    /// The key of that.
    pub key: String,
    /// The authority that vouches for its origin.
    pub authority: String,
}

impl TlsFiles {
    /// In this folder.
    pub fn within(folder: &Path) -> Self {
        let path = |name| folder.join(name).display().to_string();
        Self { certificate: path(CERTIFICATE), key: path(KEY), authority: path(AUTHORITY) }
    }
}
