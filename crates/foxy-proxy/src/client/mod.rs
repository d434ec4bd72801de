//! A client's connection, for every HTTP version. For each request, the connection has a receiver
//! for the body and a sender for the answer.

pub(crate) mod http1_sender;
pub(crate) mod http2;
pub(crate) mod io;
pub(crate) mod pacing;

use crate::client::http1_sender::Http1Sender;
use crate::client::http2::sender::{Http2Sender, repeat_signs};
use crate::client::http2::stream::{Http2Body, Http2Stream};
use crate::client::io::{ClientConnection, Http1Receiver, ReadEnd};
use crate::core::client_limits::Pace;
use crate::core::rules::AppliedRules;
use crate::core::tls::HandshakeFacts;
use crate::intercept::Inside;
use crate::request::answered::{
    AnswerOptions, ClientTook, ConnectionFate, Opening, Progress, WriteEnd,
};
use crate::request::cache_status::CacheStatus;
use crate::upstream::fleet::signs::sign;
use crate::upstream::{Responder, Scheme};
use bytes::Bytes;
use foxy_http::{Headers, RequestEvent, ResponseHead};
use foxy_store::Key;
use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::coop::consume_budget;

/// The client of one request, by HTTP version.
pub(crate) enum Client<'a> {
    Http1(&'a mut ClientConnection),
    Http2(Http2Stream<'a>),
}

impl<'a> Client<'a> {
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

    /// Returns the intercepted CONNECT whose tunnel contains this request, if there is one.
    pub(crate) fn inside(&self) -> Option<&Inside> {
        match self {
            Self::Http1(connection) => connection.inside.as_ref(),
            Self::Http2(stream) => stream.inside,
        }
    }

    /// Repeats the interim response of [`Sender::waits_for_origin`]. Never ends.
    pub(crate) fn repeat_signs(&self) -> impl Future<Output = ()> + use<'a> {
        let out = if let Self::Http2(stream) = self { Some(stream.out) } else { None };
        async move {
            match out {
                Some(out) => repeat_signs(out).await,
                None => pending().await,
            }
        }
    }

    /// Returns true if the connection can move to another process between two requests.
    pub(crate) const fn can_move(&self) -> bool {
        matches!(self, Self::Http1(connection) if connection.can_move())
    }

    /// Returns the number of the node of the fleet that is the client. Returns `None` for every
    /// other client.
    pub(crate) const fn node(&self) -> Option<usize> {
        match self {
            Self::Http1(connection) => connection.node,
            Self::Http2(stream) => stream.node,
        }
    }

    /// Returns the server name and the certificate of the client's TLS handshake.
    pub(crate) fn presented(&self) -> Option<&HandshakeFacts> {
        match self {
            Self::Http1(connection) => connection.presented.as_deref(),
            Self::Http2(stream) => stream.presented,
        }
    }

    /// Returns the address to which the client connected. Returns `None` for a Unix socket.
    pub(crate) fn reached(&self) -> Option<SocketAddr> {
        match self {
            Self::Http1(connection) => {
                connection.stream.with_socket(|socket| socket.local_addr()).ok()
            }
            Self::Http2(stream) => stream.reached,
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
    /// Returns the next event of a request, such as a piece of its body. For HTTP/1.1, `limit` is
    /// the time limit for each read. For HTTP/2, `limit` is the time limit for the whole event.
    pub(crate) async fn next(&mut self, limit: Duration) -> Result<RequestEvent, ReadEnd> {
        // A read can bring many tiny chunks. Other requests get their turn between them.
        consume_budget().await;
        match self {
            Self::Http1(receiver) => receiver.next(limit).await,
            Self::Http2(body) => body.next(limit).await,
        }
    }
}

/// Sends an answer: a head, bytes of a body, and an end. Each protocol has its own sender, which
/// writes HTTP/1.1 text or HTTP/2 frames.
pub(crate) enum Sender<'a> {
    Http1(Http1Sender<'a>),
    Http2(Http2Sender<'a>),
}

impl Sender<'_> {
    /// Begins an answer. The head waits until the first bytes of the body are sent too.
    pub(crate) fn begin(&mut self, options: AnswerOptions, opening: Opening<'_>) -> ConnectionFate {
        match self {
            Self::Http1(sender) => sender.begin(options, opening),
            Self::Http2(sender) => sender.begin(opening),
        }
    }

    /// Sends the whole body of an answer with a known length. If the answer has no body, `body`
    /// must be empty.
    pub(crate) async fn finish(&mut self, mut body: Bytes) -> Result<(), WriteEnd> {
        if let Some(pace) = self.pace() {
            self.send_all_but_last(&mut body, &pace).await?;
        }
        match self {
            Self::Http1(sender) => sender.finish(body).await,
            Self::Http2(sender) => sender.finish(body).await,
        }
    }

    /// Sends more of the body. `data` must not be empty.
    pub(crate) async fn body(&mut self, mut data: Bytes) -> Result<(), WriteEnd> {
        if let Some(pace) = self.pace() {
            self.send_all_but_last(&mut data, &pace).await?;
        }
        self.body_now(data).await
    }

    async fn body_now(&mut self, data: Bytes) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.body(data).await,
            Self::Http2(sender) => sender.body(data).await,
        }
    }

    /// Ends the body. If the framing does not permit trailers, drops them.
    pub(crate) async fn end(&mut self, trailers: &Headers) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.end(trailers).await,
            Self::Http2(sender) => sender.end(trailers).await,
        }
    }

    /// Sends the head now if it still waits for the body.
    pub(crate) async fn flush(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.flush().await,
            Self::Http2(sender) => sender.flush().await,
        }
    }

    /// For HTTP/1.1, writes the size of the next chunk: `length` bytes of the body will follow in
    /// parts. `length` must not be 0.
    pub(crate) fn announce(&mut self, length: usize) {
        if let Self::Http1(sender) = self {
            sender.announce(length);
        }
    }

    /// Sends `part`, which belongs to the announced bytes or to a body of known length. Stops if
    /// the client accepts nothing for the duration that `patience` returns. `patience` is called at
    /// the start of each wait. The unsent bytes stay in `part`.
    pub(crate) async fn part(
        &mut self,
        part: &mut Bytes,
        patience: impl Fn() -> Duration,
    ) -> Result<ClientTook, WriteEnd> {
        match self.pace() {
            Some(pace) => self.paced_part(part, &patience, &pace).await,
            None => self.part_now(part, &patience).await,
        }
    }

    async fn part_now(
        &mut self,
        part: &mut Bytes,
        patience: &impl Fn() -> Duration,
    ) -> Result<ClientTook, WriteEnd> {
        match self {
            Self::Http1(sender) => sender.part(part, patience).await,
            Self::Http2(sender) => sender.part(part, patience).await,
        }
    }

    /// Ends the chunk that [`Self::announce`] began. The caller must have sent all announced bytes.
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

    /// Tells another node that this node waits for the origin. Only HTTP/2 can repeat this.
    pub(crate) async fn waits_for_origin(&mut self) -> Result<(), WriteEnd> {
        match self {
            Self::Http1(sender) => sender.head(&sign(0)).await,
            Self::Http2(sender) => sender.waits_for_origin().await,
        }
    }

    /// Records the status and cache status of the head that opens a tunnel, for the access log.
    pub(crate) fn record_opening(&self, status: u16, outcome: CacheStatus) {
        match self {
            Self::Http1(sender) => sender.progress.open(status, outcome, 0),
            Self::Http2(sender) => sender.record_opening(status, outcome),
        }
    }

    /// Records the server and the parent proxy that answered, for the access log.
    pub(crate) fn answered_by(&self, responder: Responder) {
        match self {
            Self::Http1(sender) => sender.progress.answered_by(responder),
            Self::Http2(sender) => sender.answered_by(responder),
        }
    }

    /// Calls `read` with the state of the answer, and returns its result.
    pub(crate) fn with_progress<T>(&self, read: impl FnOnce(&Progress) -> T) -> T {
        match self {
            Self::Http1(sender) => read(sender.progress),
            Self::Http2(sender) => sender.with_progress(read),
        }
    }

    /// Notes the user who sent the request, for the access log.
    pub(crate) fn sent_by(&self, user: Option<Arc<str>>) {
        match self {
            Self::Http1(sender) => sender.progress.sent_by(user),
            Self::Http2(sender) => sender.sent_by(user),
        }
    }

    /// Calls `note` with the operator's rules that applied to the request so far. Returns its
    /// result.
    pub(crate) fn with_rules<T>(&self, note: impl FnOnce(&mut AppliedRules) -> T) -> T {
        self.with_progress(|progress| note(&mut progress.rules().borrow_mut()))
    }

    /// Notes the hash of the request's cache key. It decides whether the answer belongs to the
    /// sample that `request::sample` passes on.
    pub(crate) fn keyed(&self, key: Key) {
        match self {
            Self::Http1(sender) => sender.progress.keyed(key),
            Self::Http2(sender) => sender.keyed(key),
        }
    }

    /// Limits the rate at which the client receives the rest of the answer.
    pub(crate) fn paced_by(&self, pace: Option<Pace>) {
        match self {
            Self::Http1(sender) => sender.progress.paced_by(pace),
            Self::Http2(sender) => sender.paced_by(pace),
        }
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        match self {
            Self::Http1(sender) => sender.progress.pace(),
            Self::Http2(sender) => sender.pace(),
        }
    }

    /// Breaks the body off in a way that the client cannot mistake for the end of the body. For
    /// HTTP/2, does nothing, because the caller resets the stream.
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

    /// Returns the number of bytes sent so far. For HTTP/2, heads count with their size before
    /// compression, and frame headers do not count.
    pub(crate) fn sent(&self) -> u64 {
        match self {
            Self::Http1(sender) => sender.sent,
            Self::Http2(sender) => sender.sent(),
        }
    }
}
