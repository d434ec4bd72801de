//! Runs one exchange over HTTP/2, on a stream of a shared connection. The request is sent while the
//! response is read. If the exchange is dropped before its end, the stream is reset with CANCEL,
//! and the connection continues.

use crate::core::frames::FirstField;
use crate::upstream::error::{Http2Error, UpstreamError};
use crate::upstream::http2::connection::Lease;
use crate::upstream::http2::message;
use crate::upstream::sending::{Accepted, OutgoingRequest, RetryReason, WaitEnd, at};
use crate::upstream::settings::UpstreamSettings;
use bytes::Bytes;
use foxy_http::{BodyLength, DecodeError, Limits, Method, ResponseEvent};
use h2::client::ResponseFuture;
use h2::{Reason, RecvStream, SendStream};
use http::HeaderMap;
use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

/// A response body of up to this many bytes is read completely before the exchange reports the
/// head. If the length is wrong, the client then receives an error instead of a broken answer.
const MAX_WHOLE_BODY_BYTES: u64 = 16 << 10;

/// A request and its response on one stream of an HTTP/2 connection.
pub(crate) struct Http2Exchange {
    // Must be dropped before `lease`, this stream's permit on the connection. The connection then
    // knows that the stream has ended before a waiting exchange gets the permit.
    reading: Reading,
    sender: SendStream<Bytes>,
    lease: Lease,
    out: Bytes,
    end: RequestEnd,
    interim: usize,
    withheld: Withheld,
    answered: bool,
}

/// The part of the response that the exchange reads next.
enum Reading {
    Heads(ResponseFuture),
    Body { body: RecvStream, allowed: bool },
    Trailers(RecvStream),
    Done,
}

/// The head of a response with a small body, and the pieces of the body so far. The exchange
/// reports them only when the body is complete.
#[derive(Default)]
struct Withheld {
    events: VecDeque<ResponseEvent>,
    /// True while the body is not complete. The exchange then still withholds the head and the
    /// pieces.
    more: bool,
}

/// The state of sending the end of a request.
enum RequestEnd {
    /// The client has not sent its whole body yet.
    Open,
    /// The bytes that are being sent are the last bytes of the request.
    Data,
    Trailers(HeaderMap),
    /// The whole request was sent, or the origin accepts no more bytes of it.
    Sent,
}

enum Http2Progress {
    Read(Result<ResponseEvent, Failure>),
    Sent(Result<(), h2::Error>),
}

/// The source of an error: the HTTP/2 library, or the proxy's own checks.
enum Failure {
    Library(h2::Error),
    Ours(UpstreamError),
}

impl Http2Exchange {
    /// Sends the head of a request. Returns `None` if the connection accepts no more requests.
    pub(crate) fn open(
        mut lease: Lease,
        head: http::Request<()>,
        body_is_complete: bool,
    ) -> Option<Self> {
        let (response, sender) = lease.send(head, body_is_complete).ok()?;
        Some(Self {
            reading: Reading::Heads(response),
            sender,
            lease,
            out: Bytes::new(),
            end: if body_is_complete { RequestEnd::Sent } else { RequestEnd::Open },
            interim: 0,
            withheld: Withheld::default(),
            answered: false,
        })
    }

    /// Sends the request and reads the response until there is an event to report.
    pub(crate) async fn turn(
        &mut self,
        request: &mut OutgoingRequest,
        settings: &UpstreamSettings,
    ) -> Result<WaitEnd, UpstreamError> {
        loop {
            let sending = !self.out.is_empty()
                || matches!(self.end, RequestEnd::Data | RequestEnd::Trailers(_));
            let wants_piece = !sending && request.wants_piece();
            let deadline = request.deadline(sending, settings);
            let OutgoingRequest { method, body, .. } = &mut *request;
            tokio::select! {
                biased;
                moved = poll_fn(|context| self.poll(context, method, &settings.limits, sending)) => match moved {
                    Http2Progress::Read(Ok(event)) => {
                        self.answered = true;
                        return Ok(WaitEnd::Event(event));
                    }
                    Http2Progress::Read(Err(failure)) => return self.failed(failure),
                    Http2Progress::Sent(Ok(())) => request.touch(),
                    Http2Progress::Sent(Err(_)) => {
                        (self.out, self.end) = (Bytes::new(), RequestEnd::Sent);
                        request.body.refuse();
                    }
                },
                piece = body.next(), if wants_piece => {
                    request.taken = true;
                    self.take(request.body.accept(piece)?);
                }
                () = at(deadline) => {
                    let turn = request.timed_out(!sending);
                    if turn.is_err() {
                        self.lease.timed_out(request.active);
                    }
                    return turn;
                }
            }
        }
    }

