//! Handles the start of a client's connection: a plain request, TLS, or a CONNECT tunnel with TLS
//! inside. Then a [`ConnectionService`] (LEAP's Collector or Multiplier) serves the requests.

use super::inbound::{self, Certificates, HandshakeFailure, Inbound, Opening, Rewound, TlsTarget};
use crate::wire::http2::{self, Frames};
use crate::wire::key::Destination;
use bytes::BytesMut;
use foxy_http::RequestHead;
use foxy_http::Scheme;
use h2::RecvStream;
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    Nothing,
    Tls,
    Tunnel(Destination),
}

impl Within {
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Nothing => Scheme::Http,
            Self::Tls | Self::Tunnel(_) => Scheme::Https,
        }
    }

    pub fn takes(&self, named: &Destination) -> bool {
        !matches!(self, Self::Tunnel(to) if to != named)
    }
}

#[derive(Debug)]
pub enum After {
    Over,
    Tunnel(Destination),
}

pub const OPENED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelRefusal {
    Within,
    NoHost,
    NoAuthority,
    NotVouched,
}

pub fn tunnel(
    certificates: Option<&Certificates>,
    head: &RequestHead,
    within: &Within,
) -> Result<Destination, TunnelRefusal> {
    if *within != Within::Nothing {
        return Err(TunnelRefusal::Within);
    }
    let to = Destination::of(head, Scheme::Https).ok_or(TunnelRefusal::NoHost)?;
    let certificates = certificates.ok_or(TunnelRefusal::NoAuthority)?;
    certificates.of(&to.host).map(|_| to).ok_or(TunnelRefusal::NotVouched)
}

/// The requests and limits of a client's connection, as the Collector (common parent proxy) and the
/// Multiplier (LEAP's request copier) serve them.
pub trait ConnectionService: Clone + 'static {
    fn certificates(&self) -> Option<&Certificates>;

    /// Returns the time limit for the first bytes and for a TLS handshake.
    fn limit(&self) -> Duration;

    fn no_authority(&self);

    fn not_entered(&self, reason: HandshakeFailure);

    /// Serves requests until the connection ends or a CONNECT turns it into a tunnel. `input` has
    /// the bytes already read. After CONNECT, the bytes that follow stay in `input`.
    async fn requests(
        &self,
        stream: &mut Inbound,
        input: &mut BytesMut,
        within: &Within,
    ) -> io::Result<After>;

    async fn stream(&self, request: http::Request<RecvStream>, frames: Frames, within: &Within);
}

pub async fn serve(service: &impl ConnectionService, mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut input = BytesMut::new();
    match inbound::opening(&mut client, &mut input, service.limit()).await {
        None => Ok(()),
        Some(Opening::Tls) => Box::pin(enter(service, client, input, Within::Tls)).await,
        Some(Opening::Http2) => {
            let stream = Rewound::new(input, client);
            Box::pin(http2::serve(service, stream, &Within::Nothing)).await
        }
        Some(Opening::Text) => {
            let mut stream = Inbound::Left(client);
            let after = service.requests(&mut stream, &mut input, &Within::Nothing).await?;
            let (After::Tunnel(to), Inbound::Left(client)) = (after, stream) else { return Ok(()) };
            Box::pin(enter(service, client, input, Within::Tunnel(to))).await
        }
    }
}

async fn enter(
    service: &impl ConnectionService,
    client: TcpStream,
    input: BytesMut,
    within: Within,
) -> io::Result<()> {
    let Some(certificates) = service.certificates() else {
        service.no_authority();
        return Ok(());
    };
    let target = match &within {
        Within::Tunnel(to) => TlsTarget::Tunnel(&to.host),
        Within::Nothing | Within::Tls => TlsTarget::Here(client.local_addr()?.ip()),
    };
    match inbound::enter(client, input, certificates, target, service.limit()).await {
        Ok(stream) if inbound::is_http2(&stream) => http2::serve(service, stream, &within).await,
        Ok(mut stream) => {
            service.requests(&mut stream, &mut BytesMut::new(), &within).await.map(drop)
        }
        Err(reason) => {
            service.not_entered(reason);
            Ok(())
        }
    }
}
