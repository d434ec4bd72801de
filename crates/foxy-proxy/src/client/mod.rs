//! A client's connection, for every HTTP version: the receiver of a request's body, and the sender
//! of the answer.

pub(crate) mod http1_sender;
pub(crate) mod http2;
pub(crate) mod io;

use crate::client::http1_sender::Http1Sender;
use crate::client::http2::sender::Http2Sender;
use crate::client::http2::stream::{Http2Body, Http2Stream};
use crate::client::io::{ClientConnection, Http1Receiver, ReadEnd};
use crate::request::answered::{AnswerOptions, ClientTook, ConnectionFate, Opening, WriteEnd};
use crate::request::cache_status::CacheStatus;
use crate::upstream::Scheme;
use bytes::Bytes;
use foxy_http::{Headers, RequestEvent, ResponseHead};
use std::time::Duration;

/// The client during one request.
pub(crate) enum Client<'a> {
    Http1(&'a mut ClientConnection),
    Http2(Http2Stream<'a>),
}

impl Client<'_> {
    pub(crate) fn split(&mut self, write_limit: Duration) -> (Receiver<'_>, Sender<'_>) {
        match self {
            Self::Http1(connection) => {
                let (receiver, sender) = connection.split(write_limit);
                (Receiver::Http1(receiver), Sender::Http1(sender))
            }
            Self::Http2(stream) => {
                let (body, sender) = stream.split(write_limit);
                (Receiver::Http2(body), Sender::Http2(sender))
            }
        }
    }

    pub(crate) fn scheme(&self) -> Scheme {
        match self {
            Self::Http1(connection) => connection.stream.scheme(),
            Self::Http2(stream) => stream.scheme,
        }
    }
}

pub(crate) enum Receiver<'a> {
    Http1(Http1Receiver<'a>),
    Http2(&'a mut Http2Body),
}

impl Receiver<'_> {
    /// Returns the next part of a request. Each read may take `limit`.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        match self {
            Self::Http1(receiver) => receiver.next(limit).await,
            Self::Http2(body) => body.next(limit).await,
        }
    }
}

/// Sends an answer: a head, bytes of a body, and an end. The sender of each protocol converts them
/// to HTTP/1.1 text or HTTP/2 frames.
pub(crate) enum Sender<'a> {
    Http1(Http1Sender<'a>),
    Http2(Http2Sender<'a>),
}

impl Sender<'_> {
    /// Begins an answer. The head is sent together with the first bytes of the body.
    pub(crate) fn begin(&mut self, options: AnswerOptions, opening: Opening<'_>) -> ConnectionFate {
        match self {
            Self::Http1(sender) => sender.begin(options, opening),
            Self::Http2(sender) => sender.begin(opening),
        }
    }

    /// Sends the whole body, whose length frames it. For an answer without a body, sends no body
    /// bytes.
    pub(crate) async fn finish(&mut self, body: Bytes) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.finish(body).await,
            Self::Http2(sender) => sender.finish(body).await,
        }
    }

    /// Sends more of the body. `data` must not be empty.
    pub(crate) async fn body(&mut self, data: Bytes) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.body(data).await,
            Self::Http2(sender) => sender.body(data).await,
        }
    }

    /// Ends the body. Trailers are dropped if the framing does not permit them.
    pub(crate) async fn end(&mut self, trailers: &Headers) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.end(trailers).await,
            Self::Http2(sender) => sender.end(trailers).await,
        }
    }

    /// Sends a head that still waits for the body.
    pub(crate) async fn flush(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.flush().await,
            Self::Http2(sender) => sender.flush().await,
        }
    }

    /// Announces `length` bytes of the body, which then follow in parts. `length` must not be 0.
    pub(crate) fn announce(&mut self, length: usize) {
        if let Self::Http1(sender) = self {
            sender.announce(length);
        }
    }

    /// Sends a part of the announced bytes, or of a body whose length frames it. Stops if the
    /// client reads nothing for the duration that `patience` returns. `patience` is called at the
    /// start of each wait. The unsent rest stays in `part`.
    pub(crate) async fn part(
        &mut self,
        part: &mut Bytes,
        patience: impl Fn() -> Duration,
    ) -> Result<ClientTook, WriteEnd> {
        match self {
            Self::Http1(sender) => sender.part(part, patience).await,
            Self::Http2(sender) => sender.part(part, patience).await,
        }
    }

    /// Ends the announced bytes.
    pub(crate) async fn announced_is_sent(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.announced_is_sent().await,
            Self::Http2(_) => Ok(()),
        }
    }

    /// Sends a head without a body: an interim response, or the head that opens a tunnel.
    pub(crate) async fn head(&mut self, head: &ResponseHead) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.head(head).await,
            Self::Http2(sender) => sender.head(head).await,
        }
    }

    /// Records the status and outcome of the head that opens a tunnel.
    pub(crate) fn record_opening(&self, status: u16, outcome: CacheStatus) {
        match self {
            Self::Http1(sender) => sender.progress.open(status, outcome, 0),
            Self::Http2(sender) => sender.record_opening(status, outcome),
        }
    }

    /// Breaks the body off, so that the client cannot mistake this for the end of the body. In
    /// HTTP/2 the reset of the stream has this effect.
    pub(crate) fn break_off(&self) {
        if let Self::Http1(sender) = self {
            sender.break_off();
        }
    }

    /// Waits until the client's connection accepts more bytes.
    pub(crate) async fn writable(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.writable().await,
            Self::Http2(sender) => sender.writable().await,
        }
    }

    /// Bytes sent so far. For HTTP/2, heads count as before compression, and frame headers do not
    /// count.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Http1(sender) => sender.sent,
            Self::Http2(sender) => sender.sent(),
        }
    }
}
