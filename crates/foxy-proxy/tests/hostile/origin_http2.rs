//! Tests exchanges over HTTP/2 with origins that obey the protocol: the requests that the origin
//! receives, and the responses that the proxy reads.

use crate::support::http2_origin::{Asked, Http2Origin};
use crate::support::local;
use crate::upstream::{Answer, answer, client_with, whole};
use bytes::Bytes;
use foxy_http::{BodyLength, Headers, Method, Version};
use foxy_proxy::upstream::{
    BodyEvent, BodyPiece, BodySender, ChosenBy, HeadEvent, Origin, OriginHttp2, RequestBody,
    Scheme, UpstreamClient, UpstreamError, UpstreamExchange, UpstreamRequest, UpstreamSettings,
};
use futures_util::future::FutureExt;
use http::HeaderMap;
use std::time::Duration;

/// Creates an upstream client that speaks HTTP/2 with origins without TLS.
pub fn http2_client_with(change: impl FnOnce(&mut UpstreamSettings)) -> UpstreamClient {
    client_with(|settings| {
        settings.http2 = OriginHttp2::PriorKnowledge;
        change(settings);
    })
}

pub fn http2_client() -> UpstreamClient {
    http2_client_with(|_| {})
}

pub fn request(port: u16, method: Method, target: &str, body: RequestBody) -> UpstreamRequest {
    let mut headers = Headers::new();
    headers.append("Host", "origin.example");
    UpstreamRequest {
        origin: Origin::new(Scheme::Http, "127.0.0.1", port, ChosenBy::Client),
        method,
        target: Bytes::copy_from_slice(target.as_bytes()),
        headers,
        body,
    }
}

pub fn get(client: &UpstreamClient, port: u16, target: &str) -> UpstreamExchange {
    client.exchange(request(port, Method::Get, target, RequestBody::none()))
}

async fn body_of(asked: &mut Asked) -> (Vec<u8>, Option<HeaderMap>) {
    let mut bytes = Vec::new();
    while let Some(data) = asked.request.body_mut().data().await {
        let data = data.expect("a whole body");
        let _ = asked.request.body_mut().flow_control().release_capacity(data.len());
        bytes.extend_from_slice(&data);
    }
    (bytes, asked.request.body_mut().trailers().await.expect("a whole body"))
}

async fn echo(mut asked: Asked) {
    let (bytes, trailers) = body_of(&mut asked).await;
    let count = trailers.map_or(0, |trailers| trailers.len()).to_string();
    let length = asked.request.headers().get("content-length").cloned();
    let length = length.map_or("none".into(), |value| value.to_str().expect("text").to_owned());
    asked.ok(&[("x-trailers", &count), ("x-length", &length)], bytes);
}

async fn send_all(sender: BodySender, pieces: usize) {
    for _ in 0..pieces {
        sender.send(BodyPiece::Data(vec![b'p'; 30_000].into())).await.expect("wanted");
    }
    let mut trailers = Headers::new();
    trailers.append("X-Sum", "1");
    let _ = sender.send(BodyPiece::End(trailers)).await;
}

