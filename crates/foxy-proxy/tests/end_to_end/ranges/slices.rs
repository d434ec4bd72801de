//! Tests ranges of objects that the proxy never fetched whole. It fetches aligned slices of 1 MiB,
//! each of them once. An answer must never contain slices of two representations.

use crate::bench::{TestProxy, forward_proxy, proxy_with};
use crate::ranges::sparse::{SLICE, Sparse, bytes};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::client::Answered;
use foxy_testkit::http::{head_length, header};
use foxy_testkit::origin::TestOrigin;
use std::io::Read;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};

/// Length of an object in bytes: about a hundred gigabytes, and not a multiple of the slice length.
const HUGE: u64 = 100_000_000_123;

fn range(proxy: &TestProxy, url: &str, first: u64, last: u64) -> Answered {
    let answer = proxy.get(url, &format!("Range: bytes={first}-{last}\r\n"));
    assert_eq!(answer.status, 206, "{}", answer.head);
    assert!(answer.body == bytes(first, last), "{first}-{last}: {} bytes", answer.body.len());
    answer
}

/// Starts the origin of an object. The test can replace the object with another version.
fn changing(object: Sparse) -> (Arc<Mutex<Sparse>>, TestOrigin) {
    let state = Arc::new(Mutex::new(object));
    let now = Arc::clone(&state);
    (state, TestOrigin::start(move |head, _| now.lock().expect("not poisoned").answer(head)))
}

/// Waits until the store has at least this number of records.
fn stored(proxy: &TestProxy, records: usize) {
    while proxy.store.len() < records {
        std::thread::yield_now();
    }
}

#[test]
fn a_huge_object_is_fetched_by_requested_slices_and_reread_with_one_extra_read() {
    for memory in [1 << 20, 0] {
        let (origin, sent) = Sparse::fresh(HUGE).origin();
        let proxy = proxy_with(|settings| settings.memory = memory);
        let url = origin.url("/huge");
        let places = [
            (0, 99),
            (HUGE / 2, HUGE / 2 + 10),
            (HUGE - 5, HUGE - 1),
            (77 * SLICE - 10, 77 * SLICE + 9),
        ];
        let slices = [SLICE, SLICE, HUGE % SLICE, 2 * SLICE];
        for ((first, last), more) in places.into_iter().zip(slices) {
            let before = sent.load(Ordering::SeqCst);
            let answer = range(&proxy, &url, first, last);
            assert!(answer.cache_status().contains("; stored"), "{}", answer.head);
            assert_eq!(answer.header("content-range"), format!("bytes {first}-{last}/{HUGE}"));
            assert_eq!(sent.load(Ordering::SeqCst) - before, more);
        }
        stored(&proxy, 6);
        let (asked, head_reads) = (origin.requests(), usize::from(memory == 0));
        for (first, last) in places {
            let reads = proxy.store.found();
            let answer = range(&proxy, &url, first, last);
            assert!(answer.cache_status().starts_with("foxy; hit"), "{}", answer.head);
            let slices = usize::try_from(last / SLICE - first / SLICE + 1).expect("small");
            assert_eq!(proxy.store.found() - reads, head_reads + slices);
        }
        assert_eq!(origin.requests(), asked);
        assert_eq!(proxy.count(Counter::LostParts), 0);
    }
}

#[test]
fn slices_after_the_first_are_asked_for_of_the_same_only() {
    let (origin, _) = Sparse::fresh(5 * SLICE).origin();
    let proxy = forward_proxy();
    range(&proxy, &origin.url("/x"), SLICE + 5, 3 * SLICE + 5);
    let heads = origin.heads.lock().expect("not poisoned").clone();
    let asked: Vec<_> =
        heads.iter().map(|head| (header(head, "range"), header(head, "if-range"))).collect();
    let expected = [
        (Some("bytes=1048576-2097151"), None),
        (Some("bytes=2097152-3145727"), Some("\"one\"")),
        (Some("bytes=3145728-4194303"), Some("\"one\"")),
    ];
    assert_eq!(asked, expected);
}

