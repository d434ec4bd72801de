//! Tests flights: fetches that several requests for the same URL share. Many clients send requests
//! at the same time, some disconnect, and some stores do not work. The origin must receive one
//! request, and every client that stays must receive the whole answer.

use crate::support::proxy::Proxy;
use crate::support::store::{BROKEN, Broken, BrokenStore, ForgetfulStore};
use crate::support::wire::{RawClient, Response};
use crate::support::{ScriptedOrigin, Step, local, send};
use foxy_http::Method;
use foxy_proxy::cache::storage::ObjectStore;
use foxy_proxy::core::counters::Counter;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

const GET: &str = "GET http://ORIGIN/ HTTP/1.1\r\nHost: ORIGIN\r\n\r\n";
const FRESH: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n";

async fn asking(proxy: &Proxy, origin: &ScriptedOrigin) -> RawClient {
    let mut client = RawClient::connect(proxy.port).await;
    client.send(GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port))).await;
    client
}

#[tokio::test]
async fn many_misses_of_one_key_are_one_request_to_the_origin() {
    local(async {
        let body = "x".repeat(200_000);
        let script = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(100)),
            send(&format!("{FRESH}Content-Length: {}\r\n\r\n", body.len())),
            send(&body[..1000]),
            Step::Pause(Duration::from_millis(50)),
            send(&body[1000..]),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let mut clients = Vec::new();
        for _ in 0..50 {
            clients.push(asking(&proxy, &origin).await);
        }
        for client in &mut clients {
            let answer = client.response(&Method::Get).await;
            assert_eq!((answer.head.status, answer.end), (200, Ok(())));
            assert!(answer.body == body.as_bytes());
        }
        assert_eq!(origin.connections(), 1);
        let mut late = asking(&proxy, &origin).await;
        assert!(late.response(&Method::Get).await.header("cache-status").contains("hit"));
        assert_eq!(origin.connections(), 1);
    })
    .await;
}

#[tokio::test]
async fn answers_that_may_not_be_shared_are_fetched_for_each() {
    local(async {
        let private = send(
            "HTTP/1.1 200 OK\r\nCache-Control: private\r\nContent-Length: 2\r\n\
             Connection: close\r\n\r\nme",
        );
        let origin =
            ScriptedOrigin::with(vec![Step::Head, Step::Pause(Duration::from_millis(50)), private])
                .await;
        let proxy = Proxy::start();
        let mut clients = Vec::new();
        for _ in 0..5 {
            clients.push(asking(&proxy, &origin).await);
        }
        for client in &mut clients {
            assert_eq!(client.response(&Method::Get).await.text(), "me");
        }
        assert_eq!(origin.heard().len(), 5, "nobody gets another's private answer");
    })
    .await;
}

/// Sends five requests for one URL before the origin answers the first. Returns the bodies of the
/// five answers, and the number of requests that the origin received.
async fn five_at_once(fields: &str, request_field: &str) -> (Vec<String>, usize) {
    let go = Rc::new(Notify::new());
    let answer = |version: usize| {
        let body = format!("version {version}");
        let frame = format!("Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        let waits = if version == 1 {
            Step::AwaitGo(Rc::clone(&go))
        } else {
            Step::Pause(Duration::from_millis(100))
        };
        vec![Step::Head, waits, send(&format!("HTTP/1.1 200 OK\r\n{fields}{frame}{body}"))]
    };
    let origin = ScriptedOrigin::start((1..=5).map(answer).collect()).await;
    let proxy = Proxy::start();
    let text = GET.replace("ORIGIN", &format!("127.0.0.1:{}", origin.port));
    let text = text.replace("\r\n\r\n", &format!("\r\n{request_field}\r\n"));
    let mut clients = Vec::new();
    for _ in 0..5 {
        let mut client = RawClient::connect(proxy.port).await;
        client.send(text.clone()).await;
        origin.heard_a_head().await;
        clients.push(client);
    }
    while proxy.count(Counter::Collapsed) < 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    go.notify_one();
    let mut bodies = Vec::new();
    for client in &mut clients {
        bodies.push(client.response(&Method::Get).await.text());
    }
    (bodies, origin.heard().len())
}

