//! Tests the cache: storing, reuse, validation, variants, ranges and invalidation.

use crate::bench::{forward_proxy, proxy_with};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";

#[test]
fn the_second_request_is_a_hit_and_every_answer_says_what_happened() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"hello"));
    let proxy = forward_proxy();
    let first = proxy.get(&origin.url("/x"), "");
    assert_eq!((first.status, &first.body[..]), (200, &b"hello"[..]));
    assert_eq!(first.cache_status(), "foxy; fwd=uri-miss; fwd-status=200; stored");
    let second = proxy.get(&origin.url("/x"), "");
    assert_eq!((second.status, &second.body[..]), (200, &b"hello"[..]));
    assert!(second.cache_status().starts_with("foxy; hit; ttl="), "{}", second.head);
    assert!(
        !second.header("age").is_empty() && second.header("via") == "1.1 foxy-test",
        "{}",
        second.head
    );
    assert_eq!((origin.requests(), proxy.count(Counter::MemoryHits)), (1, 1));
}

#[test]
fn saved_traffic_counts_only_bodies_that_the_cache_could_give() {
    let origin = TestOrigin::start(|head, _| match head.contains("upgrade") {
        true => b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                  Upgrade: echo\r\n\r\nwelcome"
            .to_vec(),
        false => ok(FRESH, b"hello"),
    });
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    proxy.get(&url, "");
    let post = format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(proxy.connect().ask(&post).body, b"hello");
    assert_eq!(proxy.get("http://10.0.0.1:1/", "").status, 403);
    let mut tunnel = proxy.connect();
    let lines = "Host: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n";
    assert_eq!(tunnel.ask(&format!("GET {url} HTTP/1.1\r\n{lines}\r\n")).status, 101);
    assert_eq!(tunnel.take(7), b"welcome");
    drop(tunnel);
    let ended = || -> u64 {
        proxy.proxy.gauges().outcomes().iter().flat_map(|outcome| outcome.classes).sum()
    };
    until("the end of all requests", || (ended() == 5).then_some(()));
    let count = |counter| proxy.count(counter);
    assert_eq!(count(Counter::BytesFromOrigins), 2 * 5);
    assert_eq!(count(Counter::CacheableBytesFromOrigins), 5);
    assert_eq!(count(Counter::CacheableBytesToClients), 2 * 5);
}

#[test]
fn what_left_memory_is_a_hit_from_the_store() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"hello"));
    let proxy = proxy_with(|settings| settings.memory = 0);
    proxy.get(&origin.url("/x"), "");
    let second = proxy.get(&origin.url("/x"), "");
    assert!(second.cache_status().starts_with("foxy; hit"), "{}", second.head);
    assert_eq!((&second.body[..], proxy.count(Counter::DiskHits)), (&b"hello"[..], 1));
}

#[test]
fn a_large_body_comes_back_from_its_parts_whole_and_in_ranges() {
    let body: Arc<Vec<u8>> = Arc::new(
        (0..5_000_001u32).map(|number| number.to_le_bytes()[0] ^ number.to_le_bytes()[1]).collect(),
    );
    let sent = Arc::clone(&body);
    let origin = TestOrigin::start(move |_, _| ok(FRESH, &sent));
    let proxy = forward_proxy();
    assert_eq!(proxy.get(&origin.url("/big"), "").body, *body);
    let again = proxy.get(&origin.url("/big"), "");
    assert!(again.cache_status().starts_with("foxy; hit") && again.body == *body, "{}", again.head);
    let part = proxy.get(&origin.url("/big"), "Range: bytes=1048570-3145730\r\n");
    assert_eq!((part.status, part.header("content-range")), (206, "bytes 1048570-3145730/5000001"));
    assert_eq!(part.body, body[1_048_570..=3_145_730]);
    assert_eq!(origin.requests(), 1);
}

#[test]
fn a_stored_object_whose_parts_are_gone_is_a_miss() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, &[7; 3_000_000]));
    let proxy = forward_proxy();
    proxy.get(&origin.url("/big"), "");
    assert!(proxy.store.len() > 3);
    proxy.store.forget_everything();
    let again = proxy.get(&origin.url("/big"), "");
    assert_eq!((again.status, again.body.len(), origin.requests()), (200, 3_000_000, 2));
    assert_eq!(proxy.count(Counter::LostParts), 1);
}

