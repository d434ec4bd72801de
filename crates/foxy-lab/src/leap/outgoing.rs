//! How copies go out over TLS: whom they trust, and the way to a path.

use super::{Asked, Failure, Manner, Path};
use crate::tls::Trust;
use crate::tls::outbound::{self, Channel, Obstacle};
use rustls::ClientConfig;
use std::sync::Arc;
use tokio::net::TcpStream;

/// Whose certificates paths may show. The default trusts nobody.
#[derive(Clone, Debug)]
pub struct Outgoing {
    tls: Arc<ClientConfig>,
}

impl Default for Outgoing {
    fn default() -> Self {
        Self::new(&Trust::default())
    }
}

impl Outgoing {
    /// For copies that trust these.
    #[must_use]
    pub fn new(trust: &Trust) -> Self {
        Self { tls: trust.client_without_memory(false) }
    }

    /// TLS on a connection to a path: in a tunnel that a forward proxy opens, else at once. Whoever answers must be the server
    /// that is asked, or be vouched for as if.
    pub(super) async fn secure(
        &self,
        mut stream: TcpStream,
        path: &Path,
        asked: &Asked,
    ) -> Result<Channel, Failure> {
        if path.manner == Manner::Forward {
            outbound::tunnel(&mut stream, &asked.authority_with_port()).await?;
        }
        Ok(outbound::secure(stream, &asked.authority, &self.tls).await?)
    }
}

impl From<Obstacle> for Failure {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::NoTunnel => Self::NoTunnel,
            Obstacle::NotHttp => Self::NotHttp,
            Obstacle::Certificate => Self::Certificate,
            Obstacle::Handshake => Self::Handshake,
        }
    }
}
