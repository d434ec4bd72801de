//! Tests stale responses. The proxy serves a stale response only if a caching rule permits it, and
//! validates it before or after that. It never serves a stale response whose Cache-Control forbids
//! stale answers.

use crate::bench::{TestProxy, forward_proxy, reverse_proxy};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::client::Answered;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;

const ERROR: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n\r\n\
      down";

/// Sends two requests. The first response is stale at once, with the Cache-Control directives
/// `control`. The origin answers the second request with `second`. Returns the proxy's answer to
/// the second request.
fn second_answer(control: &str, second: &'static [u8]) -> (Answered, TestProxy) {
    let lines = format!("Cache-Control: max-age=0, {control}\r\nETag: \"a\"\r\n");
    let origin = TestOrigin::start(
        move |_, number| if number == 0 { ok(&lines, b"old") } else { second.to_vec() },
    );
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    (proxy.get(&origin.url("/x"), ""), proxy)
}

#[test]
fn an_origin_that_gives_no_answer_leaves_what_is_stored_to_answer() {
    let (answer, proxy) = second_answer("public", b"");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"old"[..]), "{}", answer.head);
    assert!(
        answer.cache_status().starts_with("foxy; fwd=stale; ttl="),
        "{}",
        answer.cache_status()
    );
    assert!(answer.cache_status().ends_with("; detail=disconnected"), "{}", answer.cache_status());
    assert_eq!(proxy.count(Counter::StaleAnswers), 1);
}

#[test]
fn an_origin_that_gives_no_answer_to_head_leaves_what_is_stored_to_answer() {
    for (control, status) in [("public", 200), ("must-revalidate", 502)] {
        let lines = format!("Cache-Control: max-age=0, {control}\r\nETag: \"a\"\r\n");
        let origin = TestOrigin::start(
            move |_, number| if number == 0 { ok(&lines, b"old") } else { Vec::new() },
        );
        let proxy = forward_proxy();
        let (url, host) = (origin.url("/x"), origin.address);
        proxy.get(&url, "");
        let seen = proxy.connect().ask(&format!("HEAD {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(seen.status, status, "{}", seen.head);
        assert_eq!(seen.header("etag") == "\"a\"", status == 200, "{}", seen.head);
    }
}

#[test]
fn an_error_of_the_origin_reaches_the_client_without_stale_if_error() {
    let (answer, _) = second_answer("public", ERROR);
    assert_eq!((answer.status, &answer.body[..]), (503, &b"down"[..]), "{}", answer.head);
    let (answer, _) = second_answer("stale-if-error=60", ERROR);
    assert_eq!((answer.status, &answer.body[..]), (200, &b"old"[..]), "{}", answer.head);
    let said = "; fwd-status=503; ";
    assert!(answer.cache_status().contains(said), "{}", answer.cache_status());
}

#[test]
fn what_forbids_stale_answers_is_obeyed_whatever_the_origin_does() {
    for control in ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=0"] {
        for (second, status) in [(&b""[..], 502), (ERROR, 503)] {
            let control = format!("{control}, stale-if-error=60, stale-while-revalidate=60");
            let (answer, _) = second_answer(&control, second);
            assert_eq!(answer.status, status, "{control}: {}", answer.head);
        }
    }
}

#[test]
fn an_error_does_not_replace_what_answers_better() {
    let origin = TestOrigin::start(|_, number| match number {
        0 => ok("Cache-Control: max-age=0, stale-if-error=60\r\nETag: \"a\"\r\n", b"old"),
        1 => ERROR.to_vec(),
        _ => b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=60\r\n\r\n"
            .to_vec(),
    });
    let proxy = forward_proxy();
    for _ in 0..3 {
        let answer = proxy.get(&origin.url("/x"), "");
        assert_eq!((answer.status, &answer.body[..]), (200, &b"old"[..]), "{}", answer.head);
    }
    assert_eq!(origin.requests(), 3);
}

#[test]
fn a_stale_response_is_validated_while_it_is_served() {
    let origin = TestOrigin::start(|head, number| match (number, header(head, "if-none-match")) {
        (0, _) => {
            ok("Cache-Control: max-age=0, stale-while-revalidate=60\r\nETag: \"a\"\r\n", b"old")
        }
        (_, Some("\"a\"")) => ok("Cache-Control: max-age=60\r\nETag: \"b\"\r\n", b"new"),
        _ => ok("", b"not asked whether it is still good"),
    });
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    let stale = proxy.get(&origin.url("/x"), "");
    assert_eq!(&stale.body[..], b"old");
    let said = "; detail=stale-while-revalidate";
    assert!(stale.cache_status().contains("; hit; ttl=") && stale.cache_status().ends_with(said));
    let arrived = (0..10_000).any(|_| proxy.get(&origin.url("/x"), "").body == b"new");
    assert!(arrived, "the refresh never arrived");
    assert_eq!((origin.requests(), proxy.count(Counter::BackgroundRefreshes)), (2, 1));
}

#[test]
fn a_304_about_something_else_is_followed_by_a_request_without_conditions() {
    let origin = TestOrigin::start(|head, number| match (number, header(head, "if-none-match")) {
        (0, _) => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", b"old"),
        (_, Some(_)) => b"HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n".to_vec(),
        _ => ok("Cache-Control: max-age=60\r\nETag: \"b\"\r\n", b"new"),
    });
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    let answer = proxy.get(&origin.url("/x"), "");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"new"[..]), "{}", answer.head);
    assert_eq!(origin.requests(), 3);
}

