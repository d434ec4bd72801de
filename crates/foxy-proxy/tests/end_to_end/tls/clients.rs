//! Tests clients that use TLS: the answers, the certificates that they receive, and refused or
//! failed handshakes.

use crate::bench::{TestProxy, proxy_with};
use foxy_base::clock;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use foxy_proxy::request::mode::Mode;
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{OriginServer, Scheme};
use foxy_testkit::certificates::{TestAuthority, TestCertificate};
use foxy_testkit::client::Client;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use rustls::pki_types::CertificateDer;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsConnector;

pub type TlsClient = StreamOwned<ClientConnection, TcpStream>;

pub fn certificates(shown: &[&TestCertificate]) -> ClientCertificates {
    let mut certificates = ClientCertificates::default();
    for one in shown {
        let (chain, key) = (one.pem(), one.key.serialize_pem());
        certificates.add(chain.as_bytes(), key.as_bytes()).expect("a certificate and its key");
    }
    certificates
}

/// Starts a reverse proxy with a TLS port.
pub fn proxy(
    origin: &TestOrigin,
    shown: &[&TestCertificate],
    change: impl FnOnce(&mut ProxySettings),
) -> TestProxy {
    proxy_with(|settings| {
        let (host, port) = (origin.address.ip().to_string(), origin.address.port());
        settings.mode = Mode::reverse(OriginServer { scheme: Scheme::Http, host, port });
        settings.listen_tls = vec![([127, 0, 0, 1], 0).into()];
        settings.client_tls = Some(ClientTls::new(certificates(shown)));
        change(settings);
    })
}

fn tcp(proxy: &TestProxy) -> TcpStream {
    let stream = TcpStream::connect(proxy.proxy.addresses()[1]).expect("the proxy accepts");
    stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a timeout");
    stream
}

fn connect(proxy: &TestProxy, authority: &TestAuthority, name: &str) -> TlsClient {
    let name = name.to_owned().try_into().expect("a name");
    let session = ClientConnection::new(Arc::new(authority.client(None)), name).expect("a session");
    StreamOwned::new(session, tcp(proxy))
}

/// Connects with `config`, and sends the whole handshake with the first bytes.
pub fn connect_with(proxy: &TestProxy, config: &Arc<ClientConfig>) -> TlsClient {
    let name = "a.test".try_into().expect("a name");
    let session = ClientConnection::new(Arc::clone(config), name).expect("a session");
    StreamOwned::new(session, tcp(proxy))
}

/// Sends one GET for `/`, and reads until the proxy closes the connection.
pub fn get(client: &mut TlsClient, host: &str) -> std::io::Result<String> {
    get_path(client, "/", host)
}

pub fn get_path(client: &mut TlsClient, path: &str, host: &str) -> std::io::Result<String> {
    write!(client, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    client.read_to_string(&mut answer)?;
    Ok(answer)
}

fn seen(client: &TlsClient) -> CertificateDer<'static> {
    client.conn.peer_certificates().expect("a certificate")[0].clone().into_owned()
}

#[test]
fn an_application_that_wants_https_sees_that_the_client_has_it() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|head, _| match header(head, "x-forwarded-proto") {
        Some("https") => ok("Cache-Control: max-age=600\r\n", b"welcome"),
        _ => {
            b"HTTP/1.1 301 Moved Permanently\r\nLocation: https://a.test/\r\nContent-Length: 0\r\n\
               \r\n"
                .to_vec()
        }
    });
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |_| {});
    let answer = get(&mut connect(&proxy, &authority, "a.test"), "a.test").expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("welcome"), "{answer}");
    let plain =
        proxy.connect().ask("GET / HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-Proto: https\r\n\r\n");
    assert_eq!((plain.status, plain.header("location")), (301, "https://a.test/"));
}

#[test]
fn a_client_is_served_over_tls_from_origin_and_memory() {
    let (authority, origin) = (
        TestAuthority::new(),
        TestOrigin::start(|_, number| {
            ok("Cache-Control: max-age=60\r\n", format!("{number}").as_bytes())
        }),
    );
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |_| {});
    for request in 0..2 {
        let answer = get(&mut connect(&proxy, &authority, "a.test"), "a.test")
            .expect("closed as TLS closes");
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\n0"),
            "{request}: {answer}"
        );
    }
    assert_eq!((origin.requests(), proxy.count(Counter::MemoryHits)), (1, 1));
    let plain = proxy.connect().ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!(
        plain.body, b"1",
        "what was asked for over TLS is another resource than what was not"
    );
}

#[test]
fn bodies_larger_than_any_buffer_pass_whole_in_both_directions() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|message, _| {
        ok("", message.split_once("\r\n\r\n").expect("a head").1.as_bytes())
    });
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |_| {});
    let body = "0123456789".repeat(200_000);
    let mut client = connect(&proxy, &authority, "a.test");
    let length = body.len();
    write!(
        client,
        "POST / HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n\
         {body}"
    )
    .expect("taken");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.ends_with(&body), "{}", &answer[..200]);
    assert_eq!(header(&answer, "content-length"), Some(length.to_string().as_str()));
}

