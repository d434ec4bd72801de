//! Tests that an older response never replaces a newer answer of the origin. Also tests that the
//! proxy does not use a stored response again after the origin has rejected it (RFC 9111 §4,
//! §4.3.3).

use crate::bench::{TestProxy, forward_proxy};
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

const V1: &str = "Cache-Control: max-age=600\r\nETag: \"1\"\r\n";
const V3: &str = "Cache-Control: max-age=600\r\nETag: \"3\"\r\n";
const CONFIRMED: &[u8] =
    b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: max-age=600\r\n\r\n";

/// Starts an origin that gives `answers` in order, and then repeats the last answer. It delays the
/// answer number `held` until the test sends a message on the channel.
fn origin(answers: Vec<Vec<u8>>, held: usize) -> (TestOrigin, Sender<()>) {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let origin = TestOrigin::start(move |_, number| {
        if number == held {
            wait.lock().expect("not poisoned").recv().expect("the test goes on");
        }
        answers[number.min(answers.len() - 1)].clone()
    });
    (origin, go)
}

/// Sends a request on another thread. Returns when the origin has received the request.
fn slowly(
    proxy: &TestProxy,
    origin: &TestOrigin,
    lines: &'static str,
) -> thread::JoinHandle<Vec<u8>> {
    let (mut client, url, before) = (proxy.connect(), origin.url("/x"), origin.requests());
    let request = format!("GET {url} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", origin.address);
    let asked = thread::spawn(move || client.ask(&request).body);
    while origin.requests() == before {
        thread::yield_now();
    }
    asked
}

const RELOAD: &str = "Cache-Control: no-cache\r\n";

#[test]
fn a_late_confirmation_of_what_was_replaced_brings_it_not_back() {
    let (origin, go) = origin(vec![ok(V1, b"v1"), CONFIRMED.to_vec(), ok(V3, b"v3")], 1);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let late = slowly(&proxy, &origin, RELOAD);
    assert_eq!(proxy.get(&url, RELOAD).body, b"v3");
    go.send(()).expect("the origin waits");
    assert_eq!(late.join().expect("answered"), b"v1");
    let hit = proxy.get(&url, "");
    assert!(hit.cache_status().starts_with("foxy; hit"), "{}", hit.head);
    assert_eq!(hit.body, b"v3");
}

#[test]
fn a_late_fetch_takes_not_the_place_of_a_reload_that_began_after_it() {
    let (origin, go) = origin(vec![ok(V1, b"v1"), ok(V3, b"v3")], 0);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    let late = slowly(&proxy, &origin, "");
    assert_eq!(proxy.get(&url, RELOAD).body, b"v3");
    go.send(()).expect("the origin waits");
    assert_eq!(late.join().expect("answered"), b"v1");
    assert_eq!(proxy.get(&url, "").body, b"v3");
    assert_eq!(origin.requests(), 2);
}

/// Stores a response. Then reloads it, and the origin answers the reload with `answer`. Returns the
/// body that the next GET receives, and whether that GET was a hit.
fn after(answer: &[u8]) -> (Vec<u8>, bool) {
    let (origin, _go) = origin(vec![ok(V1, b"old"), answer.to_vec(), ok(V3, b"new")], usize::MAX);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    proxy.get(&url, RELOAD);
    let answer = proxy.get(&url, "");
    let hit = answer.cache_status().starts_with("foxy; hit");
    (answer.body, hit)
}

#[test]
fn what_the_origin_turned_down_answers_no_more() {
    for (status, lines) in [
        ("200 OK", "Cache-Control: private\r\n"),
        ("200 OK", "Cache-Control: no-store\r\n"),
        ("200 OK", "Cache-Control: max-age=60\r\nVary: *\r\n"),
        ("200 OK", ""),
        ("302 Found", "Location: /y\r\n"),
        ("401 Unauthorized", ""),
        ("403 Forbidden", "Cache-Control: no-store\r\n"),
        ("404 Not Found", ""),
        ("410 Gone", "Cache-Control: no-store\r\n"),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\n{lines}Content-Length: 0\r\n\r\n");
        assert_eq!(after(answer.as_bytes()), (b"new".to_vec(), false), "{status} {lines}");
    }
}

#[test]
fn an_answer_about_the_moment_turns_nothing_down() {
    for status in ["429 Too Many Requests", "500 Oh", "503 Later"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
        assert_eq!(after(answer.as_bytes()), (b"old".to_vec(), true), "{status}");
    }
}

#[test]
fn what_a_refresh_found_gone_is_not_served_stale_again() {
    let stale = "Cache-Control: max-age=0, stale-while-revalidate=600\r\nETag: \"1\"\r\n";
    let gone =
        b"HTTP/1.1 410 Gone\r\nCache-Control: no-store\r\nContent-Length: 4\r\n\r\ngone".to_vec();
    let (origin, _go) = origin(vec![ok(stale, b"old"), gone], usize::MAX);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    assert_eq!(proxy.get(&url, "").body, b"old");
    let mut tries = 0..1000;
    while proxy.get(&url, "").body == b"old" {
        assert!(tries.next().is_some(), "it is still served");
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(proxy.get(&url, "").status, 410);
}

#[test]
fn a_confirmation_that_varies_otherwise_is_for_its_own_request_alone() {
    let confirmed = b"HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\nCache-Control: max-age=600\r\n\
          Vary: Cookie\r\n\r\n";
    let stale = "Cache-Control: max-age=0\r\nETag: \"1\"\r\n";
    let origin = TestOrigin::start(move |head, number| match (number, header(head, "cookie")) {
        (1, _) => confirmed.to_vec(),
        (_, Some("bob")) => ok(V3, b"for bob"),
        _ => ok(stale, b"for alice"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    for _ in 0..2 {
        assert_eq!(proxy.get(&url, "Cookie: alice\r\n").body, b"for alice");
    }
    assert_eq!(proxy.get(&url, "Cookie: bob\r\n").body, b"for bob");
}

#[test]
fn only_if_cached_reaches_no_origin_whatever_else_a_request_says() {
    let origin = TestOrigin::start(|_, _| ok(V1, b"x"));
    let proxy = forward_proxy();
    for lines in [
        "If-Match: \"1\"\r\n",
        "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
        "Connection: X-Q\r\nX-Q: 1\r\n",
        "Connection: upgrade\r\nUpgrade: websocket\r\n",
    ] {
        let answer =
            proxy.get(&origin.url("/x"), &format!("Cache-Control: only-if-cached\r\n{lines}"));
        assert_eq!(answer.status, 504, "{lines}");
    }
    assert_eq!(origin.requests(), 0);
}
