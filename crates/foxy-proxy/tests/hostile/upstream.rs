//! Tests exchanges (a request to an origin and its response) with origins that obey the protocol,
//! and with origins that misbehave in many ways. The origins follow scripts of raw bytes.

use crate::support::{ScriptedOrigin, Step, local, send};
use bytes::Bytes;
use foxy_http::{BodyLength, DecodeError, Headers, Method};
use foxy_proxy::upstream::{
    Addresses, BodyEvent, BodyPiece, ChosenBy, ConnectError, DestinationPolicy, HeadEvent, Origin,
    RequestBody, Resolve, ResolveError, Scheme, UpstreamClient, UpstreamError, UpstreamExchange,
    UpstreamRequest, UpstreamSettings,
};
use futures_util::future::{FutureExt, LocalBoxFuture};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

struct NoNames;

impl Resolve for NoNames {
    fn resolve(&self, _: &str) -> LocalBoxFuture<'static, Addresses> {
        std::future::ready(Err(ResolveError::NoSuchHost)).boxed_local()
    }
}

/// A timeout in this proxy. It is long enough for the answer of a slow machine, and so short that a
/// test can wait for its end.
pub const SOON: Duration = Duration::from_millis(150);

pub fn client_with(change: impl FnOnce(&mut UpstreamSettings)) -> UpstreamClient {
    let mut settings = UpstreamSettings::default();
    change(&mut settings);
    let allowed = vec!["127.0.0.0/8".parse().expect("block")];
    let policy = DestinationPolicy { allowed, ..DestinationPolicy::default() };
    UpstreamClient::new(settings, Rc::new(NoNames), Rc::new(policy), &Arc::default())
}

pub fn client() -> UpstreamClient {
    client_with(|_| {})
}

pub fn request(origin: &ScriptedOrigin, method: Method, body: RequestBody) -> UpstreamRequest {
    let mut headers = Headers::new();
    headers.append("Host", "origin.example");
    UpstreamRequest {
        origin: Origin::new(Scheme::Http, "127.0.0.1", origin.port, ChosenBy::Client),
        method,
        target: Bytes::from_static(b"/thing?x=1"),
        headers,
        body,
    }
}

fn get(client: &UpstreamClient, origin: &ScriptedOrigin) -> UpstreamExchange {
    client.exchange(request(origin, Method::Get, RequestBody::none()))
}

/// A response that was read to its end, without its interim heads.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    pub trailers: usize,
}

pub async fn answer(exchange: &mut UpstreamExchange) -> Result<Answer, UpstreamError> {
    let status = loop {
        if let HeadEvent::Final(head, _) = exchange.head().await? {
            break head.status;
        }
    };
    let mut answer = Answer { status, body: Vec::new(), trailers: 0 };
    loop {
        match exchange.next().await? {
            BodyEvent::Data(bytes) => answer.body.extend_from_slice(&bytes),
            BodyEvent::Trailers(trailers) => answer.trailers += trailers.len(),
            BodyEvent::End => return Ok(answer),
        }
    }
}

pub fn whole(status: u16, body: &str) -> Result<Answer, UpstreamError> {
    Ok(Answer { status, body: body.into(), trailers: 0 })
}

/// Sends a GET to an origin that follows `script`. Checks the resulting response or error.
async fn check_get(script: Vec<Step>, expected: Result<Answer, UpstreamError>) {
    let name = format!("{script:?}");
    local(async {
        let origin = ScriptedOrigin::with(script).await;
        let client = client_with(|settings| {
            settings.head_timeout = SOON;
            settings.body_timeout = SOON;
        });
        assert_eq!(answer(&mut get(&client, &origin)).await, expected, "{name}");
        let complete = client.idle_connections();
        assert!(
            expected.is_ok() || complete == 0,
            "a failed exchange's connection is not kept: {name}"
        );
    })
    .await;
}

pub const OK: &str = "HTTP/1.1 200 OK\r\n";

