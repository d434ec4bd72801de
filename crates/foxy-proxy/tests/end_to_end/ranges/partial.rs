//! Tests partial responses, in a proxy whose object limit is too small for slices of 1 MiB. The
//! proxy stores partial responses while it sends them, serves them, joins them, and never mixes
//! them up.

use crate::bench::{TestProxy, proxy_with};
use foxy_proxy::core::counters::Counter;
use foxy_testkit::http::header;
use foxy_testkit::origin::TestOrigin;

fn forward_proxy() -> TestProxy {
    proxy_with(|settings| settings.object_limit = 1 << 16)
}

const BODY: &[u8] = b"0123456789";

/// Starts an origin that answers requests for the range `first-last` of [`BODY`]. The answers of
/// the origin have the header lines `lines`.
fn ranges(lines: &'static str) -> TestOrigin {
    TestOrigin::start(move |head, number| {
        let lines = lines.replace("NUMBER", &number.to_string());
        let range =
            header(head, "range").and_then(|text| text.strip_prefix("bytes=")?.split_once('-'));
        let (status, range, body) = match range {
            Some((first, last)) => {
                let at = |text: &str| text.parse::<usize>().expect("a number");
                let body = &BODY[at(first)..=at(last)];
                ("206 Partial Content", format!("Content-Range: bytes {first}-{last}/10\r\n"), body)
            }
            None => ("200 OK", String::new(), BODY),
        };
        let length = body.len();
        let head = format!("HTTP/1.1 {status}\r\n{lines}{range}Content-Length: {length}\r\n\r\n");
        [head.as_bytes(), body].concat()
    })
}

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\n";

#[test]
fn a_part_answers_ranges_within_it_and_no_others() {
    let origin = ranges(FRESH);
    for memory in [1 << 20, 0] {
        let proxy = proxy_with(|settings| {
            (settings.memory, settings.object_limit) = (memory, 1 << 16);
        });
        let url = origin.url(&format!("/{memory}"));
        let first = proxy.get(&url, "Range: bytes=2-7\r\n");
        assert_eq!(first.cache_status(), "foxy; fwd=uri-miss; fwd-status=206; stored");
        let cases = [
            ("bytes=2-7", "234567", "bytes 2-7/10", true),
            ("bytes=4-5", "45", "bytes 4-5/10", true),
            ("bytes=4-8", "45678", "bytes 4-8/10", false),
        ];
        for (range, body, content_range, hit) in cases {
            let answer = proxy.get(&url, &format!("Range: {range}\r\n"));
            assert_eq!(
                (answer.status, &answer.body[..]),
                (206, body.as_bytes()),
                "{}",
                answer.head
            );
            assert_eq!(answer.header("content-range"), content_range);
            assert_eq!(answer.cache_status().starts_with("foxy; hit"), hit, "{}", answer.head);
        }
        let whole = proxy.get(&url, "");
        assert_eq!((whole.status, &whole.body[..]), (200, BODY), "{}", whole.head);
        assert!(proxy.count(Counter::MemoryHits) + proxy.count(Counter::DiskHits) == 2);
    }
}

#[test]
fn parts_of_one_strong_tag_become_the_whole() {
    let origin = ranges(FRESH);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    for range in ["0-3", "4-6", "5-9"] {
        proxy.get(&url, &format!("Range: bytes={range}\r\n"));
    }
    let whole = proxy.get(&url, "");
    assert_eq!(
        (whole.status, &whole.body[..], whole.header("content-range")),
        (200, BODY, ""),
        "{}",
        whole.head
    );
    assert!(whole.cache_status().starts_with("foxy; hit"), "{}", whole.head);
    assert_eq!(origin.requests(), 3);
}

#[test]
fn parts_without_the_same_strong_tag_are_not_joined() {
    for lines in [
        "Cache-Control: max-age=60\r\n",
        "Cache-Control: max-age=60\r\nETag: W/\"a\"\r\n",
        "Cache-Control: max-age=60\r\nETag: \"NUMBER\"\r\n",
    ] {
        let origin = ranges(lines);
        let proxy = forward_proxy();
        let url = origin.url("/x");
        for range in ["0-3", "4-9"] {
            proxy.get(&url, &format!("Range: bytes={range}\r\n"));
        }
        assert!(!proxy.get(&url, "").cache_status().starts_with("foxy; hit"), "{lines}");
    }
}

#[test]
fn what_a_part_may_not_answer_goes_to_the_origin() {
    let origin = ranges(FRESH);
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "Range: bytes=2-7\r\n");
    for lines in ["Cache-Control: no-cache\r\n", "If-None-Match: \"b\"\r\n", "If-Range: \"b\"\r\n"]
    {
        let answer = proxy.get(&url, &format!("Range: bytes=2-3\r\n{lines}"));
        assert!(!answer.cache_status().starts_with("foxy; hit"), "{lines}: {}", answer.head);
    }
    let text =
        format!("POST {url} HTTP/1.1\r\nHost: {}\r\nContent-Length: 0\r\n\r\n", origin.address);
    proxy.connect().ask(&text);
    let answer = proxy.get(&url, "Range: bytes=2-3\r\n");
    assert!(!answer.cache_status().starts_with("foxy; hit"), "invalidated: {}", answer.head);
}

#[test]
fn a_part_of_another_range_than_the_client_asked_for_is_passed_on_as_what_it_is() {
    let origin = TestOrigin::start(|_, _| {
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\n{FRESH}Content-Range: bytes 4-8/10\r\n\
             Content-Length: 5"
        );
        [head.as_bytes(), b"\r\n\r\n", &BODY[4..=8]].concat()
    });
    for memory in [1 << 20, 0] {
        let proxy = proxy_with(|settings| {
            (settings.memory, settings.object_limit) = (memory, 1 << 16);
        });
        let url = origin.url(&format!("/{memory}"));
        for _ in 0..2 {
            let answer = proxy.get(&url, "Range: bytes=0-4\r\n");
            let told = (answer.status, answer.header("content-range"), &answer.body[..]);
            assert_eq!(told, (206, "bytes 4-8/10", &b"45678"[..]), "{}", answer.head);
            assert!(
                !answer.cache_status().starts_with("foxy; hit"),
                "it never answers the range that was asked for"
            );
        }
        let answer = proxy.get(&url, "Range: bytes=5-6\r\n");
        let told = (answer.status, answer.header("content-range"), &answer.body[..]);
        assert_eq!(told, (206, "bytes 5-6/10", &b"56"[..]), "{}", answer.head);
    }
}

#[test]
fn a_part_of_another_length_than_it_says_is_not_stored() {
    let origin = TestOrigin::start(|_, _| {
        let head = format!(
            "HTTP/1.1 206 Partial Content\r\n{FRESH}Content-Range: bytes 4-9/10\r\n\
             Content-Length: 5"
        );
        [head.as_bytes(), b"\r\n\r\n01234"].concat()
    });
    let proxy = forward_proxy();
    for _ in 0..2 {
        let answer = proxy.get(&origin.url("/x"), "Range: bytes=-5\r\n");
        assert_eq!(answer.cache_status(), "foxy; fwd=uri-miss; fwd-status=206");
    }
}
