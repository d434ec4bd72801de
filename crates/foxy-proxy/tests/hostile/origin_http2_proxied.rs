//! Tests HTTP/2 with origins through the whole proxy: which HTTP version it uses, which responses
//! it stores, and the answers that clients receive.

use crate::support::http2_frames::{FrameOrigin, OPENED, React, head, settings};
use crate::support::http2_origin::Http2Origin;
use crate::support::local;
use crate::support::proxy::Proxy;
use crate::support::wire::{RawClient, Response};
use foxy_http::Method;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::{Authorities, OriginHttp2, OriginTls};
use foxy_testkit::certificates::TestAuthority;
use foxy_testkit::http2::frame;
use foxy_testkit::http2::kind::{DATA, HEADERS, RST_STREAM};
use futures_util::future::FutureExt;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// Starts an origin behind TLS that chooses HTTP/2 if the proxy offers it. Also starts a proxy that
/// trusts the origin.
async fn behind_tls(http2: OriginHttp2) -> (Http2Origin, Proxy) {
    let authority = TestAuthority::new();
    let mut server = Arc::unwrap_or_clone(authority.sign(&["127.0.0.1"]).server());
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let origin = Http2Origin::start(h2::server::Builder::new(), Some(acceptor), |mut asked| {
        async move {
            let mut body = Vec::new();
            while let Some(Ok(data)) = asked.request.body_mut().data().await {
                let _ = asked.request.body_mut().flow_control().release_capacity(data.len());
                body.extend_from_slice(&data);
            }
            let fields = [("cache-control", "max-age=60"), ("content-type", "text/plain")];
            asked.ok(&fields, if body.is_empty() { b"answer".to_vec() } else { body });
        }
        .boxed_local()
    })
    .await;
    let mut authorities = Authorities::none();
    authorities.add_pem(authority.pem().as_bytes()).expect("a certificate");
    let proxy = Proxy::start_with(|settings: &mut ProxySettings| {
        settings.upstream.tls = OriginTls::trusting(authorities);
        settings.upstream.http2 = http2;
    });
    (origin, proxy)
}

async fn ask(proxy: &Proxy, url: &str, lines: &str) -> Response {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n{lines}\r\n")).await;
    client.response(&Method::Get).await
}

#[tokio::test]
async fn an_origin_that_chooses_http2_is_asked_over_it_and_its_answer_is_kept() {
    local(async {
        let (origin, proxy) = behind_tls(OriginHttp2::Auto).await;
        let url = format!("https://127.0.0.1:{}/a", origin.port);
        let first = ask(&proxy, &url, "").await;
        assert_eq!((first.head.status, first.text().as_str()), (200, "answer"));
        assert!(first.header("via").starts_with("2 "), "{}", first.header("via"));
        assert_eq!(first.header("content-type"), "text/plain");
        let second = ask(&proxy, &url, "").await;
        assert!(
            second.header("cache-status").starts_with("foxy; hit"),
            "{}",
            second.header("cache-status")
        );
        for path in ["b", "c"] {
            let url = format!("https://127.0.0.1:{}/{path}", origin.port);
            assert_eq!(ask(&proxy, &url, "").await.text(), "answer");
        }
        assert_eq!(proxy.count(Counter::OriginHttp2Responses), 3);
        assert_eq!(
            (origin.requests(), origin.connections()),
            (vec!["/a".into(), "/b".into(), "/c".into()], 1)
        );
    })
    .await;
}