#[test]
fn many_who_want_one_slice_are_one_request() {
    let (go, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let sparse = Sparse::fresh(HUGE);
    let origin = TestOrigin::start(move |head, number| {
        if number == 0 {
            wait.lock().expect("not poisoned").recv().expect("the test goes on");
        }
        sparse.answer(head)
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    std::thread::scope(|scope| {
        for number in 0..20 {
            let (proxy, url) = (&proxy, &url);
            scope.spawn(move || range(proxy, url, number * 1000, number * 1000 + 5000));
        }
        while origin.requests() == 0 || proxy.count(Counter::Requests) < 20 {
            std::thread::yield_now();
        }
        go.send(()).expect("the origin waits");
    });
    assert_eq!(origin.requests(), 1);
}

#[test]
fn an_object_that_changes_between_slices_is_never_mixed() {
    let (state, origin) = changing(Sparse::fresh(4 * SLICE));
    let (proxy, url) = (forward_proxy(), origin.url("/x"));
    range(&proxy, &url, 0, 9);
    for change in [
        Sparse { etag: "\"two\"".into(), ..Sparse::fresh(4 * SLICE) },
        Sparse { etag: "\"two\"".into(), ..Sparse::fresh(3 * SLICE) },
    ] {
        *state.lock().expect("not poisoned") = change.clone();
        let mut client = proxy.connect();
        let head = format!("GET {url} HTTP/1.1\r\nHost: a\r\nRange: bytes=5-2000000\r\n\r\n");
        client.send(head.as_bytes());
        let mut got = Vec::new();
        std::io::Read::read_to_end(&mut client.stream, &mut got).expect("a close");
        let end = head_length(&got).expect("a head");
        let expected = bytes(5, 2_000_000);
        assert!(
            expected.starts_with(&got[end..]) && got.len() - end < expected.len(),
            "cut, and not a wrong byte"
        );
        let answer = range(&proxy, &url, 5, 2_000_000);
        assert_eq!(answer.header("etag"), "\"two\"");
        assert!(answer.header("content-range").ends_with(&format!("/{}", change.length)));
        *state.lock().expect("not poisoned") = Sparse::fresh(4 * SLICE);
        let text =
            format!("POST {url} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", origin.address);
        proxy.connect().ask(&text);
        range(&proxy, &url, 0, 9);
    }
}

#[test]
fn a_stale_object_is_validated_by_slice_and_goes_on() {
    let stale = "Cache-Control: max-age=1\r\nAge: 9\r\n";
    let (state, origin) = changing(Sparse { lines: stale.into(), ..Sparse::fresh(HUGE) });
    let (proxy, url) = (forward_proxy(), origin.url("/x"));
    range(&proxy, &url, 0, 9);
    stored(&proxy, 2);
    let answer = range(&proxy, &url, 5, 9);
    assert!(answer.cache_status().contains("fwd=stale; fwd-status=304"), "{}", answer.head);
    let head = origin.heads.lock().expect("not poisoned")[1].clone();
    let asked = (header(&head, "range"), header(&head, "if-none-match"), header(&head, "if-range"));
    assert_eq!(asked, (Some("bytes=0-1048575"), Some("\"one\""), None));
    *state.lock().expect("not poisoned") = Sparse { etag: "\"two\"".into(), ..Sparse::fresh(HUGE) };
    let answer = range(&proxy, &url, 5, 9);
    assert!(answer.cache_status().contains("fwd=stale; fwd-status=206"), "{}", answer.head);
    assert_eq!(answer.header("etag"), "\"two\"");
    stored(&proxy, 3);
    assert!(range(&proxy, &url, 5, 9).cache_status().starts_with("foxy; hit"));
}

#[test]
fn what_the_newest_slice_says_of_freshness_holds_for_the_object() {
    let (state, origin) = changing(Sparse::fresh(HUGE));
    let (proxy, url) = (forward_proxy(), origin.url("/x"));
    range(&proxy, &url, 0, 9);
    stored(&proxy, 2);
    let stale = "Cache-Control: max-age=0\r\n";
    *state.lock().expect("not poisoned") = Sparse { lines: stale.into(), ..Sparse::fresh(HUGE) };
    range(&proxy, &url, 5 * SLICE, 5 * SLICE + 9);
    let answer = range(&proxy, &url, 0, 9);
    assert!(answer.cache_status().contains("fwd=stale"), "{}", answer.head);
    assert_eq!(origin.requests(), 3);
}

#[test]
fn a_whole_is_completed_from_its_slices() {
    let (origin, sent) = Sparse::fresh(3 * SLICE + 5).origin();
    let proxy = forward_proxy();
    let url = origin.url("/x");
    range(&proxy, &url, 2 * SLICE, 2 * SLICE);
    for (requests, status) in [(4, 200), (4, 200)] {
        let answer = proxy.get(&url, "");
        assert_eq!((answer.status, origin.requests()), (status, requests), "{}", answer.head);
        assert!(answer.body == bytes(0, 3 * SLICE + 4));
    }
    assert_eq!(sent.load(Ordering::SeqCst), 3 * SLICE + 5);
    assert!(
        proxy
            .get(&url, "Cache-Control: only-if-cached\r\n")
            .cache_status()
            .starts_with("foxy; hit")
    );
}

#[test]
fn slices_of_what_a_newer_whole_replaced_do_not_come_back() {
    let (state, origin) = changing(Sparse::fresh(2 * SLICE));
    let (proxy, url) = (forward_proxy(), origin.url("/x"));
    range(&proxy, &url, 5, 9);
    stored(&proxy, 2);
    *state.lock().expect("not poisoned") =
        Sparse { etag: "\"two\"".into(), ..Sparse::fresh(2 * SLICE) };
    let answer = proxy.get(&url, "Cache-Control: no-cache\r\n");
    assert_eq!(answer.header("etag"), "\"two\"");
    // The store now has four records: the head and two parts of the new response, and a slice
    // (aligned MiB) of the old object. Nothing leads a request to the old slice any more.
    while proxy.store.len() != 4 {
        std::thread::yield_now();
    }
    assert_eq!(range(&proxy, &url, 5, 9).header("etag"), "\"two\"");
}

#[test]
fn an_object_no_larger_than_a_slice_is_stored_whole() {
    for etag in ["\"one\"", "W/\"one\"", ""] {
        let (origin, _) = Sparse { etag: etag.into(), ..Sparse::fresh(5000) }.origin();
        let proxy = forward_proxy();
        let url = origin.url("/x");
        range(&proxy, &url, 4000, 4999);
        let answer = proxy.get(&url, "");
        assert!(
            answer.status == 200
                && answer.body == bytes(0, 4999)
                && answer.header("content-range").is_empty()
        );
        assert_eq!(origin.requests(), 1);
    }
}

#[test]
fn what_is_no_range_of_the_object_is_answered_as_such() {
    let (origin, _) = Sparse::fresh(3 * SLICE).origin();
    let proxy = forward_proxy();
    let url = origin.url("/x");
    for lines in ["Range: bytes=9000000-\r\n", "Range: bytes=3145728-3145729\r\n"] {
        let answer = proxy.get(&url, lines);
        assert_eq!(
            (answer.status, answer.header("content-range")),
            (416, "bytes */3145728"),
            "{}",
            answer.head
        );
    }
    range(&proxy, &url, 5, 9);
    let answer = proxy.get(&url, "Range: bytes=9000000-\r\n");
    assert_eq!(
        (answer.status, answer.header("content-range")),
        (416, "bytes */3145728"),
        "{}",
        answer.head
    );
    let answer = proxy.get(&url, "Range: bytes=-4\r\n");
    assert!(
        answer.status == 206 && answer.body == bytes(3 * SLICE - 4, 3 * SLICE - 1),
        "{}",
        answer.head
    );
    let answer = proxy.get(&url, "Range: bytes=0-4\r\nIf-Range: \"other\"\r\n");
    assert!(answer.status == 200 && answer.body == bytes(0, 3 * SLICE - 1), "{}", answer.head);
}

#[test]
fn slices_answer_no_more_once_a_reload_has_seen_another_representation() {
    let old = Sparse::fresh(3 * SLICE);
    let lines = format!("{}Connection: close\r\n", old.lines);
    let new = Sparse { etag: "\"two\"".into(), lines, ..Sparse::fresh(3 * SLICE) };
    let origin = TestOrigin::start(move |head, number| match number {
        0 => old.answer(head),
        1 => {
            let mut answer = new.answer(head);
            answer.truncate(answer.len() - 100_000);
            answer
        }
        2 => Vec::new(),
        _ => new.answer(head),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    assert_eq!(range(&proxy, &url, 0, 9).header("etag"), "\"one\"");
    stored(&proxy, 2);
    let reload = format!(
        "GET {url} HTTP/1.1\r\nHost: a\r\nCache-Control: no-cache\r\nConnection: close\r\n\r\n"
    );
    let mut client = proxy.connect();
    client.send(reload.as_bytes());
    let _cut_short = client.stream.read_to_end(&mut Vec::new());
    assert_eq!(range(&proxy, &url, 0, 9).header("etag"), "\"two\"");
}
