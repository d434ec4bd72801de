//! Tests origins that break off in the middle of a response. The proxy must then request only the
//! missing bytes, and only if the origin still has the same response.

use crate::bench::{TestProxy, forward_proxy};
use crate::ranges::sparse::{SLICE, Sparse, bytes};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
use foxy_testkit::http::{head_length, header};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::parent::dead_url;
use foxy_testkit::wait::until;
use std::io::Read;

/// Creates an object whose origin closes the connection after each answer. The close ends an answer
/// that `cut` has cut short.
fn closing(length: u64) -> Sparse {
    let object = Sparse::fresh(length);
    Sparse { lines: format!("{}Connection: close\r\n", object.lines), ..object }
}

/// Cuts an answer off after its head and the first `body` bytes of its body.
fn cut(mut answer: Vec<u8>, body: u64) -> Vec<u8> {
    let head = head_length(&answer).expect("a head");
    answer.truncate(head + usize::try_from(body).expect("small"));
    answer
}

/// Returns the body bytes that a client receives until the proxy closes the connection.
fn until_the_end(proxy: &TestProxy, url: &str) -> Vec<u8> {
    let mut client = proxy.connect();
    client.send(format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").as_bytes());
    let mut got = Vec::new();
    client.stream.read_to_end(&mut got).expect("a close");
    got.split_off(head_length(&got).expect("a head"))
}

#[test]
fn a_body_that_breaks_off_again_and_again_goes_on_where_it_broke() {
    let length = 6 * SLICE;
    let object = closing(length);
    let origin = TestOrigin::start(move |head, _| cut(object.answer(head), SLICE + 70_000));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    assert!(until_the_end(&proxy, &url) == bytes(0, length - 1));
    let heads = origin.heads.lock().expect("not poisoned").clone();
    let asked: Vec<_> =
        heads.iter().map(|head| (header(head, "range"), header(head, "if-range"))).collect();
    let rest = |n: u64| format!("bytes={}-{}", n * (SLICE + 70_000), length - 1);
    let rests: Vec<_> = (1..6).map(rest).collect();
    assert_eq!(asked[0], (None, None));
    assert_eq!(asked.len(), 6);
    for (asked, rest) in asked[1..].iter().zip(&rests) {
        assert_eq!(*asked, (Some(rest.as_str()), Some("\"one\"")));
    }
    assert_eq!(proxy.count(Counter::Resumed), 5);
    while proxy.store.len() < 7 {
        std::thread::yield_now();
    }
    let answer = proxy.get(&url, "Range: bytes=5000000-5000100\r\n");
    assert!(
        answer.cache_status().starts_with("foxy; hit")
            && answer.body == bytes(5_000_000, 5_000_100)
    );
}

#[test]
fn a_body_that_does_not_come_is_given_up() {
    let object = closing(3 * SLICE);
    let origin = TestOrigin::start(move |head, _| cut(object.answer(head), 1000));
    let proxy = forward_proxy();
    assert!(until_the_end(&proxy, &origin.url("/x")) == bytes(0, 3999));
    assert_eq!(origin.requests(), 4);
}

#[test]
fn the_rest_of_something_else_is_not_taken() {
    for (etag, length) in [("\"two\"", 3 * SLICE), ("\"one\"", 4 * SLICE), ("W/\"one\"", 3 * SLICE)]
    {
        let (first, then) = (closing(3 * SLICE), Sparse { etag: etag.into(), ..closing(length) });
        let origin = TestOrigin::start(move |head, number| match number {
            0 => cut(first.answer(head), SLICE + 5),
            _ => then.answer(head),
        });
        let proxy = forward_proxy();
        let got = until_the_end(&proxy, &origin.url("/x"));
        assert!(got == bytes(0, SLICE + 4), "{etag}: {}", got.len());
        assert!(
            until_the_end(&proxy, &origin.url("/x")) == bytes(0, length - 1),
            "{etag}: the next gets all of it"
        );
    }
}

#[test]
fn what_came_before_a_break_is_there_for_the_next() {
    let object = closing(4 * SLICE);
    let origin = TestOrigin::start(move |head, number| match number {
        0 => cut(object.answer(head), 2 * SLICE + 500_000),
        1 => Vec::new(),
        _ => object.answer(head),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    assert!(until_the_end(&proxy, &url) == bytes(0, 2 * SLICE + 499_999));
    assert!(until_the_end(&proxy, &url) == bytes(0, 4 * SLICE - 1));
    let heads = origin.heads.lock().expect("not poisoned").clone();
    let asked: Vec<_> = heads[2..].iter().map(|head| header(head, "range").unwrap_or("")).collect();
    assert_eq!(asked, ["bytes=2097152-3145727", "bytes=3145728-4194303"]);
}

#[test]
fn a_client_that_read_the_whole_error_of_an_origin_did_not_leave_early() {
    const REQUESTS: u64 = 60;
    let (proxy, dead) = (forward_proxy(), dead_url());
    for number in 0..REQUESTS {
        assert_eq!(proxy.get(&format!("{dead}/{number}"), "").status, 502);
    }
    until("all requests are counted", || {
        let outcomes = proxy.proxy.gauges().outcomes();
        let failed = outcomes.iter().filter(|it| it.outcome == RequestOutcome::OriginFailed);
        (failed.map(|it| it.classes.iter().sum::<u64>()).sum::<u64>() == REQUESTS).then_some(())
    });
    assert_eq!(proxy.count(Counter::ClientsLeft), 0);
}
