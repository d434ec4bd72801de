//! Tests that a client receives its answer without waiting for the end of slower work, such as a
//! write to the store. Also tests that a broken body never looks complete.

use crate::support::proxy::Proxy;
use crate::support::store::{Broken, BrokenStore};
use crate::support::wire::RawClient;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use std::time::Duration;

/// A response head that announces a body. The origin never sends this body.
const HEAD: &str =
    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nETag: \"v1\"\r\nContent-Length: 5\r\n\r\n";

/// Starts a proxy, sends a request, and reads the head of the answer. In the request, `ORIGIN`
/// stands for the origin's authority.
async fn head_of(request: &str) -> String {
    let origin = ScriptedOrigin::with(vec![Step::Head, send(HEAD), Step::Hang]).await;
    let proxy = Proxy::start();
    let mut client = RawClient::connect(proxy.port).await;
    client.send(request.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    String::from_utf8_lossy(&client.read_until_blank_line().await).into_owned()
}

#[tokio::test]
async fn a_head_is_passed_on_before_the_body_comes() {
    local(async {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nContent-Length: 0\r\n\r\n"
            );
            let head = head_of(&request).await;
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{method}: {head}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_has_it_already_does_not_wait_for_the_body() {
    local(async {
        let request =
            "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nIf-None-Match: \"v1\"\r\n\r\n";
        let head = head_of(request).await;
        assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
    })
    .await;
}

#[tokio::test]
async fn a_response_that_a_client_did_not_need_is_stored_for_the_next() {
    local(async {
        let script = vec![
            Step::Head,
            send(HEAD),
            Step::Pause(Duration::from_millis(50)),
            send("hello"),
            Step::AwaitClose,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let mut client = RawClient::connect(proxy.port).await;
        let target = format!("http://127.0.0.1:{}/", origin.port);
        client
            .send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"v1\"\r\n\r\n"))
            .await;
        assert_eq!(client.response(&Method::Get).await.head.status, 304);
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        assert_eq!(client.response(&Method::Get).await.text(), "hello");
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
        let answer = client.response(&Method::Get).await;
        assert!(answer.header("cache-status").contains("hit"), "{answer:?}");
        assert_eq!(origin.heard().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn a_client_of_http_1_0_sees_a_break_as_a_break() {
    local(async {
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
        let whole = format!("{chunked}0\r\n\r\n");
        for (text, broken) in [(chunked, true), (&whole, false)] {
            let origin = ScriptedOrigin::with(vec![Step::Head, send(text)]).await;
            let proxy = Proxy::start();
            let mut client = RawClient::connect(proxy.port).await;
            client
                .send(format!("GET http://127.0.0.1:{}/ HTTP/1.0\r\nHost: a\r\n\r\n", origin.port))
                .await;
            let (received, reset) = client.end().await;
            let received = String::from_utf8_lossy(&received);
            assert!(!received.contains("chunked"), "{received}");
            assert_eq!(reset, broken, "without a length only the kind of close tells: {received}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_large_response_does_not_wait_for_a_store_that_hangs() {
    local(async {
        let body: Vec<u8> = (0..8 * foxy_proxy::cache::storage::PART + 5)
            .map(|at| (at / 1000 % 251) as u8)
            .collect();
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let script = vec![Step::Head, send(&head), Step::Send(body.clone()), Step::AwaitClose];
        let origin = ScriptedOrigin::with(script).await;
        // If the proxy waited for its store, the client's time limit would pass before the answer.
        let proxy = Proxy::start_on(Some(BrokenStore::new(Broken::HangsOnPuts)), |settings| {
            settings.store_patience = Duration::from_secs(60);
        });
        let mut client = RawClient::connect(proxy.port).await;
        client
            .send(format!("GET http://127.0.0.1:{}/ HTTP/1.1\r\nHost: a\r\n\r\n", origin.port))
            .await;
        let answer = client.response(&Method::Get).await;
        assert!(answer.body == body, "{} bytes came", answer.body.len());
        client
            .send("OPTIONS http://127.0.0.1:1/ HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\n\r\n")
            .await;
        assert_eq!(
            client.response(&Method::Options).await.head.status,
            200,
            "the connection goes on at once"
        );
    })
    .await;
}
