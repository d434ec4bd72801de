//! TLS with clients. This module chooses a certificate for each name, replaces certificates while
//! connections are open, and does the handshake. It reads no files.

use crate::core::transport::Transport;
use rustls::ServerConfig;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, Ticketer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// First byte of a TLS record that contains a handshake message (RFC 8446 §5.1).
pub(crate) const HANDSHAKE: u8 = 22;

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Certificate chains with their keys. The operator lists the preferred certificate first.
#[derive(Clone, Debug, Default)]
pub struct ClientCertificates {
    keys: Vec<Arc<CertifiedKey>>,
}

/// Reason for which a certificate and its key cannot be used. The text comes from the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// The certificate file is not in PEM format, or contains no certificate.
    NoCertificate(String),
    /// The key file is not in PEM format, or contains no private key.
    NoKey(String),
    /// The certificate and the key do not belong together, or TLS cannot use them.
    Unusable(String),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate(text) => write!(formatter, "no certificate can be read ({text})"),
            Self::NoKey(text) => write!(formatter, "no private key can be read ({text})"),
            Self::Unusable(text) => {
                write!(formatter, "certificate and key cannot be used ({text})")
            }
        }
    }
}

impl std::error::Error for CertificateError {}

impl ClientCertificates {
    /// Adds a certificate chain and its key, both in PEM format. The chain must begin with the
    /// server's own certificate. On an error, nothing is added.
    pub fn add(&mut self, chain: &[u8], key: &[u8]) -> Result<(), CertificateError> {
        let chain: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| CertificateError::NoCertificate(error.to_string()))?;
        let Some(own) = chain.first() else {
            return Err(CertificateError::NoCertificate("the file holds none".into()));
        };
        let unusable = |error: rustls::Error| CertificateError::Unusable(error.to_string());
        ParsedCertificate::try_from(own).map_err(unusable)?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| CertificateError::NoKey(error.to_string()))?;
        let certified = CertifiedKey::from_der(chain, key, &provider()).map_err(unusable)?;
        self.keys.push(Arc::new(certified));
        Ok(())
    }

    /// Chooses the first certificate that matches the name in the ClientHello and has a signature
    /// scheme that the client supports. If no certificate matches the name, chooses the first with
    /// such a scheme (RFC 6066 §3 leaves this choice to the server).
    fn choose(&self, hello: &ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = hello.server_name().and_then(|name| ServerName::try_from(name).ok());
        let named = |key: &&Arc<CertifiedKey>| name.as_ref().is_some_and(|name| is_for(key, name));
        let usable =
            |key: &&Arc<CertifiedKey>| key.key.choose_scheme(hello.signature_schemes()).is_some();
        let mut named_ones = self.keys.iter().filter(named);
        let found = named_ones.find(usable).or_else(|| self.keys.iter().find(usable));
        found.or(self.keys.first()).cloned()
    }
}

fn is_for(key: &CertifiedKey, name: &ServerName<'_>) -> bool {
    let own = key.cert.first().and_then(|own| ParsedCertificate::try_from(own).ok());
    own.is_some_and(|own| verify_server_name(&own, name).is_ok())
}

#[derive(Debug)]
struct InUse(RwLock<Arc<ClientCertificates>>);

impl ResolvesServerCert for InUse {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let certificates = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        certificates.choose(&hello)
    }
}

/// The server's TLS settings for handshakes with clients. Clones share the certificates.
#[derive(Clone, Debug)]
pub struct ClientTls {
    certificates: Arc<InUse>,
    config: Arc<ServerConfig>,
}

impl ClientTls {
    /// Creates settings for TLS 1.2 and 1.3. Clients can resume sessions with tickets. The keys
    /// that encrypt the tickets change regularly.
    pub fn new(certificates: ClientCertificates) -> Self {
        let certificates = Arc::new(InUse(RwLock::new(Arc::new(certificates))));
        let resolver = Arc::clone(&certificates) as Arc<dyn ResolvesServerCert>;
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if let Ok(ticketer) = Ticketer::new() {
            config.ticketer = ticketer;
        }
        Self { certificates, config: Arc::new(config) }
    }

    /// Uses `certificates` from the next handshake on. Open connections continue.
    pub fn replace(&self, certificates: ClientCertificates) {
        *self.certificates.0.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(certificates);
    }

    pub(crate) async fn accept(&self, stream: TcpStream) -> std::io::Result<Transport> {
        TlsAcceptor::from(Arc::clone(&self.config)).accept(stream).await.map(Transport::tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertifiedKey as Made, generate_simple_self_signed};

    fn made(name: &str) -> (String, String) {
        let Made { cert, signing_key } =
            generate_simple_self_signed([name.to_owned()]).expect("made");
        (cert.pem(), signing_key.serialize_pem())
    }

    #[test]
    fn a_certificate_goes_with_its_own_key_only() {
        let ((one, one_key), (_, two_key)) = (made("one.test"), made("two.test"));
        let check = |chain: &str, key: &str, expected: fn(&CertificateError) -> bool| {
            let error = ClientCertificates::default().add(chain.as_bytes(), key.as_bytes());
            let error = error.expect_err("unusable");
            assert!(expected(&error), "{error}");
        };
        check(&one, &two_key, |error| matches!(error, CertificateError::Unusable(_)));
        check(&one_key, &one_key, |error| matches!(error, CertificateError::NoCertificate(_)));
        check(&one, &one, |error| matches!(error, CertificateError::NoKey(_)));
        assert_eq!(ClientCertificates::default().add(one.as_bytes(), one_key.as_bytes()), Ok(()));
    }

    #[test]
    fn names_and_wildcards_are_known() {
        let (chain, key) = made("*.one.test");
        let mut certificates = ClientCertificates::default();
        certificates.add(chain.as_bytes(), key.as_bytes()).expect("usable");
        for (name, expected) in [("a.one.test", true), ("one.test", false), ("a.b.one.test", false)]
        {
            let name = ServerName::try_from(name).expect("a name");
            assert_eq!(is_for(&certificates.keys[0], &name), expected, "{name:?}");
        }
    }
}
