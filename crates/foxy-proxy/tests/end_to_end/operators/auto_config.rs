//! Tests that a forward proxy serves its PAC file only where the operator wants it.

use crate::bench::{TestProxy, proxy_with};
use crate::tls::clients::certificates;
use bytes::Bytes;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::core::users::{UserBook, token_line};
use foxy_proxy::request::auto_config::AutoConfig;
use foxy_proxy::settings::ProxySettings;
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::client::Answered;
use h2::client::SendRequest;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio_rustls::TlsConnector;

fn proxy(change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
    proxy_with(|settings| {
        settings.auto_config = Some(AutoConfig::new(&[]));
        change(settings);
    })
}

fn asked(proxy: &TestProxy, method: &str, path: &str) -> Answered {
    let host = proxy.address();
    proxy.connect().ask(&format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"))
}

#[test]
fn the_file_is_served_under_both_names_and_names_the_proxy() {
    let proxy = proxy(|_| {});
    for path in ["/proxy.pac", "/wpad.dat"] {
        let answer = asked(&proxy, "GET", path);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), "application/x-ns-proxy-autoconfig");
        assert_eq!(answer.cache_status(), "foxy; detail=auto-config");
        let text = String::from_utf8(answer.body).expect("text");
        assert!(text.contains(&format!("\"PROXY {}\"", proxy.address())), "{text}");
        let head = asked(&proxy, "HEAD", path);
        assert_eq!(head.header("content-length"), text.len().to_string());
    }
    assert_eq!(asked(&proxy, "GET", "/other").status, 400);
    assert_eq!(asked(&proxy_with(|_| {}), "GET", "/proxy.pac").status, 400, "off by default");
}

#[test]
fn the_file_needs_an_allowed_client_but_no_credentials() {
    let users = UserBook::read(&token_line("ann").expect("a line").1).expect("sound");
    let with_users = proxy(|settings| settings.users = Some(users).into());
    assert_eq!(asked(&with_users, "GET", "/proxy.pac").status, 200);
    assert_eq!(asked(&with_users, "GET", "/other").status, 407);
    let others = vec!["127.0.0.2".parse().expect("a block")];
    let refusing = proxy(|settings| settings.allow_client = others.into());
    assert_eq!(asked(&refusing, "GET", "/proxy.pac").status, 403);
}

/// Starts a proxy with TLS and users. Returns the proxy, its TLS address, and the connection of an
/// HTTP/2 client that expects a certificate for `name`.
async fn http2_client(
    name: &str,
) -> (TestProxy, SocketAddr, SendRequest<Bytes>, impl Future<Output = Result<(), h2::Error>>) {
    let authority = TestAuthority::new();
    let users = UserBook::read(&token_line("ann").expect("a line").1).expect("sound");
    let proxy = proxy(|settings| {
        settings.listen_tls = vec![([127, 0, 0, 1], 0).into()];
        let tls = ClientTls::new(certificates(&[&authority.sign(&[name])]));
        settings.client_tls = Some(tls);
        settings.users = Some(users).into();
    });
    let mut config = authority.client(None);
    config.alpn_protocols = vec![b"h2".to_vec()];
    let address = proxy.proxy.addresses()[1];
    let tcp = tokio::net::TcpStream::connect(address).await.expect("accepted");
    let name = name.to_owned().try_into().expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
    let (requests, connection) =
        h2::client::handshake(stream.expect("a handshake")).await.expect("HTTP/2");
    (proxy, address, requests, connection)
}

/// Sends requests for these URLs. Compares the statuses of the answers with the expected statuses.
/// Returns the bodies of the files.
async fn statuses(
    mut requests: SendRequest<Bytes>,
    connection: impl Future<Output = Result<(), h2::Error>>,
    urls: &[(String, u16)],
) -> Vec<String> {
    let asking = async {
        let mut files = Vec::new();
        for (url, expected) in urls {
            requests = requests.ready().await.expect("a connection");
            let request = http::Request::get(url).body(()).expect("a request");
            let (answer, _) = requests.send_request(request, true).expect("sent");
            let mut answer = answer.await.expect("an answer");
            assert_eq!(answer.status().as_u16(), *expected, "{url}");
            if *expected == 200 {
                let text = answer.body_mut().data().await.expect("a body").expect("sent");
                files.push(String::from_utf8_lossy(&text).into_owned());
            }
        }
        files
    };
    tokio::select! {
        files = asking => files,
        end = connection => panic!("closed: {end:?}"),
    }
}

/// Browsers use HTTP/2 with each server that offers it. Over HTTP/2, a request to the proxy itself
/// looks like a request to an origin.
#[tokio::test]
async fn a_browser_gets_the_file_over_http_2_by_the_name_in_its_handshake() {
    let (_proxy, _, requests, connection) = http2_client("proxy.test").await;
    let urls = [
        ("https://proxy.test:3129/proxy.pac", 200),
        ("https://PROXY.test/wpad.dat", 200),
        ("https://other.test/proxy.pac", 407),
        ("https://proxy.test/other", 407),
    ];
    let urls = urls.map(|(url, status)| (url.to_owned(), status));
    let files = statuses(requests, connection, &urls).await;
    assert!(files[0].contains("\"HTTPS proxy.test:3129\""), "{}", files[0]);
}

/// The handshake of a browser that connects to an address contains no name.
#[tokio::test]
async fn a_browser_gets_the_file_over_http_2_by_the_address_that_it_reached() {
    let (_proxy, address, requests, connection) = http2_client("127.0.0.1").await;
    let urls = [
        (format!("https://{address}/proxy.pac"), 200),
        ("https://127.0.0.1/proxy.pac".to_owned(), 407),
        (format!("https://127.0.0.2:{}/proxy.pac", address.port()), 407),
        (format!("https://localhost:{}/proxy.pac", address.port()), 407),
    ];
    let files = statuses(requests, connection, &urls).await;
    assert!(files[0].contains(&format!("\"HTTPS {address}\"")), "{}", files[0]);
}
