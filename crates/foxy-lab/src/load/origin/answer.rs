//! Computes the answers of foxy's own origin (`foxy origin`). An answer depends only on the request
//! and the time.

use crate::load::origin::documents;
use crate::wire::{OBJECT_ID, REQUEST_ID};
use foxy_base::WallTime;
use foxy_http::{Method, RequestHead, ResponseHead};
use foxy_workload::polymix::content::Document;
use foxy_workload::{BodyStream, Object};
use std::time::{Duration, UNIX_EPOCH};

/// The date 2026-01-01 in Unix seconds.
const LAST_MODIFIED: u64 = 1_767_225_600;
/// The default freshness lifetime in seconds: three days, as in the Wisconsin Proxy Benchmark.
const MAX_AGE: u64 = 259_200;

/// An answer of the origin.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The response head, including any Content-Length or Transfer-Encoding.
    pub head: ResponseHead,
    /// The part of the object's body that the origin sends. `None` if there is no body.
    pub body: Option<BodyPart>,
    /// The time to wait before the answer is sent.
    pub delay: Duration,
    /// Whether to send the body in chunks instead of with a length.
    pub chunked: bool,
    /// If set, the origin closes the connection after this number of body bytes.
    pub breaks_off: Option<u64>,
    /// The object of a POST, PUT or DELETE. If set, the answer's body depends on the request body.
    pub changes: Option<Object>,
    /// Whether the workload wants a connection with a short idle timeout and only a few requests.
    pub short_lived: bool,
}

/// A part of an object's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyPart {
    /// The whole body that contains this part.
    pub stream: BodyStream,
    /// The position of the first byte.
    pub offset: u64,
    /// The length in bytes.
    pub length: u64,
}

/// The options in the query of a URL: `max-age=SECONDS`, `no-store`, `chunked`,
/// `delay=MILLISECONDS`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Knobs {
    max_age: u64,
    no_store: bool,
    chunked: bool,
    delay: Duration,
}

impl Knobs {
    fn parse(query: &str) -> Option<Self> {
        let mut knobs =
            Self { max_age: MAX_AGE, no_store: false, chunked: false, delay: Duration::ZERO };
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=').unwrap_or((part, "")) {
                ("max-age", value) => knobs.max_age = value.parse().ok()?,
                ("delay", value) => knobs.delay = Duration::from_millis(value.parse().ok()?),
                ("no-store", "") => knobs.no_store = true,
                ("chunked", "") => knobs.chunked = true,
                _ => return None,
            }
        }
        Some(knobs)
    }
}

/// Returns the answer to a request at the time `now`.
pub fn answer(request: &RequestHead, now: WallTime) -> Reply {
    let path = request.origin_form();
    let path = path.as_deref().and_then(|path| std::str::from_utf8(path).ok()).unwrap_or("");
    let (name, query) = path.split_once('?').unwrap_or((path, ""));
    if let Some(document) = Document::parse(path) {
        return match request.method {
            Method::Get | Method::Head | Method::Post => documents::answer(request, document, now),
            _ => plain(405),
        };
    }
    let (Some(object), Some(knobs)) = (Object::parse(name), Knobs::parse(query)) else {
        return plain(404);
    };
    match request.method {
        Method::Get | Method::Head => {}
        Method::Post | Method::Put | Method::Delete => {
            return to_a_change(request, object, knobs, now);
        }
        _ => return plain(405),
    }
    let mut reply = describe(request, object, knobs, now);
    if request.method == Method::Head {
        reply.body = None;
    }
    reply
}

/// Answers a POST, PUT or DELETE. The origin stores nothing, so the request changes nothing. The
/// answer's body depends on the request body, so no cache can have it already.
fn to_a_change(request: &RequestHead, object: Object, knobs: Knobs, now: WallTime) -> Reply {
    let mut head = ResponseHead::new(200);
    let headers = &mut head.headers;
    headers.append("Date", http_date(now.seconds()));
    if let Some(id) = request.headers.get(REQUEST_ID) {
        headers.append(REQUEST_ID, id);
    }
    headers.append("Cache-Control", "private, no-cache");
    headers.append("Content-Type", "application/octet-stream");
    if knobs.chunked {
        headers.append("Transfer-Encoding", "chunked");
    } else {
        headers.append("Content-Length", object.size.to_string());
    }
    let stream = BodyStream::new(object.id, object.version);
    let body = BodyPart { stream, offset: 0, length: object.size };
    Reply { changes: Some(object), ..of_object(head, Some(body), knobs.delay, knobs.chunked) }
}

