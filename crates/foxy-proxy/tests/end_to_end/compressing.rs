//! Tests that the proxy compresses a stored response once. The proxy serves the result only to
//! clients that accept it, and never longer than the response.

use crate::bench::{TestProxy, proxy_with};
use crate::explaining::explain;
use flate2::read::GzDecoder;
use foxy_base::Random;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::settings::ProxySettings;
use foxy_rules::coding::{Coding, Compression};
use foxy_testkit::client::Answered;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::until;
use std::io::{Read, Write};

const TEXT: &str = "Content-Type: text/plain\r\nCache-Control: max-age=600\r\nETag: \"a\"\r\n";
const ZSTD: &str = "Accept-Encoding: zstd\r\n";

fn proxy_as(change: impl FnOnce(&mut ProxySettings)) -> TestProxy {
    proxy_with(|settings| {
        settings.compression = Compression {
            codings: Coding::ALL.to_vec(),
            least: 100,
            types: vec!["text/*".parse().expect("a range")],
        };
        change(settings);
    })
}

fn proxy() -> TestProxy {
    proxy_as(|_| {})
}

fn text(name: &str) -> Vec<u8> {
    format!("the text of {name}\n").repeat(200).into_bytes()
}

/// Starts an origin whose bodies contain the version that it sends.
fn origin(lines: &'static str) -> TestOrigin {
    TestOrigin::start(move |_, number| ok(lines, &text(&format!("version {number}"))))
}

fn decoded(answer: &Answered) -> Vec<u8> {
    let (mut body, coded) = (Vec::new(), &answer.body[..]);
    match answer.header("content-encoding") {
        "br" => brotli::Decompressor::new(coded, 4096).read_to_end(&mut body),
        "gzip" => GzDecoder::new(coded).read_to_end(&mut body),
        "zstd" => zstd::Decoder::new(coded).expect("zstd").read_to_end(&mut body),
        _ => body.write_all(coded).map(|()| coded.len()),
    }
    .expect("sound");
    body
}

/// Requests `url` until the proxy has stored its coded form (such as gzip).
fn compress(proxy: &TestProxy, url: &str, lines: &str) {
    let before = proxy.count(Counter::Compressions);
    proxy.get(url, "");
    until("the compression", || {
        let answer = proxy.get(url, lines);
        assert_eq!(answer.status, 200);
        (proxy.count(Counter::Compressions) > before).then_some(())
    });
}

#[test]
fn a_response_is_compressed_once_and_then_served_from_the_cache() {
    for coding in Coding::ALL {
        let (origin, proxy) = (origin(TEXT), proxy());
        let (url, lines) = (origin.url("/x"), format!("Accept-Encoding: {coding}\r\n"));
        let first = proxy.get(&url, &lines);
        assert_eq!((first.header("content-encoding"), first.header("etag")), ("", "\"a\""));
        assert_eq!(first.header("vary"), "Accept-Encoding");
        compress(&proxy, &url, &lines);
        for _ in 0..3 {
            let answer = proxy.get(&url, &lines);
            assert_eq!(answer.header("content-encoding"), coding.name());
            assert_eq!(answer.header("vary"), "Accept-Encoding");
            assert_eq!(answer.header("etag"), format!("\"a;foxy-{coding}-1\""));
            assert!(answer.cache_status().starts_with("foxy; hit; ttl="), "{answer:?}");
            assert!(answer.cache_status().ends_with(&format!("; detail={coding}")));
            assert!(answer.body.len() < first.body.len() / 4);
            assert_eq!(decoded(&answer), first.body);
        }
        let plain = proxy.get(&url, "");
        assert_eq!((plain.header("vary"), &plain.body), ("Accept-Encoding", &first.body));
        assert_eq!((proxy.count(Counter::Compressions), origin.requests()), (1, 1));
        assert_eq!(proxy.count(Counter::CompressionInput), first.body.len() as u64);
    }
}

