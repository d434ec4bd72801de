//! Answers the challenges of ACME certificate authorities at the TLS listeners (TLS-ALPN-01, RFC
//! 8737).

use crate::core::live::Live;
use crate::core::tls::provider;
use crate::core::transport::Transport;
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

/// An error, and the connection on which it occurred if the connection still exists.
pub(super) type HandshakeError = (io::Error, Option<Transport>);

/// The pending challenges of ACME authorities, by host name. Clones share the challenges.
#[derive(Clone, Debug, Default)]
pub(super) struct AcmeChallenges(Live<HashMap<String, Arc<ServerConfig>>>);

impl AcmeChallenges {
    /// Answers the challenge for `name` with this certificate from now on.
    pub(super) fn add(&self, name: &str, certificate: CertifiedKey) {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the provider speaks TLS 1.2 and 1.3")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certificate)));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        self.change(|all| all.insert(name.to_owned(), Arc::new(config)));
    }

    pub(super) fn remove(&self, name: &str) {
        self.change(|all| all.remove(name));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.get().is_empty()
    }

    fn change<T>(&self, change: impl FnOnce(&mut HashMap<String, Arc<ServerConfig>>) -> T) {
        let mut all = self.0.get().as_ref().clone();
        change(&mut all);
        self.0.replace(all);
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
        self.0.get().get(&name.to_ascii_lowercase()).cloned()
    }
}