impl Reply {
    /// Completes the answer to a POST, PUT or DELETE. `digest` is the digest of the request body.
    pub fn to_what_came(&mut self, digest: u64) {
        if let (Some(object), Some(body)) = (self.changes, &mut self.body) {
            body.stream = BodyStream::new(object.id, digest);
            self.head.headers.append(OBJECT_ID, format!("{}.{digest:016x}", object.id));
        }
    }
}

fn plain(status: u16) -> Reply {
    let mut head = ResponseHead::new(status);
    head.headers.append("Content-Length", "0");
    head.headers.append("Cache-Control", "no-store");
    of_object(head, None, Duration::ZERO, false)
}

fn describe(request: &RequestHead, object: Object, knobs: Knobs, now: WallTime) -> Reply {
    let tag = format!("\"{}-{}\"", object.id, object.version);
    let unchanged = match request.headers.get("if-none-match") {
        Some(tags) => tags == tag.as_bytes() || tags == b"*",
        None => request.headers.get_str("if-modified-since") == Some(&http_date(LAST_MODIFIED)),
    };
    let range = requested_range(request, object.size, &tag);
    let status = match (unchanged, range) {
        (true, _) => 304,
        (false, Some(_)) => 206,
        (false, None) => 200,
    };
    let (offset, length) = range.unwrap_or((0, object.size));
    let mut head = ResponseHead::new(status);
    let headers = &mut head.headers;
    headers.append("Date", http_date(now.seconds()));
    if let Some(id) = request.headers.get(REQUEST_ID) {
        headers.append(REQUEST_ID, id);
    }
    headers.append(OBJECT_ID, format!("{}.{}", object.id, object.version));
    let control =
        if knobs.no_store { "no-store".into() } else { format!("max-age={}", knobs.max_age) };
    headers.append("Cache-Control", control);
    headers.append("ETag", &tag);
    headers.append("Last-Modified", http_date(LAST_MODIFIED));
    headers.append("Content-Type", "application/octet-stream");
    let chunked = knobs.chunked && status != 304;
    match status {
        304 => {}
        _ if chunked => headers.append("Transfer-Encoding", "chunked"),
        _ => headers.append("Content-Length", length.to_string()),
    }
    if status == 206 {
        headers.append(
            "Content-Range",
            format!("bytes {offset}-{}/{}", offset + length - 1, object.size),
        );
    }
    let stream = BodyStream::new(object.id, object.version);
    let body = (status != 304).then_some(BodyPart { stream, offset, length });
    of_object(head, body, knobs.delay, chunked)
}

const fn of_object(
    head: ResponseHead,
    body: Option<BodyPart>,
    delay: Duration,
    chunked: bool,
) -> Reply {
    Reply { head, body, delay, chunked, breaks_off: None, changes: None, short_lived: false }
}

/// Returns the offset and the length of the requested range `bytes=FIRST-[LAST]`. Returns `None`
/// for a missing range, an invalid range or several ranges, or if `If-Range` names another tag.
fn requested_range(request: &RequestHead, size: u64, tag: &str) -> Option<(u64, u64)> {
    if request.headers.get("if-range").is_some_and(|value| value != tag.as_bytes()) {
        return None;
    }
    let (first, last) =
        request.headers.get_str("range")?.strip_prefix("bytes=")?.split_once('-')?;
    let first: u64 = first.parse().ok()?;
    let last = if last.is_empty() {
        size.checked_sub(1)?
    } else {
        last.parse::<u64>().ok()?.min(size.checked_sub(1)?)
    };
    (first <= last).then(|| (first, last - first + 1))
}

