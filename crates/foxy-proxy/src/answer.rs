//! Answers on their way to a client: heads, framing and bodies. What to answer has been decided before.

use crate::access::MediaType;
use crate::body_parts::{self, PartsOf};
use crate::cache_status::CacheStatus;
use crate::client_io::{Sender, WriteEnd};
use crate::counters::Counter;
use crate::fields::View;
use crate::proxy_status;
use crate::reason::ErrorReason;
use crate::stored::{CacheKey, Stored, StoredBody};
use crate::worker::Worker;
use bytes::{BufMut, Bytes, BytesMut};
use foxy_base::clock;
use foxy_http::encode::{self};
use foxy_http::{Headers, ResponseHead, Version};
use foxy_rules::{Part, RangeAnswer};

/// What of a request decides how its answer is framed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    /// Whether the method is HEAD.
    pub(crate) head_only: bool,
    /// The client's version.
    pub(crate) version: Version,
    /// Whether the client wants the connection kept.
    pub(crate) keep: bool,
    /// Whether it takes trailers.
    pub(crate) trailers: bool,
}

/// Whether the connection can serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
}

/// What was sent, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub(crate) outcome: CacheStatus,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) media_type: MediaType,
}

/// Why an answer did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The client left or took nothing.
    Client,
    /// The body did not come whole.
    Source,
}

/// Why a stored response was not sent whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Short {
    /// The client is gone.
    Cut(Cut),
    /// The store no longer has the body, and nothing was sent yet.
    Gone,
    /// The store no longer has the rest of the body.
    Rest(Rest),
}

/// What is still to be sent of a stored response whose body is partly gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rest {
    /// The first byte of the body that was not sent.
    pub(crate) at: u64,
    /// One past the last byte to send.
    pub(crate) end: u64,
    /// What follows, once all is sent.
    pub(crate) answered: (After, Told),
}

impl From<WriteEnd> for Short {
    fn from(end: WriteEnd) -> Self {
        Self::Cut(end.into())
    }
}

impl From<WriteEnd> for Cut {
    fn from(_: WriteEnd) -> Self {
        Self::Client
    }
}

/// How the body is told apart from the next response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
    UntilClose,
    /// No body at all (204, 304).
    Empty,
}

/// Puts the end of a head: Age, Cache-Status, framing and Connection.
pub(crate) fn end_head(
    out: &mut BytesMut,
    asked: Asked,
    age: Option<u64>,
    outcome: CacheStatus,
    framing: Framing,
) -> After {
    use std::io::Write;
    let mut out = out.writer();
    if let Some(age) = age {
        let _ = write!(out, "Age: {age}\r\n");
    }
    let _ = write!(out, "Cache-Status: {outcome}\r\n");
    let after = match framing {
        Framing::Length(length) => {
            let _ = write!(out, "Content-Length: {length}\r\n");
            asked.keep
        }
        Framing::Chunked => {
            let _ = out.write_all(b"Transfer-Encoding: chunked\r\n");
            asked.keep
        }
        Framing::UntilClose => false,
        Framing::Empty => asked.keep,
    };
    let line: &[u8] = match (after, asked.version) {
        (false, _) => b"Connection: close\r\n\r\n",
        (true, Version::Http10) => b"Connection: keep-alive\r\n\r\n",
        (true, Version::Http11) => b"\r\n",
    };
    let _ = out.write_all(line);
    if after { After::Keep } else { After::Close }
}

