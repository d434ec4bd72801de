//! Tests the exact bytes of log lines, including lines for hostile requests.

use super::*;
use foxy_base::{Instant, WallTime};
use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
use foxy_proxy::core::outcome::ForwardReason;
use foxy_proxy::core::outcome::HitSource;
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::upstream::OriginTimes;
use std::time::Duration;

fn sample() -> AccessRecord<'static> {
    AccessRecord {
        end: WallTime(1_286_536_308_779),
        started: Instant(0),
        elapsed: Duration::from_micros(180_250),
        client: ([192, 168, 0, 224], 40_000).into(),
        outcome: CacheStatus::Forwarded {
            reason: ForwardReason::UriMiss,
            status: Some(200),
            stored: true,
            collapsed: false,
            detail: None,
        },
        status: 200,
        bytes: 411,
        body_bytes: 300,
        cut: None,
        method: b"GET",
        site: None,
        url: b"http://example.com/a?b",
        version: "HTTP/1.1",
        request_outcome: RequestOutcome::Miss,
        parent: None,
        node: None,
        user: None,
        server: None,
        rules: Some("assets"),
        content_type: Some(b"text/html; charset=utf-8"),
        referer: None,
        user_agent: Some(b"curl/8"),
        fields: None,
        id: "00c0ffee00c0ffee",
        origin: Some(OriginTimes {
            started: Instant(0),
            connect: Duration::ZERO,
            first_byte: Duration::from_micros(170_000),
        }),
    }
}

fn check(format: AccessFormat, line: &AccessRecord<'_>, expected: &str) {
    let mut out = Vec::new();
    format.write(line, &mut out);
    assert_eq!(String::from_utf8(out).expect("lines are ASCII"), format!("{expected}\n"));
}

#[test]
fn a_squid_line() {
    check(
        AccessFormat::Squid,
        &sample(),
        "1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://example.com/a?b - \
         HIER_DIRECT/example.com text/html",
    );
    check(
        AccessFormat::Squid,
        &AccessRecord { parent: Some("proxy.test:3128"), ..sample() },
        "1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://example.com/a?b - \
         FIRSTUP_PARENT/proxy.test text/html",
    );
    check(
        AccessFormat::Squid,
        &AccessRecord { server: Some(("shop", "10.0.0.1:8080")), ..sample() },
        "1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET http://example.com/a?b - \
         HIER_DIRECT/10.0.0.1 text/html",
    );
    for (source, code) in [(NodeSource::Cache, "SIBLING_HIT"), (NodeSource::Origin, "CARP")] {
        let parent = Some("node-b.test:3130");
        check(
            AccessFormat::Squid,
            &AccessRecord { parent, node: Some(source), ..sample() },
            &format!(
                "1286536308.779    180 192.168.0.224 TCP_MISS/200 411 GET \
                 http://example.com/a?b - {code}/node-b.test text/html"
            ),
        );
    }
    let hit = AccessRecord {
        outcome: CacheStatus::Hit { source: HitSource::Memory, ttl: 5, permit: None, coding: None },
        content_type: None,
        end: WallTime(1_286_536_308_004),
        elapsed: Duration::ZERO,
        ..sample()
    };
    check(
        AccessFormat::Squid,
        &hit,
        "1286536308.004      0 192.168.0.224 TCP_MEM_HIT/200 411 GET http://example.com/a?b - \
         HIER_NONE/- -",
    );
}

#[test]
fn a_squid_line_of_a_request_that_may_not_be_forwarded_is_a_miss() {
    let refused = AccessRecord {
        outcome: CacheStatus::Error(ErrorReason::OnlyIfCached),
        status: 504,
        ..sample()
    };
    check(
        AccessFormat::Squid,
        &refused,
        "1286536308.779    180 192.168.0.224 TCP_MISS/504 411 GET http://example.com/a?b - \
         HIER_NONE/- text/html",
    );
}

#[test]
fn a_combined_line() {
    check(
        AccessFormat::Combined,
        &sample(),
        "192.168.0.224 - - [08/Oct/2010:11:11:48 +0000] \"GET http://example.com/a?b HTTP/1.1\" \
         200 300 \
         \"-\" \"curl/8\"",
    );
    let empty = AccessRecord { body_bytes: 0, status: 304, ..sample() };
    check(
        AccessFormat::Combined,
        &empty,
        "192.168.0.224 - - [08/Oct/2010:11:11:48 +0000] \"GET http://example.com/a?b HTTP/1.1\" \
         304 - \
         \"-\" \"curl/8\"",
    );
}

#[test]
fn a_json_line() {
    check(
        AccessFormat::Json,
        &sample(),
        "{\"time\":\"2010-10-08T11:11:48.779Z\",\"elapsed_us\":180250,\"client\":\"192.168.0.224\",\
         \"user\":null,\"result\":\"TCP_MISS\",\"cut\":null,\"status\":200,\"bytes\":411,\
         \"body_bytes\":300,\"method\":\"GET\",\
         \"url\":\"http://example.com/a?b\",\"version\":\"HTTP/1.1\",\"hierarchy\":\"HIER_DIRECT\",\
         \"content_type\":\"text/html; charset=utf-8\",\"referer\":null,\
         \"user_agent\":\"curl/8\",\"cache_status\":\"foxy; fwd=uri-miss; fwd-status=200; \
         stored\",\"origin\":null,\"server\":null,\"rules\":\"assets\",\"parent\":null,\
         \"id\":\"00c0ffee00c0ffee\",\"outcome\":\"miss\",\"origin_connect_us\":0,\
         \"origin_ttfb_us\":170000}",
    );
}