#[tokio::test]
async fn responses_of_every_framing_are_read_whole() {
    let cases = [
        ("Content-Length: 5\r\n\r\nhello", "hello"),
        ("Content-Length: 0\r\n\r\n", ""),
        ("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "hello"),
        ("\r\nuntil the close", "until the close"),
    ];
    for (rest, body) in cases {
        check_get(vec![Step::Head, send(&format!("{OK}{rest}"))], whole(200, body)).await;
    }
}

#[tokio::test]
async fn trailers_are_given() {
    let text = format!("{OK}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX-Sum: 1\r\n\r\n");
    let expected = Ok(Answer { status: 200, body: b"ab".to_vec(), trailers: 1 });
    check_get(vec![Step::Head, send(&text)], expected).await;
}

#[tokio::test]
async fn the_request_is_written_as_given() {
    local(async {
        let origin =
            ScriptedOrigin::with(vec![Step::Head, send("HTTP/1.1 204 No Content\r\n\r\n")]).await;
        assert_eq!(answer(&mut get(&client(), &origin)).await, whole(204, ""));
        assert_eq!(origin.heard(), ["GET /thing?x=1 HTTP/1.1\r\nHost: origin.example\r\n\r\n"]);
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_closes_without_an_answer_is_no_response() {
    check_get(vec![Step::Head], Err(UpstreamError::NoResponse)).await;
    check_get(vec![Step::Head, Step::Reset], Err(UpstreamError::NoResponse)).await;
}

#[tokio::test]
async fn an_origin_that_hangs_is_timed_out() {
    check_get(vec![Step::Hang], Err(UpstreamError::HeadTimeout)).await;
    check_get(vec![Step::Head, send(OK), Step::Hang], Err(UpstreamError::HeadTimeout)).await;
    let part = send(&format!("{OK}Content-Length: 9\r\n\r\nhalf"));
    check_get(vec![Step::Head, part, Step::Hang], Err(UpstreamError::BodyTimeout)).await;
}

#[tokio::test]
async fn a_head_that_drips_is_timed_out_as_a_whole() {
    let script = vec![Step::Head, send(OK), Step::Drip(b'x', Duration::from_millis(10))];
    check_get(script, Err(UpstreamError::HeadTimeout)).await;
}

#[tokio::test]
async fn a_response_that_ends_early_is_never_whole() {
    let truncated = Err(UpstreamError::BadResponse(DecodeError::TruncatedBody));
    let bodies = [
        "Content-Length: 9\r\n\r\nhalf",
        "Content-Length: 9\r\n\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhel",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
        "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 1\r\n",
    ];
    for body in bodies {
        let expected = truncated.as_ref().map(|()| unreachable!()).map_err(|error| *error);
        check_get(vec![Step::Head, send(&format!("{OK}{body}"))], expected).await;
    }
    check_get(
        vec![Step::Head, send(OK)],
        Err(UpstreamError::BadResponse(DecodeError::TruncatedHead)),
    )
    .await;
}

#[tokio::test]
async fn a_reset_within_a_body_until_the_close_is_no_end() {
    local(async {
        let script = vec![Step::Head, send(&format!("{OK}\r\npart")), Step::Body(2), Step::Reset];
        let origin = ScriptedOrigin::with(script).await;
        let (pieces, body) = RequestBody::channel(BodyLength::Length(2));
        let mut exchange = client().exchange(request(&origin, Method::Put, body));
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
        assert!(matches!(exchange.next().await, Ok(BodyEvent::Data(bytes)) if bytes == "part"));
        pieces.send(BodyPiece::Data(Bytes::from_static(b"go"))).await.expect("wanted");
        assert_eq!(exchange.next().await.map(drop), Err(UpstreamError::Reset));
    })
    .await;
}

#[tokio::test]
async fn what_is_no_response_is_named() {
    use DecodeError::{
        ChunkedNotLast, InvalidChunkEnd, InvalidChunkSize, InvalidContentLength, InvalidStatusLine,
        RepeatedContentLength, UnexpectedSwitch, UnsupportedVersion,
    };
    let cases = [
        ("SSH-2.0-OpenSSH_9.6\r\n\r\n", InvalidStatusLine),
        ("HTTP/1.1 two hundred\r\n\r\n", InvalidStatusLine),
        ("HTTP/2.0 200 OK\r\n\r\n", UnsupportedVersion),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
            RepeatedContentLength,
        ),
        ("HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello", InvalidContentLength),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\nhello", ChunkedNotLast),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", InvalidChunkSize),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabcd\r\n0\r\n\r\n",
            InvalidChunkEnd,
        ),
        ("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", UnexpectedSwitch),
    ];
    for (text, error) in cases {
        check_get(
            vec![Step::Head, send(text), Step::AwaitClose],
            Err(UpstreamError::BadResponse(error)),
        )
        .await;
    }
}

#[tokio::test]
async fn endless_heads_and_interim_responses_are_bounded() {
    let endless = |first: &str, again: &str, error| {
        let script =
            vec![Step::Head, send(first), Step::SendForever(again.repeat(50).into_bytes())];
        check_get(script, Err(UpstreamError::BadResponse(error)))
    };
    endless(
        OK,
        "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        DecodeError::TooManyHeaders,
    )
    .await;
    endless("HTTP/1.1 200 ", "very ", DecodeError::HeadTooLarge).await;
    endless(
        "",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n",
        DecodeError::TooManyInterimResponses,
    )
    .await;
    let trailers = format!("{OK}Transfer-Encoding: chunked\r\n\r\n0\r\n");
    endless(
        &trailers,
        "X-Filler: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n",
        DecodeError::TooManyHeaders,
    )
    .await;
}

#[tokio::test]
async fn interim_responses_are_given_before_the_final_one() {
    local(async {
            let text = format!("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                                {OK}Content-Length: 2\r\n\r\nok");
            let origin = ScriptedOrigin::with(vec![Step::Head, send(&text)]).await;
            let mut exchange = get(&client(), &origin);
            assert!(matches!(exchange.head().await, Ok(HeadEvent::Interim(head)) if head.status == 103));
            assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(head, BodyLength::Length(2))) if head.status == 200));
        })
    .await;
}

