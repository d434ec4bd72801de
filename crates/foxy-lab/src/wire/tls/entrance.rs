//! How a connection of one who asks begins: with a request, with TLS, or with a tunnel in which
//! there is TLS. What is asked on it is for whoever serves it: the Collector, or the Multiplier
//! towards its clients.

use super::inbound::{self, Certificates, Inbound, Meant, NotEntered, Opening, Rewound};
use crate::wire::key::Destination;
use crate::wire::streams::{self, Frames};
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
pub enum NoTunnel {
    Within,
    NoHost,
    NoAuthority,
    NotVouched,
}

pub fn tunnel(
    certificates: Option<&Certificates>,
    head: &RequestHead,
    within: &Within,
) -> Result<Destination, NoTunnel> {
    if *within != Within::Nothing {
        return Err(NoTunnel::Within);
    }
    let to = Destination::of(head, Scheme::Https).ok_or(NoTunnel::NoHost)?;
    let certificates = certificates.ok_or(NoTunnel::NoAuthority)?;
    certificates.of(&to.host).map(|_| to).ok_or(NoTunnel::NotVouched)
}

/// The server side of connections: the Collector, or the Multiplier towards clients.
pub trait House: Clone + 'static {
    fn certificates(&self) -> Option<&Certificates>;

    /// Time limit of the first bytes and of a handshake.
    fn limit(&self) -> Duration;

    fn no_authority(&self);

    fn not_entered(&self, reason: NotEntered);

    /// Serves requests until the connection ends or becomes a tunnel. `input` holds bytes already
    /// read; after CONNECT the rest stays there.
    async fn requests(
        &self,
        stream: &mut Inbound,
        input: &mut BytesMut,
        within: &Within,
    ) -> io::Result<After>;

    async fn stream(&self, request: http::Request<RecvStream>, frames: Frames, within: &Within);
}

pub async fn serve(house: &impl House, mut client: TcpStream) -> io::Result<()> {
    client.set_nodelay(true)?;
    let mut input = BytesMut::new();
    match inbound::opening(&mut client, &mut input, house.limit()).await {
        None => Ok(()),
        Some(Opening::Tls) => Box::pin(enter(house, (client, input), Within::Tls)).await,
        Some(Opening::Http2) => {
            let stream = Rewound::new(input, client);
            Box::pin(streams::serve(house, stream, &Within::Nothing)).await
        }
        Some(Opening::Text) => {
            let mut stream = Inbound::Left(client);
            let after = house.requests(&mut stream, &mut input, &Within::Nothing).await?;
            let (After::Tunnel(to), Inbound::Left(client)) = (after, stream) else { return Ok(()) };
            Box::pin(enter(house, (client, input), Within::Tunnel(to))).await
        }
    }
}

async fn enter(
    house: &impl House,
    client: (TcpStream, BytesMut),
    within: Within,
) -> io::Result<()> {
    let Some(certificates) = house.certificates() else {
        house.no_authority();
        return Ok(());
    };
    let meant = match &within {
        Within::Tunnel(to) => Meant::Tunnel(&to.host),
        Within::Nothing | Within::Tls => Meant::Here(client.0.local_addr()?.ip()),
    };
    match inbound::enter(client, certificates, meant, house.limit()).await {
        Ok(stream) if inbound::is_http2(&stream) => streams::serve(house, stream, &within).await,
        Ok(mut stream) => {
            house.requests(&mut stream, &mut BytesMut::new(), &within).await.map(drop)
        }
        Err(reason) => {
            house.not_entered(reason);
            Ok(())
        }
    }
}