#[test]
fn the_user_is_in_each_format_and_forges_no_field() {
    let line = AccessRecord { user: Some("an n\""), ..sample() };
    for (format, part) in [
        (AccessFormat::Squid, " an%20n\" HIER_DIRECT/"),
        (AccessFormat::Combined, "192.168.0.224 - an%20n\" ["),
        (AccessFormat::Json, "\"user\":\"an n\\\"\","),
    ] {
        let mut out = Vec::new();
        format.write(&line, &mut out);
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_reverse_proxys_lines_name_the_host() {
    let line = AccessRecord { site: Some(("https", b"a.example:8443")), url: b"/a?b", ..sample() };
    for (format, expected) in [
        (AccessFormat::Squid, " GET https://a.example:8443/a?b - HIER_DIRECT/a.example "),
        (AccessFormat::Combined, "\"GET https://a.example:8443/a?b HTTP/1.1\""),
        (AccessFormat::Json, "\"url\":\"https://a.example:8443/a?b\""),
    ] {
        let mut out = Vec::new();
        format.write(&line, &mut out);
        let text = String::from_utf8(out).expect("ASCII");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn a_line_names_why_an_answer_was_truncated() {
    let unknown = CacheStatus::Local { detail: "client-left" };
    for (cut, outcome, status, expected) in [
        (
            CutReason::ClientLeft,
            unknown,
            0,
            [" TCP_MISS_ABORTED/000 ", "\" 499 ", "\"cut\":\"client-left\""],
        ),
        (
            CutReason::ClientLeft,
            sample().outcome,
            200,
            [" TCP_MISS_ABORTED/200 ", "\" 499 ", "\"status\":200"],
        ),
        (
            CutReason::Stopped,
            unknown,
            0,
            [" TCP_MISS_STOPPED/000 ", "\" 444 ", "\"cut\":\"stopped\""],
        ),
        (
            CutReason::BrokeOff,
            sample().outcome,
            200,
            [" TCP_MISS_BROKEN/200 ", "\" 200 ", "\"cut\":\"broke-off\""],
        ),
    ] {
        let line = AccessRecord { cut: Some(cut), outcome, status, ..sample() };
        let formats = [AccessFormat::Squid, AccessFormat::Combined, AccessFormat::Json];
        for (format, expected) in formats.into_iter().zip(expected) {
            let mut out = Vec::new();
            format.write(&line, &mut out);
            let text = String::from_utf8(out).expect("ASCII");
            assert!(text.contains(expected), "{cut:?}: {text}");
        }
    }
}

#[test]
fn hostile_bytes_cannot_forge_lines_fields_or_terminal_commands() {
    let hostile = b"a b\r\n\"\\\x1b[2J\xc2\x9b\x7f\xff";
    let line = AccessRecord {
        method: hostile,
        url: hostile,
        user_agent: Some(hostile),
        content_type: Some(hostile),
        ..sample()
    };
    for format in [AccessFormat::Squid, AccessFormat::Combined, AccessFormat::Json] {
        let mut out = Vec::new();
        format.write(&line, &mut out);
        assert_eq!(out.pop(), Some(b'\n'), "{format:?}");
        assert!(out.iter().all(|byte| matches!(byte, b' '..=b'~')), "{format:?}: {out:?}");
    }
    let mut out = Vec::new();
    AccessFormat::Squid.write(&line, &mut out);
    let fields = String::from_utf8(out).expect("ASCII");
    assert_eq!(fields.split_whitespace().count(), 10, "{fields}");
    let mut out = Vec::new();
    AccessFormat::Json.write(&line, &mut out);
    let value: serde_json::Value = serde_json::from_slice(&out).expect("sound JSON");
    assert_eq!(value["url"], "a b\r\n\"\\\u{1b}[2J\u{9b}\u{7f}\u{fffd}");
}

#[test]
fn dates_are_right_around_leap_days_and_years() {
    let cases = [
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_399, "2000-02-28T23:59:59.000Z"),
        (951_782_400, "2000-02-29T00:00:00.000Z"),
        (1_709_251_199, "2024-02-29T23:59:59.000Z"),
        (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        (1_798_761_599, "2026-12-31T23:59:59.000Z"),
    ];
    for (seconds, expected) in cases {
        let mut out = Vec::new();
        AccessFormat::Json
            .write(&AccessRecord { end: WallTime::from_seconds(seconds), ..sample() }, &mut out);
        assert!(out.starts_with(format!("{{\"time\":\"{expected}\"").as_bytes()), "{seconds}");
    }
}

#[test]
fn the_origin_host_has_no_port() {
    let cases: [(&[u8], &str); 5] = [
        (b"http://a.example:8080/x", "a.example"),
        (b"http://[::1]:81/x", "[::1]"),
        (b"http://[::1]?q", "[::1]"),
        (b"a.example:443", "a.example"),
        (b"", ""),
    ];
    for (url, expected) in cases {
        let line = AccessRecord { url, ..sample() };
        assert_eq!(next_host(&line), expected.as_bytes(), "{expected}");
    }
}

#[test]
fn numbers_and_addresses_are_written_as_the_library_would() {
    for (number, width, fill) in
        [(0, 1, b' '), (7, 3, b'0'), (1234, 3, b'0'), (42, 6, b' '), (u64::MAX, 6, b' ')]
    {
        let mut out = Vec::new();
        decimal(number, width, fill, &mut out);
        let expected =
            if fill == b'0' { format!("{number:0width$}") } else { format!("{number:width$}") };
        assert_eq!(String::from_utf8(out).expect("ASCII"), expected);
    }
    for text in ["0.0.0.0", "255.1.20.3", "2001:db8::1"] {
        let mut out = Vec::new();
        address(text.parse().expect("an address"), &mut out).expect("a Vec takes all");
        assert_eq!(out, text.as_bytes());
    }
}
