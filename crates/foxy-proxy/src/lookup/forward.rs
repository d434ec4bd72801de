//! Forwards requests and their bodies to the origin without using the cache. Sends the origin's
//! answers to the clients. A *tee* can store an answer while the client receives it. For this it
//! needs a *watch*: while a watch exists, the cache records all writes to the URL.

use crate::answer;
use crate::answer::stream::{self, Source, Streamed, StreamedHead};
use crate::answer::transaction::Transaction;
use crate::cache::purge::{Scope, Strength};
use crate::cache::{CacheKey, NotKept, Refused};
use crate::client::io::ReadEnd;
use crate::client::{Receiver, Sender};
use crate::core::transport::Transport;
use crate::core::{Counter, ForwardReason, View};
use crate::fill::outgoing;
use crate::fill::request::{OriginHead, Times, known_length, prepare};
use crate::fill::stale::PendingUpdate;
use crate::fill::tee::Tee;
use crate::lookup::serve_stored::serve_or_make_up;
use crate::lookup::tell_nodes;
use crate::request::exchange::FleetRole;
use crate::request::forwarding_fields;
use crate::request::{
    Aborted, AnswerOptions, Answered, CacheStatus, ConnectionFate, ErrorReason, Wanted,
};
use crate::settings::ProxySettings;
use crate::upstream::{
    BodyPiece, BodySender, HeadEvent, RequestBody, UpstreamError, UpstreamExchange,
};
use crate::worker::{Shared, Worker};
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::{
    BodyLength, DecodeError, Headers, Method, RequestEvent, ResponseHead, Version, strip_hop_by_hop,
};
use foxy_rules::invalidate::also_invalidated;
use foxy_rules::invalidates;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// A request to forward to the origin.
pub(crate) struct Forward<'a> {
    pub(crate) wanted: &'a Wanted<'a>,
    pub(crate) body: BodyLength,
    pub(crate) reason: ForwardReason,
    /// The stored response that the origin's answer may update.
    pub(crate) update: Option<PendingUpdate>,
}

/// The result of forwarding a request to the origin.
pub(crate) enum Forwarded {
    Answered(Answered),
    /// The origin switched protocols, for example to WebSocket. The fields are the origin's head,
    /// its connection, and the bytes that arrived after the head.
    Switched(ResponseHead, Transport, Bytes),
}

/// An HTTP/2 request body of up to this many bytes is read completely before the proxy contacts the
/// origin. If such a body has a wrong length, no origin receives any of it.
const MAX_BODY_READ_FIRST: u64 = 16 << 10;

/// How much of the client's body the origin has received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pumped {
    Whole,
    NotWanted,
    Broken,
}

/// The HTTP rule that the client's body violated. The error answer names this rule. The exchange
/// with the origin only knows that the body is incomplete.
type BrokenRule = Cell<Option<DecodeError>>;

/// Forwards a request and sends the origin's answer back. The answer may begin before the client
/// has sent its whole body.
pub(crate) async fn forward(
    worker: &Rc<Worker>,
    receiver: &mut Receiver<'_>,
    sender: &mut Sender<'_>,
    request: Forward<'_>,
) -> Result<Forwarded, Aborted> {
    let wanted = request.wanted;
    let limit = worker.settings().client_read;
    let early = match read_early(receiver, &request, limit).await {
        Ok(early) => early,
        Err(ReadEnd::Malformed(error)) => {
            let options = AnswerOptions { keep: false, ..wanted.options };
            let reason = ErrorReason::Malformed(error);
            return answer::error(worker, sender, options, reason).await.map(Forwarded::Answered);
        }
        Err(_) => return Err(Aborted::Client),
    };
    worker.counters.add(Counter::Forwarded, 1);
    let (pieces, body) = RequestBody::channel(request.body);
    let outgoing = outgoing::forwarded(worker, wanted.head, wanted.origin.clone(), body);
    let exchange = worker.upstream.exchange(outgoing).asked_by(wanted.client);
    let broken_rule = BrokenRule::default();
    let pump = pump(worker, early, receiver, pieces, request.body, &broken_rule);
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
        // The client's connection must close. Otherwise the unread bytes of the body would be
        // parsed as the next request.
        Forwarded::Answered(answered) if pumped != Some(Pumped::Whole) => {
            let connection = ConnectionFate::Close;
            Ok(Forwarded::Answered(Answered { connection, ..answered }))
        }
        forwarded => Ok(forwarded),
    }
}

