//! Describes an answer as data: its framing, its head, the number of bytes sent, and the values for
//! the access log.

use crate::core::client_limits::Pace;
use crate::core::rules::AppliedRules;
use crate::request::access::MediaType;
use crate::request::cache_status::{CacheStatus, NamedStatus};
use crate::upstream::Responder;
use crate::upstream::fleet::Told;
use bytes::Bytes;
use foxy_base::random::split_mix;
use foxy_base::{Instant, clock};
use foxy_http::{Headers, Version};
use foxy_store::Key;
use std::cell::{Cell, Ref, RefCell};
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// The properties of a request that decide how its answer is framed.
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
    /// The length of the body is unknown. HTTP/1.1 sends the body in chunks. In HTTP/2, the body
    /// ends with the stream.
    Chunked,
    UntilClose,
    /// The answer has no body (204, 304).
    Empty,
}

/// The head of an answer, and the values that the sender adds to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening<'a> {
    pub(crate) status: u16,
    pub(crate) reason: &'a [u8],
    /// The headers without Age, Cache-Status, framing and hop-by-hop fields.
    pub(crate) headers: &'a Headers,
    /// The status line and header lines as HTTP/1.1 text, if this text is stored.
    pub(crate) wire: Option<&'a Bytes>,
    pub(crate) age: Option<u64>,
    /// True if the proxy may also send this response with a coding (`Vary: Accept-Encoding`).
    pub(crate) varies: bool,
    pub(crate) outcome: CacheStatus,
    pub(crate) framing: Framing,
}

/// Counts the bytes of an answer that were sent so far, and collects values for the access log. The
/// numbers are also correct if the answer stays incomplete.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The server and the parent proxy that answered.
    responder: RefCell<Responder>,
    /// The operator's rules that applied to the request.
    rules: RefCell<AppliedRules>,
    /// The limit on the bytes per second that the client receives.
    pace: RefCell<Option<Pace>>,
    /// The user who sent the request, if the proxy knows the user.
    user: RefCell<Option<Arc<str>>>,
    /// The hash of the cache key, if the request has a cache key.
    key: Cell<Option<Key>>,
    opened: Cell<Option<(u16, CacheStatus)>>,
    head: Cell<u64>,
    sent: Cell<u64>,
    /// Number of the request, from which its id is made.
    number: Cell<u64>,
    /// The id that a trusted client has given the request.
    given_id: RefCell<Option<Box<str>>>,
    started: Cell<Instant>,
    /// Whether the answer has a `Server-Timing` field.
    is_timed: Cell<bool>,
    /// Whether the client had left before foxy began to answer with an error of the origin.
    had_left: Cell<bool>,
    /// The name of this cache in `Cache-Status`.
    cache_name: Cell<&'static str>,
    /// Facts about the answer for the node of the fleet that sent the request. `None` if the client
    /// is no node.
    told: Cell<Option<Told>>,
}

impl Progress {
    /// Clears the values of the last request, because the request with this number begins.
    pub(crate) fn restart(&self, number: u64, started: Instant, cache_name: &'static str) {
        self.number.set(number);
        self.cache_name.set(cache_name);
        self.told.set(None);
        self.given_id.take();
        self.started.set(started);
        self.is_timed.set(false);
        self.had_left.set(false);
        self.responder.take();
        self.rules.borrow_mut().clear();
        self.pace.take();
        self.user.take();
        self.key.set(None);
        self.opened.set(None);
        self.head.set(0);
        self.sent.set(0);
    }

    pub(crate) fn id(&self) -> String {
        let given = self.given_id.borrow();
        given.as_ref().map_or_else(|| made_id(self.number.get()), ToString::to_string)
    }

    /// Records the id that a trusted client has given the request.
    pub(crate) fn named(&self, id: &str) {
        self.given_id.replace(Some(id.into()));
    }

    /// Sets whether the answer has a `Server-Timing` field.
    pub(crate) fn time(&self, is_timed: bool) {
        self.is_timed.set(is_timed);
    }

    /// Returns the value of the field `Server-Timing`, if the answer has this field. The caller
    /// must send the answer at once. The value contains the outcome, the times of the fetch, and
    /// the time since the request began, in milliseconds.
    pub(crate) fn server_timing(&self, outcome: CacheStatus) -> Option<String> {
        if !self.is_timed.get() {
            return None;
        }
        let millis = |time: Duration| time.as_secs_f64() * 1e3;
        let mut value = format!("cache;desc={}", outcome.request_outcome().name());
        if let Some(times) = self.responder.borrow().times {
            let (connect, first_byte) = (millis(times.connect), millis(times.first_byte));
            value.push_str(&format!(", connect;dur={connect:.3}, origin;dur={first_byte:.3}"));
        }
        let total = millis(clock::monotonic().since(self.started.get()));
        value.push_str(&format!(", total;dur={total:.3}"));
        Some(value)
    }

    /// Returns the part that this cache adds to `Cache-Status`.
    pub(crate) fn cache_status(&self, outcome: CacheStatus) -> NamedStatus {
        outcome.of_cache(self.cache_name.get())
    }

    /// Records the facts that the answer will tell the node of the fleet that sent the request.
    pub(crate) fn tell(&self, told: Told) {
        self.told.set(Some(told));
    }

    /// Returns the facts that an answer with this outcome tells the node of the fleet that sent the
    /// request. Returns `None` if the client is no node.
    pub(crate) fn told(&self, outcome: CacheStatus) -> Option<Told> {
        let error = match outcome {
            CacheStatus::Error(reason) => reason.cause_at_node(),
            _ => None,
        };
        self.told.get().map(|told| Told { error, ..told })
    }

