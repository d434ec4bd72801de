//! Answers on their way to a client, in meanings: a head, bytes of a body, its end. What to answer
//! has been decided before; what that is on the wire is up to the protocol's own sender.

use crate::answer::{After, Asked};
use crate::cache_status::CacheStatus;
use crate::http1_sender::Http1Sender;
use crate::http2::Http2Sender;
use bytes::Bytes;
use foxy_http::{Headers, ResponseHead};
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// Why a client gets no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    /// It closed or reset the connection, or the stream.
    Gone,
    /// It took nothing for too long.
    Timeout,
}

/// What a future gives within `patience`: with none, what it gives at once. A timer would take a
/// moment even then.
pub(crate) async fn within<T>(patience: Duration, future: impl Future<Output = T>) -> Option<T> {
    if !patience.is_zero() {
        return timeout(patience, future).await.ok();
    }
    let mut future = pin!(future);
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(given) => Poll::Ready(Some(given)),
        Poll::Pending => Poll::Ready(None),
    })
    .await
}

/// Whether a client has taken all that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    All,
    Partly,
}

/// How the body is told apart from the next response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    /// By what the protocol has for bodies of unknown length: chunks, or the end of the stream.
    Chunked,
    UntilClose,
    /// No body at all (204, 304).
    Empty,
}

/// A final head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) status: u16,
    pub(crate) reason: &'a [u8],
    /// Without Age, Cache-Status, framing and what concerns the connection.
    pub(crate) headers: &'a Headers,
    /// Status line and header lines as HTTP/1.1 writes them, where they are kept so.
    pub(crate) wire: Option<&'a Bytes>,
    pub(crate) age: Option<u64>,
    pub(crate) outcome: CacheStatus,
    pub(crate) framing: Framing,
}

/// What answers are sent through.
pub(crate) enum Sender<'a> {
    Http1(Http1Sender<'a>),
    Http2(Http2Sender<'a>),
}

impl Sender<'_> {
    /// Begins an answer. The head leaves with what is sent next.
    pub(crate) fn begin(&mut self, asked: Asked, opening: Opening<'_>) -> After {
        match self {
            Self::Http1(sender) => sender.begin(asked, opening),
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
    ) -> Result<Taken, WriteEnd> {
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