#[test]
fn a_client_gets_no_coding_that_it_refuses() {
    let (origin, proxy) = (origin(TEXT), proxy());
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    for refusal in ["zstd;q=0", "identity", "identity, zstd;q=0.5", "deflate"] {
        let answer = proxy.get(&url, &format!("Accept-Encoding: {refusal}\r\n"));
        assert_eq!(answer.header("content-encoding"), "", "{refusal}");
    }
    let answer = proxy.get(&url, &format!("{ZSTD}Cache-Control: no-transform\r\n"));
    assert_eq!(answer.header("content-encoding"), "");
    let only_gzip = "Accept-Encoding: gzip, *;q=0\r\n";
    let answer = proxy.get(&url, only_gzip);
    assert_eq!(answer.header("content-encoding"), "gzip", "foxy waits for the coding");
    let answer = proxy.get(&url, &format!("{only_gzip}Range: bytes=0-9\r\n"));
    assert_eq!((answer.status, answer.header("content-encoding")), (200, "gzip"));
}

#[test]
fn a_head_agrees_with_a_get() {
    let (origin, proxy) = (origin(TEXT), proxy());
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    for lines in [ZSTD, ""] {
        let get = proxy.get(&url, lines);
        let request = format!("HEAD {url} HTTP/1.1\r\nHost: {}\r\n{lines}\r\n", origin.address);
        let head = proxy.connect().ask(&request);
        for name in ["content-length", "content-encoding", "etag", "vary", "content-type"] {
            assert_eq!(head.header(name), get.header(name), "{name}");
        }
    }
}

#[test]
fn conditions_know_the_tags_of_both_forms() {
    let (origin, proxy) = (origin(TEXT), proxy());
    let url = origin.url("/x");
    proxy.get(&url, "");
    let unless = |tag: &str| proxy.get(&url, &format!("{ZSTD}If-None-Match: {tag}\r\n"));
    let coded = unless("\"b\", \"a;foxy-zstd-1\"");
    assert_eq!((coded.status, coded.header("etag")), (304, "\"a;foxy-zstd-1\""));
    assert_eq!(coded.header("vary"), "Accept-Encoding");
    let plain = unless("\"a\"");
    assert_eq!((plain.status, plain.header("etag")), (304, "\"a\""));
    assert_eq!(unless("\"a;foxy-gzip-1\"").status, 200, "the client does not ask for gzip");
    let request = format!(
        "PUT {url} HTTP/1.1\r\nHost: {}\r\nIf-Match: \"a;foxy-zstd-1\"\r\nContent-Length: 0\r\n\r\n",
        origin.address
    );
    proxy.connect().ask(&request);
    let heads = origin.heads.lock().expect("sound");
    assert_eq!(header(heads.last().expect("a PUT"), "if-match"), Some("\"a\""));
}

#[test]
fn a_range_comes_from_the_response_without_coding() {
    let (origin, proxy) = (origin(TEXT), proxy());
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    let answer = proxy.get(&url, &format!("{ZSTD}Range: bytes=4-7\r\n"));
    assert_eq!((answer.status, &answer.body[..]), (206, &b"text"[..]));
    assert_eq!((answer.header("content-encoding"), answer.header("etag")), ("", "\"a\""));
    assert_eq!(answer.header("vary"), "Accept-Encoding");
    let of_coded = "Range: bytes=4-7\r\nIf-Range: \"a;foxy-zstd-1\"\r\n";
    let answer = proxy.get(&url, &format!("{ZSTD}{of_coded}"));
    assert_eq!((answer.status, answer.header("content-encoding")), (200, "zstd"));
    assert_eq!(decoded(&answer), text("version 0"));
}