#[test]
fn a_refresh_that_confirms_something_else_is_the_end_of_what_is_stored() {
    let origin = TestOrigin::start(|head, number| match (number, header(head, "if-none-match")) {
        (0, _) => {
            ok("Cache-Control: max-age=0, stale-while-revalidate=60\r\nETag: \"a\"\r\n", b"old")
        }
        (_, Some(_)) => b"HTTP/1.1 304 Not Modified\r\nETag: \"b\"\r\n\r\n".to_vec(),
        _ => ok("Cache-Control: max-age=60\r\nETag: \"b\"\r\n", b"new"),
    });
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    let replaced = (0..10_000).any(|_| proxy.get(&origin.url("/x"), "").body == b"new");
    assert!(replaced && origin.requests() == 3);
}

#[test]
fn a_request_that_wants_no_cached_answer_is_validated_not_fetched_anew() {
    let origin = TestOrigin::start(|head, _| match header(head, "if-none-match") {
        Some(_) => b"HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\n\r\n".to_vec(),
        None => ok("Cache-Control: max-age=60\r\nETag: \"a\"\r\n", b"same"),
    });
    let proxy = forward_proxy();
    proxy.get(&origin.url("/x"), "");
    let answer = proxy.get(&origin.url("/x"), "Cache-Control: no-cache\r\n");
    assert_eq!((answer.status, &answer.body[..]), (200, &b"same"[..]));
    let said = "foxy; fwd=request; fwd-status=304; ttl=";
    assert!(answer.cache_status().starts_with(said), "{}", answer.cache_status());
}

