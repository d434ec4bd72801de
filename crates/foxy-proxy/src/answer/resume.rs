//! The rest of a response whose body turned out to be partly gone, or not kept, while it was sent:
//! fetched from the origin, if the origin still has exactly that response. Otherwise the client's
//! connection is cut; nothing else is put in its place.

use crate::answer::transaction::Transaction;
use crate::client::sender::Sender;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::fill::outgoing;
use crate::request::sent::{Aborted, After, Sent, UnsentRest};
use crate::upstream::{BodyEvent, HeadEvent, UpstreamExchange};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use foxy_rules::Span;
use foxy_rules::slice::strong_validator;

/// Sends the rest of a body of `length` bytes whose response has that head.
pub(crate) async fn rest(
    transaction: &mut Transaction<'_, '_>,
    (head, length): (&ResponseHead, u64),
    rest: UnsentRest,
) -> Result<(After, Sent), Aborted> {
    let Transaction { worker, wanted, .. } = *transaction;
    let fields = View(&head.headers);
    let validator = strong_validator(&fields).ok_or(Aborted::Source)?;
    worker.counters.add(Counter::Forwarded, 1);
    let span = Span { first: rest.at, last: rest.end - 1 };
    let request = outgoing::for_range(worker, wanted.head, wanted.origin.clone(), span, Some(head));
    let mut exchange = worker.upstream.exchange(request).asked_by(wanted.client);
    let answer = loop {
        match exchange.head().await {
            Ok(HeadEvent::Final(head, _)) => break head,
            Ok(HeadEvent::Continue | HeadEvent::Interim(_)) => {}
            Err(_) => return Err(Aborted::Source),
        }
    };
    worker.count_response(answer.version);
    let skipped = before_the_rest(length, validator, &answer, &rest).ok_or(Aborted::Source)?;
    carry(worker, transaction.sender, &mut exchange, skipped, rest.end - rest.at).await?;
    worker.counters.add(Counter::Resumed, 1);
    Ok(rest.answered)
}

/// How many bytes of an answer come before the rest; `None` if it is not of the same response.
fn before_the_rest(
    length: u64,
    validator: &[u8],
    head: &ResponseHead,
    rest: &UnsentRest,
) -> Option<u64> {
    let says = |name: &str, value: String| head.headers.get(name) == Some(value.as_bytes());
    let range = || format!("bytes {}-{}/{}", rest.at, rest.end - 1, length);
    match head.status {
        _ if strong_validator(&View(&head.headers)) != Some(validator) => None,
        206 if says("content-range", range()) => Some(0),
        200 if !head.headers.contains("content-length") => Some(rest.at),
        200 if says("content-length", length.to_string()) => Some(rest.at),
        _ => None,
    }
}

/// Sends `wanted` bytes of a body after the first `skipped`.
async fn carry(
    worker: &Worker,
    sender: &mut Sender<'_>,
    exchange: &mut UpstreamExchange,
    mut skipped: u64,
    mut wanted: u64,
) -> Result<(), Aborted> {
    while wanted > 0 {
        let mut data = match exchange.next().await {
            Ok(BodyEvent::Data(data)) => data,
            Ok(BodyEvent::Trailers(_) | BodyEvent::End) | Err(_) => return Err(Aborted::Source),
        };
        worker.counters.add(Counter::BytesFromOrigins, data.len() as u64);
        let start = skipped.min(data.len() as u64);
        skipped -= start;
        let end = (start + wanted).min(data.len() as u64);
        wanted -= end - start;
        data = slice(&data, start, end);
        sender.body(data).await?;
    }
    Ok(sender.end(&Headers::new()).await?)
}

/// The bytes `start..end`, both within `data`.
fn slice(data: &Bytes, start: u64, end: u64) -> Bytes {
    let position = |at: u64| usize::try_from(at).unwrap_or(data.len());
    data.slice(position(start)..position(end))
}