#[test]
fn a_new_response_and_a_purge_end_the_coded_form() {
    let origin = origin(TEXT);
    let proxy = proxy_as(|settings| {
        settings.purge_from = vec!["127.0.0.0/8".parse().expect("a block")].into();
    });
    let (url, host) = (origin.url("/x"), origin.address);
    compress(&proxy, &url, ZSTD);
    for (method, lines) in [("GET", "Cache-Control: no-cache\r\n"), ("PURGE", ""), ("POST", "")] {
        let before = decoded(&proxy.get(&url, ZSTD));
        let request =
            format!("{method} {url} HTTP/1.1\r\nHost: {host}\r\n{lines}Content-Length: 0\r\n\r\n");
        proxy.connect().ask(&request);
        let after = proxy.get(&url, ZSTD);
        assert_eq!(after.header("content-encoding"), "", "{method}");
        assert_ne!(after.body, before, "{method}");
        compress(&proxy, &url, ZSTD);
        assert_eq!(decoded(&proxy.get(&url, ZSTD)), after.body, "{method}");
    }
}

#[test]
fn a_confirmed_response_keeps_its_coded_form() {
    let lines = "Content-Type: text/plain\r\nCache-Control: no-cache\r\nETag: \"a\"\r\n";
    let origin = TestOrigin::start(move |head, _| match header(head, "if-none-match") {
        Some("\"a\"") => b"HTTP/1.1 304 Not Modified\r\nX-Turn: 2\r\nETag: \"a\"\r\n\r\n".to_vec(),
        Some(other) => panic!("the origin does not know {other}"),
        None => ok(lines, &text("a")),
    });
    let proxy = proxy();
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    let answer = proxy.get(&url, ZSTD);
    assert!(answer.cache_status().contains("fwd-status=304"), "{answer:?}");
    assert_eq!((answer.header("content-encoding"), answer.header("x-turn")), ("zstd", "2"));
    assert_eq!(decoded(&answer), text("a"));
    assert_eq!(proxy.count(Counter::Compressions), 1);
}

#[test]
fn unsuitable_responses_stay_as_they_are() {
    let origin = TestOrigin::start(|head, _| {
        let target = head.split(' ').nth(1).expect("a target");
        let more = match target.rsplit('/').next().expect("a name") {
            "no-transform" => "Cache-Control: max-age=600, no-transform\r\n",
            "cookie" => "Cache-Control: max-age=600, public\r\nSet-Cookie: a=b\r\n",
            "image" => {
                return ok("Cache-Control: max-age=600\r\nContent-Type: image/png\r\n", &text("a"));
            }
            "coded" => "Cache-Control: max-age=600\r\nContent-Encoding: br\r\n",
            _ => return ok(TEXT, b"short"),
        };
        ok(&format!("Content-Type: text/plain\r\n{more}"), &text("a"))
    });
    let proxy = proxy();
    for (name, step) in [
        ("no-transform", "no-transform"),
        ("cookie", "cookie-not-coded"),
        ("image", "type-not-coded"),
        ("coded", "coded-by-origin"),
        ("short", "too-small-to-code"),
    ] {
        let url = origin.url(&format!("/{name}"));
        let first = proxy.get(&url, ZSTD);
        for _ in 0..3 {
            let answer = proxy.get(&url, ZSTD);
            assert_eq!((answer.header("vary"), &answer.body), ("", &first.body), "{name}");
        }
        let explanation = explain(&proxy, &url, ZSTD);
        assert!(explanation.steps.iter().any(|found| found.name() == step), "{explanation}");
    }
    assert_eq!(proxy.count(Counter::Compressions), 0);
}

#[test]
fn an_explanation_names_the_coding_or_the_reason_for_none() {
    let (origin, proxy) = (origin(TEXT), proxy());
    let url = origin.url("/x");
    proxy.get(&url, "");
    let step = |lines: &str, name: &str| {
        let explanation = explain(&proxy, &url, lines);
        assert!(explanation.steps.iter().any(|step| step.name() == name), "{explanation}");
    };
    step("", "coding-not-accepted");
    step(ZSTD, "coding-not-ready");
    step(&format!("{ZSTD}Range: bytes=0-1\r\n"), "range-of-uncoded");
    compress(&proxy, &url, ZSTD);
    step(ZSTD, "zstd");
}

