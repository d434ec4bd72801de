//! Several ranges of a complete stored response in one answer (`multipart/byteranges`, RFC 9110
//! §15.3.7.2). Which they are and how they are laid out is decided in foxy-rules.

use crate::answer::body_parts::{self, PartsOf};
use crate::answer::whole_body::WholeBody;
use crate::cache::stored::{CacheKey, Stored, StoredBody};
use crate::client::sender::Sender;
use crate::request::access::MediaType;
use crate::request::answer_options::AnswerOptions;
use crate::request::cache_status::CacheStatus;
use crate::request::opening::{Framing, Opening};
use crate::request::sent::{Aborted, After, Sent, Short, UnsentRest};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::Headers;
use foxy_rules::{Multipart, Span};
use std::sync::Arc;

/// How these ranges of a stored response are laid out; `None` where all of it is no more.
pub(crate) fn layout(worker: &Worker, stored: &Stored, spans: &[Span]) -> Option<Multipart> {
    let cache = &worker.shared.cache;
    let content_type = stored.head.headers.get("content-type");
    Multipart::new(spans, stored.length, content_type, (cache.draw(), cache.draw()))
}

/// Sends ranges of a stored response.
pub(crate) async fn stored(
    worker: &Worker,
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    stored: Arc<Stored>,
    layout: &Multipart,
    (age, outcome): (u64, CacheStatus),
) -> Result<(After, Sent), Short> {
    let mut headers = stored.head.headers.clone();
    headers.remove("content-range");
    headers.set("Content-Type", layout.content_type());
    let opening = Opening {
        status: 206,
        reason: b"Partial Content",
        headers: &headers,
        wire: None,
        age: Some(age),
        outcome,
        framing: Framing::Length(layout.length()),
    };
    let after = sender.begin(options, opening);
    let media_type = MediaType::of(headers.get("content-type"));
    let sent = Sent { outcome, status: 206, body_bytes: layout.length(), media_type };
    match &stored.body {
        StoredBody::Whole(body) => {
            let mut body = WholeBody::new(worker, stored.key.clone(), body.clone());
            drop(stored);
            for (head, span) in layout.parts() {
                let (at, end) = (span.first, span.last + 1);
                let rest = UnsentRest { at, end, opened: true, answered: (after, sent) };
                sender.body(Bytes::copy_from_slice(head)).await?;
                match body.send(sender, rest).await {
                    Err(Short::Gone | Short::Rest(_)) => {
                        return Err(Short::Aborted(Aborted::Source));
                    }
                    sent => sent?,
                }
            }
        }
        StoredBody::Parts { fill } => {
            let key = CacheKey::new(stored.key.clone());
            let body = PartsOf { object: stored.object(), fill: *fill, length: stored.length };
            for (head, span) in layout.parts() {
                let (at, end) = (span.first, span.last + 1);
                let rest = UnsentRest { at, end, opened: true, answered: (after, sent) };
                sender.body(Bytes::copy_from_slice(head)).await?;
                let sent = body_parts::send(worker, sender, body, rest).await;
                if matches!(sent, Err(Short::Gone | Short::Rest(_))) {
                    // The answer has begun: the client must see that it is not whole.
                    worker.shared.cache.forget(&key);
                    return Err(Short::Aborted(Aborted::Source));
                }
                sent?;
            }
        }
    }
    sender.body(layout.end().into()).await?;
    sender.end(&Headers::new()).await?;
    Ok((after, sent))
}