#[test]
fn ranges_and_conditions_are_answered_from_the_stored_object() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"0123456789"));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let cases = [
        ("Range: bytes=2-4\r\n", 206, "234"),
        ("Range: bytes=-3\r\n", 206, "789"),
        ("Range: bytes=20-\r\n", 416, ""),
        ("Range: bytes=2-4\r\nIf-Range: \"b\"\r\n", 200, "0123456789"),
        ("If-None-Match: \"a\"\r\n", 304, ""),
        ("If-None-Match: \"b\"\r\n", 200, "0123456789"),
    ];
    for (lines, status, body) in cases {
        let answer = proxy.get(&url, lines);
        assert_eq!(
            (answer.status, String::from_utf8_lossy(&answer.body).as_ref()),
            (status, body),
            "{lines}"
        );
    }
    let head = proxy.connect().ask(&format!("HEAD {url} HTTP/1.1\r\nHost: x\r\n\r\n"));
    assert_eq!((head.status, head.header("content-length")), (200, "10"));
    assert_eq!(origin.requests(), 1);
}

#[test]
fn what_may_not_be_stored_is_not_and_says_why() {
    let cases = [
        ("Cache-Control: no-store\r\n", "", "response-no-store"),
        ("Cache-Control: max-age=60, no store\r\n", "", "unreadable-cache-control"),
        ("Cache-Control: max-age=60, x=\"open, no-store\r\n", "", "unreadable-cache-control"),
        ("Cache-Control: private, max-age=60\r\n", "", "private"),
        ("Cache-Control: max-age=60\r\n", "Authorization: x\r\n", "authorization"),
        ("Cache-Control: max-age=60\r\nVary: *\r\n", "", "vary-star"),
        ("", "", "no-freshness"),
    ];
    for (lines, asked, reason) in cases {
        let origin = TestOrigin::start(move |_, _| ok(lines, b"x"));
        let proxy = forward_proxy();
        for _ in 0..2 {
            let answer = proxy.get(&origin.url("/"), asked);
            assert!(
                answer.cache_status().ends_with(&format!("detail={reason}")),
                "{lines}: {}",
                answer.cache_status()
            );
        }
        assert_eq!((origin.requests(), proxy.store.len()), (2, 0), "{lines}");
    }
}

#[test]
fn what_is_named_by_its_digest_is_fetched_once_however_new_it_is() {
    let origin =
        TestOrigin::start(|_, _| ok("Last-Modified: Fri, 01 Jan 2100 00:00:00 GMT\r\n", b"x"));
    let proxy = forward_proxy();
    let digest = "0123456789abcdef".repeat(4);
    for (name, requests) in [(format!("by-hash/SHA256/{digest}"), 1), ("Release".to_owned(), 2)] {
        let before = origin.requests();
        for _ in 0..2 {
            assert_eq!(proxy.get(&origin.url(&format!("/dists/sid/{name}")), "").status, 200);
        }
        assert_eq!(origin.requests() - before, requests, "{name}");
    }
}

#[test]
fn a_stale_response_is_validated_and_a_304_renews_its_head() {
    let origin = TestOrigin::start(|head, _| match header(head, "if-none-match") {
        Some("\"a\"") => {
            b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\nX-New: 1\r\n\
              \r\n"
                .to_vec()
        }
        _ => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", b"hello"),
    });
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    let second = proxy.get(&origin.url("/x"), "");
    assert_eq!(
        (second.status, &second.body[..], second.header("x-new")),
        (200, &b"hello"[..], "1")
    );
    assert!(second.cache_status().contains("fwd-status=304"), "{}", second.cache_status());
    let third = proxy.get(&origin.url("/x"), "");
    assert!(third.cache_status().starts_with("foxy; hit"), "{}", third.cache_status());
    assert_eq!((third.header("x-new"), origin.requests()), ("1", 2));
}

#[test]
fn variants_are_kept_apart() {
    let origin = TestOrigin::start(|head, _| {
        let language = header(head, "accept-language").unwrap_or("none").to_owned();
        ok(&format!("{FRESH}Vary: Accept-Language\r\n"), language.as_bytes())
    });
    let proxy = forward_proxy();
    let ask =
        |language: &str| proxy.get(&origin.url("/x"), &format!("Accept-Language: {language}\r\n"));
    for language in ["de", "fr"] {
        assert_eq!(ask(language).body, language.as_bytes());
    }
    for language in ["de", "fr"] {
        let answer = ask(language);
        assert!(
            answer.cache_status().starts_with("foxy; hit") && answer.body == language.as_bytes(),
            "{}",
            answer.head
        );
    }
    assert!(ask("it").cache_status().contains("fwd=vary-miss"));
    assert_eq!(origin.requests(), 3);
}