#[test]
fn the_name_a_client_asks_for_chooses_the_certificate() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let (one, two) = (authority.sign(&["one.test"]), authority.sign(&["*.two.test"]));
    let proxy = proxy(&origin, &[&one, &two], |_| {});
    for (name, expected) in [("one.test", &one), ("a.two.test", &two)] {
        let mut client = connect(&proxy, &authority, name);
        get(&mut client, name).expect("an answer");
        assert_eq!(seen(&client), expected.certificate, "{name}");
    }
    let refused = get(&mut connect(&proxy, &authority, "three.test"), "three.test")
        .expect_err("not its name");
    assert!(refused.to_string().contains("not valid for name"), "{refused}");
}

#[test]
fn new_certificates_hold_for_new_connections_and_open_ones_go_on() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let (old, new) = (authority.sign(&["a.test"]), authority.sign(&["a.test"]));
    let tls = ClientTls::new(certificates(&[&old]));
    let used = tls.clone();
    let proxy = proxy(&origin, &[&old], |settings| settings.client_tls = Some(used));
    let mut open = connect(&proxy, &authority, "a.test");
    open.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
    open.read_exact(&mut [0; 12]).expect("an answer");
    tls.replace(certificates(&[&new]));
    assert!(get(&mut open, "a.test").is_ok());
    let mut later = connect(&proxy, &authority, "a.test");
    get(&mut later, "a.test").expect("an answer");
    assert_eq!((seen(&open), seen(&later)), (old.certificate, new.certificate));
}

#[test]
fn plain_http_on_the_tls_port_is_told_so() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |_| {});
    let answer = Client::on(tcp(&proxy)).ask("GET / HTTP/1.1\r\nHost: a.test\r\n\r\n");
    assert_eq!((answer.status, answer.cache_status()), (400, "foxy; detail=plain-http-on-tls"));
    assert_eq!(answer.header("connection"), "close");
}

#[test]
fn clients_that_do_not_finish_their_handshake_are_let_go() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("", b""));
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |settings| {
        settings.client_handshake = Duration::from_millis(50);
    });
    for start in [&b""[..], b"\x16\x03\x01", b"\x00junk"] {
        let mut stream = tcp(&proxy);
        stream.write_all(start).expect("taken");
        let end = stream.read_to_end(&mut Vec::new());
        assert!(
            end.is_ok()
                || end.is_err_and(|error| error.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    let given_up = clock::monotonic() + Duration::from_secs(10);
    while proxy.count(Counter::TlsFailures) < 3 && clock::monotonic() < given_up {
        std::thread::yield_now();
    }
    assert_eq!(proxy.count(Counter::TlsFailures), 3);
}

#[test]
fn a_connection_that_stays_idle_is_closed_as_tls_closes() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("", b"x"));
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |settings| {
        settings.client_idle = Duration::from_millis(50);
    });
    let mut client = connect(&proxy, &authority, "a.test");
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("closed as TLS closes");
    assert!(answer.ends_with('x'), "{answer}");
}

#[test]
fn a_tls_connection_that_rested_serves_its_next_request() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"x"));
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |settings| {
        settings.client_idle = Duration::from_secs(4);
    });
    let mut client = connect(&proxy, &authority, "a.test");
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
    std::thread::sleep(Duration::from_millis(2200));
    client.write_all(b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n").expect("taken");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("closed as TLS closes");
    assert_eq!(answers.matches("HTTP/1.1 200 ").count(), 2, "{answers}");
}

#[tokio::test]
async fn a_client_that_offers_http_2_speaks_it() {
    let authority = TestAuthority::new();
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: max-age=60\r\n", b"x"));
    let proxy = proxy(&origin, &[&authority.sign(&["a.test"])], |_| {});
    let mut config = authority.client(None);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let tcp = tokio::net::TcpStream::connect(proxy.proxy.addresses()[1])
        .await
        .expect("the proxy accepts");
    let name = "a.test".try_into().expect("a name");
    let stream =
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.expect("a handshake");
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (requests, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    let asking = async {
        let mut requests = requests.ready().await.expect("a connection");
        let request = http::Request::get("https://a.test/").body(()).expect("a request");
        let (answer, _) = requests.send_request(request, true).expect("sent");
        let mut answer = answer.await.expect("an answer");
        (answer.status().as_u16(), answer.body_mut().data().await.expect("a body").expect("whole"))
    };
    let answer = tokio::select! {
        answer = asking => answer,
        end = connection => panic!("closed: {end:?}"),
    };
    assert_eq!(answer, (200, "x".into()));
    assert_eq!(proxy.count(Counter::Http2Connections), 1);
}
