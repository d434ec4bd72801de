//! Answers the request of one HTTP/2 stream. If the client resets the stream of a safe request,
//! such as GET, the proxy stops answering it. An unsafe request continues until the origin's answer
//! is known, because the answer may invalidate stored responses.

use crate::answer;
use crate::client::http2::sender::{Http2Sender, Out};
use crate::client::http2::stream::{Http2Body, Http2Stream, fields};
use crate::client::io::ReadEnd;
use crate::client::{Client, Sender};
use crate::core::counters::Counter;
use crate::request::answered::{Aborted, AnswerOptions};
use crate::request::reason::ErrorReason;
use crate::server::dispatch::request;
use crate::server::http2::{OpenStream, SharedByStreams};
use crate::server::request_log::{Ended, ReadRequest, RequestLog};
use crate::worker::Worker;
use bytes::Bytes;
use foxy_base::clock;
use foxy_http::http2::{Content, PseudoFields};
use foxy_http::{BodyLength, DecodeError, Limits, RequestEvent, RequestHead, Version};
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Waker};
use std::time::Duration;

pub(crate) async fn serve(
    worker: Rc<Worker>,
    SharedByStreams { peer, scheme, reached, inside, presented, node }: SharedByStreams,
    received: http::Request<RecvStream>,
    respond: SendResponse<Bytes>,
    open: OpenStream,
) {
    let started = clock::monotonic();
    worker.counters.add(Counter::Http2Streams, 1);
    let limits = worker.settings().limits;
    let (parts, body) = received.into_parts();
    let content = if body.is_end_stream() { Content::None } else { Content::Some };
    let out = RefCell::new(Out::new(respond, Rc::clone(open.wire())));
    let mut body = Http2Body::new(body, limits, Rc::clone(open.wire()));
    let mut found = head_of(&parts, content, &limits);
    if matches!(found, Ok((_, BodyLength::Length(0)))) && content == Content::Some {
        found = emptied(&mut body, worker.settings().client_read).await.and(found);
    }
    let found = found.map(|(head, length)| match &inside {
        None => (head, length, None),
        Some(inside) => {
            let (head, refusal) = inside.judge(head);
            (head, length, refusal)
        }
    });
    let progress = Rc::clone(&out.borrow().progress);
    let (read, found) = match found {
        Ok((head, length, refusal)) => (ReadRequest::Head(head, scheme), Ok((length, refusal))),
        Err(error) => {
            let (method, url) = (parts.method.as_str().into(), parts.uri.to_string().into());
            (ReadRequest::Words { method, url }, Err(error))
        }
    };
    let is_ping = node.is_some() && parts.method == http::Method::OPTIONS;
    let begin = if is_ping { RequestLog::of_ping } else { RequestLog::begin };
    let mut log = begin(&worker, peer, started, read, &progress);
    let (ended, bytes) = match (&mut log.read, &found) {
        (ReadRequest::Head(head, _), Ok((length, refusal))) => {
            let is_safe = head.method.is_safe();
            let (inside, presented) = (inside.as_deref(), presented.as_deref());
            let (out, body) = (&out, &mut body);
            let stream = Http2Stream { out, body, scheme, reached, inside, presented, node };
            let mut client = Client::Http2(stream);
            let answered = request(&worker, &mut client, peer, (head, *length), *refusal);
            tokio::select! {
                biased;
                answered = answered => answered,
                () = poll_fn(|context| out.borrow_mut().poll_given_up(context)), if is_safe => {
                    (Ended::Aborted(Aborted::Client), out.borrow().sent)
                }
            }
        }
        (ReadRequest::Words { .. }, Ok(_)) => unreachable!("what is accepted has a head"),
        (_, Err(error)) => {
            let head_only = parts.method == http::Method::HEAD;
            let options =
                AnswerOptions { head_only, version: Version::Http2, keep: true, trailers: false };
            let mut sender = Sender::Http2(Http2Sender::new(&out, worker.settings().client_write));
            let reason = ErrorReason::Malformed(*error);
            let result = answer::error(&worker, &mut sender, options, reason).await;
            (Ended::from(result), sender.sent())
        }
    };
    let mut out = out.into_inner();
    if out.poll_given_up(&mut Context::from_waker(Waker::noop())).is_ready() {
        worker.counters.add(Counter::Http2Resets, 1);
        // A node of the fleet cancels many requests if many of its own clients leave. So its resets
        // do not count.
        if node.is_none() {
            open.given_up();
        }
    }
    // If the answer is complete, this call does nothing. The HTTP/2 library then only refuses the
    // unread bytes of the request, which are not needed (RFC 9113 §8.1).
    out.reset(reason_of(&ended));
    if !is_ping {
        log.end(&ended, bytes);
    }
}

/// Returns the reason for the reset of a stream whose answer is not complete.
const fn reason_of(ended: &Ended) -> Reason {
    match ended {
        Ended::Aborted(Aborted::Client) => Reason::CANCEL,
        Ended::Tunnelled(_) => Reason::CONNECT_ERROR,
        Ended::Aborted(Aborted::Source) | Ended::Answered(..) | Ended::Intercepted(..) => {
            Reason::INTERNAL_ERROR
        }
    }
}

/// Waits for the end of a body that was announced with length 0. Fails if the client sends bytes
/// nevertheless. Then no origin receives the request (RFC 9113 §8.1.1).
async fn emptied(body: &mut Http2Body, limit: Duration) -> Result<(), DecodeError> {
    match body.next(limit).await {
        Ok(RequestEvent::End | RequestEvent::Trailers(_)) => Ok(()),
        Err(ReadEnd::Malformed(error)) => Err(error),
        Ok(_) | Err(_) => Err(DecodeError::TruncatedBody),
    }
}

fn head_of(
    parts: &http::request::Parts,
    content: Content,
    limits: &Limits,
) -> Result<(RequestHead, BodyLength), DecodeError> {
    let uri = &parts.uri;
    let pseudo = PseudoFields {
        method: parts.method.as_str(),
        scheme: uri.scheme_str(),
        authority: uri.authority().map(http::uri::Authority::as_str),
        path: uri.path_and_query().map(http::uri::PathAndQuery::as_str),
    };
    foxy_http::http2::request(pseudo, fields(&parts.headers), content, limits)
}
