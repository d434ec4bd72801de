//! Requests the cache is not asked about: sent on with their bodies, answered as the origin
//! answers.

use crate::answer;
use crate::answer::stream::{self, Source, Streamed};
use crate::answer::transaction::Transaction;
use crate::cache::stored::CacheKey;
use crate::client::Receiver;
use crate::client::io::ReadEnd;
use crate::client::sender::Sender;
use crate::core::client_block::ClientBlock;
use crate::core::counters::Counter;
use crate::core::fields::View;
use crate::core::forward_reason::ForwardReason;
use crate::core::hit_source::HitSource;
use crate::core::transport::Transport;
use crate::fill::outgoing;
use crate::fill::request::prepare;
use crate::fill::tee::Tee;
use crate::fill::times::Times;
use crate::fill::update_stored::Described;
use crate::lookup::serve_stored::serve_stored;
use crate::request::answer_options::AnswerOptions;
use crate::request::cache_status::CacheStatus;
use crate::request::reason::ErrorReason;
use crate::request::sent::{Aborted, After, Sent};
use crate::request::wanted::Wanted;
use crate::upstream::{
    BodyPiece, BodySender, HeadEvent, Origin, RequestBody, UpstreamError, UpstreamExchange,
};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{
    BodyLength, DecodeError, Headers, Method, RequestEvent, RequestHead, ResponseHead, Version,
    strip_hop_by_hop,
};
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::invalidates;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A request to be sent on.
pub(crate) struct Forward<'a> {
    pub(crate) head: &'a RequestHead,
    pub(crate) body: BodyLength,
    pub(crate) origin: Origin,
    pub(crate) key: CacheKey,
    pub(crate) reason: ForwardReason,
    pub(crate) options: AnswerOptions,
    /// Who asks.
    pub(crate) client: ClientBlock,
    /// What is stored, if the answer may describe it anew.
    pub(crate) described: Option<Described>,
}

/// How it went.
pub(crate) enum Forwarded {
    /// Answered; whether the request's body was read to its end.
    Answered(After, Sent),
    /// The origin switched protocols: its head, its connection, and what came after the head.
    Switched(ResponseHead, Transport, Bytes),
}

/// A body of HTTP/2 up to this length is read whole before its request is sent on: one whose length
/// lies reaches no origin.
const READ_WHOLE: u64 = 16 << 10;

/// What became of the client's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pumped {
    Whole,
    NotWanted,
    Broken,
}

/// The rule that the client's body broke, for the answer: the exchange only learns that the body
/// does not come whole.
type BrokenRule = Cell<Option<DecodeError>>;

/// Sends a request on and its answer back. The body and the answer travel at the same time.
pub(crate) async fn forward(
    worker: &Rc<Worker>,
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    request: Forward<'_>,
) -> Result<Forwarded, Aborted> {
    let early = match early(receiver, &request, worker.settings().client_read).await {
        Ok(early) => early,
        Err(ReadEnd::Malformed(error)) => {
            let options = AnswerOptions { keep: false, ..request.options };
            let reason = ErrorReason::Malformed(error);
            let (after, sent) = answer::error(worker, sender, options, reason).await?;
            return Ok(Forwarded::Answered(after, sent));
        }
        Err(_) => return Err(Aborted::Client),
    };
    worker.counters.add(Counter::Forwarded, 1);
    let (pieces, body) = RequestBody::channel(request.body);
    let outgoing = outgoing::forwarded(worker, request.head, request.origin.clone(), body);
    let exchange = worker.upstream.exchange(outgoing).asked_by(request.client);
    let broken_rule = BrokenRule::default();
    let pieces = (pieces, request.body);
    let pump = pump((early, receiver), pieces, worker.settings().client_read, &broken_rule);
    let respond = respond(worker, sender, &request, exchange, &broken_rule);
    tokio::pin!(pump, respond);
    let mut pumped = None;
    let result = loop {
        tokio::select! {
            result = &mut respond => break result,
            end = &mut pump, if pumped.is_none() => pumped = Some(end),
        }
    };
    match result? {
        // What is left of the body would be read as the next request.
        Forwarded::Answered(_, sent) if pumped != Some(Pumped::Whole) => {
            Ok(Forwarded::Answered(After::Close, sent))
        }
        forwarded => Ok(forwarded),
    }
}