/// Sends an error of our own.
pub(crate) async fn error(
    worker: &Worker,
    sender: &mut Sender<'_>,
    asked: Asked,
    reason: ErrorReason,
) -> Result<(After, Told), Cut> {
    worker.counters.add(Counter::LocalErrors, 1);
    let outcome = CacheStatus::Local { detail: reason.name() };
    let text = format!("foxy: {} ({})\n", reason.description(), reason.name());
    let mut head = ResponseHead::new(reason.status());
    head.headers.append("Date", worker.http_date(clock::wall()));
    head.headers.append("Content-Type", "text/plain; charset=utf-8");
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Proxy-Status", proxy_status::value(reason));
    if reason.status() == 405 {
        head.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    local(sender, asked, head, outcome, text.into()).await
}

/// Sends a short answer of our own.
pub(crate) async fn local(
    sender: &mut Sender<'_>,
    asked: Asked,
    head: ResponseHead,
    outcome: CacheStatus,
    body: Bytes,
) -> Result<(After, Told), Cut> {
    let mut out = BytesMut::with_capacity(512);
    encode::status_line(head.status, &head.reason, &mut out);
    encode::header_lines(&head.headers, &mut out);
    let after = end_head(&mut out, asked, None, outcome, Framing::Length(body.len() as u64));
    let body = if asked.head_only { Bytes::new() } else { body };
    let media_type = MediaType::of(head.headers.get("content-type"));
    let told = Told { outcome, status: head.status, body_bytes: body.len() as u64, media_type };
    sender.write(&mut [out.freeze(), body]).await?;
    Ok((after, told))
}

/// Sends 304 for a response with these fields, which the client already has.
pub(crate) async fn not_modified(
    sender: &mut Sender<'_>,
    asked: Asked,
    fields: &Headers,
    age: u64,
    outcome: CacheStatus,
) -> Result<(After, Told), Cut> {
    const KEPT: [&str; 8] =
        ["cache-control", "content-location", "date", "etag", "expires", "vary", "via", "last-modified"];
    let mut headers = fields.clone();
    headers.retain(|name, _| KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name)));
    let mut out = BytesMut::with_capacity(512);
    encode::status_line(304, b"Not Modified", &mut out);
    encode::header_lines(&headers, &mut out);
    let after = end_head(&mut out, asked, Some(age), outcome, Framing::Empty);
    sender.write(&mut [out.freeze()]).await?;
    Ok((after, Told { outcome, status: 304, body_bytes: 0, media_type: MediaType::default() }))
}

/// Sends 416 for a range that lies outside a stored response.
pub(crate) async fn unsatisfiable(
    sender: &mut Sender<'_>,
    asked: Asked,
    length: u64,
    outcome: CacheStatus,
) -> Result<(After, Told), Cut> {
    let mut head = ResponseHead::new(416);
    head.headers.append("Content-Range", format!("bytes */{length}"));
    local(sender, asked, head, outcome, Bytes::new()).await
}

/// Sends a stored response, whole or one range of it. Of a stored part, the range must lie within it.
pub(crate) async fn stored(
    worker: &Worker,
    sender: &mut Sender<'_>,
    asked: Asked,
    stored: &Stored,
    range: RangeAnswer,
    (age, outcome): (u64, CacheStatus),
) -> Result<(After, Told), Short> {
    // Where in the whole the stored bytes begin, and how long that is.
    let part = (stored.head.status == 206).then(|| Part::of(&View(&stored.head.headers))).flatten();
    let (begin, complete) = part.map_or((0, stored.length), |part| (part.first, part.complete));
    let (first, last) = match range {
        RangeAnswer::Part { first, last } => (first, last + 1),
        RangeAnswer::Whole | RangeAnswer::Unsatisfiable => (0, stored.length),
    };
    let mut out = BytesMut::with_capacity(stored.wire.len() + 160);
    let status = if matches!(range, RangeAnswer::Part { .. }) {
        encode::status_line(206, b"Partial Content", &mut out);
        // A complete response's Content-Range means nothing (RFC 9110 §14.4).
        let mut headers = stored.head.headers.clone();
        headers.remove("content-range");
        encode::header_lines(&headers, &mut out);
        let value = format!("bytes {first}-{}/{complete}", last - 1);
        encode::header_line("Content-Range", value.as_bytes(), &mut out);
        206
    } else {
        out.extend_from_slice(&stored.wire);
        stored.head.status
    };
    let empty = matches!(status, 204 | 304);
    let framing = if empty { Framing::Empty } else { Framing::Length(last - first) };
    let after = end_head(&mut out, asked, Some(age), outcome, framing);
    let body_bytes = if asked.head_only || empty { 0 } else { last - first };
    let media_type = MediaType::of(stored.head.headers.get("content-type"));
    let told = Told { outcome, status, body_bytes, media_type };
    match &stored.body {
        _ if asked.head_only || empty => {
            sender.write(&mut [out.freeze()]).await?;
        }
        StoredBody::Whole(body) => {
            let slice = |at: u64| usize::try_from(at).unwrap_or(body.len());
            let body = body.slice(slice(first - begin)..slice(last - begin));
            sender.write(&mut [out.freeze(), body]).await?;
        }
        StoredBody::Parts { fill } => {
            let rest = Rest { at: first - begin, end: last - begin, answered: (after, told) };
            let object = CacheKey::new(stored.key.clone()).hash;
            let body = PartsOf { object, fill: *fill, length: stored.length };
            body_parts::send(worker, sender, out.freeze(), body, rest).await?;
        }
    }
    Ok((after, told))
}