#[tokio::test]
async fn what_is_stale_on_arrival_answers_nobody_who_came_after_the_origin_was_asked() {
    local(async {
        for (fields, request_field) in [
            ("Cache-Control: max-age=0\r\nETag: \"1\"\r\n", ""),
            ("Cache-Control: no-cache\r\nETag: \"1\"\r\n", ""),
            ("Cache-Control: max-age=60\r\nAge: 60\r\n", ""),
            ("Cache-Control: max-age=60\r\nAge: 40\r\n", "Cache-Control: min-fresh=30\r\n"),
            ("Cache-Control: max-age=60\r\nAge: 40\r\n", "Cache-Control: max-age=30\r\n"),
        ] {
            let (bodies, asked) = five_at_once(fields, request_field).await;
            assert_eq!(bodies[0], "version 1", "{fields}{request_field}");
            let second = bodies[1..].iter().all(|body| body == "version 2");
            assert!(
                second && asked == 2,
                "{fields}{request_field}: {bodies:?}, asked {asked} times"
            );
        }
        let (bodies, asked) = five_at_once("Cache-Control: max-age=60\r\nAge: 40\r\n", "").await;
        assert!(
            bodies.iter().all(|body| body == "version 1") && asked == 1,
            "fresh: {bodies:?}, {asked} times"
        );
    })
    .await;
}

