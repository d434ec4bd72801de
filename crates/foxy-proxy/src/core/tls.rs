//! TLS with clients. This module chooses a certificate for each name, replaces certificates while
//! connections are open, and does the handshake. It reads no files.

use crate::core::acme_challenges::AcmeChallenges;
use crate::core::client_certificates::{CertificateRefusal, ClientAuthorities, RefusedClients};
use crate::core::live::Live;
use crate::core::transport::Transport;
use bytes::Bytes;
use foxy_base::{Instant, clock};
use foxy_http::RequestHead;
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{self, Ticketer};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ClientHello, NoClientAuth, ParsedCertificate, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{HandshakeKind, ServerConfig};
use std::cell::RefCell;
use std::fmt;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// Time after which a client's certificate on an open connection is verified again, because the
/// certificate or a list of revoked certificates may have expired.
const VERIFIED_FOR: Duration = Duration::from_secs(60);

/// First byte of a TLS record that contains a handshake message (RFC 8446 §5.1).
pub(crate) const HANDSHAKE: u8 = 22;

pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Certificate chains with their private keys. The operator lists the preferred certificate first.
#[derive(Clone, Debug, Default)]
pub struct ClientCertificates {
    keys: Vec<Arc<CertifiedKey>>,
}

/// The reason why a certificate and its key cannot be used. The text comes from the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateError {
    /// The certificate file is not in PEM format, or contains no certificate.
    NoCertificate(String),
    /// The key file is not in PEM format, or contains no private key.
    NoKey(String),
    /// The file of revoked certificates is not in PEM format, or contains no usable list.
    NoList(String),
    /// The certificate and the key do not belong together, or TLS cannot use them.
    Unusable(String),
}

impl fmt::Display for CertificateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCertificate(text) => write!(formatter, "no certificate can be read ({text})"),
            Self::NoKey(text) => write!(formatter, "no private key can be read ({text})"),
            Self::NoList(text) => {
                write!(formatter, "no list of revoked certificates can be read ({text})")
            }
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
        self.keys.push(Arc::new(certified(chain, key)?));
        Ok(())
    }

    /// Returns whether a certificate is for the host `name`.
    pub fn has(&self, name: &str) -> bool {
        let name = ServerName::try_from(name);
        name.is_ok_and(|name| self.keys.iter().any(|key| is_for(key, &name)))
    }

    /// Chooses the first certificate that matches the name in the ClientHello and has a signature
    /// scheme that the client supports. If there is none, chooses the first certificate with such a
    /// scheme (RFC 6066 §3 leaves this choice to the server). If no certificate has such a scheme,
    /// chooses the first certificate.
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

fn certified(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
    let (chain, key) = read(chain, key)?;
    ParsedCertificate::try_from(&chain[0]).map_err(unusable)?;
    CertifiedKey::from_der(chain, key, &provider()).map_err(unusable)
}

/// Reads a certificate chain, which has at least one certificate, and a key.
fn read(
    chain: &[u8],
    key: &[u8],
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), CertificateError> {
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_slice_iter(chain).collect();
    let chain = chain.map_err(|error| CertificateError::NoCertificate(error.to_string()))?;
    if chain.is_empty() {
        return Err(CertificateError::NoCertificate("the file contains no certificate".into()));
    }
    let key = PrivateKeyDer::from_pem_slice(key);
    Ok((chain, key.map_err(|error| CertificateError::NoKey(error.to_string()))?))
}

