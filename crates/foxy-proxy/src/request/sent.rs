//! The record of the data sent to a client: whether all was sent, and what the log says of it.

use crate::request::access::MediaType;
use crate::request::cache_status::CacheStatus;
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
pub(crate) enum ClientTook {
    All,
    Partly,
}

/// Whether the connection can serve another request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Keep,
    Close,
}

/// What was sent, for the log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) outcome: CacheStatus,
    pub(crate) status: u16,
    pub(crate) body_bytes: u64,
    pub(crate) media_type: MediaType,
}

/// Why an answer did not reach its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// The client left or took nothing.
    Client,
    /// The body did not come whole.
    Source,
}

/// Why a stored response was not sent whole.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Short {
    /// The client is gone.
    Aborted(Aborted),
    /// The store no longer has the body, and nothing was sent yet.
    Gone,
    /// The store no longer has the rest of the body.
    Rest(UnsentRest),
}

/// What is still to be sent of a stored response whose body is partly gone.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentRest {
    /// The first byte of the body that was not sent.
    pub(crate) at: u64,
    /// One past the last byte to send.
    pub(crate) end: u64,
    /// Whether some of the answer was sent before.
    pub(crate) opened: bool,
    /// What follows, once all is sent.
    pub(crate) answered: (After, Sent),
}

impl From<WriteEnd> for Short {
    fn from(end: WriteEnd) -> Self {
        Self::Aborted(end.into())
    }
}

impl From<WriteEnd> for Aborted {
    fn from(_: WriteEnd) -> Self {
        Self::Client
    }
}
