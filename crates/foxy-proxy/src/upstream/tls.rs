//! TLS with origins: trusted certificate authorities, the handshake, and the reasons for failed
//! handshakes. This module opens no connections and reads no files.

use crate::core::tls::provider;
use crate::core::transport::Transport;
use crate::upstream::dialled::{DialedProtocol, Dialled};
use crate::upstream::error::TlsError;
use rustls::client::WantsClientCert;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, TrustAnchor};
use rustls::{CertificateError, ClientConfig, ConfigBuilder, RootCertStore};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// Names of the HTTP versions that TLS handshakes contain (ALPN, RFC 7301).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

/// Certificate authorities that may sign the certificates of origins.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: RootCertStore,
}

/// The reason why a file contains no usable certificate authorities. The text comes from the
/// parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthoritiesError {
    /// The file is not in PEM format.
    NotPem(String),
    /// The file contains no certificate.
    Empty,
    /// A certificate cannot be parsed.
    BadCertificate(String),
}

impl fmt::Display for AuthoritiesError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPem(text) => write!(formatter, "the file is not PEM ({text})"),
            Self::Empty => formatter.write_str("the file holds no certificate"),
            Self::BadCertificate(text) => {
                write!(formatter, "a certificate in the file cannot be read ({text})")
            }
        }
    }
}

impl std::error::Error for AuthoritiesError {}

impl Authorities {
    /// Creates an empty list. With this list, the proxy trusts no origin.
    pub fn none() -> Self {
        Self { roots: RootCertStore::empty() }
    }

    /// Adds the certificate authorities of the operating system. Skips certificates that cannot be
    /// parsed. Returns the number of added authorities.
    pub fn add(&mut self, certificates: Vec<CertificateDer<'_>>) -> usize {
        self.roots.add_parsable_certificates(certificates).0
    }

    fn verifying(self) -> ConfigBuilder<ClientConfig, WantsClientCert> {
        ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_root_certificates(self.roots)
    }

    /// Adds every certificate of a PEM file as a trusted authority.
    ///
    /// # Errors
    /// [`AuthoritiesError`], if any part of the file is unusable.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), AuthoritiesError> {
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate =
                certificate.map_err(|error| AuthoritiesError::NotPem(error.to_string()))?;
            let added = self.roots.add(certificate);
            added.map_err(|error| AuthoritiesError::BadCertificate(error.to_string()))?;
            found = true;
        }
        if found { Ok(()) } else { Err(AuthoritiesError::Empty) }
    }
}

/// The certificate with which the proxy identifies itself to origins (RFC 8446 §4.4.2), and its
/// key.
#[derive(Debug)]
pub struct OwnCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl OwnCertificate {
    /// Reads a certificate chain and its key, both in PEM format.
    ///
    /// # Errors
    /// A text about the file that cannot be used.
    pub fn read(chain: &[u8], key: &[u8]) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| format!("no certificate can be read ({error})"))?;
        if chain.is_empty() {
            return Err("the certificate file contains no certificate".into());
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| format!("no private key can be read ({error})"))?;
        Ok(Self { chain, key })
    }
}

/// TLS settings for origins. Clones share the sessions that can be resumed. Two values are equal if
/// they trust the same authorities and send the same certificate.
#[derive(Clone, Debug)]
pub struct OriginTls {
    roots: Vec<TrustAnchor<'static>>,
    chain: Vec<CertificateDer<'static>>,
    /// Settings that offer only HTTP/1.1 to the origin.
    http1: Arc<ClientConfig>,
    /// Settings that offer HTTP/2 and HTTP/1.1 to the origin.
    both: Arc<ClientConfig>,
}

impl PartialEq for OriginTls {
    fn eq(&self, other: &Self) -> bool {
        self.roots == other.roots && self.chain == other.chain
    }
}

impl Eq for OriginTls {}

impl Default for OriginTls {
    fn default() -> Self {
        Self::trusting(Authorities::none())
    }
}

impl OriginTls {
    /// Creates settings for TLS 1.2 and 1.3. An origin's certificate must be for the origin's name
    /// and signed by one of `authorities`.
    pub fn trusting(authorities: Authorities) -> Self {
        let roots = authorities.roots.roots.clone();
        Self::of(authorities.verifying().with_no_client_auth(), roots, Vec::new())
    }