#[test]
fn a_head_that_describes_what_is_stored_renews_it_and_another_lets_it_go() {
    let head = |tag: &str| {
        let lines = format!(
            "ETag: {tag}\r\nCache-Control: max-age=60\r\nX-New: 1\r\nContent-Length: 3\r\n\r\n"
        );
        format!("HTTP/1.1 200 OK\r\n{lines}").into_bytes()
    };
    for (tag, renewed) in [("\"a\"", true), ("\"b\"", false)] {
        let origin = TestOrigin::start(move |request, number| match number {
            0 => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", b"old"),
            _ if request.starts_with("HEAD") => head(tag),
            _ => ok("Cache-Control: max-age=60\r\nETag: \"b\"\r\n", b"new"),
        });
        let proxy = forward_proxy();
        let (url, host) = (origin.url("/x"), origin.address);
        proxy.get(&url, "");
        let seen = proxy.connect().ask(&format!("HEAD {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!(seen.header("etag"), tag, "{}", seen.head);
        let answer = proxy.get(&url, "");
        let expected = if renewed { ("old", "1", 2) } else { ("new", "", 3) };
        let body = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!(
            (body.as_str(), answer.header("x-new"), origin.requests()),
            expected,
            "{}",
            answer.head
        );
    }
}

#[test]
fn a_head_without_a_validator_leaves_the_stored_response_unless_its_body_differs() {
    let (tag, digest, other) =
        ("ETag: \"a\"\r\n", "Repr-Digest: sha-256=:AA==:\r\n", "Repr-Digest: sha-256=:BB==:\r\n");
    for (stored, seen, kept) in [
        ("", "", true),
        ("", "Content-Length: 3\r\n", true),
        (tag, "Content-Length: 3\r\n", true),
        ("", digest, true),
        ("", "Content-Length: 4\r\n", false),
        (digest, other, false),
    ] {
        let control = "Cache-Control: max-age=60\r\n";
        let origin = TestOrigin::start(move |request, number| match number {
            0 => ok(&format!("{control}{stored}"), b"old"),
            _ if request.starts_with("HEAD") => {
                format!("HTTP/1.1 200 OK\r\n{control}{seen}X-New: 1\r\n\r\n").into_bytes()
            }
            _ => ok(control, b"new"),
        });
        let proxy = forward_proxy();
        let (url, host) = (origin.url("/x"), origin.address);
        proxy.get(&url, "");
        let head =
            format!("HEAD {url} HTTP/1.1\r\nHost: {host}\r\nCache-Control: no-cache\r\n\r\n");
        assert_eq!(proxy.connect().ask(&head).header("x-new"), "1");
        let answer = proxy.get(&url, "");
        let expected = if kept { (&b"old"[..], "", 2) } else { (&b"new"[..], "", 3) };
        let found = (&answer.body[..], answer.header("x-new"), origin.requests());
        assert_eq!(found, expected, "{stored}{seen}: {}", answer.head);
    }
}

#[test]
fn a_304_that_forbids_storing_is_the_end_of_what_is_stored() {
    for (control, request, kept) in [
        ("max-age=60, private", "", false),
        ("max-age=60, no-store", "", false),
        ("max-age=60", "Authorization: x\r\n", true),
    ] {
        let origin = TestOrigin::start(move |request, _| match header(request, "if-none-match") {
            None => ok("Cache-Control: max-age=0\r\nETag: \"a\"\r\n", b"body"),
            Some(_) => {
                let lines =
                    format!("ETag: \"a\"\r\nCache-Control: {control}\r\nX-For: one\r\n\r\n");
                format!("HTTP/1.1 304 Not Modified\r\n{lines}").into_bytes()
            }
        });
        let proxy = forward_proxy();
        proxy.get(&origin.url("/x"), "");
        let own = proxy.get(&origin.url("/x"), request);
        assert_eq!((own.status, &own.body[..], own.header("x-for")), (200, &b"body"[..], "one"));
        let status = proxy.get(&origin.url("/x"), "Cache-Control: only-if-cached, max-stale\r\n");
        assert_eq!(
            (status.status == 200, status.header("x-for")),
            (kept, ""),
            "{control}: {}",
            status.head
        );
    }
}

#[test]
fn the_targeted_field_governs_a_reverse_proxy_only() {
    let lines = "Cache-Control: no-store\r\nCDN-Cache-Control: max-age=60\r\n";
    let origin = TestOrigin::start(move |_, _| ok(lines, b"x"));
    for (proxy, stored) in [(reverse_proxy(&origin), true), (forward_proxy(), false)] {
        let answer = proxy.get(&origin.url("/x"), "");
        assert_eq!(
            answer.cache_status().ends_with("; stored"),
            stored,
            "{}",
            answer.cache_status()
        );
        assert_eq!(answer.header("cdn-cache-control"), "max-age=60");
    }
}

#[test]
fn a_stale_variant_that_is_replaced_leaves_the_others_in_reach() {
    let origin = TestOrigin::start(|head, _| {
        let language = header(head, "accept-language").unwrap_or("none");
        let age = if language == "de" { 0 } else { 60 };
        let lines = format!(
            "Cache-Control: max-age={age}\r\nLast-Modified: x\r\nVary: Accept-Language\r\n"
        );
        ok(&lines, language.as_bytes())
    });
    let proxy = forward_proxy();
    let ask =
        |language: &str| proxy.get(&origin.url("/x"), &format!("Accept-Language: {language}\r\n"));
    for language in ["de", "fr", "de"] {
        ask(language);
    }
    let answer = ask("fr");
    assert!(answer.cache_status().starts_with("foxy; hit"), "{}", answer.cache_status());
    assert_eq!(origin.requests(), 3);
}
