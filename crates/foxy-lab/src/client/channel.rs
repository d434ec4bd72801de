//! What a client's bytes go through: a connection to the proxy, or TLS inside a tunnel that the proxy opened (RFC 9110 §9.3.6).

use crate::client::Wire;
use crate::outcome::ErrorCause;
use bytes::BytesMut;
use foxy_http::{Limits, Method, ResponseDecoder, ResponseEvent};
use foxy_workload::Request;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

/// Bytes asked of a proxy at a time while it opens a tunnel.
const READ: usize = 1 << 10;

/// A way to the server: the connection itself, or TLS on it, which ends at the server, or at a proxy that speaks for it.
pub type Channel = Either<TcpStream, Box<TlsStream<TcpStream>>>;

/// Opens one for a request: through a forward proxy a tunnel, when TLS is to be spoken.
///
/// # Errors
/// How far it came.
pub async fn open(wire: &Wire, request: &Request) -> Result<Channel, ErrorCause> {
    let mut stream = TcpStream::connect(wire.target).await.map_err(|_| ErrorCause::Connect)?;
    stream.set_nodelay(true).map_err(|_| ErrorCause::Connect)?;
    let Some(config) = &wire.tls else { return Ok(Channel::Left(stream)) };
    let authority = wire.authority(request);
    if wire.tunnels() {
        tunnel(&mut stream, authority).await?;
    }
    secure(stream, authority, config).await
}

/// Has the proxy open a tunnel.
async fn tunnel(stream: &mut TcpStream, authority: &str) -> Result<(), ErrorCause> {
    let text = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(text.as_bytes()).await.map_err(|_| ErrorCause::Tunnel)?;
    let (mut decoder, mut input) = (ResponseDecoder::new(Limits::default()), BytesMut::new());
    decoder.expect(&Method::Connect);
    loop {
        match decoder.next(&mut input).map_err(|_| ErrorCause::Protocol)? {
            Some(ResponseEvent::Head(head, _)) if (200..300).contains(&head.status) => break,
            Some(ResponseEvent::Interim(_)) => {}
            Some(_) => return Err(ErrorCause::Tunnel),
            None => {
                input.reserve(READ);
                if stream.read_buf(&mut input).await.unwrap_or(0) == 0 {
                    return Err(ErrorCause::Tunnel);
                }
            }
        }
    }
    // Behind the tunnel nobody speaks before the client does.
    if input.is_empty() { Ok(()) } else { Err(ErrorCause::Protocol) }
}

/// The handshake.
async fn secure(
    stream: TcpStream,
    authority: &str,
    config: &Arc<ClientConfig>,
) -> Result<Channel, ErrorCause> {
    let name = ServerName::try_from(host_of(authority).to_owned()).map_err(|_| ErrorCause::Certificate)?;
    let stream =
        TlsConnector::from(Arc::clone(config)).connect(name, stream).await.map_err(|error| cause(&error))?;
    let chosen = stream.get_ref().1.alpn_protocol();
    // Who chooses nothing speaks HTTP/1.1.
    let offered = config.alpn_protocols.first().map(Vec::as_slice);
    if chosen.unwrap_or(b"http/1.1") != offered.unwrap_or_default() {
        return Err(ErrorCause::Handshake);
    }
    Ok(Channel::Right(Box::new(stream)))
}

/// The host of an authority, with or without a port; an IPv6 address without its brackets (RFC 3986 §3.2.2).
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    }
}

fn cause(error: &io::Error) -> ErrorCause {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => ErrorCause::Certificate,
        _ => ErrorCause::Handshake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_the_host_without_port_and_brackets() {
        let cases =
            [("a.test:8443", "a.test"), ("a.test", "a.test"), ("[::1]:8443", "::1"), ("[::1]", "::1")];
        for (authority, host) in cases {
            assert_eq!(host_of(authority), host, "{authority}");
        }
    }
}