pub(crate) fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use bytes::BytesMut;
    use foxy_http::{RequestDecoder, RequestEvent};

    /// The time of all requests in these tests.
    pub(crate) const NOW: u64 = LAST_MODIFIED + 60;

    pub(crate) fn ask(text: &str) -> Reply {
        let mut buffer = BytesMut::from(text.replace('\n', "\r\n").as_bytes());
        match RequestDecoder::default().next(&mut buffer) {
            Ok(Some(RequestEvent::Head(head, _))) => answer(&head, WallTime::from_seconds(NOW)),
            other => panic!("not a request: {other:?}"),
        }
    }

    fn shape(reply: &Reply) -> (u16, Option<(u64, u64)>) {
        (reply.head.status, reply.body.map(|body| (body.offset, body.length)))
    }

    #[test]
    fn whole_parts_conditions_and_strangers_are_answered_alike_every_time() {
        let cases = [
            ("GET /o/1/100/1 HTTP/1.1\nHost: a\n\n", (200, Some((0, 100)))),
            ("HEAD /o/1/100/1 HTTP/1.1\nHost: a\n\n", (200, None)),
            ("GET /o/1/100/1 HTTP/1.1\nHost: a\nRange: bytes=10-19\n\n", (206, Some((10, 10)))),
            ("GET /o/1/100/1 HTTP/1.1\nHost: a\nRange: bytes=90-\n\n", (206, Some((90, 10)))),
            (
                "GET /o/1/100/1 HTTP/1.1\nHost: a\nRange: bytes=90-\nIf-Range: \"x\"\n\n",
                (200, Some((0, 100))),
            ),
            ("GET /o/1/100/1 HTTP/1.1\nHost: a\nIf-None-Match: \"1-1\"\n\n", (304, None)),
            ("GET /o/1/100/2 HTTP/1.1\nHost: a\nIf-None-Match: \"1-1\"\n\n", (200, Some((0, 100)))),
            ("GET /elsewhere HTTP/1.1\nHost: a\n\n", (404, None)),
            ("GET /o/1/100/1?speed=9 HTTP/1.1\nHost: a\n\n", (404, None)),
            ("DELETE /o/1/100/1 HTTP/1.1\nHost: a\n\n", (200, Some((0, 100)))),
            ("PATCH /o/1/100/1 HTTP/1.1\nHost: a\n\n", (405, None)),
        ];
        for (text, expected) in cases {
            assert_eq!(shape(&ask(text)), expected, "{text}");
        }
    }

    #[test]
    fn an_answer_to_what_was_sent_may_not_be_kept_and_is_about_that_alone() {
        let to = |digest| {
            let mut reply = ask("POST /o/1/9/1 HTTP/1.1\nHost: a\nContent-Length: 4\n\n");
            reply.to_what_came(digest);
            reply
        };
        let (one, other) = (to(1), to(2));
        assert_eq!(one.head.headers.get_str("cache-control"), Some("private, no-cache"));
        assert_eq!((one.head.headers.get("etag"), one.body), (None, to(1).body));
        assert_ne!(one.body, other.body);
        assert_ne!(one.head.headers.get(OBJECT_ID), other.head.headers.get(OBJECT_ID));
    }

    #[test]
    fn knobs_in_the_query_change_the_answer() {
        let reply = ask("GET /o/1/9/1?no-store&chunked&delay=20 HTTP/1.1\nHost: a\n\n");
        assert_eq!(reply.head.headers.get_str("cache-control"), Some("no-store"));
        assert!(reply.chunked && reply.head.headers.get("content-length").is_none());
        assert_eq!(reply.delay, Duration::from_millis(20));
        let reply = ask("GET /o/1/9/1?max-age=5 HTTP/1.1\nHost: a\nX-Foxy-Request: 77\n\n");
        assert_eq!(reply.head.headers.get_str("cache-control"), Some("max-age=5"));
        assert_eq!(reply.head.headers.get_str(REQUEST_ID), Some("77"));
    }
}
