//! Tests requests over HTTP/2 through a whole proxy on loopback: the answers to the client, and the
//! HTTP/1.1 requests that the origin receives. `http2_clients` tests clients that break rules.

use crate::support::http2::{Http2Client, get, read};
use crate::support::proxy::Proxy;
use crate::support::store::ForgetfulStore;
use crate::support::{ScriptedOrigin, Step, local, send};
use bytes::Bytes;
use foxy_proxy::core::counters::Counter;
use h2::client::ResponseFuture;
use h2::{Reason, SendStream};
use http::{HeaderMap, Request};
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::Notify;

const CACHEABLE: &str = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nETag: \"e\"\r\nConnection: x-own\r\n\
                         X-Own: 1\r\nKeep-Alive: timeout=5\r\nContent-Length: 10\r\n\r\n0123456789";

async fn origin(script: Vec<Step>) -> (ScriptedOrigin, String) {
    let origin = ScriptedOrigin::with(script).await;
    let url = format!("http://127.0.0.1:{}/", origin.port);
    (origin, url)
}

fn post(url: &str, fields: &[(&str, &str)]) -> Request<()> {
    let mut request = get(url, fields);
    *request.method_mut() = http::Method::POST;
    request
}

#[tokio::test]
async fn a_miss_is_asked_of_the_origin_as_http_1_1_and_a_hit_comes_from_memory() {
    local(async {
        let (origin, url) = origin(vec![Step::Head, send(CACHEABLE), Step::Hang]).await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        let cookies =
            get(&url, &[("cookie", "a=1"), ("x-kept", "y"), ("cookie", "b=2"), ("te", "trailers")]);
        let first = client.ask(cookies, &[]).await.expect("an answer");
        let second = client.get(&url).await;
        for answer in [&first, &second] {
            assert_eq!((answer.status, &answer.body[..]), (200, &b"0123456789"[..]));
            assert_eq!(answer.header("content-length"), "10");
            for gone in ["connection", "keep-alive", "transfer-encoding", "x-own"] {
                assert!(!answer.headers.contains_key(gone), "{gone}");
            }
        }
        assert!(first.header("cache-status").contains("fwd=uri-miss"), "{:?}", first.headers);
        assert!(second.header("cache-status").contains("; hit"), "{:?}", second.headers);
        assert_eq!(second.header("age"), "0");
        let head = origin.heard().remove(0);
        let authority = format!("127.0.0.1:{}", origin.port);
        assert!(head.starts_with("GET / HTTP/1.1\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains(&format!("Host: {authority}\r\n")), "{head}");
        assert!(head.contains("\r\ncookie: a=1; b=2\r\n"), "{head}");
        assert!(head.contains("\r\nVia: 2 foxy"), "{head}");
        assert_eq!(head.matches("\r\n").count(), head.lines().count(), "{head}");
        assert_eq!(
            (proxy.count(Counter::Http2Connections), proxy.count(Counter::Http2Streams)),
            (1, 2)
        );
    })
    .await;
}

#[tokio::test]
async fn head_ranges_and_conditions_are_answered_from_memory() {
    local(async {
        let (origin, url) = origin(vec![Step::Head, send(CACHEABLE), Step::Hang]).await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        client.get(&url).await;
        let mut head = get(&url, &[]);
        *head.method_mut() = http::Method::HEAD;
        let head = client.ask(head, &[]).await.expect("an answer");
        assert_eq!((head.status, head.header("content-length"), head.body.len()), (200, "10", 0));
        let range = client.ask(get(&url, &[("range", "bytes=2-4")]), &[]).await.expect("an answer");
        assert_eq!(
            (range.status, range.header("content-range"), &range.body[..]),
            (206, "bytes 2-4/10", &b"234"[..])
        );
        let same =
            client.ask(get(&url, &[("if-none-match", "\"e\"")]), &[]).await.expect("an answer");
        assert_eq!((same.status, same.body.len()), (304, 0));
        assert_eq!(origin.heard().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn bodies_and_trailers_pass_both_ways() {
    local(async {
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\
                      X-Sum: 6\r\n\r\n";
        let request_body = "4\r\nbody\r\n0\r\nx-check: 1\r\n\r\n";
        let (origin, url) =
            origin(vec![Step::Head, Step::Body(request_body.len()), send(answer), Step::Hang])
                .await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        let mut requests = client.requests.clone().ready().await.expect("a connection");
        let (answer, mut sending) =
            requests.send_request(post(&url, &[("te", "trailers")]), false).expect("sent");
        sending.send_data(Bytes::from_static(b"body"), false).expect("sent");
        let mut trailers = HeaderMap::new();
        trailers.insert("x-check", "1".parse().expect("a value"));
        trailers.insert("host", "smuggled.example".parse().expect("a value"));
        sending.send_trailers(trailers).expect("sent");
        let answer = read(answer).await.expect("an answer");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"abc"[..]));
        assert_eq!(answer.trailers.expect("trailers")["x-sum"], "6");
        assert_eq!(origin.heard()[1], request_body);
    })
    .await;
}

#[tokio::test]
async fn a_body_of_known_length_goes_on_with_that_length() {
    local(async {
        let (origin, url) = origin(vec![
            Step::Head,
            Step::Body(6),
            send("HTTP/1.1 204 No Content\r\n\r\n"),
            Step::Hang,
        ])
        .await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        let request = post(&url, &[("content-length", "6")]);
        let answer = client.ask(request, &["abc", "def"]).await.expect("an answer");
        assert_eq!((answer.status, answer.body.len()), (204, 0));
        let heard = origin.heard();
        assert!(
            heard[0].to_ascii_lowercase().contains("\r\ncontent-length: 6\r\n"),
            "{}",
            heard[0]
        );
        assert_eq!(heard[1], "abcdef");
    })
    .await;
}

#[tokio::test]
async fn a_large_body_passes_through_a_small_window_as_it_comes_and_from_the_store() {
    local(async {
        const LENGTH: usize = 3 << 20;
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Length: {LENGTH}\r\n\r\n"
        );
        let body: Vec<u8> = (0..LENGTH).map(|at| (at % 251) as u8).collect();
        let (origin, url) =
            origin(vec![Step::Head, send(&head), Step::Send(body.clone()), Step::Hang]).await;
        let store = Arc::new(ForgetfulStore::default());
        let proxy = Proxy::start_on(Some(store), |settings| settings.memory = 0);
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(9000);
        let client = Http2Client::with(&proxy, &builder).await;
        assert!(client.get(&url).await.body == body, "as it comes");
        let stored = loop {
            let answer = client.get(&url).await;
            if answer.header("cache-status").contains("; hit") {
                break answer;
            }
        };
        assert!(stored.body == body && stored.broken.is_none(), "from the store");
        assert_eq!(origin.heard().len(), 1);
    })
    .await;
}

#[tokio::test]
async fn streams_of_one_connection_share_a_flight() {
    local(async {
        let go = Rc::new(Notify::new());
        let (origin, url) =
            origin(vec![Step::Head, Step::AwaitGo(go.clone()), send(CACHEABLE), Step::Hang]).await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        let asked: Vec<_> = (0..20)
            .map(|_| {
                let (client, url) = (client.clone(), url.clone());
                tokio::task::spawn_local(async move { client.get(&url).await })
            })
            .collect();
        while proxy.count(Counter::Collapsed) < 19 {
            tokio::task::yield_now().await;
        }
        go.notify_one();
        for answer in asked {
            assert_eq!(answer.await.expect("no panic").body, b"0123456789");
        }
        assert_eq!((origin.heard().len(), proxy.count(Counter::Http2Connections)), (1, 1));
    })
    .await;
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_reset_and_never_ended() {
    local(async {
        for framing in
            ["Content-Length: 100\r\n\r\nabc", "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"]
        {
            let answer = format!("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n{framing}");
            let (_origin, url) = origin(vec![Step::Head, send(&answer)]).await;
            let proxy = Proxy::start();
            let client = Http2Client::connect(&proxy).await;
            let reason = match client.ask(get(&url, &[]), &[]).await {
                Ok(answer) => answer.broken.expect("it breaks off").reason(),
                Err(error) => error.reason(),
            };
            assert_eq!(reason, Some(Reason::INTERNAL_ERROR), "{framing:?}");
            assert_eq!(proxy.count(Counter::CutResponses), 1);
            let refused = client.get("http://127.0.0.1:1/").await;
            assert_eq!(
                refused.status, 502,
                "the connection goes on, and errors of ours are answers"
            );
        }
    })
    .await;
}

/// Sends a CONNECT to `port` through a proxy that allows this port. Returns the proxy, the future
/// of the answer, and the sending side of the tunnel's stream.
async fn connected(port: u16) -> (Proxy, ResponseFuture, SendStream<Bytes>) {
    let proxy = Proxy::start_with(|settings| settings.destinations.connect_ports = vec![port]);
    let client = Http2Client::connect(&proxy).await;
    let connect = Request::connect(format!("127.0.0.1:{port}")).body(()).expect("a request");
    let mut requests = client.requests.clone().ready().await.expect("a connection");
    let (answer, sending) = requests.send_request(connect, false).expect("sent");
    (proxy, answer, sending)
}

#[tokio::test]
async fn connect_makes_a_tunnel_of_a_stream() {
    local(async {
        let (origin, _) =
            origin(vec![send("hello"), Step::Body(5), send(" bye"), Step::AwaitClose]).await;
        let (proxy, answer, mut sending) = connected(origin.port).await;
        sending.send_data(Bytes::from_static(b"early"), true).expect("sent");
        let answer = read(answer).await.expect("an answer");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"hello bye"[..]));
        assert!(answer.broken.is_none(), "{:?}", answer.broken);
        assert_eq!(origin.heard(), ["early"]);
        assert_eq!(proxy.count(Counter::Tunnels), 1);
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_whose_origin_resets_is_reset() {
    local(async {
        let (origin, _) = origin(vec![Step::Body(1), Step::Reset]).await;
        let (_proxy, answer, mut sending) = connected(origin.port).await;
        sending.send_data(Bytes::from_static(b"x"), false).expect("sent");
        let broken = read(answer).await.expect("an answer").broken.expect("a reset");
        assert_eq!(broken.reason(), Some(Reason::CONNECT_ERROR));
    })
    .await;
}

#[tokio::test]
async fn an_answer_before_the_end_of_its_request_is_whole_and_the_rest_not_wanted() {
    local(async {
        let (_origin, url) =
            origin(vec![Step::Head, send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno")]).await;
        let proxy = Proxy::start();
        let client = Http2Client::connect(&proxy).await;
        let mut requests = client.requests.clone().ready().await.expect("a connection");
        let (answer, mut sending) = requests.send_request(post(&url, &[]), false).expect("sent");
        let answer = read(answer).await.expect("an answer");
        assert_eq!((answer.status, &answer.body[..]), (403, &b"no"[..]));
        assert!(answer.broken.is_none(), "{:?}", answer.broken);
        let reset = std::future::poll_fn(|context| sending.poll_reset(context)).await;
        assert_eq!(reset.expect("a reset"), Reason::NO_ERROR);
    })
    .await;
}
