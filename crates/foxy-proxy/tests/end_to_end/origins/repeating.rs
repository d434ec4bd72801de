//! Tests which requests go to another server after a server has failed, and which requests must not
//! be sent twice.

use super::bench::{UNAVAILABLE, dead, group, serving, status};
use foxy_testkit::client::Answered;
use foxy_testkit::http::{ok, read_request};
use foxy_testkit::origin::{TestOrigin, listen};
use std::io::Write;
use std::net::SocketAddr;

const GOOD: &[u8] = b"good";

fn good() -> TestOrigin {
    TestOrigin::start(|_, _| ok("Cache-Control: no-store\r\n", GOOD))
}

/// Starts a server that sends `response` without a body and closes the connection.
fn failing(response: &'static str) -> TestOrigin {
    TestOrigin::start(move |_, _| {
        let closing = "Connection: close\r\n\r\n";
        response.replacen("\r\n\r\n", &format!("\r\n{closing}"), 1).into_bytes()
    })
}

const GET: &str = "GET / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const DELETE: &str = "DELETE / HTTP/1.1\r\nHost: a.test\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";
const PUT: &str = "PUT / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nhi";

/// Repeats a request to an origin with the server `bad` and a good server, until the request fails
/// on `bad`. Returns the answer to this request, and how many requests the good server received for
/// it.
fn asked(request: &str, bad: SocketAddr) -> (Answered, usize) {
    let good = good();
    let proxy = serving(vec![group("shop", &[bad, good.address])]);
    for _ in 0..50 {
        let before = good.requests();
        let answer = proxy.connect().ask(request);
        if status(&proxy, bad).errors > 0 {
            return (answer, good.requests() - before);
        }
    }
    panic!("no request reached the bad server");
}

#[test]
fn every_request_goes_to_another_server_if_it_was_not_sent() {
    for request in [GET, DELETE, POST, PUT] {
        let (answer, repeated) = asked(request, dead());
        assert_eq!((answer.status, repeated), (200, 1), "{request}");
    }
}

#[test]
fn only_an_idempotent_request_without_a_body_is_sent_again_after_silence() {
    for (request, expected) in [(GET, 200), (DELETE, 200), (POST, 502), (PUT, 502)] {
        let bad = failing("");
        let (answer, repeated) = asked(request, bad.address);
        assert_eq!(answer.status, expected, "{request}");
        assert_eq!(repeated, usize::from(expected == 200), "{request}");
    }
}

#[test]
fn nothing_is_sent_again_once_a_byte_of_the_response_has_arrived() {
    for request in [GET, DELETE] {
        let bad = listen(|mut stream| {
            if read_request(&mut stream).is_some() {
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-").expect("written");
            }
        });
        let (answer, repeated) = asked(request, bad);
        assert_eq!((answer.status, repeated), (502, 0), "{request}");
    }
}

#[test]
fn only_a_safe_request_is_sent_again_after_a_failure_status() {
    for (request, expected) in [(GET, 200), (DELETE, 503), (POST, 503), (PUT, 503)] {
        let bad = failing(UNAVAILABLE);
        let (answer, repeated) = asked(request, bad.address);
        assert_eq!(answer.status, expected, "{request}");
        assert_eq!(repeated, usize::from(expected == 200), "{request}");
    }
}

#[test]
fn the_last_failure_reaches_the_client_if_every_server_fails() {
    let (one, other) = (failing(UNAVAILABLE), failing(UNAVAILABLE));
    let proxy = serving(vec![group("shop", &[one.address, other.address])]);
    assert_eq!(proxy.connect().ask(GET).status, 503);
    assert_eq!(one.requests() + other.requests(), 2, "each server got the request once");
    let proxy = serving(vec![group("shop", &[dead(), dead()])]);
    let answer = proxy.connect().ask(POST);
    assert_eq!(answer.cache_status(), "foxy; detail=connection-refused");
}
