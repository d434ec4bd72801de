//! Tests origins that send something other than the requested slice (1 MiB of an object). No client
//! may receive wrong bytes that look like a complete answer. The proxy must not store wrong slices.

use crate::bench::{TestProxy, forward_proxy};
use crate::ranges::sparse::{SLICE, Sparse, bytes};
use foxy_testkit::http::{head_length, header};
use foxy_testkit::origin::TestOrigin;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const LENGTH: u64 = 4 * SLICE + 7;

/// A function that creates the wrong answer to a request for the bytes `first..=last`. If the
/// answer is empty, the origin closes the connection.
type Lie = fn(&Sparse, u64, u64) -> Vec<u8>;

fn chunked(object: &Sparse, first: u64, last: u64, sent: u64) -> Vec<u8> {
    let lines = format!("{}ETag: {}\r\n", object.lines, object.etag);
    let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", object.length);
    let head =
        format!("HTTP/1.1 206 Partial Content\r\n{lines}{range}Transfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("{sent:x}\r\n");
    [head.as_bytes(), chunk.as_bytes(), &bytes(first, first + sent - 1), b"\r\n0\r\n\r\n"].concat()
}

const LIES: [(&str, Lie); 11] = [
    ("another range", |object, first, last| {
        object.part(
            first,
            last,
            &format!("Content-Range: bytes {}-{}/{LENGTH}\r\n", first + 1, last + 1),
        )
    }),
    ("a part of the range", |object, first, last| {
        object.part(
            first,
            last - 1,
            &format!("Content-Range: bytes {first}-{}/{LENGTH}\r\n", last - 1),
        )
    }),
    ("fewer bytes than it says", |object, first, last| {
        object.part(first, last - 1, &format!("Content-Range: bytes {first}-{last}/{LENGTH}\r\n"))
    }),
    ("fewer bytes, in chunks", |object, first, last| chunked(object, first, last, SLICE - 1)),
    ("more bytes, in chunks", |object, first, last| chunked(object, first, last, SLICE + 1)),
    ("another length of the whole", |object, first, last| {
        object.part(first, last, &format!("Content-Range: bytes {first}-{last}/{}\r\n", LENGTH + 1))
    }),
    ("an unknown length of the whole", |object, first, last| {
        object.part(first, last, &format!("Content-Range: bytes {first}-{last}/*\r\n"))
    }),
    ("no Content-Range", |object, first, last| object.part(first, last, "")),
    ("several ranges", |object, first, last| {
        object.part(first, last, "Content-Type: multipart/byteranges; boundary=x\r\n")
    }),
    ("a break", |object, first, last| {
        let answer =
            object.part(first, last, &format!("Content-Range: bytes {first}-{last}/{LENGTH}\r\n"));
        answer[..answer.len() / 2].to_vec()
    }),
    ("nothing", |_, _, _| Vec::new()),
];

/// Creates an object whose origin closes the connection after each answer. The close ends an answer
/// that is too short.
fn closing() -> Sparse {
    let object = Sparse::fresh(LENGTH);
    Sparse { lines: format!("{}Connection: close\r\n", object.lines), ..object }
}

/// Starts an origin. While `lying` is true, it answers requests for the slice (aligned MiB) number
/// `slice` with `lie`.
fn liar(slice: u64, lie: Lie, lying: Arc<AtomicBool>) -> TestOrigin {
    let object = Sparse::fresh(LENGTH);
    let closing = closing();
    TestOrigin::start(move |head, _| {
        let asked =
            header(head, "range").and_then(|range| range.strip_prefix("bytes=")?.split_once('-'));
        let Some((first, _)) = asked.filter(|_| lying.load(Ordering::SeqCst)) else {
            return object.answer(head);
        };
        let first: u64 = first.parse().expect("a number");
        if first / SLICE != slice {
            return object.answer(head);
        }
        lie(&closing, first, first / SLICE * SLICE + SLICE - 1)
    })
}

/// Sends a request for a range. Returns the status, the announced length, and the body bytes that
/// arrive until the proxy closes the connection.
fn until_the_end(proxy: &TestProxy, url: &str, range: &str) -> (u16, Option<usize>, Vec<u8>) {
    let mut client = proxy.connect();
    client.send(
        format!("GET {url} HTTP/1.1\r\nHost: a\r\nRange: {range}\r\nConnection: close\r\n\r\n")
            .as_bytes(),
    );
    let mut got = Vec::new();
    client.stream.read_to_end(&mut got).expect("a close");
    let end = head_length(&got).expect("a head");
    let head = String::from_utf8_lossy(&got[..end]).into_owned();
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    let length = header(&head, "content-length").and_then(|length| length.parse().ok());
    (status, length, got[end..].to_vec())
}

fn check_whole(proxy: &TestProxy, url: &str, what: &str) {
    let whole = proxy.get(url, "");
    assert!(whole.status == 200 && whole.body == bytes(0, LENGTH - 1), "{what}: {}", whole.head);
}

#[test]
fn a_lie_about_a_later_slice_cuts_the_answer() {
    for (what, lie) in LIES {
        let lying = Arc::new(AtomicBool::new(true));
        let origin = liar(2, lie, Arc::clone(&lying));
        let proxy = forward_proxy();
        let url = origin.url("/x");
        let (first, last) = (SLICE + 5, 3 * SLICE + 5);
        let range = format!("bytes={first}-{last}");
        let (status, length, body) = until_the_end(&proxy, &url, &range);
        assert_eq!((status, length), (206, Some(bytes(first, last).len())), "{what}");
        assert!(bytes(first, last).starts_with(&body), "{what}: {} bytes", body.len());
        assert!(
            body.len() < bytes(first, last).len(),
            "{what}: what is not whole must not look whole"
        );
        lying.store(false, Ordering::SeqCst);
        let (status, _, body) = until_the_end(&proxy, &url, &range);
        assert!(status == 206 && body == bytes(first, last), "{what}: {status} {}", body.len());
        check_whole(&proxy, &url, what);
    }
}

#[test]
fn a_lie_about_the_first_slice_is_not_kept() {
    for (what, lie) in LIES {
        let lying = Arc::new(AtomicBool::new(true));
        let origin = liar(1, lie, Arc::clone(&lying));
        let proxy = forward_proxy();
        let url = origin.url("/x");
        until_the_end(&proxy, &url, "bytes=1048581-1048590");
        lying.store(false, Ordering::SeqCst);
        let (status, _, body) = until_the_end(&proxy, &url, "bytes=1048581-1048590");
        assert!(
            status == 206 && body == bytes(SLICE + 5, SLICE + 14),
            "{what}: {status} {}",
            body.len()
        );
        check_whole(&proxy, &url, what);
    }
}

#[test]
fn a_fetch_that_breaks_off_is_made_again() {
    let object = closing();
    let origin = TestOrigin::start(move |head, number| {
        let answer = object.answer(head);
        if number == 1 { answer[..answer.len() / 2].to_vec() } else { answer }
    });
    let proxy = forward_proxy();
    let (first, last) = (SLICE + 5, 3 * SLICE + 5);
    let (status, _, body) =
        until_the_end(&proxy, &origin.url("/x"), &format!("bytes={first}-{last}"));
    assert!(status == 206 && body == bytes(first, last), "{status} {}", body.len());
    assert_eq!(origin.requests(), 4);
}

#[test]
fn an_origin_without_ranges_gives_the_whole_which_is_kept() {
    for lines in ["ETag: \"one\"\r\n", ""] {
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n{lines}Content-Length: {LENGTH}\r\n\
             \r\n"
        );
        let origin =
            TestOrigin::start(move |_, _| [head.as_bytes(), &bytes(0, LENGTH - 1)].concat());
        let proxy = forward_proxy();
        let url = origin.url("/x");
        let (status, _, body) = until_the_end(&proxy, &url, "bytes=5-9");
        assert!(status == 200 && body == bytes(0, LENGTH - 1), "{status} {}", body.len());
        while proxy.store.len() < 6 {
            std::thread::yield_now();
        }
        let (status, _, body) = until_the_end(&proxy, &url, "bytes=5-9");
        assert!(status == 206 && body == bytes(5, 9), "{status} {}", body.len());
        assert_eq!(origin.requests(), 1);
    }
}

