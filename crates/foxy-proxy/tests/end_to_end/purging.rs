//! Tests purges, which remove stored responses: which clients may purge, which responses a purge
//! affects, soft and hard purges, and purges during a fetch.

use crate::bench::{TestProxy, forward_proxy, proxy_of, proxy_with};
use foxy_base::{Instant, clock};
use foxy_proxy::cache::purge::{
    Named, NotPurged, Order, PurgeKeeper, PurgeReply, Purges, Scope, Strength,
};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::token::Token;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

const LINES: &str = "Cache-Control: max-age=600\r\nETag: \"a\"\r\n";

/// Starts an origin whose responses have an ETag, so that the proxy can validate them.
fn origin(lines: &'static str) -> TestOrigin {
    TestOrigin::start(move |head, number| match header(head, "if-none-match") {
        Some(_) => {
            b"HTTP/1.1 304 Not Modified\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\n\r\n"
                .to_vec()
        }
        None => ok(lines, format!("body {number}").as_bytes()),
    })
}

fn purge(proxy: &TestProxy, scopes: &[Scope], strength: Strength) -> u64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    runtime.block_on(proxy.proxy.handle().purge(scopes, strength)).expect("purged")
}

fn named(proxy: &TestProxy, named: Named, name: &str, strength: Strength) {
    purge(proxy, &named.scopes(name).expect("a name"), strength);
}

/// Sends a GET. Returns the Cache-Status field and the body of the answer.
fn get(proxy: &TestProxy, url: &str, lines: &str) -> (String, String) {
    let answer = proxy.get(url, lines);
    (answer.cache_status().to_owned(), String::from_utf8_lossy(&answer.body).into_owned())
}

#[test]
fn a_softly_purged_response_is_validated_and_a_hard_purge_takes_it() {
    let (origin, proxy) = (origin(LINES), forward_proxy());
    let url = origin.url("/x");
    get(&proxy, &url, "");
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
    named(&proxy, Named::Url, &url, Strength::Soft);
    let (status, body) = get(&proxy, &url, "");
    assert!(status.starts_with("foxy; fwd=stale; fwd-status=304"), "{status}");
    assert_eq!(body, "body 0");
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"), "confirmed, so fresh");
    named(&proxy, Named::Url, &url, Strength::Hard);
    let (status, body) = get(&proxy, &url, "");
    assert!(status.starts_with("foxy; fwd=uri-miss; fwd-status=200; stored"), "{status}");
    assert_eq!(body, "body 2");
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
    assert_eq!(proxy.count(Counter::Purges), 2);
}

#[test]
fn each_scope_takes_its_own_and_leaves_the_rest() {
    let lines = "Cache-Control: max-age=600\r\nSurrogate-Key: news front\r\n";
    let other = origin(LINES);
    let (origin, proxy) = (origin(lines), forward_proxy());
    let site = format!("http://{}", origin.address);
    let cases = [
        (Named::Url, origin.url("/a/1")),
        (Named::Prefix, origin.url("/a/")),
        (Named::Site, site),
        (Named::Tag, "front".to_owned()),
    ];
    for (kind, name) in cases {
        for url in [origin.url("/a/1"), origin.url("/b"), other.url("/a/1")] {
            get(&proxy, &url, "");
        }
        named(&proxy, kind, &name, Strength::Hard);
        let hit = |url: &str| {
            get(&proxy, url, "Cache-Control: only-if-cached\r\n").0.starts_with("foxy; hit")
        };
        assert!(!hit(&origin.url("/a/1")), "{kind:?}");
        assert_eq!(hit(&origin.url("/b")), matches!(kind, Named::Url | Named::Prefix), "{kind:?}");
        assert!(hit(&other.url("/a/1")), "{kind:?}");
    }
    purge(&proxy, &[Scope::All], Strength::Hard);
    assert!(get(&proxy, &other.url("/a/1"), "").0.starts_with("foxy; fwd=uri-miss"));
}

#[test]
fn all_variants_of_a_url_are_purged() {
    let lines = "Cache-Control: max-age=600\r\nVary: Accept-Language\r\n";
    for strength in [Strength::Soft, Strength::Hard] {
        let (origin, proxy) = (origin(lines), forward_proxy());
        let url = origin.url("/x");
        let languages = ["Accept-Language: de\r\n", "Accept-Language: en\r\n"];
        for language in languages {
            get(&proxy, &url, language);
            assert!(get(&proxy, &url, language).0.starts_with("foxy; hit"));
        }
        named(&proxy, Named::Url, &url, strength);
        for language in languages {
            let status = get(&proxy, &url, language).0;
            assert!(status.starts_with("foxy; fwd="), "{strength:?} {language:?}: {status}");
        }
    }
}

#[test]
fn a_fill_under_way_does_not_bring_back_what_is_purged_meanwhile() {
    for strength in [Strength::Soft, Strength::Hard] {
        let (go_on, wait) = channel::<()>();
        let wait = Arc::new(Mutex::new(wait));
        let origin = TestOrigin::start(move |_, number| {
            if number == 0 {
                wait.lock().expect("one waits").recv().expect("told to go on");
            }
            ok("Cache-Control: max-age=600\r\n", format!("body {number}").as_bytes())
        });
        let proxy = forward_proxy();
        let url = origin.url("/x");
        let mut first = proxy.connect();
        first.send(format!("GET {url} HTTP/1.1\r\nHost: {}\r\n\r\n", origin.address).as_bytes());
        while origin.requests() == 0 {
            std::thread::yield_now();
        }
        named(&proxy, Named::Url, &url, strength);
        let (status, body) = get(&proxy, &url, "");
        assert!(!status.contains("collapsed"), "{strength:?}: {status}");
        assert_eq!(
            body, "body 1",
            "{strength:?}: it did not wait for what was begun before the purge"
        );
        go_on.send(()).expect("the origin waits");
        assert_eq!(first.answer(false).body, b"body 0");
        let (status, body) = get(&proxy, &url, "");
        assert_ne!(body, "body 0", "{strength:?}: {status}");
    }
}