fn unusable(error: rustls::Error) -> CertificateError {
    CertificateError::Unusable(error.to_string())
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

/// The server's TLS settings for handshakes with clients. Clones share the certificates and the
/// authorities.
#[derive(Clone, Debug)]
pub struct ClientTls {
    certificates: Arc<InUse>,
    handshake: Live<HandshakeSettings>,
    challenges: AcmeChallenges,
    refused: Arc<RefusedClients>,
}

/// The settings of a handshake, which change together.
#[derive(Debug)]
struct HandshakeSettings {
    config: Arc<ServerConfig>,
    authorities: Option<ClientAuthorities>,
}

impl HandshakeSettings {
    /// Creates settings for TLS 1.2 and 1.3. Clients can resume sessions with tickets. The keys
    /// that encrypt the tickets change regularly. Tickets of earlier settings are not accepted. So
    /// no session outlives the authorities that verified its client.
    fn new(certificates: &Arc<InUse>, authorities: Option<ClientAuthorities>) -> Self {
        let resolver = Arc::clone(certificates) as Arc<dyn ResolvesServerCert>;
        let verifier = authorities.as_ref().map(|authorities| Arc::clone(&authorities.verifier));
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_client_cert_verifier(verifier.unwrap_or_else(|| Arc::new(NoClientAuth)))
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        if let Ok(ticketer) = Ticketer::new() {
            config.ticketer = ticketer;
        }
        Self { config: Arc::new(config), authorities }
    }

    /// Returns the user of a client with the certificates `chain`. `is_earlier` is true if no TLS
    /// handshake has just verified the certificates: in a resumed session, after a reload, or after
    /// [`VERIFIED_FOR`]. This method then verifies them again.
    fn user(
        &self,
        chain: &[CertificateDer<'_>],
        is_earlier: bool,
    ) -> Result<Option<Arc<str>>, CertificateRefusal> {
        let Some(authorities) = &self.authorities else { return Ok(None) };
        authorities.user(chain, is_earlier, clock::wall())
    }
}

/// The server name and the certificate that a client sent in its TLS handshake.
#[derive(Debug)]
pub(crate) struct HandshakeFacts {
    /// The server name (SNI) that the client sent in its TLS handshake.
    server_name: Option<Arc<str>>,
    chain: Arc<[CertificateDer<'static>]>,
    verified: RefCell<Verified>,
    in_force: Live<HandshakeSettings>,
}

/// The result of the last verification of a client's certificate.
#[derive(Debug)]
struct Verified {
    settings: Arc<HandshakeSettings>,
    at: Instant,
    user: Result<Option<Arc<str>>, CertificateRefusal>,
}

impl Verified {
    fn still_counts(&self, in_force: &Arc<HandshakeSettings>, now: Instant) -> bool {
        Arc::ptr_eq(in_force, &self.settings) && now.since(self.at) < VERIFIED_FOR
    }
}

impl HandshakeFacts {
    pub(crate) fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns true if the client's certificate contains `name` as a DNS name.
    pub(crate) fn proves(&self, name: &str) -> bool {
        let own = self.chain.first().and_then(|own| ParsedCertificate::try_from(own).ok());
        let name = ServerName::try_from(name).ok();
        own.zip(name).is_some_and(|(own, name)| verify_server_name(&own, &name).is_ok())
    }

    /// Returns the user that the client's certificate names. If a reload has changed the
    /// authorities or lists, or after [`VERIFIED_FOR`], verifies the certificate again. So no open
    /// connection outlives its authority or certificate. Other requests need no verification, which
    /// takes milliseconds with a long list of revoked certificates.
    pub(crate) fn user(&self) -> Result<Option<Arc<str>>, CertificateRefusal> {
        let (in_force, now) = (self.in_force.get(), clock::monotonic());
        let mut verified = self.verified.borrow_mut();
        if !verified.still_counts(&in_force, now) {
            let user = in_force.user(&self.chain, true);
            *verified = Verified { settings: Arc::clone(&in_force), at: now, user };
        }
        verified.user.clone()
    }
}

/// A connection after its TLS handshake.
pub(crate) struct AcceptedTls {
    pub(crate) transport: Transport,
    /// The client's certificate and server name from the TLS handshake. `None` without TLS.
    pub(crate) presented: Option<Rc<HandshakeFacts>>,
}

/// The reason why a TLS handshake with a client failed.
pub(crate) enum HandshakeFailure {
    /// The client's certificate is missing or unusable. The connection is still open, so that the
    /// client can read the TLS alert.
    Refused(Transport),
    /// The client left, or uses an unsupported kind of TLS.
    Failed,
    /// The client was an ACME authority. The handshake answered its challenge.
    Challenge,
}

impl ClientTls {
    /// Creates settings that ask clients for no certificate.
    pub fn new(certificates: ClientCertificates) -> Self {
        let certificates = Arc::new(InUse(RwLock::new(Arc::new(certificates))));
        let handshake = HandshakeSettings::new(&certificates, None).into();
        let challenges = AcmeChallenges::default();
        Self { certificates, handshake, challenges, refused: Arc::default() }
    }

    /// Asks clients for certificates of these authorities from the next handshake on, and verifies
    /// the certificates of open connections again.
    pub fn ask_clients(&self, authorities: Option<ClientAuthorities>) {
        if self.handshake.get().authorities != authorities {
            self.handshake.replace(HandshakeSettings::new(&self.certificates, authorities));
        }
    }

    /// Answers an ACME authority's challenge for `name` with a certificate and its key in PEM.
    /// Continues until the call of [`Self::end_challenge`].
    pub fn answer_challenge(
        &self,
        name: &str,
        certificate: &[u8],
        key: &[u8],
    ) -> Result<(), CertificateError> {
        let (chain, key) = read(certificate, key)?;
        let key = provider().key_provider.load_private_key(key).map_err(unusable)?;
        // The usual checks would reject this certificate, because it has a critical extension that
        // only ACME authorities know. So this code makes no such checks.
        self.challenges.add(name, CertifiedKey::new(chain, key));
        Ok(())
    }

    /// Answers an ACME authority's request for `token` of the host `name` with this text, at all
    /// listeners. Continues until the call of [`Self::end_challenge`].
    pub fn answer_http_challenge(&self, name: &str, token: &str, text: &str) {
        self.challenges.add_http(name, token, text);
    }

    /// Returns the answer to a request of an ACME authority, or `None` for all other requests.
    pub(crate) fn http_challenge(&self, head: &RequestHead) -> Option<Bytes> {
        self.challenges.http_answer(head)
    }

    /// Stops answering the challenge for `name`.
    pub fn end_challenge(&self, name: &str) {
        self.challenges.remove(name);
    }

    /// Removes and returns the clients that were refused because of their certificates.
    pub fn take_refused(&self) -> Vec<(IpAddr, CertificateRefusal)> {
        self.refused.take()
    }

    /// Uses `certificates` from the next handshake on. Open connections continue.
    pub fn replace(&self, certificates: ClientCertificates) {
        *self.certificates.0.write().unwrap_or_else(PoisonError::into_inner) =
            Arc::new(certificates);
    }

    pub(crate) async fn accept(
        &self,
        stream: TcpStream,
        client: IpAddr,
    ) -> Result<AcceptedTls, HandshakeFailure> {
        let stream = Transport::Plain(stream);
        let settings = self.handshake.get_whole();
        let config = Arc::clone(&settings.config);
        let accepted = if self.challenges.has_no_tls() {
            let accepted = TlsAcceptor::from(config).accept(stream).into_fallible().await;
            accepted.map(Some).map_err(|(error, stream)| (error, Some(stream)))
        } else {
            self.challenges.accept(stream, config).await
        };
        let refuse = |reason, stream| {
            self.refused.note(client, reason);
            HandshakeFailure::Refused(stream)
        };
        let stream = accepted.map_err(|(error, stream)| {
            let error = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            let refusal = error.and_then(CertificateRefusal::of).zip(stream);
            refusal.map_or(HandshakeFailure::Failed, |(reason, stream)| refuse(reason, stream))
        })?;
        let stream = stream.ok_or(HandshakeFailure::Challenge)?;
        let (_, session) = stream.get_ref();
        let chain = session.peer_certificates().unwrap_or_default();
        let is_resumed = session.handshake_kind() == Some(HandshakeKind::Resumed);
        let (user, chain) = (settings.user(chain, is_resumed), chain.into());
        let server_name = session.server_name().map(Arc::from);
        let user = match user {
            Ok(user) => user,
            Err(reason) => return Err(refuse(reason, stream.into_inner().0)),
        };
        let in_force = self.handshake.clone();
        let verified = Verified { settings, at: clock::monotonic(), user: Ok(user) };
        let verified = RefCell::new(verified);
        let facts = HandshakeFacts { server_name, chain, verified, in_force };
        let presented = Some(Rc::new(facts));
        Ok(AcceptedTls { transport: Transport::tls(stream), presented })
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
    fn a_verification_counts_for_a_minute_under_the_same_settings() {
        let certificates = Arc::new(InUse(RwLock::default()));
        let [own, other] = [(); 2].map(|()| Arc::new(HandshakeSettings::new(&certificates, None)));
        let verified = Verified { settings: Arc::clone(&own), at: Instant(5), user: Ok(None) };
        let end = Instant(5) + VERIFIED_FOR;
        for (settings, now, expected) in
            [(&own, Instant(end.0 - 1), true), (&own, end, false), (&other, Instant(6), false)]
        {
            assert_eq!(verified.still_counts(settings, now), expected, "{now:?}");
        }
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