/// Returns a script that answers two requests on one connection.
fn twice() -> Vec<Step> {
    let ok = send(&format!("{OK}Content-Length: 2\r\n\r\nok"));
    vec![Step::Head, ok.clone(), Step::Head, ok]
}

#[tokio::test]
async fn a_clean_end_keeps_the_connection_for_the_next_request() {
    local(async {
        let origin = ScriptedOrigin::with(twice()).await;
        let client = client();
        for _ in 0..2 {
            assert_eq!(answer(&mut get(&client, &origin)).await, whole(200, "ok"));
        }
        assert_eq!((origin.connections(), client.counts().reused), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn connections_that_end_in_doubt_are_not_kept() {
    let endings = [
        "Connection: close\r\nContent-Length: 2\r\n\r\nok",
        "Content-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n",
        "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    ];
    for ending in endings {
        local(async {
            let origin = ScriptedOrigin::with(vec![
                Step::Head,
                send(&format!("{OK}{ending}")),
                Step::AwaitClose,
            ])
            .await;
            let client = client();
            assert_eq!(answer(&mut get(&client, &origin)).await, whole(200, "ok"), "{ending}");
            assert_eq!(client.idle_connections(), 0, "{ending}");
            origin.closed().await;
        })
        .await;
    }
}

#[tokio::test]
async fn an_exchange_left_before_its_end_closes_its_connection() {
    local(async {
        let script =
            vec![Step::Head, send(&format!("{OK}Content-Length: 9\r\n\r\nhalf")), Step::AwaitClose];
        let origin = ScriptedOrigin::with(script).await;
        let client = client();
        let mut exchange = get(&client, &origin);
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
        drop(exchange);
        origin.closed().await;
        assert_eq!(client.idle_connections(), 0);
    })
    .await;
}

/// Starts an origin that accepts two connections. The first answers one request, and resets when
/// the second request arrives. The second answers its request.
async fn origin_whose_kept_connection_dies() -> ScriptedOrigin {
    let ok = send(&format!("{OK}Content-Length: 2\r\n\r\nok"));
    ScriptedOrigin::start(vec![
        vec![Step::Head, ok.clone(), Step::Head, Step::Reset],
        vec![Step::Head, ok],
    ])
    .await
}

#[tokio::test]
async fn a_kept_connection_that_turns_out_dead_is_replaced_once() {
    local(async {
        let origin = origin_whose_kept_connection_dies().await;
        let client = client();
        for _ in 0..2 {
            assert_eq!(answer(&mut get(&client, &origin)).await, whole(200, "ok"));
        }
        assert_eq!((origin.connections(), client.counts().retried), (2, 1));
    })
    .await;
}

#[tokio::test]
async fn a_kept_connection_that_dies_within_an_answer_is_an_error() {
    local(async {
        let ok = send(&format!("{OK}Content-Length: 2\r\n\r\nok"));
        let script = vec![Step::Head, ok, Step::Head, send("HTTP/1.1 2")];
        let origin = ScriptedOrigin::with(script).await;
        let client = client();
        assert_eq!(answer(&mut get(&client, &origin)).await, whole(200, "ok"));
        let expected = Err(UpstreamError::BadResponse(DecodeError::TruncatedHead));
        assert_eq!(answer(&mut get(&client, &origin)).await, expected);
        assert_eq!(client.counts().retried, 0);
    })
    .await;
}

#[tokio::test]
async fn a_request_that_cannot_be_repeated_gets_a_new_connection() {
    local(async {
        let origin = origin_whose_kept_connection_dies().await;
        let client = client();
        assert_eq!(answer(&mut get(&client, &origin)).await, whole(200, "ok"));
        let mut post = client.exchange(request(&origin, Method::Post, RequestBody::none()));
        assert_eq!(answer(&mut post).await, whole(200, "ok"));
        assert_eq!((origin.connections(), client.counts().retried), (2, 0));
    })
    .await;
}

#[tokio::test]
async fn an_upgrade_hands_on_the_connection_and_what_came_with_the_head() {
    local(async {
        let text =
            "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: chat\r\n\r\nhello";
        let origin = ScriptedOrigin::with(vec![Step::Head, send(text), Step::Hang]).await;
        let mut asked = request(&origin, Method::Get, RequestBody::none());
        asked.headers.append("Connection", "upgrade");
        asked.headers.append("Upgrade", "chat");
        let mut exchange = client().exchange(asked);
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(_, BodyLength::Tunnel))));
        let (_, early) = exchange.into_tunnel().expect("the connection");
        assert_eq!(early, "hello");
    })
    .await;
}

#[tokio::test]
async fn a_slow_reader_slows_the_origin_down() {
    local(async {
        let head = send(&format!("{OK}Content-Length: 1000000000\r\n\r\n"));
        let origin =
            ScriptedOrigin::with(vec![Step::Head, head, Step::SendForever(vec![b'x'; 1 << 20])])
                .await;
        let mut exchange = get(&client(), &origin);
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
        for _ in 0..10 {
            let piece = exchange.next().await;
            assert!(
                matches!(&piece, Ok(BodyEvent::Data(bytes)) if bytes.len() <= 64 << 10),
                "{piece:?}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn destinations_are_refused_before_anything_is_sent() {
    local(async {
        let origin = ScriptedOrigin::with(vec![Step::Head]).await;
        let policy = Rc::new(DestinationPolicy::default());
        let client = UpstreamClient::new(
            UpstreamSettings::default(),
            Rc::new(NoNames),
            policy,
            &Arc::default(),
        );
        let refused = answer(&mut get(&client, &origin)).await;
        assert!(
            matches!(refused, Err(UpstreamError::Connect(ConnectError::Forbidden(_)))),
            "{refused:?}"
        );
        let mail = Origin::new(Scheme::Http, "1.1.1.1", 25, ChosenBy::Client);
        let tunnel = client
            .connect(&mail, std::net::IpAddr::from([127, 0, 0, 1]).into(), &Headers::new())
            .await;
        assert!(matches!(tunnel, Err(ConnectError::Forbidden(_))));
        assert_eq!(origin.connections(), 0);
    })
    .await;
}
