//! Tests HTTP/2 connections to origins: which requests share a connection, how many connections the
//! proxy opens, and how they end.

use crate::origin_http2::{get, http2_client, http2_client_with, request};
use crate::support::http2_origin::{Asked, Http2Origin};
use crate::support::local;
use crate::upstream::{answer, whole};
use bytes::Bytes;
use foxy_http::Method;
use foxy_proxy::upstream::{
    ChosenBy, ConnectError, HeadEvent, Origin, RequestBody, Scheme, UpstreamClient, UpstreamError,
};
use foxy_testkit::ports::free_ports;
use futures_util::future::{FutureExt, join_all};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::{Barrier, Notify};

/// Starts an origin that answers no request until `count` requests are open at the same time.
async fn meeting(count: usize) -> Http2Origin {
    let barrier = Rc::new(Barrier::new(count));
    Http2Origin::plain(move |mut asked| {
        let barrier = Rc::clone(&barrier);
        async move {
            barrier.wait().await;
            asked.ok(&[], "together");
        }
        .boxed_local()
    })
    .await
}

async fn ask_at_once(client: &UpstreamClient, port: u16, count: usize) {
    let asked = (0..count).map(async |_| answer(&mut get(client, port, "/")).await);
    for answer in join_all(asked).await {
        assert_eq!(answer, whole(200, "together"));
    }
}

