//! How copies go out: whom they trust, over TLS the way to a path, and in which version of HTTP.

use crate::leap::{Asked, Manner, Path, PathFailure};
use crate::wire::tls::Trust;
use crate::wire::tls::outbound::{self, Channel, Obstacle};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Whose certificates paths may show, and what is spoken with proxies. The default trusts nobody,
/// and is HTTP/1.
#[derive(Clone, Debug)]
pub struct Outgoing {
    tls: Arc<ClientConfig>,
    /// For proxies that HTTP/2 is spoken with.
    http2: Option<Arc<ClientConfig>>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::new(&Trust::default())
    }
}

impl Outgoing {
    /// For copies that trust these.
    pub fn new(trust: &Trust) -> Self {
        Self { tls: trust.client_without_memory(false), http2: None }
    }

    /// For copies that trust these, and go to proxies as HTTP/2: by prior knowledge, within TLS by
    /// ALPN. The origin itself is asked in HTTP/1 all the same.
    pub fn http2(trust: &Trust) -> Self {
        Self { http2: Some(trust.client_without_memory(true)), ..Self::new(trust) }
    }

    /// Whether a path is asked in HTTP/2.
    pub(crate) fn is_http2(&self, path: &Path) -> bool {
        self.http2.is_some() && path.manner != Manner::Direct
    }

    /// TLS on a connection to a path: in a tunnel that a forward proxy opens, else at once. Whoever
    /// answers must be the server that is asked, or be vouched for as if.
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
