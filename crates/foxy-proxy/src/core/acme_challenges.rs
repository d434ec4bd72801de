//! Answers the challenges of ACME certificate authorities: at the TLS listeners (TLS-ALPN-01, RFC
//! 8737), and under a path at all listeners (HTTP-01, RFC 8555 §8.3).

use crate::core::live::Live;
use crate::core::tls::provider;
use crate::core::transport::Transport;
use bytes::Bytes;
use foxy_http::{Authority, Method, RequestHead};
use rustls::ServerConfig;
use rustls::server::{Acceptor, ClientHello};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;

/// ALPN name of the protocol that an ACME authority uses in its TLS handshake.
const PROTOCOL: &[u8] = b"acme-tls/1";

/// Beginning of the path that an ACME authority requests, before the token.
const PATH: &[u8] = b"/.well-known/acme-challenge/";

/// An error, and the connection on which it occurred if the connection still exists.
pub(super) type HandshakeError = (io::Error, Option<Transport>);

/// The pending challenges of ACME authorities, by host name. Clones share the challenges.
#[derive(Clone, Debug, Default)]
pub(super) struct AcmeChallenges {
    tls: Live<HashMap<String, Arc<ServerConfig>>>,
    http: Live<HashMap<String, HttpChallenge>>,
}

/// A pending HTTP-01 challenge.
#[derive(Clone, Debug)]
struct HttpChallenge {
    token: String,
    /// The body of the answer.
    text: Bytes,
}

impl AcmeChallenges {
    /// Answers the challenge for `name` with this certificate from now on.
    pub(super) fn add(&self, name: &str, certificate: CertifiedKey) {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        change(&self.tls, |all| all.insert(name.to_owned(), Arc::new(config)));
    }

    /// From now on, answers requests to `name` for the path of this token with this text.
    pub(super) fn add_http(&self, name: &str, token: &str, text: &str) {
        let text = Bytes::copy_from_slice(text.as_bytes());
        let challenge = HttpChallenge { token: token.to_owned(), text };
        change(&self.http, |all| all.insert(name.to_owned(), challenge));
    }

    pub(super) fn remove(&self, name: &str) {
        change(&self.tls, |all| all.remove(name));
        change(&self.http, |all| all.remove(name));
    }

    /// Returns whether no TLS listener must answer a challenge.
    pub(super) fn has_no_tls(&self) -> bool {
        self.tls.get().is_empty()
    }

    /// Returns the answer to a request of an ACME authority, or `None` for all other requests.
    pub(super) fn http_answer(&self, head: &RequestHead) -> Option<Bytes> {
        let is_get = matches!(head.method, Method::Get | Method::Head);
        let path = head.origin_form().filter(|_| is_get)?;
        let token = path.strip_prefix(PATH)?;
        let host = Authority::parse(head.authority()?)?.host.to_ascii_lowercase();
        let all = self.http.get();
        let challenge = all.get(&host).filter(|it| it.token.as_bytes() == token)?;
        Some(challenge.text.clone())
    }

    /// Does the TLS handshake with a client. `usual` contains the TLS settings for clients that are
    /// not ACME authorities. Returns `None` if the client was an ACME authority. The handshake has
    /// then answered its challenge.
    pub(super) async fn accept(
        &self,
        stream: Transport,
        usual: Arc<ServerConfig>,
    ) -> Result<Option<TlsStream<Transport>>, HandshakeError> {
        let start = LazyConfigAcceptor::new(Acceptor::default(), stream);
        let start = start.await.map_err(|error| (error, None))?;
        let with_stream = |(error, stream)| (error, Some(stream));
        let Some(answer) = self.answer(&start.client_hello()) else {
            let stream = start.into_stream(usual).into_fallible().await;
            return stream.map(Some).map_err(with_stream);
        };
        let mut stream = start.into_stream(answer).into_fallible().await.map_err(with_stream)?;
        // The authority has seen the certificate, and may have closed the connection already. So an
        // error does not matter.
        let _ = stream.shutdown().await;
        Ok(None)
    }

    fn answer(&self, hello: &ClientHello<'_>) -> Option<Arc<ServerConfig>> {
        let is_challenge = hello.alpn()?.eq([PROTOCOL]);
        let name = hello.server_name().filter(|_| is_challenge)?;
        self.tls.get().get(&name.to_ascii_lowercase()).cloned()
    }
}

fn change<T: Clone, R>(
    live: &Live<HashMap<String, T>>,
    change: impl FnOnce(&mut HashMap<String, T>) -> R,
) {
    let mut all = live.get().as_ref().clone();
    change(&mut all);
    live.replace(all);
}
