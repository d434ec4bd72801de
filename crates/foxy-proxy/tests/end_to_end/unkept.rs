//! Tests reloads whose new response arrived completely but could not be stored. For whatever reason
//! storing fails, the old response must not be served again.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::ok;
use foxy_testkit::origin::TestOrigin;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

const FRESH: &str = "Cache-Control: max-age=600\r\n";
const RELOAD: &str = "Cache-Control: no-cache\r\n";

/// Length in bytes of a body that the cache stores in several parts of 1 MiB.
const LARGE: usize = 3_000_000;

fn in_chunks(lines: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\n{lines}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n", body.len());
    [head.as_bytes(), body, b"\r\n0\r\n\r\n"].concat()
}

fn until_close(lines: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{lines}Connection: close\r\n\r\n").as_bytes(), body].concat()
}

/// Starts an origin that gives `answers` in order.
fn origin(answers: Vec<Vec<u8>>) -> TestOrigin {
    TestOrigin::start(move |_, number| answers[number].clone())
}

fn limited() -> TestProxy {
    proxy_with(|settings| settings.object_limit = 1_000_000)
}

/// Reloads a stored response. The origin answers with a large response that cannot be stored.
/// Checks that the next GET goes to the origin again.
fn the_next_asks_the_origin(proxy: &TestProxy, origin: &TestOrigin) {
    let url = origin.url("/x");
    let reload = proxy.get(&url, RELOAD);
    assert!(
        reload.cache_status().ends_with("; stored") && reload.body == vec![b'2'; LARGE],
        "{}",
        reload.head
    );
    let next = proxy.get(&url, "");
    assert!(next.body == b"third", "{}", next.head);
    assert_eq!(origin.requests(), 3);
}

#[test]
fn a_reload_that_came_whole_and_is_too_large_to_keep_is_the_end_of_what_was_stored() {
    for large in [in_chunks, until_close] {
        for was in [5, 900_000] {
            let first = ok(FRESH, &vec![b'1'; was]);
            let origin = origin(vec![first, large(FRESH, &vec![b'2'; LARGE]), ok(FRESH, b"third")]);
            let proxy = limited();
            proxy.get(&origin.url("/x"), "");
            assert!(proxy.get(&origin.url("/x"), "").cache_status().starts_with("foxy; hit"));
            the_next_asks_the_origin(&proxy, &origin);
        }
    }
}

#[test]
fn a_whole_reload_whose_parts_the_store_refuses_ends_the_stored_response() {
    let large = |byte| in_chunks(FRESH, &vec![byte; LARGE]);
    let origin = origin(vec![large(b'1'), large(b'2'), ok(FRESH, b"third")]);
    let proxy = proxy_with(|settings| settings.store_patience = Duration::from_millis(50));
    let url = origin.url("/x");
    proxy.get(&url, "");
    // A part enters memory on its second use, so memory now has all parts.
    (0..3).for_each(|_| assert!(proxy.get(&url, "").body == vec![b'1'; LARGE]));
    assert_eq!(origin.requests(), 1);
    proxy.store.refuse_parts();
    the_next_asks_the_origin(&proxy, &origin);
    assert!(proxy.count(Counter::StoreRefusals) > 0);
}

#[test]
fn a_stale_response_superseded_by_an_unkept_whole_one_answers_no_more() {
    let stale = "Cache-Control: max-age=0, stale-while-revalidate=600\r\nETag: \"1\"\r\n";
    let origin =
        origin(vec![ok(stale, b"old"), in_chunks(FRESH, &vec![b'2'; LARGE]), ok(FRESH, b"third")]);
    let proxy = limited();
    let url = origin.url("/x");
    proxy.get(&url, "");
    the_next_asks_the_origin(&proxy, &origin);
}

#[test]
fn a_reload_that_breaks_off_leaves_what_is_stored() {
    let broken = format!(
        "HTTP/1.1 200 OK\r\n{FRESH}Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nhalf"
    );
    let origin = origin(vec![ok(FRESH, b"old"), broken.into_bytes()]);
    let proxy = limited();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let mut client = proxy.connect();
    let host = origin.address;
    client.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{RELOAD}\r\n").as_bytes());
    while client.read() > 0 {}
    let hit = proxy.get(&url, "");
    assert!(hit.cache_status().starts_with("foxy; hit") && hit.body == b"old", "{}", hit.head);
    assert_eq!(origin.requests(), 2);
}

#[test]
fn a_late_fetch_is_not_stored_after_a_reload_that_could_not_be_kept() {
    let (go, wait) = channel();
    let wait = Mutex::new(wait);
    let large = in_chunks(FRESH, &vec![b'2'; LARGE]);
    let origin = TestOrigin::start(move |_, number| match number {
        0 => {
            wait.lock().expect("not poisoned").recv().expect("the test goes on");
            ok(FRESH, b"first")
        }
        1 => large.clone(),
        _ => ok(FRESH, b"third"),
    });
    let proxy = limited();
    let url = origin.url("/x");
    let mut late = proxy.connect();
    let host = origin.address;
    late.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes());
    while origin.requests() == 0 {
        std::thread::yield_now();
    }
    assert!(proxy.get(&url, RELOAD).body == vec![b'2'; LARGE]);
    go.send(()).expect("the origin waits");
    assert_eq!(late.answer(false).body, b"first");
    assert_eq!(proxy.get(&url, "").body, b"third");
}

#[test]
fn a_record_of_an_older_fetch_answers_no_more_after_a_reload_that_the_store_refused() {
    let ((go_first, first), (go_second, second)) = (channel(), channel());
    let waits = Mutex::new([first, second]);
    let origin = TestOrigin::start(move |_, number| {
        let body = |byte| ok(FRESH, &vec![byte; 70_000]);
        let wait = |which: usize| {
            waits.lock().expect("not poisoned")[which].recv().expect("the test goes on")
        };
        match number {
            0 => {
                wait(0);
                body(b'1')
            }
            1 => {
                wait(1);
                body(b'2')
            }
            _ => ok(FRESH, b"third"),
        }
    });
    // With this limit in bytes, memory stores no body of the size that this test uses.
    let proxy = proxy_with(|settings| settings.memory_object_limit = 10_000);
    let (url, host) = (origin.url("/x"), origin.address);
    let ask = |lines: &str, asked: usize| {
        let mut client = proxy.connect();
        client.send(format!("GET {url} HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n").as_bytes());
        while origin.requests() < asked {
            std::thread::yield_now();
        }
        client
    };
    let (mut older, mut reload) = (ask("", 1), ask(RELOAD, 2));
    go_first.send(()).expect("the origin waits");
    assert_eq!(older.answer(false).body[0], b'1');
    assert!(proxy.get(&url, "").cache_status().starts_with("foxy; hit"));
    proxy.store.refuse();
    go_second.send(()).expect("the origin waits");
    assert_eq!(reload.answer(false).body[0], b'2');
    while proxy.count(Counter::StoreRefusals) == 0 {
        std::thread::yield_now();
    }
    assert_eq!(proxy.get(&url, "").body, b"third");
}