async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn those_who_come_at_once_share_one_connection() {
    local(async {
        let (origin, client) = (meeting(40).await, http2_client());
        ask_at_once(&client, origin.port, 40).await;
        let counts = client.counts();
        assert_eq!(
            (origin.connections(), counts.opened, counts.reused, counts.http2),
            (1, 1, 39, 40)
        );
        assert_eq!(client.idle_connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn another_connection_is_opened_when_one_is_full() {
    local(async {
        let (origin, client) = (meeting(70).await, http2_client());
        ask_at_once(&client, origin.port, 70).await;
        assert_eq!(origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_allows_one_request_at_a_time_answers_all() {
    local(async {
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(1);
        let answer_it = |mut asked: Asked| async move { asked.ok(&[], "together") }.boxed_local();
        let (origin, client) = (Http2Origin::start(builder, None, answer_it).await, http2_client());
        ask_at_once(&client, origin.port, 60).await;
        ask_at_once(&client, origin.port, 60).await;
        assert!(origin.connections() <= 8, "{}", origin.connections());
        assert_eq!((origin.requests().len(), client.counts().retried), (120, 0));
    })
    .await;
}

#[tokio::test]
async fn an_origin_that_allows_no_request_is_waited_for_and_then_given_up() {
    local(async {
        let mut builder = h2::server::Builder::new();
        builder.max_concurrent_streams(0);
        let origin = Http2Origin::start(builder, None, |_| async {}.boxed_local()).await;
        let client =
            http2_client_with(|settings| settings.head_timeout = Duration::from_millis(150));
        assert_eq!(
            answer(&mut get(&client, origin.port, "/")).await,
            Err(UpstreamError::HeadTimeout)
        );
        assert_eq!(
            answer(&mut get(&client, origin.port, "/")).await,
            Err(UpstreamError::HeadTimeout)
        );
        assert!(origin.requests().is_empty());
    })
    .await;
}

#[tokio::test]
async fn a_leaving_origin_finishes_its_streams_and_the_next_request_reconnects() {
    local(async {
        let go = Rc::new(Notify::new());
        let gate = Rc::clone(&go);
        let origin = Http2Origin::plain(move |mut asked| {
            let gate = Rc::clone(&gate);
            async move {
                if asked.path() == "/slow" {
                    let mut stream = asked.head(200, &[], false);
                    gate.notified().await;
                    stream.send_data("slow".into(), true).expect("still open");
                } else {
                    asked.ok(&[], "quick");
                }
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let mut slow = get(&client, origin.port, "/slow");
        assert!(matches!(slow.head().await, Ok(HeadEvent::Final(..))));
        origin.leave();
        while origin.connections() == 1 {
            assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "quick"));
        }
        go.notify_one();
        assert!(
            matches!(slow.next().await, Ok(foxy_proxy::upstream::BodyEvent::Data(data)) if data == "slow")
        );
        drop(slow);
        until(|| origin.open() == 1).await;
    })
    .await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    local(async {
        let origin =
            Http2Origin::plain(|mut asked| async move { asked.ok(&[], "ok") }.boxed_local()).await;
        let client =
            http2_client_with(|settings| settings.idle_timeout = Duration::from_millis(50));
        assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "ok"));
        until(|| origin.open() == 0).await;
        until(|| client.idle_connections() == 0).await;
        assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "ok"));
        assert_eq!(origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn connections_end_with_their_client() {
    local(async {
        let origin =
            Http2Origin::plain(|mut asked| async move { asked.ok(&[], "ok") }.boxed_local()).await;
        let client = http2_client();
        assert_eq!(answer(&mut get(&client, origin.port, "/")).await, whole(200, "ok"));
        drop(client);
        until(|| origin.open() == 0).await;
    })
    .await;
}

#[tokio::test]
async fn an_exchange_that_is_dropped_takes_only_its_stream_along() {
    local(async {
        let reset = Rc::new(Cell::new(None));
        let seen = Rc::clone(&reset);
        let origin = Http2Origin::plain(move |mut asked| {
            let seen = Rc::clone(&seen);
            async move {
                let mut stream = asked.head(200, &[], false);
                if asked.path() == "/dropped" {
                    let reason = std::future::poll_fn(|context| stream.poll_reset(context)).await;
                    seen.set(reason.ok());
                } else {
                    while seen.get().is_none() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                    stream.send_data("goes on".into(), true).expect("open");
                }
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let mut other = get(&client, origin.port, "/other");
        let mut dropped = get(&client, origin.port, "/dropped");
        for exchange in [&mut other, &mut dropped] {
            assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
        }
        drop(dropped);
        let next = other.next().await;
        assert!(
            matches!(next, Ok(foxy_proxy::upstream::BodyEvent::Data(data)) if data == "goes on")
        );
        assert_eq!((reset.get(), origin.connections()), (Some(h2::Reason::CANCEL), 1));
    })
    .await;
}

/// Sends as many bytes as flow control permits, for ever, and counts them in `sent`.
async fn pour(mut asked: Asked, sent: Rc<Cell<usize>>) {
    let mut stream = asked.head(200, &[], false);
    loop {
        stream.reserve_capacity(16 << 10);
        let room = std::future::poll_fn(|context| stream.poll_capacity(context)).await;
        let Some(Ok(room)) = room else { return };
        sent.set(sent.get() + room);
        if stream.send_data(vec![b'x'; room].into(), false).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn readers_that_stall_hold_a_window_each_and_stop_no_other() {
    const STALLED: usize = 12;
    const WINDOW: usize = 1 << 20;
    local(async {
        let sent = Rc::new(Cell::new(0));
        let counted = Rc::clone(&sent);
        let origin = Http2Origin::plain(move |mut asked| {
            let counted = Rc::clone(&counted);
            async move {
                match asked.path().as_str() {
                    "/endless" => pour(asked, counted).await,
                    _ => asked.ok(&[], vec![b'y'; 3 * WINDOW]),
                }
            }
            .boxed_local()
        })
        .await;
        let client = http2_client();
        let mut stalled = Vec::new();
        for _ in 0..STALLED {
            let mut exchange = get(&client, origin.port, "/endless");
            assert!(matches!(exchange.head().await, Ok(HeadEvent::Final(..))));
            stalled.push(exchange);
        }
        until(|| sent.get() == STALLED * WINDOW).await;
        let other = answer(&mut get(&client, origin.port, "/")).await.expect("a whole answer");
        assert_eq!((other.body.len(), origin.connections()), (3 * WINDOW, 1));
        assert_eq!(sent.get(), STALLED * WINDOW, "what is not read is not sent");
    })
    .await;
}

#[tokio::test]
async fn nothing_is_shared_between_origins_that_differ_in_who_chose_them() {
    local(async {
        let origin =
            Http2Origin::plain(|mut asked| async move { asked.ok(&[], "ok") }.boxed_local()).await;
        let client = http2_client();
        for chosen in [ChosenBy::Client, ChosenBy::Operator] {
            let mut wanted = request(origin.port, Method::Get, "/", RequestBody::none());
            wanted.origin = Origin::new(Scheme::Http, "127.0.0.1", origin.port, chosen);
            assert_eq!(answer(&mut client.exchange(wanted)).await, whole(200, "ok"));
        }
        assert_eq!(origin.connections(), 2);
    })
    .await;
}

#[tokio::test]
async fn all_who_wait_for_a_connection_learn_that_there_is_none() {
    local(async {
        let port = free_ports(1);
        let client = http2_client();
        let asked = (0..5).map(async |_| answer(&mut get(&client, port, "/")).await);
        for answer in join_all(asked).await {
            assert_eq!(answer, Err(ConnectError::ConnectionRefused.into()));
        }
        assert_eq!(client.counts().connect_failures, 1, "one attempt serves all");
    })
    .await;
}

#[tokio::test]
async fn a_target_the_library_has_no_value_for_goes_over_http1() {
    local(async {
        use crate::support::{ScriptedOrigin, Step, send};
        let script = vec![Step::Head, send("HTTP/1.1 204 No Content\r\n\r\n")];
        let origin = ScriptedOrigin::with(script).await;
        let mut wanted = request(origin.port, Method::Get, "/", RequestBody::none());
        wanted.target = Bytes::from_static(b"/a`b");
        assert_eq!(answer(&mut http2_client().exchange(wanted)).await, whole(204, ""));
        assert!(origin.heard()[0].starts_with("GET /a`b HTTP/1.1\r\n"), "{:?}", origin.heard());
    })
    .await;
}
