//! How a load's clients get to a server: `tls::outbound`, as a run wants it.

use crate::load::client::Wire;
use crate::load::outcome::ErrorCause;
use crate::wire::tls::outbound::{self, Channel, Obstacle};
use foxy_workload::Request;
use tokio::net::TcpStream;

pub async fn open(wire: &Wire, request: &Request) -> Result<Channel, ErrorCause> {
    let mut stream =
        TcpStream::connect(wire.target).await.map_err(|error| ErrorCause::of_connect(&error))?;
    stream.set_nodelay(true).map_err(|_| ErrorCause::Connect)?;
    let Some(config) = &wire.tls else { return Ok(Channel::Left(stream)) };
    let authority = wire.authority(request);
    if wire.tunnels() {
        outbound::tunnel(&mut stream, authority).await?;
    }
    Ok(outbound::secure(stream, authority, config).await?)
}

impl From<Obstacle> for ErrorCause {
    fn from(obstacle: Obstacle) -> Self {
        match obstacle {
            Obstacle::NoTunnel => Self::Tunnel,
            Obstacle::NotHttp => Self::Protocol,
            Obstacle::Certificate => Self::Certificate,
            Obstacle::Handshake => Self::Handshake,
        }
    }
}