#[tokio::test]
async fn switched_off_http2_is_not_offered() {
    local(async {
        let (origin, proxy) = behind_tls(OriginHttp2::Off).await;
        let answer = ask(&proxy, &format!("https://127.0.0.1:{}/a", origin.port), "").await;
        assert_eq!(answer.text(), "word");
        assert!(answer.header("via").starts_with("1.1 "), "{}", answer.header("via"));
        assert_eq!(origin.requests(), ["HTTP/1.1"]);
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_goes_over_http1_beside_http2() {
    local(async {
        let (origin, proxy) = behind_tls(OriginHttp2::Auto).await;
        let url = format!("https://127.0.0.1:{}/a", origin.port);
        assert_eq!(ask(&proxy, &url, "").await.text(), "answer");
        let mut client = RawClient::connect(proxy.port).await;
        let head =
            format!("GET {url} HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n");
        client.send(head).await;
        let head = client.read_until_blank_line().await;
        assert!(head.starts_with(b"HTTP/1.1 101 "), "{}", String::from_utf8_lossy(&head));
        assert_eq!(client.read_exactly(4).await, b"word");
        assert_eq!(origin.requests(), ["/a", "HTTP/1.1"]);
    })
    .await;
}

#[tokio::test]
async fn a_body_goes_up_in_chunks_and_comes_back() {
    local(async {
        let (origin, proxy) = behind_tls(OriginHttp2::Auto).await;
        let mut client = RawClient::connect(proxy.port).await;
        let (url, piece) = (format!("https://127.0.0.1:{}/echo", origin.port), "p".repeat(5000));
        let head = format!("POST {url} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
        client.send(head).await;
        for _ in 0..20 {
            client.send(format!("1388\r\n{piece}\r\n")).await;
        }
        client.send("0\r\n\r\n").await;
        let answer = client.response(&Method::Post).await;
        assert_eq!((answer.head.status, answer.text()), (200, piece.repeat(20)));
    })
    .await;
}

/// Starts a proxy that speaks HTTP/2 with origins without TLS.
fn knowing() -> Proxy {
    Proxy::start_with(|settings| settings.upstream.http2 = OriginHttp2::PriorKnowledge)
}

#[tokio::test]
async fn an_answer_whose_stream_is_reset_is_cut_and_never_kept() {
    local(async {
        let origin = FrameOrigin::start(|asked| {
            let begun = |stream| head(stream, 0, &[("cache-control", "max-age=60")]);
            match (asked.kind, asked.stream) {
                (OPENED, _) => React::Send(settings()),
                (HEADERS, 1) => {
                    let reset = frame(RST_STREAM, 0, 1, &[0, 0, 0, 2]);
                    React::Send([begun(1), frame(DATA, 0, 1, b"half"), reset].concat())
                }
                (HEADERS, stream) => {
                    React::Send([begun(stream), frame(DATA, 1, stream, b"whole")].concat())
                }
                _ => React::Send(Vec::new()),
            }
        })
        .await;
        let proxy = knowing();
        let url = format!("http://127.0.0.1:{}/a", origin.port);
        let mut client = RawClient::connect(proxy.port).await;
        client.send(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        let (seen, _) = client.end().await;
        assert!(!seen.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&seen));
        let second = ask(&proxy, &url, "").await;
        assert_eq!(second.text(), "whole");
        assert!(
            second.header("cache-status").contains("fwd=uri-miss"),
            "{}",
            second.header("cache-status")
        );
        assert!(ask(&proxy, &url, "").await.header("cache-status").starts_with("foxy; hit"));
    })
    .await;
}

#[tokio::test]
async fn a_client_is_told_what_went_wrong() {
    local(async {
        let origin = FrameOrigin::start(|asked| match asked.kind {
            OPENED => React::Send(settings()),
            HEADERS => React::Send(frame(RST_STREAM, 0, asked.stream, &[0, 0, 0, 2])),
            _ => React::Send(Vec::new()),
        })
        .await;
        let answer = ask(&knowing(), &format!("http://127.0.0.1:{}/a", origin.port), "").await;
        assert_eq!(answer.head.status, 502);
        assert_eq!(answer.header("cache-status"), "foxy; detail=http2-stream-reset");
        assert_eq!(answer.header("proxy-status"), "foxy; error=http_response_incomplete");
    })
    .await;
}