    /// Records the server and the parent proxy that answered.
    pub(crate) fn answered_by(&self, responder: Responder) {
        self.responder.replace(responder);
    }

    pub(crate) fn responder(&self) -> Ref<'_, Responder> {
        self.responder.borrow()
    }

    /// Records the user who sent the request.
    pub(crate) fn sent_by(&self, user: Option<Arc<str>>) {
        self.user.replace(user);
    }

    pub(crate) fn user(&self) -> Option<Arc<str>> {
        self.user.borrow().clone()
    }

    /// Returns the operator's rules that applied to the request.
    pub(crate) const fn rules(&self) -> &RefCell<AppliedRules> {
        &self.rules
    }

    /// Records the hash of the request's cache key.
    pub(crate) fn keyed(&self, key: Key) {
        self.key.set(Some(key));
    }

    pub(crate) fn key(&self) -> Option<Key> {
        self.key.get()
    }

    pub(crate) fn paced_by(&self, pace: Option<Pace>) {
        self.pace.replace(pace);
    }

    pub(crate) fn pace(&self) -> Option<Pace> {
        self.pace.borrow().clone()
    }

    /// Records that a head of `head` bytes will be sent now, with its status and cache status.
    pub(crate) fn open(&self, status: u16, outcome: CacheStatus, head: u64) {
        self.opened.set(Some((status, outcome)));
        self.head.set(head);
    }

    /// Records whether the client has left before the answer.
    pub(crate) fn note_left(&self, had_left: bool) {
        self.had_left.set(had_left);
    }

    pub(crate) fn client_had_left(&self) -> bool {
        self.had_left.get()
    }

    pub(crate) fn send(&self, bytes: u64) {
        self.sent.set(self.sent.get() + bytes);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent.get()
    }

    /// Returns the number of body bytes sent. The size lines of chunks count too.
    pub(crate) fn body(&self) -> u64 {
        self.sent.get().saturating_sub(self.head.get())
    }

    /// Returns the status and cache status of the answer, or `None` until at least one byte was
    /// sent.
    pub(crate) fn opened(&self) -> Option<(u16, CacheStatus)> {
        self.opened.get().filter(|_| self.sent.get() > 0)
    }
}

/// Makes the id of a request: 16 hexadecimal digits, from which nobody can see the order of
/// requests.
fn made_id(number: u64) -> String {
    let mut state = number;
    format!("{:016x}", split_mix(&mut state))
}

/// The reason why an answer cannot be sent: the client disconnected, or accepted no bytes for too
/// long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteEnd {
    Gone,
    Timeout,
}

/// Waits for `future`, but not longer than `patience`. If `patience` is zero, polls only once,
/// because even the shortest timer would wait for a moment.
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

/// Whether the client accepted all bytes in the time that the caller allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientTook {
    All,
    Partly,
}

/// Tells whether the connection can be used for another request.
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

/// A finished answer. The value is created before the body is sent, and already describes the
/// complete answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    pub(crate) connection: ConnectionFate,
    pub(crate) response: SentResponse,
}

/// The side that ended an answer too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Aborted {
    /// The client disconnected, or stopped reading the answer.
    Client,
    /// The origin or the store did not deliver the complete body.
    Source,
}

/// The reason why a stored body was not sent completely.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SendFailure {
    Aborted(Aborted),
    /// The store no longer has the body. Nothing was sent.
    BodyGone,
    /// The store no longer has the unsent bytes of the body.
    RestGone(UnsentRest),
}

impl SendFailure {
    pub(crate) const fn is_loss(&self) -> bool {
        matches!(self, Self::BodyGone | Self::RestGone(_))
    }
}

/// The range of a body that was not sent yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnsentRest {
    /// Position of the first unsent byte of the body.
    pub(crate) at: u64,
    pub(crate) end: u64,
    /// True if a part of the answer was already sent.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::OriginTimes;
    use std::collections::BTreeSet;

    #[test]
    fn each_request_has_an_id_and_a_trusted_client_may_give_it() {
        let progress = Progress::default();
        let mut id = |number| {
            progress.restart(number, Instant(0), "foxy");
            progress.id()
        };
        let ids: BTreeSet<String> = (0..1000).map(&mut id).collect();
        assert!(ids.len() == 1000 && ids.iter().all(|id| id.len() == 16), "{ids:?}");
        progress.named("of-the-balancer");
        assert_eq!(progress.id(), "of-the-balancer");
        progress.restart(7, Instant(0), "foxy");
        assert_eq!(progress.id().len(), 16);
    }

    #[test]
    fn server_timing_tells_the_outcome_and_the_times_of_the_fetch() {
        let (progress, outcome) = (Progress::default(), CacheStatus::Local { detail: "trace" });
        assert_eq!(progress.server_timing(outcome), None);
        progress.restart(1, clock::monotonic(), "foxy");
        progress.time(true);
        let (connect, first_byte) = (Duration::from_micros(1500), Duration::from_millis(20));
        let times = Some(OriginTimes { started: Instant(0), connect, first_byte });
        progress.answered_by(Responder { times, ..Responder::default() });
        let value = progress.server_timing(outcome).expect("a value");
        let begin = "cache;desc=local, connect;dur=1.500, origin;dur=20.000, total;dur=";
        assert!(value.starts_with(begin), "{value}");
    }
}