#[tokio::test]
async fn a_get_says_what_http2_says_and_gets_the_whole_answer() {
    local(async {
        let origin = Http2Origin::plain(|mut asked| {
            async move {
                let text = format!(
                    "{:?}",
                    (asked.request.method(), asked.request.uri(), asked.request.headers())
                );
                let length = text.len().to_string();
                asked.ok(&[("content-length", &length)], text);
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let mut exchange = get(&client, origin.port, "/thing?x=1");
        let HeadEvent::Final(head, length) = exchange.head().await.expect("a head") else {
            panic!("final")
        };
        assert_eq!(
            (head.version, head.status, &head.reason[..]),
            (Version::Http2, 200, &b"OK"[..])
        );
        let text = "(GET, http://origin.example/thing?x=1, {})";
        assert_eq!(length, BodyLength::Length(text.len() as u64));
        assert!(matches!(exchange.next().await, Ok(BodyEvent::Data(data)) if data == text));
        assert!(matches!(exchange.next().await, Ok(BodyEvent::End)));
    })
    .await;
}

#[tokio::test]
async fn bodies_of_known_and_unknown_length_go_up_and_come_down() {
    local(async {
        let origin = Http2Origin::plain(|asked| echo(asked).boxed_local()).await;
        let client = http2_client();
        for (length, expected) in
            [(BodyLength::Length(3_000_000), "3000000"), (BodyLength::Chunked, "none")]
        {
            let (sender, body) = RequestBody::channel(length);
            tokio::task::spawn_local(send_all(sender, 100));
            let mut exchange = client.exchange(request(origin.port, Method::Post, "/", body));
            let HeadEvent::Final(head, _) = exchange.head().await.expect("a head") else {
                panic!("final")
            };
            assert_eq!(head.headers.get_str("x-length"), Some(expected));
            let trailers = if length == BodyLength::Chunked { "1" } else { "0" };
            assert_eq!(head.headers.get_str("x-trailers"), Some(trailers));
            let mut received = 0;
            while let BodyEvent::Data(data) = exchange.next().await.expect("a whole body") {
                received += data.len();
            }
            assert_eq!(received, 3_000_000);
        }
        assert_eq!((origin.connections(), client.counts().http2), (1, 2));
    })
    .await;
}

#[tokio::test]
async fn an_early_answer_is_seen_while_the_body_is_sent() {
    local(async {
        let origin =
            Http2Origin::plain(|mut asked| async move { asked.ok(&[], "early") }.boxed_local())
                .await;
        let client = http2_client();
        let (sender, body) = RequestBody::channel(BodyLength::Length(1 << 30));
        let mut exchange = client.exchange(request(origin.port, Method::Post, "/", body));
        sender.send(BodyPiece::Data("first".into())).await.expect("wanted");
        assert_eq!(answer(&mut exchange).await, whole(200, "early"));
        let piece = || BodyPiece::Data(Bytes::from_static(&[0; 1000]));
        assert!(sender.send(piece()).await.is_err(), "nobody wants more");
        assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "early"));
        assert_eq!(origin.connections(), 1, "the connection outlives the reset");
    })
    .await;
}

#[tokio::test]
async fn trailers_are_given_after_the_body() {
    local(async {
        let origin = Http2Origin::plain(|mut asked| {
            async move {
                let mut stream = asked.head(200, &[], false);
                stream.send_data("ab".into(), false).expect("open");
                let mut trailers = HeaderMap::new();
                trailers.insert("x-sum", "1".parse().expect("a value"));
                stream.send_trailers(trailers).expect("open");
            }
            .boxed_local()
        })
        .await;
        let expected = Ok(Answer { status: 200, body: b"ab".to_vec(), trailers: 1 });
        assert_eq!(answer(&mut get(&http2_client(), origin.port, "/")).await, expected);
    })
    .await;
}

#[tokio::test]
async fn answers_without_a_body_are_complete() {
    local(async {
        let origin = Http2Origin::plain(|mut asked| {
            async move {
                match asked.path().as_str() {
                    "/head" => drop(asked.head(200, &[("content-length", "5")], true)),
                    "/304" => drop(asked.head(304, &[("etag", "\"a\"")], true)),
                    "/empty" => drop(asked.head(200, &[], true)),
                    _ => drop(asked.head(204, &[], true)),
                }
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let cases = [
            (Method::Head, "/head", 200, BodyLength::None),
            (Method::Get, "/304", 304, BodyLength::None),
            (Method::Get, "/empty", 200, BodyLength::Length(0)),
            (Method::Get, "/204", 204, BodyLength::None),
        ];
        for (method, target, status, expected) in cases {
            let mut exchange =
                client.exchange(request(origin.port, method, target, RequestBody::none()));
            let HeadEvent::Final(head, length) = exchange.head().await.expect("a head") else {
                panic!("final")
            };
            assert_eq!((head.status, length), (status, expected), "{target}");
            assert!(matches!(exchange.next().await, Ok(BodyEvent::End)), "{target}");
        }
    })
    .await;
}

#[tokio::test]
async fn interim_responses_pass_and_a_100_lets_the_body_go() {
    local(async {
        let origin = Http2Origin::plain(|mut asked| {
            async move {
                let interim = |status: u16, link: &str| {
                    http::Response::builder()
                        .status(status)
                        .header("link", link)
                        .body(())
                        .expect("a head")
                };
                asked.respond.send_informational(interim(103, "</a>")).expect("open");
                asked.respond.send_informational(interim(100, "")).expect("open");
                echo(asked).await;
            }
            .boxed_local()
        })
        .await;
        let (sender, body) = RequestBody::channel(BodyLength::Length(2));
        let mut wanted = request(origin.port, Method::Post, "/", body);
        wanted.headers.append("Expect", "100-continue");
        let mut exchange = http2_client().exchange(wanted);
        sender.send(BodyPiece::Data("hi".into())).await.expect("wanted");
        let HeadEvent::Interim(hints) = exchange.head().await.expect("hints") else {
            panic!("interim")
        };
        assert_eq!((hints.status, hints.headers.get_str("link")), (103, Some("</a>")));
        assert!(matches!(exchange.head().await, Ok(HeadEvent::Continue)));
        assert_eq!(answer(&mut exchange).await, whole(200, "hi"));
    })
    .await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_reset_and_never_ended() {
    local(async {
        let (tell, told) = tokio::sync::oneshot::channel();
        let tell = std::cell::Cell::new(Some(tell));
        let origin = Http2Origin::plain(move |mut asked| {
            let tell = tell.take().expect("one request");
            async move {
                while let Some(Ok(_)) = asked.request.body_mut().data().await {}
                let _ = tell.send(asked.request.body().is_end_stream());
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let (sender, body) = RequestBody::channel(BodyLength::Chunked);
        let mut exchange = client.exchange(request(origin.port, Method::Post, "/", body));
        sender.send(BodyPiece::Data("half".into())).await.expect("wanted");
        drop(sender);
        assert_eq!(answer(&mut exchange).await, Err(UpstreamError::RequestBodyBroken));
        drop(exchange);
        assert_eq!(told.await, Ok(false), "the origin is not told that this was all");
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_says_nothing_is_timed_out_and_its_connection_is_not_used_again() {
    const SOON: Duration = Duration::from_millis(150);
    local(async {
        let origin = Http2Origin::plain(|mut asked| {
            async move {
                match asked.path().as_str() {
                    "/body" => {
                        let mut stream = asked.head(200, &[], false);
                        stream.send_data("part".into(), false).expect("open");
                        std::future::pending().await
                    }
                    "/head" => std::future::pending().await,
                    _ => asked.ok(&[], "fine"),
                }
            }
            .boxed_local()
        })
        .await;
        let client = http2_client_with(|settings| {
            settings.head_timeout = SOON;
            settings.body_timeout = SOON;
        });
        let ask = async |target| answer(&mut get(&client, origin.port, target)).await;
        assert_eq!(ask("/body").await, Err(UpstreamError::BodyTimeout));
        assert_eq!(ask("/head").await, Err(UpstreamError::HeadTimeout));
        assert_eq!(ask("/").await, whole(200, "fine"));
    })
    .await;
}
