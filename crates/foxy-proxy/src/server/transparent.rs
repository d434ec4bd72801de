//! Serves the clients of *transparent* listeners, which do not know the proxy: rules of the kernel
//! direct their connections to it. Each request gets the form that a client of a forward proxy
//! sends. So later code treats both kinds of clients in the same way.
//!
//! The proxy connects to the host that the client names, at the port of the client's destination.
//! So a client that names a wrong host cannot put another server's response into the cache. It also
//! cannot circumvent the operator's rules. Without a name, the host is the address of the
//! destination.

use crate::client::io::ClientConnection;
use crate::core::tls::HANDSHAKE;
use crate::core::transport::LINGER;
use crate::request::reason::ErrorReason;
use crate::upstream::Scheme;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Authority, Headers, Method, RequestHead, Target, TargetForm, Version};
use rustls::server::Acceptor;
use std::net::SocketAddr;
use tokio::time::Instant;

/// Largest number of bytes of a ClientHello in which the proxy looks for the server's name.
const MAX_HELLO_BYTES: usize = 16 << 10;

/// Changes a request to absolute form. If the request must be refused, returns the reason. A
/// request in the form for a proxy stays as it is.
pub(crate) fn absolute(
    head: RequestHead,
    destination: SocketAddr,
) -> (RequestHead, Option<ErrorReason>) {
    match target(&head, destination) {
        Ok(target) => (RequestHead { target, ..head }, None),
        Err(reason) => (head, Some(reason)),
    }
}

fn target(head: &RequestHead, destination: SocketAddr) -> Result<Target, ErrorReason> {
    let path = match head.target.form() {
        TargetForm::Authority(_) | TargetForm::Absolute { .. } => return Ok(head.target.clone()),
        TargetForm::Asterisk => Default::default(),
        TargetForm::Origin(_) => head.origin_form().unwrap_or_default(),
    };
    let host = match head.authority() {
        Some(text) => Authority::parse(text).ok_or(ErrorReason::BadAuthority)?.host.to_owned(),
        None => bracketed(destination),
    };
    let port = match destination.port() {
        usual if usual == Scheme::Http.default_port() => String::new(),
        port => format!(":{port}"),
    };
    let url = [format!("http://{host}{port}").as_bytes(), &path].concat();
    Target::parse(&head.method, Bytes::from(url)).map_err(ErrorReason::Malformed)
}

fn bracketed(destination: SocketAddr) -> String {
    match destination {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    }
}

/// Returns the CONNECT that a client of a forward proxy would have sent before the first bytes of
/// this connection. Returns `None` if the client disconnects.
pub(crate) async fn connect_before(
    worker: &Worker,
    connection: &mut ClientConnection,
    destination: SocketAddr,
) -> Option<RequestHead> {
    let name = server_name(worker, connection).await?;
    let host = name.unwrap_or_else(|| bracketed(destination));
    let authority = format!("{host}:{}", destination.port());
    let mut headers = Headers::new();
    headers.append("Host", &authority);
    let target = Target::parse(&Method::Connect, Bytes::from(authority)).ok()?;
    Some(RequestHead { method: Method::Connect, target, version: Version::Http11, headers })
}

/// Returns the name in the client's TLS handshake. The inner value is `None` if there is no name.
async fn server_name(worker: &Worker, connection: &mut ClientConnection) -> Option<Option<String>> {
    let deadline = Instant::now() + worker.settings().client_handshake;
    loop {
        match name_in(&connection.buffer) {
            HelloName::Incomplete if connection.buffer.len() < MAX_HELLO_BYTES => {}
            HelloName::Incomplete | HelloName::None => return Some(None),
            HelloName::Some(name) => return Some(Some(name)),
        }
        let (mut receiver, _) = connection.split(LINGER);
        receiver.read(deadline).await.ok()?;
    }
}

#[derive(Debug, PartialEq, Eq)]
enum HelloName {
    Incomplete,
    /// The bytes are no ClientHello, or the ClientHello has no name.
    None,
    Some(String),
}

fn name_in(mut bytes: &[u8]) -> HelloName {
    if bytes.first() != Some(&HANDSHAKE) {
        return HelloName::None;
    }
    let mut acceptor = Acceptor::default();
    while !bytes.is_empty() {
        if acceptor.read_tls(&mut bytes).is_err() {
            return HelloName::None;
        }
        match acceptor.accept() {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                let hello = accepted.client_hello();
                return hello
                    .server_name()
                    .map_or(HelloName::None, |name| HelloName::Some(name.into()));
            }
            Err(_) => return HelloName::None,
        }
    }
    HelloName::Incomplete
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection as TlsClient, RootCertStore};
    use std::sync::Arc;

    fn url(destination: &str, text: &str) -> String {
        let mut buffer = BytesMut::from(text.replace('\n', "\r\n").as_bytes());
        let head = match RequestDecoder::default().next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, _))) => head,
            other => panic!("not a request: {other:?}"),
        };
        let (head, refusal) = absolute(head, destination.parse().expect("an address"));
        assert_eq!(refusal, None);
        String::from_utf8_lossy(head.target.raw()).into_owned()
    }

    #[test]
    fn a_request_gets_the_url_of_its_host_at_the_port_of_the_destination() {
        for (destination, text, expected) in [
            ("192.0.2.1:80", "GET /x?y HTTP/1.1\nHost: a.test\n\n", "http://a.test/x?y"),
            ("192.0.2.1:80", "GET / HTTP/1.1\nHost: a.test:99\n\n", "http://a.test/"),
            ("192.0.2.1:8080", "GET / HTTP/1.1\nHost: a.test\n\n", "http://a.test:8080/"),
            ("192.0.2.1:80", "GET /x HTTP/1.0\n\n", "http://192.0.2.1/x"),
            ("[2001:db8::1]:81", "GET /x HTTP/1.0\n\n", "http://[2001:db8::1]:81/x"),
            ("192.0.2.1:80", "OPTIONS * HTTP/1.1\nHost: a.test\n\n", "http://a.test"),
            ("192.0.2.1:80", "GET http://b.test/ HTTP/1.1\nHost: b.test\n\n", "http://b.test/"),
            ("192.0.2.1:80", "CONNECT a.test:443 HTTP/1.1\nHost: a.test:443\n\n", "a.test:443"),
        ] {
            assert_eq!(url(destination, text), expected, "{text}");
        }
    }

    #[test]
    fn the_name_in_a_hello_is_found_also_before_early_data() {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let config = Arc::new(config);
        let hello = |name: &str| {
            let name = ServerName::try_from(name.to_owned()).expect("a name");
            let mut bytes = Vec::new();
            let mut client = TlsClient::new(Arc::clone(&config), name).expect("a client");
            client.write_tls(&mut bytes).expect("written");
            bytes
        };
        let named = hello("a.test");
        let found = HelloName::Some("a.test".into());
        assert_eq!(name_in(&named), found);
        assert_eq!(name_in(&[&named[..], b"early"].concat()), found);
        assert_eq!(name_in(&named[..20]), HelloName::Incomplete);
        assert_eq!(name_in(&hello("192.0.2.1")), HelloName::None);
        assert_eq!(name_in(b"\x05\x01\0"), HelloName::None);
    }
}
