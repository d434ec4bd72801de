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

/// What the requests of a connection are within.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Within {
    /// Nothing.
    Nothing,
    /// TLS with this place itself.
    Tls,
    /// TLS in a tunnel to this server, for which this place speaks.
    Tunnel(Destination),
}

impl Within {
    /// The scheme of what is asked for without one.
    pub const fn scheme(&self) -> Scheme {
        match self {
            Self::Nothing => Scheme::Http,
            Self::Tls | Self::Tunnel(_) => Scheme::Https,
        }
    }

    /// Whether a request for this server belongs there.
    pub fn takes(&self, named: &Destination) -> bool {
        !matches!(self, Self::Tunnel(to) if to != named)
    }
}

/// What comes after the requests of a connection.
#[derive(Debug)]
pub enum After {
    /// Nothing: it is over.
    Over,
    /// A tunnel, which has been opened.
    Tunnel(Destination),
}

/// What answers a CONNECT whose tunnel ends here.
pub const OPENED: &[u8] = b"HTTP/1.1 200 Connection Established\r\n\r\n";

/// Why a tunnel is not opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoTunnel {
    /// It would be within TLS.
    Within,
    /// It names no server.
    NoHost,
    /// There is no authority.
    NoAuthority,
    /// The authority may not vouch for the host.
    NotVouched,
}

/// Where a tunnel leads that is ended here.
///
/// # Errors
/// Why it is not opened.
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

/// Who serves connections.
pub trait House: Clone + 'static {
    /// What those who ask are shown; without it there is no TLS with them.
    fn certificates(&self) -> Option<&Certificates>;

    /// How long one who asks may say nothing at the beginning, and how long a handshake may take.
    fn limit(&self) -> Duration;

    /// TLS is spoken, and there is no authority.
    fn no_authority(&self);

    /// TLS did not come about.
    fn not_entered(&self, reason: NotEntered);

    /// Answers requests until the connection ends or is a tunnel. `input` is what has been read of
    /// it; what follows the request for a tunnel is left there.
    async fn requests(
        &self,
        stream: &mut Inbound,
        input: &mut BytesMut,
        within: &Within,
    ) -> io::Result<After>;

    /// Answers the request of one stream of HTTP/2.
    async fn stream(&self, request: http::Request<RecvStream>, frames: Frames, within: &Within);
}

/// Serves the connection to its end.
///
/// # Errors
/// As the connection has them.
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

/// Ends TLS, and has what is within served.
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
