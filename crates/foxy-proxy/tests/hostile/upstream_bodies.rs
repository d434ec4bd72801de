//! Tests request bodies on their way to an origin: lengths, chunks, early answers, `Expect`, and
//! clients that disconnect. The origins follow scripts of raw bytes.

use crate::support::{ScriptedOrigin, Step, local, send};
use crate::upstream::{OK, SOON, answer, client, client_with, request, whole};
use bytes::Bytes;
use foxy_http::{BodyLength, Headers, Method};
use foxy_proxy::upstream::{
    BodyPiece, BodySender, HeadEvent, RequestBody, UpstreamError, UpstreamRequest,
};
use std::time::Duration;

async fn give(pieces: BodySender, parts: &[&'static str]) -> bool {
    for part in parts {
        if pieces.send(BodyPiece::Data(Bytes::from_static(part.as_bytes()))).await.is_err() {
            return false;
        }
    }
    pieces.send(BodyPiece::End(Headers::new())).await.is_ok()
}

#[tokio::test]
async fn bodies_are_sent_with_their_length_or_in_chunks() {
    let cases = [
        (BodyLength::Length(5), "Content-Length: 5", "hello"),
        (BodyLength::Chunked, "Transfer-Encoding: chunked", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        (BodyLength::Length(0), "Content-Length: 0", ""),
    ];
    for (length, header, wire) in cases {
        local(async {
            let ok = send(&format!("{OK}Content-Length: 2\r\n\r\nok"));
            let origin = ScriptedOrigin::with(vec![
                Step::Head,
                Step::Body(wire.len()),
                ok,
                Step::AwaitClose,
            ])
            .await;
            let client = client();
            let (pieces, body) = RequestBody::channel(length);
            let mut post = client.exchange(request(&origin, Method::Post, body));
            let parts: &[&str] = if wire.is_empty() { &[] } else { &["he", "llo"] };
            let (answer, _) = tokio::join!(answer(&mut post), give(pieces, parts));
            assert_eq!(answer, whole(200, "ok"));
            let heard = origin.heard();
            assert!(heard[0].contains(&format!("{header}\r\n")), "{heard:?}");
            assert_eq!(heard[1], wire);
            assert_eq!(client.idle_connections(), 1, "{length:?}");
        })
        .await;
    }
}

#[tokio::test]
async fn an_early_answer_is_seen_while_the_body_is_still_coming() {
    local(async {
        let refusal = send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
        let origin = ScriptedOrigin::with(vec![Step::Head, refusal, Step::AwaitClose]).await;
        let client = client();
        let (pieces, body) = RequestBody::channel(BodyLength::Length(1 << 40));
        let mut post = client.exchange(request(&origin, Method::Post, body));
        assert_eq!(answer(&mut post).await, whole(413, "no"));
        assert!(pieces.is_closed(), "the client's side learns that no more is wanted");
        assert_eq!(client.idle_connections(), 0);
    })
    .await;
}

#[tokio::test]
async fn an_answer_is_read_although_the_origin_takes_no_more_of_the_body() {
    local(async {
        let refusal = send(
            "HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\nno",
        );
        let origin = ScriptedOrigin::with(vec![Step::Head, refusal, Step::Hang]).await;
        let client = client();
        let (pieces, body) = RequestBody::channel(BodyLength::Chunked);
        let mut post = client.exchange(request(&origin, Method::Post, body));
        let flood = async {
            let piece = Bytes::from(vec![b'x'; 64 << 10]);
            while pieces.send(BodyPiece::Data(piece.clone())).await.is_ok() {}
        };
        let (answer, ()) = tokio::join!(answer(&mut post), flood);
        assert_eq!(answer, whole(413, "no"));
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_takes_no_request_body_is_timed_out() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::Hang]).await;
        let client = client_with(|settings| settings.head_timeout = SOON);
        let (pieces, body) = RequestBody::channel(BodyLength::Chunked);
        let mut post = client.exchange(request(&origin, Method::Post, body));
        let flood = async {
            let piece = Bytes::from(vec![b'x'; 64 << 10]);
            while pieces.send(BodyPiece::Data(piece.clone())).await.is_ok() {}
        };
        let outcome = async {
            let outcome = answer(&mut post).await;
            drop(post);
            outcome
        };
        assert_eq!(tokio::join!(outcome, flood).0, Err(UpstreamError::HeadTimeout));
    })
    .await;
}

#[tokio::test]
async fn a_client_that_leaves_within_its_body_ends_the_exchange() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::AwaitClose]).await;
        let (pieces, body) = RequestBody::channel(BodyLength::Length(10));
        let mut post = client().exchange(request(&origin, Method::Post, body));
        let leave = async {
            let _ = pieces.send(BodyPiece::Data(Bytes::from_static(b"half"))).await;
            drop(pieces);
        };
        let (answer, ()) = tokio::join!(answer(&mut post), leave);
        assert_eq!(answer, Err(UpstreamError::RequestBodyBroken));
        drop(post);
        origin.closed().await;
    })
    .await;
}

fn expecting(origin: &ScriptedOrigin, body: RequestBody) -> UpstreamRequest {
    let mut request = request(origin, Method::Put, body);
    request.headers.append("Expect", "100-continue");
    request
}

/// Checks that the client sends its body, to an origin that reads the head, and then does `steps`.
async fn check_expected_body(steps: Vec<Step>, continue_timeout: Duration) {
    let ok = send(&format!("{OK}Content-Length: 2\r\n\r\nok"));
    let script = [vec![Step::Head], steps, vec![Step::Body(5), ok]].concat();
    let origin = ScriptedOrigin::with(script).await;
    let client = client_with(|settings| settings.continue_timeout = continue_timeout);
    let (pieces, body) = RequestBody::channel(BodyLength::Length(5));
    let mut put = client.exchange(expecting(&origin, body));
    assert!(matches!(put.head().await, Ok(HeadEvent::Continue)));
    let (answer, given) = tokio::join!(answer(&mut put), give(pieces, &["hello"]));
    assert_eq!((answer, given), (whole(200, "ok"), true));
}

#[tokio::test]
async fn a_body_waits_for_the_origins_continue() {
    let steps = vec![send("HTTP/1.1 100 Continue\r\n\r\n")];
    local(check_expected_body(steps, Duration::from_secs(60))).await;
}

#[tokio::test]
async fn a_body_is_sent_when_the_origin_takes_too_long_to_say_continue() {
    local(check_expected_body(Vec::new(), SOON)).await;
}

#[tokio::test]
async fn a_refused_expectation_sends_no_body() {
    local(async {
        let refusal = send("HTTP/1.1 417 Expectation Failed\r\nContent-Length: 2\r\n\r\nno");
        let origin = ScriptedOrigin::with(vec![Step::Head, refusal, Step::AwaitClose]).await;
        let client = client_with(|settings| settings.continue_timeout = Duration::from_secs(60));
        let (pieces, body) = RequestBody::channel(BodyLength::Length(5));
        let mut put = client.exchange(expecting(&origin, body));
        assert_eq!(answer(&mut put).await, whole(417, "no"));
        assert!(!give(pieces, &["hello"]).await, "the body is not wanted");
        assert_eq!(client.idle_connections(), 0, "the origin may still wait for the body");
    })
    .await;
}
