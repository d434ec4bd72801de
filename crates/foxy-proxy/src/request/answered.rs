//! An answer as data: its form, its head, how much of it was sent, and what the log says of it.

use crate::request::access::MediaType;
use crate::request::cache_status::CacheStatus;
use bytes::Bytes;
use foxy_http::{Headers, Version};
use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// The fields of a request that decide how its answer is framed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnswerOptions {
    pub(crate) head_only: bool,
    pub(crate) version: Version,
    pub(crate) keep: bool,
    pub(crate) trailers: bool,
}

/// How the client finds the end of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    /// Unknown length: chunks, or the end of an HTTP/2 stream.
    Chunked,
    UntilClose,
    /// No body at all (204, 304).
    Empty,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) status: u16,
    pub(crate) reason: &'a [u8],
    /// Without Age, Cache-Status, framing and hop-by-hop fields.
    pub(crate) headers: &'a Headers,
    /// The status line and the header lines in HTTP/1.1 text, if that text is stored.
    pub(crate) wire: Option<&'a Bytes>,
    pub(crate) age: Option<u64>,
    pub(crate) outcome: CacheStatus,
    pub(crate) framing: Framing,
}

/// Bytes sent of an answer so far, for the log of a request that is cut short.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    opened: Cell<Option<(u16, CacheStatus)>>,
    head: Cell<u64>,
    sent: Cell<u64>,
}

impl Progress {
    pub(crate) fn restart(&self) {
        self.opened.set(None);
        self.head.set(0);
        self.sent.set(0);
    }

    /// Notes that a head of `head` bytes is about to be sent.
    pub(crate) fn open(&self, status: u16, outcome: CacheStatus, head: u64) {
        self.opened.set(Some((status, outcome)));
        self.head.set(head);
    }

    pub(crate) fn send(&self, bytes: u64) {
        self.sent.set(self.sent.get() + bytes);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Body bytes sent, chunk lines included.
    pub(crate) fn body(&self) -> u64 {
        self.sent.get().saturating_sub(self.head.get())
    }

    /// Status and outcome, once a byte was sent.
    pub(crate) fn opened(&self) -> Option<(u16, CacheStatus)> {
        self.opened.get().filter(|_| self.sent.get() > 0)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    Gone,
    Timeout,
}

/// Waits for `future` up to `patience`. A zero `patience` polls once, since a timer would wait a
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientTook {
    All,
    Partly,
}

/// Whether the connection can serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionFate {
    Keep,
    Close,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct SentResponse {
    pub(crate) outcome: CacheStatus,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) media_type: MediaType,
}

/// A finished answer. While a body is still being sent: the answer that it will be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) connection: ConnectionFate,
    pub(crate) response: SentResponse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// The client left or took nothing.
    Client,
    /// The body did not come whole.
    Source,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum SendFailure {
    Aborted(Aborted),
    /// The store no longer has the body. Nothing was sent.
    BodyGone,
    /// The store no longer has the rest of the body.
    RestGone(UnsentRest),
}

impl SendFailure {
    pub(crate) const fn is_loss(&self) -> bool {
        matches!(self, Self::BodyGone | Self::RestGone(_))
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentRest {
    /// The first unsent byte of the body.
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// Whether some of the answer was sent before.
    pub(crate) opened: bool,
    pub(crate) answered: Answered,
}

impl From<WriteEnd> for SendFailure {
    fn from(end: WriteEnd) -> Self {
        Self::Aborted(end.into())
    }
}

impl From<WriteEnd> for Aborted {
    fn from(_: WriteEnd) -> Self {
        Self::Client
    }
}
