//! TLS on both sides of a started proxy: its certificate files and HTTP versions.

use foxy_authority::MadeCertificate;
use foxy_lab::wire::tls::{Trust, TrustError};
use std::fmt;
use std::path::Path;

/// The host name of the origin, for proxies that cannot verify the certificate of an IP address.
pub const NAME: &str = "localhost";

const CERTIFICATE: &str = "certificate.pem";
const KEY: &str = "key.pem";
const AUTHORITY: &str = "authority.pem";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Nothing,
    Http1,
    Http2,
}

impl Ends {
    pub const fn lacks(self, http2: bool) -> Option<&'static str> {
        match self {
            Self::Nothing => Some("the proxy does not terminate TLS"),
            Self::Http1 if http2 => Some("the proxy does not speak HTTP/2 with clients"),
            Self::Http1 | Self::Http2 => None,
        }
    }
}

#[derive(Clone)]
pub struct Papers {
    pub own: MadeCertificate,
    pub authority: String,
}

impl fmt::Debug for Papers {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Papers").finish_non_exhaustive()
    }
}

impl Papers {
    pub fn files(&self) -> [(&'static str, &str, u32); 3] {
        [
            (CERTIFICATE, &self.own.certificate, 0o644),
            (KEY, &self.own.key, 0o600),
            (AUTHORITY, &self.authority, 0o644),
        ]
    }

    pub fn trust(&self) -> Result<Trust, TrustError> {
        let mut trust = Trust::default();
        trust.add_pem(self.authority.as_bytes()).map(|()| trust)
    }
}

#[derive(Clone, Debug)]
pub struct TlsFiles {
    pub certificate: String,
    pub key: String,
    pub authority: String,
}

impl TlsFiles {
    pub fn within(folder: &Path) -> Self {
        let path = |name| folder.join(name).display().to_string();
        Self { certificate: path(CERTIFICATE), key: path(KEY), authority: path(AUTHORITY) }
    }
}
