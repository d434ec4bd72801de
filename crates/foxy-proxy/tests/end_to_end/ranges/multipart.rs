//! Tests requests for several ranges. The proxy answers them together from the stored response.
//! Overlapping ranges must never multiply the bytes for clients or the requests to origins.

use crate::bench::forward_proxy;
use foxy_testkit::client::Answered;
use foxy_testkit::http::{header, ok};
use foxy_testkit::origin::TestOrigin;

const FRESH: &str = "Cache-Control: max-age=60\r\nETag: \"a\"\r\nContent-Type: text/x-test\r\n";

fn body(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

/// Splits a multipart answer. Returns Content-Type, Content-Range and the bytes of each part.
fn parts(answer: &Answered) -> Vec<(String, String, Vec<u8>)> {
    let kind = answer.header("content-type");
    let boundary =
        kind.strip_prefix("multipart/byteranges; boundary=").expect("a multipart answer");
    let start = format!("--{boundary}\r\n").into_bytes();
    let end = format!("\r\n--{boundary}--\r\n").into_bytes();
    let mut rest = answer.body.strip_prefix(&start[..]).expect("a boundary first");
    let mut found = Vec::new();
    loop {
        let head = rest.windows(4).position(|four| four == b"\r\n\r\n").expect("a part's head");
        let text = format!("part\r\n{}\r\n", String::from_utf8_lossy(&rest[..head]));
        let field = |name| header(&text, name).unwrap_or("").to_owned();
        let range = field("content-range");
        let (first, last) = range["bytes ".len()..]
            .split_once('/')
            .expect("a length")
            .0
            .split_once('-')
            .expect("two");
        let length =
            last.parse::<usize>().expect("last") - first.parse::<usize>().expect("first") + 1;
        found.push((field("content-type"), range, rest[head + 4..head + 4 + length].to_vec()));
        rest = &rest[head + 4 + length..];
        if rest == end {
            return found;
        }
        rest = rest
            .strip_prefix(b"\r\n")
            .and_then(|rest| rest.strip_prefix(&start[..]))
            .expect("another part");
    }
}

#[test]
fn several_ranges_of_what_is_stored_come_in_one_answer() {
    let proxy = forward_proxy();
    for length in [5000, (2 << 20) + 5000] {
        let body = body(length);
        let origin = {
            let body = body.clone();
            TestOrigin::start(move |_, _| ok(FRESH, &body))
        };
        let url = origin.url("/x");
        assert_eq!(proxy.get(&url, "").body, body);
        let middle = length / 2;
        let set = format!("Range: bytes={middle}-{}, 0-9,5-20, -7\r\n", middle + 200);
        let mut answer = proxy.get(&url, &set);
        while !answer.cache_status().starts_with("foxy; hit") {
            answer = proxy.get(&url, &set);
        }
        assert_eq!((answer.status, answer.header("content-range")), (206, ""), "{}", answer.head);
        let expected: Vec<_> = [(middle, middle + 200), (0, 20), (length - 7, length - 1)]
            .iter()
            .map(|&(first, last)| {
                let range = format!("bytes {first}-{last}/{length}");
                ("text/x-test".to_owned(), range, body[first..=last].to_vec())
            })
            .collect();
        assert_eq!(parts(&answer), expected);
    }
}

#[test]
fn no_set_of_ranges_is_answered_with_more_than_the_whole() {
    let body = body(3000);
    let origin = {
        let body = body.clone();
        TestOrigin::start(move |_, _| ok(FRESH, &body))
    };
    let proxy = forward_proxy();
    let url = origin.url("/x");
    proxy.get(&url, "");
    let killer = format!("bytes=0-{}", (0..1300).map(|at| format!(",5-{at}")).collect::<String>());
    let overlapping = format!("bytes=0-{}", ",0-".repeat(5000));
    let comb = (0..17).map(|at| format!("{}-{}", at * 100, at * 100)).collect::<Vec<_>>().join(",");
    let dense =
        (0..16).map(|at| format!("{}-{}", at * 185, at * 185 + 100)).collect::<Vec<_>>().join(",");
    let sets = [killer, overlapping, format!("bytes={comb}"), format!("bytes={dense}")];
    for set in sets {
        let answer = proxy.get(&url, &format!("Range: {set}\r\n"));
        assert_eq!(answer.status, 200, "{}", answer.head);
        assert!(answer.body == body);
    }
    let answer = proxy.get(&url, "Range: bytes=0-,0-,0-,0-,0-,0-,-3000,1-\r\n");
    assert_eq!((answer.status, answer.header("content-range")), (206, "bytes 0-2999/3000"));
    let answer = proxy.get(&url, "Range: bytes=3000-,4000-5000\r\n");
    assert_eq!((answer.status, answer.header("content-range")), (416, "bytes */3000"));
    assert_eq!(origin.requests(), 1);
}

#[test]
fn an_origin_is_asked_for_no_byte_twice() {
    let origin = TestOrigin::start(|_, _| ok("Cache-Control: no-store\r\n", b"0123456789"));
    let proxy = forward_proxy();
    let killer = format!("bytes=0-{}", ",0-".repeat(5000));
    let cases = [
        ("bytes=0-1,1000-1001,1-5", Some("bytes=0-5,1000-1001")),
        ("bytes=-1,0-", None),
        ("bytes=9-3", None),
        (&killer, None),
    ];
    for (number, (range, upstream)) in cases.into_iter().enumerate() {
        let lines = format!("Range: {range}\r\nIf-Range: \"a\"\r\n");
        assert_eq!(proxy.get(&origin.url("/x"), &lines).status, 200);
        let head = origin.heads.lock().expect("not poisoned")[number].clone();
        assert_eq!(
            (header(&head, "range"), header(&head, "if-range").is_some()),
            (upstream, upstream.is_some())
        );
    }
}
