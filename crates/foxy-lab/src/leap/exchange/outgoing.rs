//! The TLS settings and the HTTP version for copies of requests.

use crate::leap::{Asked, Manner, Path, PathFailure};
use crate::wire::tls::Trust;
use crate::wire::tls::outbound::{self, Channel, Obstacle};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio::net::TcpStream;

/// The trusted certificate authorities, and the HTTP version for proxies. The default trusts no
/// authority and uses HTTP/1.
#[derive(Clone, Debug)]
pub struct Outgoing {
    tls: Arc<ClientConfig>,
    http2: Option<Arc<ClientConfig>>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::new(&Trust::default())
    }
}

impl Outgoing {
    /// Returns settings that use HTTP/1 and trust these certificate authorities.
    pub fn new(trust: &Trust) -> Self {
        Self { tls: trust.client_without_memory(false), http2: None }
    }

    /// Returns settings that use HTTP/2 with proxies: by prior knowledge, or by ALPN over TLS. The
    /// origin still receives HTTP/1.
    pub fn http2(trust: &Trust) -> Self {
        Self { http2: Some(trust.client_without_memory(true)), ..Self::new(trust) }
    }

    pub(crate) fn is_http2(&self, path: &Path) -> bool {
        self.http2.is_some() && path.manner != Manner::Direct
    }

    /// Starts TLS with the server of the URL: through a CONNECT tunnel for a forward proxy,
    /// otherwise directly. The certificate must name the requested server.
    pub(crate) async fn secure(
        &self,
        mut stream: TcpStream,
        path: &Path,
        asked: &Asked,
    ) -> Result<Channel, PathFailure> {
        if path.manner == Manner::Forward {
            outbound::tunnel(&mut stream, &asked.authority_with_port()).await?;
        }
        let config =
            self.http2.as_ref().filter(|_| path.manner != Manner::Direct).unwrap_or(&self.tls);
        Ok(outbound::secure(stream, &asked.authority, config).await?)
    }
}

impl From<Obstacle> for PathFailure {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::NoTunnel => Self::NoTunnel,
            Obstacle::NotHttp => Self::NotHttp,
            Obstacle::Certificate => Self::Certificate,
            Obstacle::Handshake => Self::Handshake,
        }
    }
}
