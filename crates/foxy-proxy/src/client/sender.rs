//! Answers on their way to a client, in meanings: a head, bytes of a body, its end. What to answer
//! has been decided before; what that is on the wire is up to the protocol's own sender.

use crate::client::http1_sender::Http1Sender;
use crate::client::http2::sender::Http2Sender;
use crate::request::answered::{AnswerOptions, ClientTook, ConnectionFate, Opening, WriteEnd};
use crate::request::cache_status::CacheStatus;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use std::time::Duration;

/// What answers are sent through.
pub(crate) enum Sender<'a> {
    Http1(Http1Sender<'a>),
    Http2(Http2Sender<'a>),
}

impl Sender<'_> {
    /// Begins an answer. The head leaves with what is sent next.
    pub(crate) fn begin(&mut self, options: AnswerOptions, opening: Opening<'_>) -> ConnectionFate {
        match self {
            Self::Http1(sender) => sender.begin(options, opening),
            Self::Http2(sender) => sender.begin(opening),
        }
    }

    /// Sends all there is to the body, framed by its length; nothing for an answer that has none.
    pub(crate) async fn finish(&mut self, body: Bytes) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.finish(body).await,
            Self::Http2(sender) => sender.finish(body).await,
        }
    }

    /// Sends more of the body; never nothing.
    pub(crate) async fn body(&mut self, data: Bytes) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.body(data).await,
            Self::Http2(sender) => sender.body(data).await,
        }
    }

    /// Ends the body; trailers go where the framing has a place for them.
    pub(crate) async fn end(&mut self, trailers: &Headers) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.end(trailers).await,
            Self::Http2(sender) => sender.end(trailers).await,
        }
    }

    /// Sends what waits for more to go with.
    pub(crate) async fn flush(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.flush().await,
            Self::Http2(sender) => sender.flush().await,
        }
    }

    /// Begins `length` bytes of the body, more than none, that come in parts.
    pub(crate) fn announce(&mut self, length: usize) {
        if let Self::Http1(sender) = self {
            sender.announce(length);
        }
    }

    /// Sends a part of what was announced, or of a body framed by its length, until the client
    /// takes nothing for as long as `patience` says when that begins; what is left of it stays in
    /// `part`.
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

    /// Ends what was announced.
    pub(crate) async fn announced_is_sent(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.announced_is_sent().await,
            Self::Http2(_) => Ok(()),
        }
    }

    /// Sends a head that no body follows: an interim one, or one that opens a tunnel.
    pub(crate) async fn head(&mut self, head: &ResponseHead) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.head(head).await,
            Self::Http2(sender) => sender.head(head).await,
        }
    }

    /// Notes what the head says that opens a tunnel.
    pub(crate) fn opens(&self, status: u16, outcome: CacheStatus) {
        match self {
            Self::Http1(sender) => sender.progress.open(status, outcome, 0),
            Self::Http2(sender) => sender.opens(status, outcome),
        }
    }

    /// The body breaks off here, and the client must not take that for its end. HTTP/2 says so when
    /// the stream ends.
    pub(crate) fn break_off(&self) {
        if let Self::Http1(sender) = self {
            sender.break_off();
        }
    }

    /// Waits until the client takes more.
    pub(crate) async fn writable(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.writable().await,
            Self::Http2(sender) => sender.writable().await,
        }
    }

    /// Bytes sent so far; of HTTP/2 those of heads before their compression, and none of frames.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Http1(sender) => sender.sent,
            Self::Http2(sender) => sender.sent(),
        }
    }
}
