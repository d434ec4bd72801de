//! Tests two cases of HTTP/2 in which both sides obey the protocol. In one case, the proxy stops.
//! In the other case, a client expects `100 Continue` before it sends its body.

use crate::support::http2::{Frame, RawHttp2};
use crate::support::proxy::Proxy;
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_testkit::http2::{END_HEADERS, END_STREAM, block, frame, get_block, kind};
use h2::Reason;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;

/// First byte of the head of an answer with status 200: the indexed entry 8 of HPACK's static
/// table.
const OK: u8 = 0x88;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright";

fn is_head(frame: &Frame) -> bool {
    frame.kind == kind::HEADERS
}

/// Sends a request with the additional header fields `fields` and `Expect: 100-continue`. The
/// returned client has not sent the body yet.
async fn expecting(proxy: &Proxy, origin: &ScriptedOrigin, fields: &[(&str, &str)]) -> RawHttp2 {
    let mut client = RawHttp2::connect(proxy, &[]).await;
    let authority = format!("127.0.0.1:{}", origin.port);
    let asked = [
        (":method", "POST"),
        (":scheme", "http"),
        (":authority", &authority),
        (":path", "/"),
        ("expect", "100-continue"),
    ];
    client.send(&frame(kind::HEADERS, END_HEADERS, 1, &block(&[&asked, fields].concat()))).await;
    client
}

#[tokio::test]
async fn a_proxy_that_stops_says_goaway_and_finishes_what_was_asked() {
    local(async {
        let go = Rc::new(Notify::new());
        let origin =
            ScriptedOrigin::with(vec![Step::Head, Step::AwaitGo(Rc::clone(&go)), send(ANSWER)])
                .await;
        let proxy = Proxy::start_with(|settings| settings.stop_after = Duration::from_secs(60));
        let mut client = RawHttp2::connect(&proxy, &[]).await;
        let asked = get_block(&format!("127.0.0.1:{}", origin.port), "/");
        client.send(&frame(kind::HEADERS, END_HEADERS | END_STREAM, 1, &asked)).await;
        origin.heard_a_head().await;
        let stopping = proxy.stop();
        let goaway = client.find(|frame| frame.kind == kind::GOAWAY).await.expect("a farewell");
        assert_eq!(goaway.reason(), u32::from(Reason::NO_ERROR));
        go.notify_one();
        let head = client.find(is_head).await.expect("an answer");
        assert_eq!((head.stream, head.payload.first()), (1, Some(&OK)));
        let body = client.find(|frame| frame.kind == kind::DATA).await.expect("its body");
        assert_eq!(body.payload, b"right");
        drop(client);
        let stopped = tokio::task::spawn_blocking(move || stopping.join());
        assert!(stopped.await.expect("waited").is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_client_that_expects_100_is_told_to_go_on_when_the_origin_says_so() {
    local(async {
        let script = vec![
            Step::Head,
            send("HTTP/1.1 100 Continue\r\n\r\n"),
            Step::Body(4),
            send(ANSWER),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let mut client = expecting(&proxy, &origin, &[("content-length", "4")]).await;
        let interim = client.find(is_head).await.expect("leave to go on");
        assert_ne!(interim.payload.first(), Some(&OK), "the origin has no body yet");
        let heard = origin.heard();
        assert!(
            heard.len() == 1
                && heard[0].to_ascii_lowercase().contains("\r\nexpect: 100-continue\r\n"),
            "{heard:?}"
        );
        client.send(&frame(kind::DATA, END_STREAM, 1, b"body")).await;
        let head = client.find(is_head).await.expect("an answer");
        assert_eq!(head.payload.first(), Some(&OK));
        assert_eq!(origin.heard()[1], "body");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_expects_100_is_told_no_before_its_body_came() {
    local(async {
        let origin = ScriptedOrigin::with(vec![
            Step::Head,
            send("HTTP/1.1 417 No\r\nContent-Length: 0\r\n\r\n"),
        ])
        .await;
        let proxy = Proxy::start();
        let mut client = expecting(&proxy, &origin, &[]).await;
        client.find(is_head).await.expect("an answer");
        let reset =
            client.find(|frame| frame.kind == kind::RST_STREAM).await.expect("no body is wanted");
        assert_eq!(reset.reason(), u32::from(Reason::NO_ERROR));
        assert_eq!(origin.heard().len(), 1);
    })
    .await;
}