    /// Returns true if any part of a response has arrived.
    pub(crate) fn has_answered(&self) -> bool {
        self.answered
    }

    fn take(&mut self, piece: Accepted) {
        match piece {
            Accepted::Data { data, last } => {
                self.out = data;
                if last {
                    self.end = RequestEnd::Data;
                }
            }
            Accepted::End(trailers) if trailers.is_empty() => self.end = RequestEnd::Data,
            Accepted::End(trailers) => {
                self.end = RequestEnd::Trailers(message::request_trailers(&trailers))
            }
            Accepted::Nothing => {}
        }
    }

    /// Reads first and then sends, so that the proxy notices an early answer.
    fn poll(
        &mut self,
        context: &mut Context<'_>,
        method: &Method,
        limits: &Limits,
        sending: bool,
    ) -> Poll<Http2Progress> {
        if let Poll::Ready(read) = self.poll_read(context, method, limits) {
            return Poll::Ready(Http2Progress::Read(read));
        }
        if sending { self.poll_send(context).map(Http2Progress::Sent) } else { Poll::Pending }
    }

    fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        method: &Method,
        limits: &Limits,
    ) -> Poll<Result<ResponseEvent, Failure>> {
        loop {
            if !self.withheld.more
                && let Some(event) = self.withheld.events.pop_front()
            {
                return Poll::Ready(Ok(event));
            }
            let event = ready!(self.poll_event(context, method, limits))?;
            let is_whole_soon = |length| (1..=MAX_WHOLE_BODY_BYTES).contains(&length);
            match &event {
                ResponseEvent::Head(_, BodyLength::Length(length)) if is_whole_soon(*length) => {
                    (self.withheld.more, self.answered) = (true, true);
                }
                ResponseEvent::End => self.withheld.more = false,
                _ => {}
            }
            self.withheld.events.push_back(event);
        }
    }

    fn poll_event(
        &mut self,
        context: &mut Context<'_>,
        method: &Method,
        limits: &Limits,
    ) -> Poll<Result<ResponseEvent, Failure>> {
        loop {
            match &mut self.reading {
                Reading::Heads(response) => match ready!(response.poll_informational(context)) {
                    Some(head) => {
                        self.lease.read_head();
                        self.interim += 1;
                        if self.interim > limits.interim_responses {
                            return Poll::Ready(Err(DecodeError::TooManyInterimResponses.into()));
                        }
                        let head = message::interim(&head?, limits)?;
                        return Poll::Ready(Ok(ResponseEvent::Interim(head)));
                    }
                    None => {
                        let response = ready!(Pin::new(response).poll(context))?;
                        self.lease.read_head();
                        let ended = response.body().is_end_stream();
                        let (head, length) = message::response(method, &response, ended, limits)?;
                        let allowed = *method != Method::Head && !matches!(head.status, 204 | 304);
                        self.reading = Reading::Body { body: response.into_body(), allowed };
                        return Poll::Ready(Ok(ResponseEvent::Head(head, length)));
                    }
                },
                Reading::Body { body, allowed } => {
                    match ready!(body.poll_data(context)).transpose()? {
                        Some(data) if data.is_empty() => {}
                        Some(_) if !*allowed => {
                            return Poll::Ready(Err(Failure::Ours(Http2Error::Protocol.into())));
                        }
                        Some(data) => {
                            // The origin receives flow-control credit only when the proxy reads the
                            // body. So at most one flow-control window of bytes waits.
                            body.flow_control().release_capacity(data.len())?;
                            return Poll::Ready(Ok(ResponseEvent::Body(data)));
                        }
                        None => {
                            let Reading::Body { body, .. } =
                                std::mem::replace(&mut self.reading, Reading::Done)
                            else {
                                continue;
                            };
                            self.reading = Reading::Trailers(body);
                        }
                    }
                }
                Reading::Trailers(body) => {
                    let trailers = ready!(poll_trailers(body, context))?;
                    self.reading = Reading::Done;
                    if trailers.is_some() && self.lease.last_block() == FirstField::Pseudo {
                        return Poll::Ready(Err(Failure::Ours(Http2Error::Protocol.into())));
                    }
                    let trailers = trailers
                        .map(|trailers| message::trailers(&trailers, limits))
                        .transpose()?;
                    if let Some(trailers) = trailers.filter(|trailers| !trailers.is_empty()) {
                        return Poll::Ready(Ok(ResponseEvent::Trailers(trailers)));
                    }
                }
                Reading::Done => return Poll::Ready(Ok(ResponseEvent::End)),
            }
        }
    }

    /// Passes as many bytes to the HTTP/2 library as the origin's flow control permits.
    fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<Result<(), h2::Error>> {
        if !self.out.is_empty() {
            self.sender.reserve_capacity(self.out.len());
            let mut room = self.sender.capacity();
            if room == 0 {
                room = match ready!(self.sender.poll_capacity(context)) {
                    Some(room) => room?,
                    None => return Poll::Ready(Err(Reason::CANCEL.into())),
                };
            }
            let data = self.out.split_to(room.min(self.out.len()));
            let last = self.out.is_empty() && matches!(self.end, RequestEnd::Data);
            self.sender.send_data(data, last)?;
            if last {
                self.end = RequestEnd::Sent;
            }
            return Poll::Ready(Ok(()));
        }
        match std::mem::replace(&mut self.end, RequestEnd::Sent) {
            RequestEnd::Data => self.sender.send_data(Bytes::new(), true)?,
            RequestEnd::Trailers(trailers) => self.sender.send_trailers(trailers)?,
            RequestEnd::Open | RequestEnd::Sent => {}
        }
        Poll::Ready(Ok(()))
    }

    /// Decides what a failure means for the exchange. If the origin refused the stream or ended it
    /// with GOAWAY, it did not process the request (RFC 9113 §8.7). The request may then be sent
    /// again.
    fn failed(&self, failure: Failure) -> Result<WaitEnd, UpstreamError> {
        let error = match failure {
            Failure::Ours(error) => return Err(error),
            Failure::Library(error) => error,
        };
        if self.lease.flood().is_some() {
            return Err(Http2Error::Flood.into());
        }
        let again = match error.reason() {
            _ if self.answered => None,
            Some(_) if error.is_go_away() && error.is_remote() => Some(RetryReason::Refused),
            Some(Reason::REFUSED_STREAM) if error.is_remote() => Some(RetryReason::Refused),
            Some(Reason::HTTP_1_1_REQUIRED) if error.is_remote() => Some(RetryReason::OverHttp1),
            None if self.lease.kept() => Some(RetryReason::Lost),
            _ => None,
        };
        match again {
            Some(again) => Ok(WaitEnd::Retry(again)),
            None if error.is_library() => Err(Http2Error::Protocol.into()),
            None if error.is_reset() => Err(Http2Error::StreamReset.into()),
            None if self.answered => Err(UpstreamError::Reset),
            None => Err(UpstreamError::NoResponse),
        }
    }
}

fn poll_trailers(
    body: &mut RecvStream,
    context: &mut Context<'_>,
) -> Poll<Result<Option<HeaderMap>, h2::Error>> {
    std::pin::pin!(body.trailers()).poll(context)
}

impl From<h2::Error> for Failure {
    fn from(error: h2::Error) -> Self {
        Self::Library(error)
    }
}

impl From<DecodeError> for Failure {
    fn from(error: DecodeError) -> Self {
        Self::Ours(error.into())
    }
}