#[test]
fn the_purge_method_is_for_those_who_may() {
    let origin = origin(LINES);
    let url = origin.url("/x");
    let purge = |proxy: &TestProxy, lines: &str| {
        let mut client = proxy.connect();
        let answer =
            client.ask(&format!("PURGE {url} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", origin.address));
        (answer.status, answer.cache_status().to_owned())
    };
    let nobody = forward_proxy();
    assert_eq!(purge(&nobody, ""), (403, "foxy; detail=purge-not-allowed".to_owned()));
    assert_eq!(purge(&nobody, "Proxy-Authorization: Bearer 0123456789abcdef\r\n").0, 403);
    let token = proxy_with(|settings| settings.purge_token = Token::new("0123456789abcdef"));
    assert_eq!(purge(&token, "Proxy-Authorization: Bearer 0123456789abcdeX\r\n").0, 403);
    assert_eq!(purge(&token, "Proxy-Authorization: Bearer 0123456789abcdef\r\n").0, 200);
    let near = proxy_with(|settings| {
        settings.purge_from = vec!["127.0.0.0/8".parse().expect("a block")].into()
    });
    get(&near, &url, "");
    assert_eq!(purge(&near, ""), (200, "foxy; detail=purged".to_owned()));
    assert!(get(&near, &url, "").0.starts_with("foxy; fwd=stale; fwd-status=304"));
    assert_eq!(purge(&near, "Foxy-Purge: hard\r\n").0, 200);
    assert!(get(&near, &url, "").0.starts_with("foxy; fwd=uri-miss"));
    assert_eq!(
        origin.heads.lock().expect("sound").iter().filter(|head| head.starts_with("PURGE")).count(),
        0
    );
}

/// Starts an origin that permits every exception from validation, and fails from a request on.
fn lenient_origin(fails_from: usize) -> TestOrigin {
    const LENIENT: &str = "Cache-Control: max-age=600, stale-while-revalidate=600, \
                           stale-if-error=600\r\nETag: \"a\"\r\n";
    TestOrigin::start(move |head, number| match header(head, "if-none-match") {
        _ if number >= fails_from => b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n".to_vec(),
        Some(_) => format!("HTTP/1.1 304 Not Modified\r\n{LENIENT}\r\n").into_bytes(),
        None => ok(LENIENT, format!("body {number}").as_bytes()),
    })
}

#[test]
fn without_a_lease_every_response_is_validated() {
    let (origin, proxy) = (lenient_origin(3), forward_proxy());
    let (url, lease) = (origin.url("/x"), proxy.purges.book.lease());
    get(&proxy, &url, "");
    lease.set(Instant(u64::MAX));
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
    lease.set(clock::since_boot());
    for _ in 0..2 {
        let (status, body) = get(&proxy, &url, "Cache-Control: max-stale\r\n");
        assert!(status.starts_with("foxy; fwd=stale; fwd-status=304"), "{status}");
        assert!(status.ends_with("; detail=no-lease"), "{status}");
        assert_eq!(body, "body 0");
    }
    lease.set(Instant(u64::MAX));
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
    lease.set(Instant::ZERO);
    let answer = proxy.get(&url, "");
    assert_eq!(answer.status, 503, "{}", answer.cache_status());
}

#[test]
fn after_a_broken_chain_each_response_is_validated_once() {
    let (origin, proxy) = (lenient_origin(2), forward_proxy());
    let url = origin.url("/x");
    get(&proxy, &url, "");
    let at = clock::steady();
    let order = Order { scope: Scope::All, strength: Strength::Doubt, at };
    proxy.purges.keeper.purge(vec![order], Box::new(|answer| assert!(answer.is_ok())));
    let status = get(&proxy, &url, "").0;
    assert!(status.starts_with("foxy; fwd=stale; fwd-status=304"), "{status}");
    assert!(status.ends_with("; detail=broken-chain"), "{status}");
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
}

struct Refusing;

impl PurgeKeeper for Refusing {
    fn purge(&self, _orders: Vec<Order>, reply: PurgeReply) {
        reply(Err(NotPurged::EngineAway));
    }
}

#[test]
fn a_purge_of_a_fleet_is_refused_when_the_fleet_refuses_it() {
    let origin = origin(LINES);
    let purges = Purges { fleet: Some(Arc::new(Refusing)), ..Purges::in_memory() };
    let from = vec!["127.0.0.0/8".parse().expect("a block")];
    let proxy = proxy_of(purges, |settings| settings.purge_from = from.into());
    let url = origin.url("/x");
    get(&proxy, &url, "");
    let host = origin.address;
    let answer = proxy.connect().ask(&format!("PURGE {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    assert_eq!(answer.status, 503);
    assert!(answer.cache_status().ends_with("detail=purge-engine-away"));
    assert!(get(&proxy, &url, "").0.starts_with("foxy; hit"));
}
