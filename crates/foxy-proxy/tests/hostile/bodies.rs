//! Tests request bodies that are malformed, contain a second (smuggled) request, stay unread or are
//! cut off. The answer must name the HTTP rule that the body breaks. The proxy must never treat
//! bytes after the body as a request.

use crate::support::proxy::Proxy;
use crate::support::requests::{SMUGGLED, plain_origin, sent};
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::{DecodeError, Method};

/// Sends a chunked body and then a smuggled request. Checks that the answer names `rule` as the
/// broken rule, and that the connection closes.
async fn check_chunks(body: &str, rule: DecodeError) {
    local(async move {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::AwaitClose]).await;
        let proxy = Proxy::start();
        let head =
            "POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut client = sent(&proxy, &origin, &format!("{head}{body}{SMUGGLED}")).await;
        let answer = client.response(&Method::Post).await;
        let start = &body[..body.len().min(80)];
        assert_eq!(answer.head.status, rule.status(), "{start:?}: {}", answer.text());
        let text = answer.text();
        assert!(text.starts_with(&format!("foxy: {rule} (bad-request)\n")), "{start:?}: {text}");
        assert!(answer.header("cache-status").contains("detail=bad-request"), "{start:?}");
        assert!(answer.header("connection").eq_ignore_ascii_case("close"), "{start:?}");
        assert!(client.rest().await.is_empty(), "{start:?}: nothing follows the refusal");
        assert!(origin.heard().len() <= 1, "{start:?}: {:?}", origin.heard());
    })
    .await;
}

#[tokio::test]
async fn malformed_chunks_are_refused_by_the_rule_they_break() {
    let cases = [
        ("5\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkLine),
        ("5\r\nhello\n0\r\n\r\n", DecodeError::InvalidChunkEnd),
        ("5\r\nhelloX\r\n0\r\n\r\n", DecodeError::InvalidChunkEnd),
        ("0x5\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("+5\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("-1\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("5 \r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("fffffffffffffffff\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkSize),
        ("5;a\0\r\nhello\r\n0\r\n\r\n", DecodeError::InvalidChunkLine),
    ];
    for (body, rule) in cases {
        check_chunks(body, rule).await;
    }
    check_chunks(&format!("5;{}\r\n", "a".repeat(5000)), DecodeError::ChunkExtensionsTooLarge)
        .await;
}

#[tokio::test]
async fn malformed_trailers_are_refused_by_the_rule_they_break() {
    check_chunks("0\r\nbad trailer\r\n\r\n", DecodeError::InvalidHeaderName).await;
    check_chunks("0\r\nX: a\r\n folded\r\n\r\n", DecodeError::ObsoleteFold).await;
    check_chunks("0\r\nX: a\n\r\n", DecodeError::BareLineFeed).await;
    check_chunks(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(300)), DecodeError::TooManyHeaders)
        .await;
    let wide = format!("0\r\nX: {}\r\n\r\n", "a".repeat(20 << 10));
    check_chunks(&wide, DecodeError::TrailersTooLarge).await;
}

#[tokio::test]
async fn a_rule_broken_after_the_answer_began_cuts_the_answer() {
    local(async {
        let answer = send("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nearly");
        let origin = ScriptedOrigin::with(vec![Step::Head, answer, Step::AwaitClose]).await;
        let proxy = Proxy::start();
        let head =
            "POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nTransfer-Encoding: chunked\r\n\r\n";
        let mut client = sent(&proxy, &origin, head).await;
        client.read_until_blank_line().await;
        client.send(format!("x\r\n{SMUGGLED}")).await;
        let (rest, _) = client.end().await;
        assert_eq!(rest, b"early", "no second answer within the first");
    })
    .await;
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order_and_bodies_are_not_requests() {
    local(async {
        let origin = plain_origin().await;
        let proxy = Proxy::start();
        let post = format!(
            "POST http://ORIGIN/1 HTTP/1.1\r\nHost: ORIGIN\r\nContent-Length: {}\r\n\r\n{SMUGGLED}",
            SMUGGLED.len()
        );
        let get = "GET http://ORIGIN/2 HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";
        let last = "GET http://ORIGIN/3 HTTP/1.1\r\nHost: ORIGIN\r\nConnection: close\r\n\r\n";
        let body_origin = ScriptedOrigin::start(vec![
            vec![
                Step::Head,
                Step::Body(SMUGGLED.len()),
                send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\none"),
            ],
            vec![
                Step::Head,
                send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\ntwo"),
            ],
            vec![
                Step::Head,
                send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nthree"),
            ],
        ])
        .await;
        drop(origin);
        let mut client = sent(&proxy, &body_origin, &format!("{post}{get}{last}")).await;
        for (method, body) in [(Method::Post, "one"), (Method::Get, "two"), (Method::Get, "three")]
        {
            assert_eq!(client.response(&method).await.text(), body);
        }
        assert!(client.rest().await.is_empty());
        let heard = body_origin.heard();
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert_eq!(heard[1], SMUGGLED, "the body arrives as a body");
        assert!(heard.iter().skip(2).all(|head| !head.contains("smuggled")), "{heard:?}");
    })
    .await;
}

#[tokio::test]
async fn a_body_left_unread_is_never_taken_for_a_request() {
    local(async {
        let origin = ScriptedOrigin::with(vec![
            Step::Head,
            send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nCache-Control: max-age=600\r\n\r\nhit"),
            Step::Hang,
        ])
        .await;
        let proxy = Proxy::start();
        let get = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n";
        let mut client = sent(&proxy, &origin, &format!("{get}\r\n")).await;
        assert_eq!(client.response(&Method::Get).await.text(), "hit");
        let with_body = format!("{get}Content-Length: {}\r\n\r\n{SMUGGLED}", SMUGGLED.len());
        let mut client = sent(&proxy, &origin, &with_body).await;
        let answer = client.response(&Method::Get).await;
        assert!([200, 502].contains(&answer.head.status), "{:?}", answer.head);
        client.finish().await;
        let rest = client.rest().await;
        assert!(rest.is_empty(), "the body was taken for a request: {}", rest.escape_ascii());
    })
    .await;
}

#[tokio::test]
async fn a_request_body_that_stops_short_reaches_no_end_at_the_origin() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head, Step::AwaitClose]).await;
        let proxy = Proxy::start();
        let head =
            "POST http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\nContent-Length: 100\r\n\r\nhalf";
        let mut client = sent(&proxy, &origin, head).await;
        client.finish().await;
        let answer = client.response(&Method::Post).await;
        assert_eq!(answer.head.status, 400);
        assert!(answer.text().contains("(request-incomplete)"), "{}", answer.text());
        assert!(answer.header("connection").eq_ignore_ascii_case("close"));
        assert!(client.rest().await.is_empty());
        origin.closed().await;
        assert_eq!(origin.heard().len(), 1);
    })
    .await;
}
