//! TLS of the lab: a certificate authority for this process only, certificates for origins, and the
//! authorities that clients trust. The module reads no files. `outbound` connects to servers,
//! `inbound` performs handshakes with clients, and `entrance` handles the start of client
//! connections.

#[cfg(test)]
pub(crate) mod by_hand;
pub(crate) mod entrance;
pub(crate) mod inbound;
pub(crate) mod outbound;

pub use inbound::{Certificates, HandshakeFailure};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::net::IpAddr;
use std::sync::Arc;
use std::{fmt, io};

/// The ALPN identifiers of the protocols (RFC 7301).
const HTTP1: &[u8] = b"http/1.1";
const HTTP2: &[u8] = b"h2";

const NAME: &str = "foxy lab, one run";

/// A certificate for an origin, and the authority that signed it. The authority's private key is
/// forgotten after signing.
#[derive(Clone, Debug)]
pub struct EphemeralAuthority {
    authority: String,
    server: Arc<ServerConfig>,
}

impl EphemeralAuthority {
    /// Creates a certificate for `localhost`, the loopback addresses, and `address`.
    pub fn make(address: IpAddr) -> io::Result<Self> {
        Self::of(&["localhost", "127.0.0.1", "::1", &address.to_string()])
    }

    pub(crate) fn of(names: &[&str]) -> io::Result<Self> {
        let (authority, certificate, key) = signed(names).map_err(io::Error::other)?;
        let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let mut server = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .map_err(io::Error::other)?;
        server.alpn_protocols = vec![HTTP1.to_vec()];
        Ok(Self { authority, server: Arc::new(server) })
    }

    /// Returns the authority's certificate in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.server)
    }
}

fn signed(names: &[&str]) -> Result<(String, CertificateDer<'static>, KeyPair), rcgen::Error> {
    let mut own = CertificateParams::default();
    own.distinguished_name.push(DnType::CommonName, NAME);
    own.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    own.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let own_key = KeyPair::generate()?;
    let authority = own.self_signed(&own_key)?.pem();
    let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
    let key = KeyPair::generate()?;
    let certificate = CertificateParams::new(names)?.signed_by(&key, &Issuer::new(own, own_key))?;
    Ok((authority, certificate.der().clone(), key))
}

/// The certificate authorities that a client trusts.
#[derive(Clone, Debug)]
pub struct Trust {
    roots: RootCertStore,
}

/// The reason why a PEM text cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrustError {
    /// The text is not PEM. The value contains the parser's message.
    NotPem(String),
    /// The text contains no certificate.
    Empty,
    /// A certificate is invalid. The value contains the parser's message.
    BadCertificate(String),
}

impl fmt::Display for TrustError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPem(text) => write!(formatter, "the file is not PEM ({text})"),
            Self::Empty => formatter.write_str("the file holds no certificate in PEM"),
            Self::BadCertificate(text) => {
                write!(formatter, "a certificate in the file cannot be read ({text})")
            }
        }
    }
}

impl std::error::Error for TrustError {}

impl Default for Trust {
    fn default() -> Self {
        Self { roots: RootCertStore::empty() }
    }
}

impl Trust {
    /// Adds all certificates of a PEM text to the trusted authorities.
    pub fn add_pem(&mut self, pem: &[u8]) -> Result<(), TrustError> {
        let mut found = false;
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate.map_err(|error| TrustError::NotPem(error.to_string()))?;
            let added = self.roots.add(certificate);
            added.map_err(|error| TrustError::BadCertificate(error.to_string()))?;
            found = true;
        }
        if found { Ok(()) } else { Err(TrustError::Empty) }
    }

    #[cfg(test)]
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.roots.roots.extend(other.roots.roots.iter().cloned());
    }

    /// Adds the system's certificates to the trusted authorities. Skips certificates that cannot be
    /// parsed.
    pub fn add_known(&mut self, certificates: Vec<CertificateDer<'_>>) {
        self.roots.add_parsable_certificates(certificates);
    }

    /// Returns a client configuration without session resumption. So every connection needs a full
    /// handshake.
    pub(crate) fn client_without_memory(&self, http2: bool) -> Arc<ClientConfig> {
        let mut config = Arc::unwrap_or_clone(self.client(http2));
        config.resumption = Resumption::disabled();
        Arc::new(config)
    }

    pub(crate) fn client(&self, http2: bool) -> Arc<ClientConfig> {
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_root_certificates(self.roots.clone())
            .with_no_client_auth();
        config.alpn_protocols = vec![if http2 { HTTP2 } else { HTTP1 }.to_vec()];
        Arc::new(config)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_in_pem_is_trusted_and_what_is_none_is_refused() {
        let made = EphemeralAuthority::make(IpAddr::from([192, 0, 2, 1])).expect("made");
        let mut trust = Trust::default();
        assert_eq!(trust.add_pem(made.authority().as_bytes()), Ok(()));
        assert_eq!(trust.roots.len(), 1);
        assert_eq!(trust.add_pem(b"no PEM at all\n"), Err(TrustError::Empty));
        let cut = &made.authority()[..made.authority().len() / 2];
        assert!(matches!(trust.add_pem(cut.as_bytes()), Err(TrustError::NotPem(_))));
        let other = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(matches!(trust.add_pem(other.as_bytes()), Err(TrustError::BadCertificate(_))));
        assert_eq!(trust.roots.len(), 1);
    }
}