#[test]
fn what_may_not_be_kept_is_asked_for_as_the_client_did_and_never_shared() {
    for lines in [
        "Cache-Control: private\r\n",
        "Cache-Control: no-store\r\n",
        "Vary: Cookie\r\nCache-Control: max-age=9\r\n",
    ] {
        let object = Sparse { lines: lines.into(), ..Sparse::fresh(LENGTH) };
        let (origin, sent) = object.origin();
        let proxy = forward_proxy();
        let url = origin.url("/x");
        let (first, last) = (SLICE + 5, 3 * SLICE + 5);
        for _ in 0..3 {
            let (status, _, body) = until_the_end(&proxy, &url, &format!("bytes={first}-{last}"));
            assert!(
                status == 206 && body == bytes(first, last),
                "{lines}: {status} {}",
                body.len()
            );
        }
        assert_eq!(proxy.store.len(), 0, "{lines}");
        let heads = origin.heads.lock().expect("not poisoned").clone();
        assert_eq!(heads.len(), 4, "one slice, then what was asked for");
        assert!(
            heads[1..].iter().all(|head| header(head, "range") == Some("bytes=1048581-3145733"))
        );
        assert!(sent.load(Ordering::SeqCst) <= SLICE + 3 * (last - first + 1));
    }
}

#[test]
fn an_answer_whose_first_byte_never_comes_has_a_head_all_the_same() {
    let object = closing();
    let origin = TestOrigin::start(move |head, _| {
        let mut answer = object.answer(head);
        answer.truncate(head_length(&answer).expect("a head"));
        answer
    });
    let proxy = forward_proxy();
    for _ in 0..20 {
        let (status, length, body) =
            until_the_end(&proxy, &origin.url("/x"), "bytes=1048581-1048590");
        assert_eq!((status, length, body.len()), (206, Some(10), 0));
    }
}
