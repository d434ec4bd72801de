//! TLS helpers for tests: certificate authorities, origins, and a client over a plain socket.

use super::outbound::{self, Channel};
use super::{Certificates, EphemeralAuthority, Trust};
use crate::{Origin, OriginOptions};
use bytes::Bytes;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

/// A client's TLS connection.
pub type Secure = StreamOwned<ClientConnection, TcpStream>;

/// The host names in the certificates of these tests.
const HOSTS: [&str; 2] = ["localhost", "127.0.0.1"];

/// Creates certificates for a TLS server. Also returns the trusted authorities that its clients
/// need.
pub fn authority() -> (Certificates, Trust) {
    let made = EphemeralAuthority::of(&HOSTS).expect("made");
    let server = made.server();
    let certificates =
        Certificates::new(move |host, _| HOSTS.contains(&host).then(|| Arc::clone(&server)));
    (certificates, trusting(&[made.authority()]))
}

/// Returns a client's trust settings with these certificate authorities, given as PEM texts.
pub fn trusting(authorities: &[&str]) -> Trust {
    let mut trust = Trust::default();
    for authority in authorities {
        trust.add_pem(authority.as_bytes()).expect("PEM");
    }
    trust
}

/// Starts foxy's own origin with TLS on all IPv4 addresses of this machine. Also returns the
/// trusted authorities that its clients need. The certificate covers only some of these addresses.
pub fn origin() -> (Origin, Trust) {
    let listen = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
    let origin = Origin::start_tls(OriginOptions { listen, threads: 1 }, 1).expect("started");
    let trust = trusting(&[origin.authority().expect("it speaks TLS")]);
    (origin, trust)
}

/// Opens a TLS connection to `to`. If `tunnel` is set, the connection goes through a CONNECT tunnel
/// to this `host:port`. The handshake starts only with the first read or write.
pub fn secure(to: SocketAddr, tunnel: Option<&str>, name: &str, trust: &Trust) -> Secure {
    let mut stream = TcpStream::connect(to).expect("connected");
    if let Some(authority) = tunnel {
        let text = format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n");
        stream.write_all(text.as_bytes()).expect("sent");
        let (mut answer, mut byte) = (Vec::new(), [0]);
        while !answer.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|read| read == 1) {
            answer.push(byte[0]);
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    }
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    StreamOwned::new(ClientConnection::new(trust.client(false), name).expect("a client"), stream)
}

/// An answer that the test received over HTTP/2.
#[derive(Debug, Default)]
pub struct Got {
    pub status: u16,
    pub fields: http::HeaderMap,
    pub body: Vec<u8>,
    /// Whether the stream was reset before its end.
    pub reset: bool,
}

/// Sends a request over HTTP/2 on a new connection. With `tls`, uses TLS, and trusts
/// the authorities in `tls`. If `tls` also has a `host:port`, first opens a CONNECT tunnel to it.
pub fn http2(
    to: SocketAddr,
    tls: Option<(Option<&str>, &Trust)>,
    request: http::Request<&'static str>,
) -> Got {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut stream = tokio::net::TcpStream::connect(to).await.expect("connected");
        let Some((tunnel, trust)) = tls else {
            return exchange(Channel::Left(stream), request).await;
        };
        if let Some(authority) = tunnel {
            outbound::tunnel(&mut stream, authority).await.expect("a tunnel");
        }
        exchange(
            outbound::secure(stream, "localhost", &trust.client(true)).await.expect("TLS"),
            request,
        )
        .await
    })
}

async fn exchange(stream: Channel, request: http::Request<&'static str>) -> Got {
    let (mut sender, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let driver = tokio::spawn(connection);
    let (head, body) = request.into_parts();
    std::future::poll_fn(|context| sender.poll_ready(context)).await.expect("ready");
    let (response, mut send) =
        sender.send_request(http::Request::from_parts(head, ()), body.is_empty()).expect("sent");
    if !body.is_empty() {
        send.send_data(Bytes::from_static(body.as_bytes()), true).expect("sent");
    }
    let mut got = Got::default();
    let (head, mut body) = match response.await {
        Ok(response) => response.into_parts(),
        Err(error) => return Got { reset: error.is_reset(), ..got },
    };
    (got.status, got.fields) = (head.status.as_u16(), head.headers);
    while let Some(data) = body.data().await {
        match data {
            Ok(data) => {
                body.flow_control().release_capacity(data.len()).expect("it is open");
                got.body.extend_from_slice(&data);
            }
            Err(error) => return Got { reset: error.is_reset(), ..got },
        }
    }
    driver.abort();
    got
}

/// Builds a GET request for this URL.
pub fn get(url: &str) -> http::Request<&'static str> {
    http::Request::get(url).body("").expect("a request")
}