/// What of a body is read before the origin hears of it: a small one of HTTP/2, unless its client
/// waits to be asked for it.
async fn early(
    receiver: &mut Receiver<'_>,
    request: &Forward<'_>,
    limit: Duration,
) -> Result<Vec<RequestEvent>, ReadEnd> {
    let mut early = Vec::new();
    let is_small = matches!(request.body, BodyLength::Length(1..=READ_WHOLE));
    if !is_small
        || matches!(receiver, Receiver::Http1(_))
        || request.head.headers.contains("expect")
    {
        return Ok(early);
    }
    while !matches!(early.last(), Some(RequestEvent::End)) {
        early.push(receiver.next(limit).await?);
    }
    Ok(early)
}

/// Carries the client's body to the exchange. A malformed body is noted before the exchange can
/// learn of it: the piece that completes a body of known length waits for the end of the request.
async fn pump(
    (early, receiver): (Vec<RequestEvent>, &mut Receiver<'_>),
    (pieces, length): (BodySender, BodyLength),
    limit: Duration,
    broken_rule: &BrokenRule,
) -> Pumped {
    let (mut trailers, mut early) = (Headers::new(), early.into_iter());
    let mut left = if let BodyLength::Length(bytes) = length { Some(bytes) } else { None };
    let mut last = None;
    loop {
        let event = match early.next() {
            Some(event) => Ok(event),
            None => receiver.next(limit).await,
        };
        let piece = match event {
            Ok(RequestEvent::Body(data)) => {
                left = left.map(|left| left.saturating_sub(data.len() as u64));
                if left == Some(0) {
                    last = Some(data);
                    continue;
                }
                BodyPiece::Data(data)
            }
            Ok(RequestEvent::Trailers(found)) => {
                trailers = found;
                continue;
            }
            Ok(RequestEvent::End) => {
                // An exchange that has all it wants has closed its end; the body is whole all the
                // same.
                if let Some(data) = last {
                    let _ = pieces.send(BodyPiece::Data(data)).await;
                }
                let _ = pieces.send(BodyPiece::End(trailers)).await;
                return Pumped::Whole;
            }
            Ok(RequestEvent::Head(..)) => return Pumped::Broken,
            Err(ReadEnd::Malformed(error)) => {
                broken_rule.set(Some(error));
                return Pumped::Broken;
            }
            Err(ReadEnd::Closed | ReadEnd::Broken | ReadEnd::Timeout | ReadEnd::NoRoom) => {
                return Pumped::Broken;
            }
        };
        if pieces.send(piece).await.is_err() {
            return Pumped::NotWanted;
        }
    }
}

async fn respond(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    request: &Forward<'_>,
    mut exchange: UpstreamExchange,
    broken_rule: &BrokenRule,
) -> Result<Forwarded, Aborted> {
    let (requested, watch) = (clock::steady(), worker.shared.cache.watch(&request.key));
    let (mut head, length) = match final_head(sender, request.options, &mut exchange).await? {
        Ok(found) => found,
        Err(error) => {
            if let Some((after, sent)) = stand_in(worker, sender, request, error).await? {
                return Ok(Forwarded::Answered(after, sent));
            }
            let (options, reason) = refusal(request.options, error, broken_rule);
            let (after, sent) = answer::error(worker, sender, options, reason).await?;
            return Ok(Forwarded::Answered(after, sent));
        }
    };
    worker.count_response(head.version);
    if length == BodyLength::Tunnel {
        let Some((stream, rest)) = exchange.into_tunnel() else { return Err(Aborted::Source) };
        return Ok(Forwarded::Switched(head, stream, rest));
    }
    if invalidates(request.head.method.as_str(), head.status) {
        invalidate(worker, request, &head).await;
    }
    let times = Times::until_now(requested);
    if let Some(described) = &request.described {
        described.seen(worker, &request.head.headers, &head, times);
    }
    prepare(&mut head, worker, times.civil);
    let length = match length {
        BodyLength::Length(bytes) => Some(bytes),
        BodyLength::None => Some(0),
        _ => None,
    };
    if !request.options.head_only && head.status != 304 {
        head.headers.remove("content-length");
    }
    let watch = match (&request.head.method, head.status) {
        // The request itself has just invalidated what was there.
        (Method::Post, 200) if !worker.claims_to_be_forwarded(request.head) => Some(watch.again()),
        (Method::Get, 206) if request.reason != ForwardReason::Bypass => Some(watch),
        _ => None,
    };
    let key = &request.key;
    let mut tee = watch
        .and_then(|watch| Tee::begin(worker, key, request.head, (&head, length), times, watch));
    let outcome = CacheStatus::Forwarded {
        reason: request.reason,
        status: Some(head.status),
        stored: tee.is_some(),
        collapsed: false,
        detail: None,
    };
    let source = Source::Exchange(&mut exchange, tee.as_mut());
    match stream::streamed(
        worker,
        sender,
        request.options,
        (&head, None),
        length,
        (None, outcome),
        source,
    )
    .await?
    {
        Streamed::Whole(after, sent) => Ok(Forwarded::Answered(after, sent)),
        Streamed::Part(..) => Err(Aborted::Source),
    }
}

/// How a request without a response is answered. After a body that did not come whole, no further
/// request can be told from its rest.
fn refusal(
    options: AnswerOptions,
    error: UpstreamError,
    broken_rule: &BrokenRule,
) -> (AnswerOptions, ErrorReason) {
    if error != UpstreamError::RequestBodyBroken {
        return (options, ErrorReason::Upstream(error));
    }
    let reason = broken_rule.get().map_or(ErrorReason::Upstream(error), ErrorReason::Malformed);
    (AnswerOptions { keep: false, ..options }, reason)
}

/// Answers with what is stored, if the origin's failure allows that.
async fn stand_in(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    request: &Forward<'_>,
    error: UpstreamError,
) -> Result<Option<(After, Sent)>, Aborted> {
    let Some(described) = &request.described else { return Ok(None) };
    let Some((by, permit)) = described.permit_after(error, &request.head.headers) else {
        return Ok(None);
    };
    let (head, options, client) = (request.head, request.options, request.client);
    let wanted =
        Wanted { head, origin: request.origin.clone(), key: request.key.clone(), options, client };
    let ttl = -i64::try_from(by).unwrap_or(i64::MAX);
    let how = (HitSource::Fallback(None), ttl, Some(permit));
    let stored = (Arc::clone(&described.stored), described.watch.looked());
    let mut transaction = Transaction::begin(worker, sender, &wanted);
    serve_stored(&mut transaction, stored, how, clock::steady()).await
}

/// Waits for the final head and passes on what comes before it.
async fn final_head(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    exchange: &mut UpstreamExchange,
) -> Result<Result<(ResponseHead, BodyLength), UpstreamError>, Aborted> {
    loop {
        match exchange.head().await {
            Ok(HeadEvent::Continue) if options.version != Version::Http10 => {
                sender.head(&ResponseHead::new(100)).await?;
            }
            Ok(HeadEvent::Interim(head)) => interim(sender, options, head).await?,
            Ok(HeadEvent::Continue) => {}
            Ok(HeadEvent::Final(head, length)) => return Ok(Ok((head, length))),
            Err(error) => return Ok(Err(error)),
        }
    }
}

/// Passes a 1xx on to a client that can take it (RFC 9110 §15.2: not one of HTTP/1.0).
pub(crate) async fn interim(
    sender: &mut Sender<'_>,
    options: AnswerOptions,
    mut head: ResponseHead,
) -> Result<(), Aborted> {
    if options.version == Version::Http10 {
        return Ok(());
    }
    strip_hop_by_hop(&mut head.headers);
    Ok(sender.head(&head).await?)
}

async fn invalidate(worker: &Worker, request: &Forward<'_>, head: &ResponseHead) {
    let cache = &worker.shared.cache;
    cache.invalidate(&request.key, &worker.counters).await;
    let Ok(base) = std::str::from_utf8(&request.key.text) else { return };
    for other in also_invalidated(&View(&head.headers), base) {
        cache.invalidate(&CacheKey::new(other), &worker.counters).await;
    }
}
