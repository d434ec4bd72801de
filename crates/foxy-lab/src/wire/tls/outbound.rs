//! Opens connections to servers: plain or TLS, direct or through a proxy's CONNECT tunnel (RFC 9110
//! §9.3.6).

use bytes::BytesMut;
use foxy_http::{Limits, Method, ResponseDecoder, ResponseEvent};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::either::Either;

const READ: usize = 1 << 10;

pub type Channel = Either<TcpStream, Box<TlsStream<TcpStream>>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    NoTunnel,
    NotHttp,
    Certificate,
    Handshake,
}

pub async fn tunnel(stream: &mut TcpStream, authority: &str) -> Result<(), Obstacle> {
    let text = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
    stream.write_all(text.as_bytes()).await.map_err(|_| Obstacle::NoTunnel)?;
    let (mut decoder, mut input) = (ResponseDecoder::new(Limits::default()), BytesMut::new());
    decoder.expect(&Method::Connect);
    loop {
        match decoder.next(&mut input).map_err(|_| Obstacle::NotHttp)? {
            Some(ResponseEvent::Head(head, _)) if (200..300).contains(&head.status) => break,
            Some(ResponseEvent::Interim(_)) => {}
            Some(_) => return Err(Obstacle::NoTunnel),
            None => {
                input.reserve(READ);
                if stream.read_buf(&mut input).await.unwrap_or(0) == 0 {
                    return Err(Obstacle::NoTunnel);
                }
            }
        }
    }
    // A TLS server never sends first. So bytes after the proxy's answer to CONNECT are an error of
    // the proxy.
    if input.is_empty() { Ok(()) } else { Err(Obstacle::NotHttp) }
}

pub async fn secure(
    stream: TcpStream,
    authority: &str,
    config: &Arc<ClientConfig>,
) -> Result<Channel, Obstacle> {
    let name =
        ServerName::try_from(host_of(authority).to_owned()).map_err(|_| Obstacle::Certificate)?;
    let connector = TlsConnector::from(Arc::clone(config));
    let stream = connector.connect(name, stream).await.map_err(|error| obstacle(&error))?;
    let chosen = stream.get_ref().1.alpn_protocol();
    // If the handshake chose no protocol by ALPN, the server uses HTTP/1.1.
    let offered = config.alpn_protocols.first().map(Vec::as_slice);
    if chosen.unwrap_or(super::HTTP1) != offered.unwrap_or_default() {
        return Err(Obstacle::Handshake);
    }
    Ok(Channel::Right(Box::new(stream)))
}

/// Returns the host without the port and without the brackets of an IPv6 address (RFC 3986 §3.2.2).
fn host_of(authority: &str) -> &str {
    match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => authority.split(':').next().unwrap_or(authority),
    }
}

fn obstacle(error: &io::Error) -> Obstacle {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(_)) => Obstacle::Certificate,
        _ => Obstacle::Handshake,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_for_the_host_without_port_and_brackets() {
        let cases = [
            ("a.test:8443", "a.test"),
            ("a.test", "a.test"),
            ("[::1]:8443", "::1"),
            ("[::1]", "::1"),
        ];
        for (authority, host) in cases {
            assert_eq!(host_of(authority), host, "{authority}");
        }
    }
}