    /// Creates settings like [`Self::trusting`]. They also have a certificate for origins that
    /// require a certificate from clients.
    ///
    /// # Errors
    /// The reason why the certificate and the key cannot be used.
    pub fn presenting(own: OwnCertificate, authorities: Authorities) -> Result<Self, String> {
        let OwnCertificate { chain, key } = own;
        let roots = authorities.roots.roots.clone();
        let config = authorities.verifying().with_client_auth_cert(chain.clone(), key);
        let config =
            config.map_err(|error| format!("certificate and key cannot be used ({error})"))?;
        Ok(Self::of(config, roots, chain))
    }

    fn of(
        mut config: ClientConfig,
        roots: Vec<TrustAnchor<'static>>,
        chain: Vec<CertificateDer<'static>>,
    ) -> Self {
        config.alpn_protocols = vec![HTTP1.to_vec()];
        let mut both = config.clone();
        both.alpn_protocols.insert(0, HTTP2.to_vec());
        Self { roots, chain, http1: Arc::new(config), both: Arc::new(both) }
    }

    /// Does the TLS handshake with an origin. Sends the host name (SNI, RFC 6066 §3), unless the
    /// host is an IP address. The certificate must contain the host. The origin chooses one of the
    /// offered protocols (ALPN, RFC 7301). If it chooses none, the protocol is HTTP/1.1.
    pub(crate) async fn connect(
        &self,
        host: &str,
        stream: Transport,
        offered: DialedProtocol,
    ) -> Result<Dialled, TlsError> {
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let name = ServerName::try_from(bare.trim_end_matches('.').to_owned());
        let name = name.map_err(|_| TlsError::WrongName)?;
        let config = match offered {
            DialedProtocol::Http1 => &self.http1,
            DialedProtocol::Http2 => &self.both,
        };
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.map_err(|error| failure(&error))?;
        let chose_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        let spoken = if chose_http2 { DialedProtocol::Http2 } else { DialedProtocol::Http1 };
        Ok(Dialled { stream: Transport::tls(stream), spoken })
    }
}

impl OriginTls {
    /// Does the TLS handshake for HTTP/1.1 with the server `host`. The `foxy` program uses this
    /// function for requests of its own, to an ACME authority.
    ///
    /// # Errors
    /// The handshake fails, or `host` is not a valid host name.
    pub async fn open(
        &self,
        host: &str,
        stream: TcpStream,
    ) -> Result<impl AsyncRead + AsyncWrite + Send + Unpin + use<>, TlsError> {
        let stream = Transport::Plain(stream);
        let dialled = self.connect(host, stream, DialedProtocol::Http1).await?;
        Ok(dialled.stream)
    }
}

fn failure(error: &io::Error) -> TlsError {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    match inner {
        Some(rustls::Error::InvalidCertificate(why)) => certificate_failure(why),
        Some(rustls::Error::AlertReceived(_)) => TlsError::Refused,
        Some(_) => TlsError::Failed,
        None => TlsError::Closed,
    }
}

fn certificate_failure(why: &CertificateError) -> TlsError {
    match why {
        CertificateError::UnknownIssuer => TlsError::Untrusted,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            TlsError::WrongName
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => TlsError::Expired,
        _ => TlsError::BadCertificate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_holds_no_authority_is_refused_with_what_is_wrong() {
        let check = |pem: &[u8], expected: fn(&AuthoritiesError) -> bool| {
            let error = Authorities::none().add_pem(pem).expect_err("nothing usable");
            assert!(expected(&error), "{error}");
        };
        check(b"", |error| *error == AuthoritiesError::Empty);
        check(b"not a certificate", |error| *error == AuthoritiesError::Empty);
        check(b"-----BEGIN CERTIFICATE-----\nAAAA\n", |error| {
            matches!(error, AuthoritiesError::NotPem(_))
        });
        check(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", |error| {
            matches!(error, AuthoritiesError::BadCertificate(_))
        });
    }
}