#[tokio::test]
async fn what_is_stale_on_arrival_is_never_shared_between_users() {
    local(async {
        for (fields, request_field) in [
            ("Cache-Control: max-age=0\r\nETag: \"1\"\r\n", "Cookie: user=1\r\n"),
            ("Cache-Control: no-cache\r\nETag: \"1\"\r\n", "Cookie: user=1\r\n"),
            ("Cache-Control: s-maxage=0\r\n", "Authorization: Basic eA==\r\n"),
            ("Cache-Control: public, max-age=0\r\nSet-Cookie: id=1\r\nETag: \"1\"\r\n", ""),
        ] {
            let (mut bodies, asked) = five_at_once(fields, request_field).await;
            bodies.sort();
            bodies.dedup();
            assert_eq!((bodies.len(), asked), (5, 5), "{fields}{request_field}: {bodies:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn those_who_stay_are_served_when_the_first_client_leaves() {
    local(async {
        let script = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(100)),
            send(&format!("{FRESH}Content-Length: 10\r\n\r\nfirst")),
            Step::Pause(Duration::from_millis(100)),
            send("later"),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let first = asking(&proxy, &origin).await;
        origin.heard_a_head().await;
        let mut second = asking(&proxy, &origin).await;
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(first);
        let answer = second.response(&Method::Get).await;
        assert_eq!((answer.text().as_str(), answer.end), ("firstlater", Ok(())));
    })
    .await;
}

#[tokio::test]
async fn a_flight_that_breaks_breaks_for_all_and_is_not_stored() {
    local(async {
        let broken = vec![
            Step::Head,
            Step::Pause(Duration::from_millis(50)),
            send(&format!("{FRESH}Content-Length: 10\r\n\r\nfirst")),
        ];
        let whole =
            vec![Step::Head, send(&format!("{FRESH}Content-Length: 5\r\n\r\nwhole")), Step::Hang];
        let origin = ScriptedOrigin::start(vec![broken, whole]).await;
        let proxy = Proxy::start();
        let mut clients = [asking(&proxy, &origin).await, asking(&proxy, &origin).await];
        for client in &mut clients {
            let answer = client.response(&Method::Get).await;
            assert!(
                answer.end.is_err() || answer.head.status >= 500 || answer.text() == "whole",
                "{answer:?}"
            );
        }
        let answer = asking(&proxy, &origin).await.response(&Method::Get).await;
        assert_eq!(answer.text(), "whole");
    })
    .await;
}

#[tokio::test]
async fn a_client_that_reads_slowly_does_not_hold_up_the_others() {
    local(async {
        let body = "y".repeat(8 << 20);
        let script = vec![
            Step::Head,
            send(&format!("{FRESH}Content-Length: {}\r\n\r\n{body}", body.len())),
            Step::Hang,
        ];
        let origin = ScriptedOrigin::with(script).await;
        let proxy = Proxy::start();
        let _reads_nothing = asking(&proxy, &origin).await;
        origin.heard_a_head().await;
        let answer = asking(&proxy, &origin).await.response(&Method::Get).await;
        assert!(answer.body == body.as_bytes());
    })
    .await;
}

/// Creates a body that is larger than the socket buffers of a loopback connection and the memory of
/// a flight together.
fn large() -> Vec<u8> {
    (0..16 << 20).map(|at| (at % 251) as u8).collect()
}

/// Two clients share a flight. The first client reads nothing until the second client has read the
/// whole body. Returns the answer that the first client then receives, and the number of
/// connections to the origin.
async fn left_behind(
    store: Option<Arc<dyn ObjectStore>>,
    answer: &[u8],
    body: &[u8],
) -> (Response, usize) {
    let go = Rc::new(Notify::new());
    let first = vec![Step::Head, Step::AwaitGo(Rc::clone(&go)), Step::Send(answer.to_vec())];
    let later = vec![Step::Head, Step::Send(answer.to_vec())];
    let origin = ScriptedOrigin::start(vec![first, later]).await;
    let proxy = Proxy::start_on(store, |settings| settings.memory = 0);
    let mut slow = asking(&proxy, &origin).await;
    origin.heard_a_head().await;
    let mut fast = asking(&proxy, &origin).await;
    while proxy.count(Counter::Collapsed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    go.notify_one();
    let fast = fast.response(&Method::Get).await;
    assert!(fast.end.is_ok() && fast.body == body, "the others get it all");
    (slow.response(&Method::Get).await, origin.connections())
}

#[tokio::test]
async fn a_client_that_was_left_behind_goes_on_from_what_is_kept() {
    let body = large();
    let counted = format!("{FRESH}Content-Length: {}\r\n\r\n", body.len());
    let chunked = format!("{FRESH}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    for (head, end) in [(counted, ""), (chunked, "\r\n0\r\n\r\n")] {
        local(async {
            let answer = [head.as_bytes(), &body, end.as_bytes()].concat();
            let store = Arc::new(ForgetfulStore::default());
            let (answer, connections) = left_behind(Some(store), &answer, &body).await;
            assert_eq!((answer.head.status, answer.end), (200, Ok(())));
            assert!(answer.body == body, "{} bytes", answer.body.len());
            assert_eq!(connections, 1);
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_left_behind_by_what_is_not_kept_goes_on_from_the_origin_or_is_cut() {
    let body = large();
    for (etag, expected) in [("ETag: \"one\"\r\n", 2), ("", 1)] {
        local(async {
            let head = format!("{FRESH}{etag}Content-Length: {}\r\n\r\n", body.len());
            let store: Arc<dyn ObjectStore> = BrokenStore::new(Broken::Refuses);
            let answer = [head.as_bytes(), &body].concat();
            let (answer, connections) = left_behind(Some(store), &answer, &body).await;
            assert_eq!(answer.end.is_ok(), expected == 2, "{:?}", answer.end);
            assert!(answer.body == body[..answer.body.len()], "no byte is wrong");
            assert_eq!(connections, expected);
        })
        .await;
    }
}

#[tokio::test]
async fn a_store_that_fails_costs_hits_and_nothing_else() {
    for how in BROKEN {
        local(async move {
            let script = [Step::Head, send(&format!("{FRESH}Content-Length: 5\r\n\r\nright"))];
            let origin =
                ScriptedOrigin::with(script.iter().cycle().take(400).cloned().collect()).await;
            let proxy = Proxy::start_on(Some(BrokenStore::new(how)), |settings| {
                settings.memory = 0;
                settings.store_patience = Duration::from_millis(5);
            });
            for number in 0..100 {
                let mut client = RawClient::connect(proxy.port).await;
                let path = format!("http://127.0.0.1:{}/{}", origin.port, number % 60);
                client
                    .send(format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\r\n", origin.port))
                    .await;
                let answer = client.response(&Method::Get).await;
                assert_eq!(
                    (answer.head.status, answer.text().as_str()),
                    (200, "right"),
                    "{how:?} {number}"
                );
            }
        })
        .await;
    }
}