#[test]
fn an_unsafe_request_invalidates_what_is_stored() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"x"));
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    proxy.connect().ask(&format!("POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi"));
    assert!(proxy.get(&url, "").cache_status().contains("fwd=uri-miss"));
    assert_eq!((origin.requests(), proxy.count(Counter::Invalidations)), (3, 1));
}

#[test]
fn an_answer_to_post_that_is_what_a_get_would_give_answers_later_gets() {
    let origin = TestOrigin::start(|_, _| ok(&format!("{FRESH}Content-Location: /x\r\n"), b"made"));
    let proxy = forward_proxy();
    let post = |path: &str| {
        let (url, host) = (origin.url(path), origin.address);
        let text = format!("POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 2\r\n\r\nhi");
        proxy.connect().ask(&text)
    };
    assert_eq!(post("/x").cache_status(), "foxy; fwd=method; fwd-status=200; stored");
    let answer = proxy.get(&origin.url("/x"), "");
    assert!(
        answer.cache_status().starts_with("foxy; hit") && answer.body == b"made",
        "{}",
        answer.head
    );
    assert_eq!(post("/y").cache_status(), "foxy; fwd=method; fwd-status=200");
    assert_eq!(
        proxy.get(&origin.url("/x"), "").cache_status(),
        "foxy; fwd=uri-miss; fwd-status=200; stored"
    );
    assert_eq!(origin.requests(), 3);
}

#[test]
fn only_if_cached_never_reaches_the_origin() {
    let origin = TestOrigin::start(|_, _| ok(FRESH, b"x"));
    let proxy = forward_proxy();
    let answer = proxy.get(&origin.url("/x"), "Cache-Control: only-if-cached\r\n");
    assert_eq!((answer.status, origin.requests()), (504, 0));
    assert_eq!(answer.header("proxy-status"), "foxy; error=proxy_internal_response");
}

#[test]
fn concurrent_misses_of_one_url_are_one_flight() {
    let origin = TestOrigin::start(|_, _| {
        std::thread::sleep(Duration::from_millis(200));
        ok(FRESH, &[5; 300_000])
    });
    let proxy = Arc::new(proxy_with(|settings| settings.workers = 2));
    let barrier = Arc::new(Barrier::new(8));
    let url = origin.url("/x");
    let clients: Vec<_> = (0..8)
        .map(|_| {
            let (proxy, barrier, url) = (Arc::clone(&proxy), Arc::clone(&barrier), url.clone());
            std::thread::spawn(move || {
                barrier.wait();
                proxy.get(&url, "")
            })
        })
        .collect();
    for client in clients {
        let answer = client.join().expect("the client ends well");
        assert_eq!((answer.status, answer.body.len()), (200, 300_000));
    }
    assert_eq!(origin.requests(), 1);
}

#[test]
fn followers_of_a_response_that_is_not_stored_fetch_for_themselves() {
    let origin = TestOrigin::start(|_, number| {
        std::thread::sleep(Duration::from_millis(100));
        ok("Cache-Control: private\r\n", format!("{number}").as_bytes())
    });
    let proxy = Arc::new(forward_proxy());
    let url = origin.url("/x");
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (proxy, url) = (Arc::clone(&proxy), url.clone());
            std::thread::spawn(move || proxy.get(&url, "").body)
        })
        .collect();
    let mut bodies: Vec<_> =
        clients.into_iter().map(|client| client.join().expect("ends well")).collect();
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), 4, "nobody got another's private answer");
}

#[test]
fn an_answer_that_says_there_is_nothing_is_kept_as_long_as_the_operator_says() {
    let origin = TestOrigin::start(|head, _| match head.split(' ').nth(1) {
        Some("/none") => b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone".to_vec(),
        _ => b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 4\r\n\r\nfail".to_vec(),
    });
    let (strict, kind) =
        (forward_proxy(), proxy_with(|settings| settings.negative_lifetime = 60.into()));
    for (proxy, path, expected) in [
        (&strict, "/none", "foxy; fwd=uri-miss; fwd-status=404; detail=no-freshness"),
        (&kind, "/none", "foxy; hit; ttl=60"),
        (&kind, "/fail", "foxy; fwd=uri-miss; fwd-status=500; detail=no-freshness"),
    ] {
        let url = origin.url(path);
        let first = proxy.get(&url, "");
        let second = proxy.get(&url, "");
        assert_eq!(second.body, first.body, "{path}");
        let status = second.cache_status();
        assert!(status.starts_with(expected.trim_end_matches("60")), "{path}: {status}");
    }
    assert_eq!(origin.requests(), 5);
}