#[test]
fn fields_about_the_bytes_without_coding_are_removed() {
    let lines = "Content-Type: text/plain\r\nCache-Control: max-age=600\r\nAccept-Ranges: bytes\r\n\
                 Vary: Accept-Language\r\nETag: W/\"a\"\r\nContent-Digest: sha-256=:AA==:\r\n\
                 Repr-Digest: sha-256=:AA==:\r\n";
    let (origin, proxy) = (origin(lines), proxy());
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    let answer = proxy.get(&url, ZSTD);
    assert_eq!((answer.header("content-encoding"), answer.header("etag")), ("zstd", "W/\"a\""));
    for name in ["content-digest", "repr-digest", "accept-ranges"] {
        assert_eq!(answer.header(name), "", "{name}");
    }
    let vary: Vec<_> = answer.head.lines().filter(|line| line.starts_with("Vary")).collect();
    assert_eq!(vary, ["Vary: Accept-Language", "Vary: Accept-Encoding"]);
}

/// A client without a strong tag may use Last-Modified in If-Range. The coded and the uncoded
/// response would have the same date.
#[test]
fn a_date_names_only_the_response_without_coding() {
    let origin = TestOrigin::start(|head, _| {
        let tag = if head.starts_with("GET /weak ") { "ETag: W/\"a\"\r\n" } else { "" };
        let lines = format!(
            "Content-Type: text/plain\r\nCache-Control: max-age=600\r\n\
             Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n{tag}"
        );
        ok(&lines, &text("a"))
    });
    let proxy = proxy();
    for path in ["/none", "/weak"] {
        let url = origin.url(path);
        compress(&proxy, &url, ZSTD);
        let (coded, plain) = (proxy.get(&url, ZSTD), proxy.get(&url, ""));
        let found = (coded.header("content-encoding"), coded.header("last-modified"));
        assert_eq!(found, ("zstd", ""), "{path}");
        assert_eq!(plain.header("last-modified"), "Sun, 06 Nov 1994 08:49:37 GMT", "{path}");
    }
}

#[test]
fn a_large_body_is_compressed_part_by_part() {
    let mut random = Random::new(7);
    let body: Vec<u8> =
        (0..6 << 20).map(|_| b"abcdefghijklmnopqrst"[random.next_u64() as usize % 20]).collect();
    let sent = body.clone();
    let origin = TestOrigin::start(move |_, _| ok(TEXT, &sent));
    let proxy = proxy_as(|settings| {
        (settings.memory, settings.memory_object_limit) = (16 << 20, 1 << 10);
    });
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    let answer = proxy.get(&url, ZSTD);
    assert_eq!(answer.header("content-encoding"), "zstd");
    assert!(answer.body.len() > 2 << 20, "the coded form has parts too");
    assert!(decoded(&answer) == body, "another body");
    assert_eq!(proxy.count(Counter::CompressionOutput), answer.body.len() as u64);
    proxy.store.forget_everything();
    let answer = proxy.get(&url, ZSTD);
    assert!(decoded(&answer) == body, "another body");
    assert_eq!(origin.requests(), 2, "a lost body comes from the origin");
}

#[test]
fn a_body_that_hardly_shrinks_is_tried_once() {
    let mut random = Random::new(7);
    let body: Vec<u8> = (0..50_000).map(|_| random.next_u64() as u8).collect();
    let origin = TestOrigin::start(move |_, _| ok(TEXT, &body));
    let proxy = proxy();
    let url = origin.url("/x");
    compress(&proxy, &url, ZSTD);
    for _ in 0..3 {
        assert_eq!(proxy.get(&url, ZSTD).header("content-encoding"), "");
    }
    assert_eq!(proxy.count(Counter::Compressions), 1);
    assert_eq!(proxy.count(Counter::CompressedAnswers), 0);
}
