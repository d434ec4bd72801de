//! TLS on connections from clients of the lab's servers. Recognises the protocol of a connection by
//! its first bytes. Performs the handshake with a certificate for the requested host.

use crate::named::named;
use bytes::{Buf, BytesMut};
use foxy_base::{WallTime, clock};
use rustls::server::Acceptor;
use rustls::{AlertDescription, ServerConfig};
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::either::Either;

const READ: usize = 16 << 10;
/// The content type of a TLS handshake record (RFC 8446 §5.1).
const HANDSHAKE: u8 = 22;
/// The start of the HTTP/2 connection preface (RFC 9113 §3.4).
const PREFACE: &[u8] = b"PRI ";

type Make = dyn Fn(&str, WallTime) -> Option<Arc<ServerConfig>> + Send + Sync;

/// Creates server certificates of an authority. Clones share their state.
#[derive(Clone)]
pub struct Certificates(Arc<Make>);

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    /// Creates certificates with `make`. It receives a host name, or an IP address without
    /// brackets. It returns `None` if the authority must not sign for the host.
    pub fn new(
        make: impl Fn(&str, WallTime) -> Option<Arc<ServerConfig>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(make))
    }

    pub(crate) fn of(&self, host: &str) -> Option<Arc<ServerConfig>> {
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        (self.0)(host, clock::wall())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    Text,
    Http2,
    Tls,
}

/// Reads until the first bytes show the protocol. Returns `None` at the end of the connection or if
/// no byte arrives within `limit`.
pub async fn opening(
    stream: &mut TcpStream,
    input: &mut BytesMut,
    limit: Duration,
) -> Option<Opening> {
    loop {
        match input.first() {
            Some(&HANDSHAKE) => return Some(Opening::Tls),
            Some(_) if input.starts_with(PREFACE) => return Some(Opening::Http2),
            Some(_) if !PREFACE.starts_with(input) => return Some(Opening::Text),
            Some(_) | None => {}
        }
        input.reserve(READ);
        if !matches!(timeout(limit, stream.read_buf(input)).await, Ok(Ok(1..))) {
            return None;
        }
    }
}

#[derive(Debug)]
pub struct Rewound<S> {
    read: BytesMut,
    stream: S,
}

impl<S> Rewound<S> {
    pub const fn new(read: BytesMut, stream: S) -> Self {
        Self { read, stream }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Rewound<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        let count = self.read.len().min(buffer.remaining());
        buffer.put_slice(&self.read[..count]);
        self.read.advance(count);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Rewound<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

pub type Inbound = Either<TcpStream, Box<TlsStream<Rewound<TcpStream>>>>;

/// Makes the coming close of this connection a reset. After a normal close, a truncated answer
/// could look complete.
pub fn reset(inbound: &Inbound) -> io::Result<()> {
    match inbound {
        Inbound::Left(stream) => stream.set_zero_linger(),
        Inbound::Right(secure) => secure.get_ref().0.stream.set_zero_linger(),
    }
}

pub fn is_http2(inbound: &Inbound) -> bool {
    matches!(inbound, Inbound::Right(secure) if secure.get_ref().1.alpn_protocol() == Some(super::HTTP2))
}

named! {
    /// The reason why a TLS handshake with a client failed.
    pub enum HandshakeFailure {
        NotTls = "not_tls":
            "the tunnel carries something other than TLS, which foxy cannot read",
        WrongName = "wrong_name": "the TLS hello in the tunnel names another host than its \
                                   CONNECT",
        NotVouched = "not_vouched":
            "the authority of --ca-dir may not sign for the host; make an authority with `foxy ca \
             init --allow HOST`",
        Distrusted = "distrusted":
            "the client does not trust the certificate; let it trust ca.pem in the folder of \
             --ca-dir",
        Broken = "broken": "the client left during the handshake, or speaks neither TLS 1.2 nor \
                            1.3",
        Timeout = "timeout": "the handshake did not end within --time-limit",
    }
}

#[derive(Clone, Copy, Debug)]
pub enum TlsTarget<'a> {
    Tunnel(&'a str),
    /// The host that the client names in its TLS hello (SNI), or this address if it names none.
    Here(IpAddr),
}

pub async fn enter(
    stream: TcpStream,
    read: BytesMut,
    certificates: &Certificates,
    target: TlsTarget<'_>,
    limit: Duration,
) -> Result<Inbound, HandshakeFailure> {
    let handshake = handshake(Rewound::new(read, stream), certificates, target);
    timeout(limit, handshake).await.unwrap_or(Err(HandshakeFailure::Timeout))
}

async fn handshake(
    stream: Rewound<TcpStream>,
    certificates: &Certificates,
    target: TlsTarget<'_>,
) -> Result<Inbound, HandshakeFailure> {
    let start = LazyConfigAcceptor::new(Acceptor::default(), stream)
        .await
        .map_err(|error| reason(&error))?;
    let named = start.client_hello().server_name().map(str::to_ascii_lowercase);
    let host = match (target, named) {
        // The host name in a TLS hello (SNI) has no dot at its end (RFC 6066 §3).
        (TlsTarget::Tunnel(host), Some(name)) if host.trim_end_matches('.') != name => {
            return Err(HandshakeFailure::WrongName);
        }
        (TlsTarget::Tunnel(host), _) => host.to_owned(),
        (TlsTarget::Here(_), Some(name)) => name,
        (TlsTarget::Here(address), None) => address.to_string(),
    };
    let mut config =
        Arc::unwrap_or_clone(certificates.of(&host).ok_or(HandshakeFailure::NotVouched)?);
    config.alpn_protocols = [super::HTTP2, super::HTTP1].map(<[u8]>::to_vec).to_vec();
    let stream = start.into_stream(Arc::new(config)).await.map_err(|error| reason(&error))?;
    Ok(Inbound::Right(Box::new(stream)))
}

fn reason(error: &io::Error) -> HandshakeFailure {
    use AlertDescription as Alert;
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidMessage(_)) => HandshakeFailure::NotTls,
        Some(rustls::Error::AlertReceived(
            Alert::UnknownCA
            | Alert::BadCertificate
            | Alert::CertificateUnknown
            | Alert::CertificateExpired
            | Alert::UnsupportedCertificate,
        )) => HandshakeFailure::Distrusted,
        _ => HandshakeFailure::Broken,
    }
}
