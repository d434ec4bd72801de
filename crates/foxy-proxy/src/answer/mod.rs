//! Sends answers to clients: stored responses, responses of fetches in progress, and error pages of
//! the proxy. The module `lookup` chooses the answer, and the module `client` writes the bytes.

pub(crate) mod rest;
pub(crate) mod stored_body;
pub(crate) mod stream;
pub(crate) mod transaction;

use crate::client::Sender;
use crate::core::Counter;
use crate::request::{
    Aborted, AnswerOptions, Answered, CacheStatus, ErrorReason, Framing, MediaType, Opening,
    Progress, SentResponse, proxy_status,
};
use crate::upstream::DestinationRefusal;
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::ResponseHead;

pub(crate) async fn error(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    reason: ErrorReason,
) -> Result<Answered, Aborted> {
    error_with_text(worker, sender, options, reason, reason.description()).await
}

/// Answers with an error of the proxy. `description` explains the reason to the client.
pub(crate) async fn error_with_text(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    reason: ErrorReason,
    description: &str,
) -> Result<Answered, Aborted> {
    worker.counters.add(Counter::LocalErrors, 1);
    let outcome = CacheStatus::Error(reason);
    let refusal = reason.refused_destination();
    let remedy = refusal.and_then(DestinationRefusal::remedy).map(|remedy| format!("; {remedy}"));
    let (remedy, id) = (remedy.unwrap_or_default(), sender.with_progress(Progress::id));
    let text = format!("foxy: {description}{remedy} ({})\nrequest {id}\n", reason.name());
    let mut head = ResponseHead::new(reason.status());
    if let Some(refusal) = refusal {
        head.reason = Bytes::from_static(refusal.phrase().as_bytes());
    }
    head.headers.append("Date", worker.http_date(clock::wall()));
    head.headers.append("Content-Type", "text/plain; charset=utf-8");
    head.headers.append("Cache-Control", "no-store");
    head.headers.append("Proxy-Status", proxy_status::value(reason));
    if reason.status() == 407 {
        head.headers.append("Proxy-Authenticate", "Basic realm=\"foxy\", charset=\"UTF-8\"");
        head.headers.append("Proxy-Authenticate", "Bearer realm=\"foxy\"");
    }
    if reason.status() == 405 {
        head.headers.append("Allow", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
    }
    if let Some(seconds) = reason.retry_after() {
        head.headers.append("Retry-After", seconds.to_string());
    }
    local(sender, options, head, outcome, text.into()).await
}

pub(crate) async fn local(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    head: ResponseHead,
    outcome: CacheStatus,
    body: Bytes,
) -> Result<Answered, Aborted> {
    let opening = Opening {
        status: head.status,
        reason: &head.reason,
        headers: &head.headers,
        wire: None,
        age: None,
        varies: false,
        outcome,
        framing: Framing::Length(body.len() as u64),
    };
    let connection = sender.begin(options, opening);
    let body = if options.head_only { Bytes::new() } else { body };
    let media_type = MediaType::of(head.headers.get("content-type"));
    let body_bytes = body.len() as u64;
    let response = SentResponse { outcome, status: head.status, body_bytes, media_type };
    sender.finish(body).await?;
    Ok(Answered { connection, response })
}
