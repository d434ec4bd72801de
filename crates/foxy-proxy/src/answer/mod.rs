//! Answers of our own and from what is stored: which head and which bytes. What to answer has been
//! decided before, how it is written is in `sender`.

pub(crate) mod body_parts;
pub(crate) mod catch_up;
pub(crate) mod multipart;
pub(crate) mod parts;
pub(crate) mod resume;
pub(crate) mod stream;
pub(crate) mod transaction;
pub(crate) mod whole_body;

use crate::answer::body_parts::PartsOf;
use crate::answer::whole_body::{SMALL, WholeBody};
use crate::cache::stored::{Stored, StoredBody};
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::request::access::MediaType;
use crate::request::answer_options::AnswerOptions;
use crate::request::cache_status::CacheStatus;
use crate::request::opening::{Framing, Opening};
use crate::request::proxy_status;
use crate::request::reason::ErrorReason;
use crate::request::sent::{Aborted, After, Sent, Short, UnsentRest};
use crate::upstream::DestinationRefusal;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::{Part, Span};
use std::sync::Arc;

/// Sends an error of our own.
pub(crate) async fn error(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    reason: ErrorReason,
) -> Result<(After, Sent), Aborted> {
    worker.counters.add(Counter::LocalErrors, 1);
    let outcome = CacheStatus::Error(reason);
    let refusal = reason.refused_destination();
    let remedy = refusal.and_then(DestinationRefusal::remedy).map(|remedy| format!("; {remedy}"));
    let text = format!(
        "foxy: {}{} ({})\n",
        reason.description(),
        remedy.unwrap_or_default(),
        reason.name()
    );
    let mut head = ResponseHead::new(reason.status());
    if let Some(refusal) = refusal {
        head.reason = Bytes::from_static(refusal.phrase().as_bytes());
    }
    head.headers.append("Date", worker.http_date(clock::wall()));
    head.headers.append("Content-Type", "text/plain; charset=utf-8");
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Proxy-Status", proxy_status::value(reason));
    if reason.status() == 405 {
        head.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    local(sender, options, head, outcome, text.into()).await
}

/// Sends a short answer of our own.
pub(crate) async fn local(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    head: ResponseHead,
    outcome: CacheStatus,
    body: Bytes,
) -> Result<(After, Sent), Aborted> {
    let opening = Opening {
        status: head.status,
        reason: &head.reason,
        headers: &head.headers,
        wire: None,
        age: None,
        outcome,
        framing: Framing::Length(body.len() as u64),
    };
    let after = sender.begin(options, opening);
    let body = if options.head_only { Bytes::new() } else { body };
    let media_type = MediaType::of(head.headers.get("content-type"));
    let sent = Sent { outcome, status: head.status, body_bytes: body.len() as u64, media_type };
    sender.finish(body).await?;
    Ok((after, sent))
}

/// Sends 304 for a response with these fields, which the client already has.
pub(crate) async fn not_modified(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    fields: &Headers,
    age: u64,
    outcome: CacheStatus,
) -> Result<(After, Sent), Aborted> {
    const KEPT: [&str; 8] = [
        "cache-control",
        "content-location",
        "date",
        "etag",
        "expires",
        "vary",
        "via",
        "last-modified",
    ];
    let mut headers = fields.clone();
    headers.retain(|name, _| KEPT.iter().any(|kept| kept.eq_ignore_ascii_case(name)));
    let opening = Opening {
        status: 304,
        reason: b"Not Modified",
        headers: &headers,
        wire: None,
        age: Some(age),
        outcome,
        framing: Framing::Empty,
    };
    let after = sender.begin(options, opening);
    sender.finish(Bytes::new()).await?;
    Ok((after, Sent { outcome, status: 304, body_bytes: 0, media_type: MediaType::default() }))
}

/// Sends 416 for a range that lies outside a stored response.
pub(crate) async fn unsatisfiable(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    length: u64,
    outcome: CacheStatus,
) -> Result<(After, Sent), Aborted> {
    let mut head = ResponseHead::new(416);
    head.headers.append("Content-Range", format!("bytes */{length}"));
    local(sender, options, head, outcome, Bytes::new()).await
}

/// Sends a stored response, whole or one range of it. Of a stored part, the range must lie within
/// it.
pub(crate) async fn stored(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    stored: Arc<Stored>,
    range: Option<Span>,
    (age, outcome): (u64, CacheStatus),
) -> Result<(After, Sent), Short> {
    // Where in the whole the stored bytes begin, and how long that is.
    let part = (stored.head.status == 206).then(|| Part::of(&View(&stored.head.headers))).flatten();
    let (begin, complete) = part.map_or((0, stored.length), |part| (part.first, part.complete));
    let (first, last) = range.map_or((0, stored.length), |span| (span.first, span.last + 1));
    let mut opening = Opening {
        status: stored.head.status,
        reason: &stored.head.reason,
        headers: &stored.head.headers,
        wire: Some(&stored.wire),
        age: Some(age),
        outcome,
        framing: Framing::Length(last - first),
    };
    let of_range;
    if range.is_some() {
        of_range = ranged(&stored.head.headers, &format!("bytes {first}-{}/{complete}", last - 1));
        opening = Opening {
            status: 206,
            reason: b"Partial Content",
            headers: &of_range,
            wire: None,
            ..opening
        };
    }
    let empty = matches!(opening.status, 204 | 304);
    if empty {
        opening.framing = Framing::Empty;
    }
    let after = sender.begin(options, opening);
    let body_bytes = if options.head_only || empty { 0 } else { last - first };
    let media_type = MediaType::of(stored.head.headers.get("content-type"));
    let sent = Sent { outcome, status: opening.status, body_bytes, media_type };
    if options.head_only || empty {
        sender.finish(Bytes::new()).await?;
        return Ok((after, sent));
    }
    let (at, end) = (first - begin, last - begin);
    let rest = UnsentRest { at, end, opened: false, answered: (after, sent) };
    match &stored.body {
        StoredBody::Whole(body) if body.len() <= SMALL => {
            let slice = |at: u64| usize::try_from(at).unwrap_or(body.len());
            sender.finish(body.slice(slice(at)..slice(end))).await?;
        }
        StoredBody::Whole(body) => {
            let mut body = WholeBody::new(worker, stored.key.clone(), body.clone());
            drop(stored);
            body.send(sender, rest).await?;
            sender.end(&Headers::new()).await?;
        }
        StoredBody::Parts { fill } => {
            let body = PartsOf { object: stored.object(), fill: *fill, length: stored.length };
            body_parts::send(worker, sender, body, rest).await?;
            sender.end(&Headers::new()).await?;
        }
    }
    Ok((after, sent))
}

/// The fields of a response as those of a part of it. A complete response's Content-Range means
/// nothing (RFC 9110 §14.4).
pub(crate) fn ranged(fields: &Headers, content_range: &str) -> Headers {
    let mut headers = fields.clone();
    headers.remove("content-range");
    headers.append("Content-Range", content_range);
    headers
}