/// Reads a small HTTP/2 body completely, before the proxy contacts the origin. Reads nothing if the
/// client waits for a 100 (Continue) response.
async fn read_early(
    receiver: &mut Receiver<'_>,
    request: &Forward<'_>,
    limit: Duration,
) -> Result<Vec<RequestEvent>, ReadEnd> {
    let mut early = Vec::new();
    let is_small = matches!(request.body, BodyLength::Length(1..=MAX_BODY_READ_FIRST));
    if !is_small
        || matches!(receiver, Receiver::Http1(_))
        || request.wanted.head.headers.contains("expect")
    {
        return Ok(early);
    }
    while !matches!(early.last(), Some(RequestEvent::End)) {
        early.push(receiver.next(limit).await?);
    }
    Ok(early)
}

/// Passes the client's body to the exchange with the origin. If the length is known, holds the last
/// piece back until the client's request has ended. So if the request breaks a rule of HTTP at its
/// end, the error answer can name this rule.
async fn pump(
    worker: &Worker,
    early: Vec<RequestEvent>,
    receiver: &mut Receiver<'_>,
    pieces: BodySender,
    length: BodyLength,
    broken_rule: &BrokenRule,
) -> Pumped {
    let ProxySettings { client_read: limit, rules, mode, .. } = worker.settings();
    let (mut trailers, mut early) = (Headers::new(), early.into_iter());
    let mut left = if let BodyLength::Length(bytes) = length { Some(bytes) } else { None };
    let mut last = None;
    loop {
        let event = match early.next() {
            Some(event) => Ok(event),
            None => receiver.next(*limit).await,
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
                let rules = rules.get();
                // Some origins treat trailers like header fields. So the trailers must not contain
                // fields that the proxy replaces.
                let is_replaced = |name: &str| {
                    rules.edits_request_field(name)
                        || (!mode.is_forward() && forwarding_fields::is_named(name))
                };
                trailers.retain(|name, _| !is_replaced(name));
                continue;
            }
            Ok(RequestEvent::End) => {
                // Sending fails if the origin needs no more of the body. The result does not
                // matter, because the client has sent its whole body.
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
    let wanted = request.wanted;
    let (requested, watch) = (clock::steady(), worker.shared.cache.watch(&wanted.key));
    let (mut head, length) = match final_head(sender, wanted.options, &mut exchange).await? {
        Ok(found) => found,
        Err(error) => {
            if let Some(answered) = stand_in(worker, sender, request, error).await? {
                return Ok(Forwarded::Answered(answered));
            }
            let (options, reason) = refusal(wanted.options, error, broken_rule);
            return answer::error(worker, sender, options, reason).await.map(Forwarded::Answered);
        }
    };
    worker.count_response(head.version);
    sender.answered_by(exchange.responder());
    if length == BodyLength::Tunnel {
        let Some((stream, rest)) = exchange.into_tunnel() else { return Err(Aborted::Source) };
        return Ok(Forwarded::Switched(head, stream, rest));
    }
    if invalidates(wanted.head.method.as_str(), head.status) {
        let others = invalidate(worker, &wanted.key, &head).await;
        if wanted.role != FleetRole::NoFleet {
            Box::pin(tell_nodes::to_forget(worker, wanted, &others)).await;
        }
    }
    let rules = &worker.settings().rules;
    rules.edit_response(&wanted.key.text, &mut head, known_length(length));
    let times = Times::until_now(requested);
    if let Some(update) = &request.update {
        update.apply_head(worker, &wanted.head.headers, &head, times);
    }
    prepare(&mut head, worker, times.civil);
    if !wanted.options.head_only && head.status != 304 {
        head.headers.remove("content-length");
    }
    let watch = match (&wanted.head.method, head.status) {
        // This POST has just invalidated the stored responses of the URL. The cache stores the
        // answer to the POST only with a watch (record of the URL's writes) that begins after the
        // invalidation.
        _ if request.reason == ForwardReason::Rule => None,
        (Method::Post, 200) if !worker.claims_to_be_forwarded(wanted.head) => Some(watch.again()),
        (Method::Get, 206) if request.reason != ForwardReason::Bypass => Some(watch),
        _ => None,
    };
    let origin = OriginHead { head, length: known_length(length), times };
    let mut tee =
        watch.and_then(|watch| Tee::begin(worker, &wanted.key, wanted.head, &origin, watch));
    let response = (&*wanted.key.text, &origin.head, origin.length);
    sender.with_rules(|applied| rules.note_response(response, tee.is_some(), applied));
    let outcome = CacheStatus::Forwarded {
        reason: request.reason,
        status: Some(origin.head.status),
        stored: tee.is_some(),
        collapsed: false,
        detail: None,
    };
    let (head, length) = (&origin.head, origin.length);
    let head = StreamedHead { head, wire: None, length, age: None, outcome };
    let begun = head.begin(worker, sender, wanted.options);
    let source = Source::Exchange(&mut exchange, tee.as_mut());
    match stream::carry(worker, sender, wanted.options, begun, source).await? {
        Streamed::Whole(answered) => Ok(Forwarded::Answered(answered)),
        Streamed::LeftBehind(_) => Err(Aborted::Source),
    }
}

/// Returns the error answer for a request to which the origin gave no response. If the client's
/// body is broken, the connection must close. Otherwise the unread bytes of the body would be
/// parsed as a request.
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

/// Answers with the stored response instead of the origin's failure, if the caching rules permit
/// it.
async fn stand_in(
    worker: &Rc<Worker>,
    sender: &mut Sender<'_>,
    request: &Forward<'_>,
    error: UpstreamError,
) -> Result<Option<Answered>, Aborted> {
    let Some(update) = &request.update else { return Ok(None) };
    let Some(hit) = update.hit_after(error, &request.wanted.head.headers) else { return Ok(None) };
    let mut transaction = Transaction::begin(worker, sender, request.wanted);
    let (stored, looked) = (Arc::clone(&update.stored), update.watch.looked());
    serve_or_make_up(&mut transaction, stored, looked, hit, clock::steady()).await
}

/// Waits for the final head of the origin's response. Forwards the 1xx responses before it.
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

/// Forwards a 1xx response to the client. Drops it if the client speaks HTTP/1.0, because such
/// clients do not expect 1xx responses (RFC 9110 §15.2).
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

/// Removes the stored responses that an unsafe request has changed. Returns the other URLs whose
/// responses it removed: the response names these URLs.
async fn invalidate(worker: &Worker, key: &CacheKey, head: &ResponseHead) -> Vec<String> {
    let Shared { cache, refusals, .. } = &*worker.shared;
    let refused = Refused { status: head.status, at: clock::steady(), why: NotKept::Invalidated };
    cache.invalidate(key, &worker.counters).await;
    refusals.remember(key, refused);
    let mut scopes = vec![Scope::url(key)];
    let base = std::str::from_utf8(&key.text).unwrap_or_default();
    let others = also_invalidated(&View(&head.headers), base);
    for other in &others {
        let key = CacheKey::new(worker.settings().rules.key(other.clone().into_bytes()));
        cache.invalidate(&key, &worker.counters).await;
        refusals.remember(&key, refused);
        scopes.push(Scope::url(&key));
    }
    if worker.shared.is_leaving() {
        // Another foxy process has taken over, and may have stored responses of these URLs. The
        // purge tells the new process to remove such responses. Its result is ignored: if the new
        // process does not answer, it has ended, or it purges later.
        let _ = worker.shared.purges.purge_here(&scopes, Strength::Hard).await;
    }
    others
}
