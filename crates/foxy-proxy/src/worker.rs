//! State that the requests of a worker share. The whole proxy has one cache and one set of flights
//! (fetches that several requests share). Each worker has its own upstream client and counters.
//! This module makes no decisions.

use crate::cache::Cache;
use crate::cache::compressions::Compressions;
use crate::cache::epoch::Epoch;
use crate::cache::purge::Purges;
use crate::cache::refusals::{Refusals, Refused};
use crate::cache::shared_parts::SharedParts;
use crate::cache::stored::{CacheKey, Stored};
use crate::core::View;
use crate::core::authentication::Authenticator;
use crate::core::byte_budget::ByteBudget;
use crate::core::counters::{Counter, Counters};
use crate::core::idle_client::{Heir, IdleClient};
use crate::core::places::Places;
use crate::core::rules::Policies;
use crate::core::tls::HandshakeFacts;
use crate::core::transport::Transport;
use crate::flight::{Boarding, Flight, Flights};
use crate::request::access::AccessSink;
use crate::request::forwarding_fields;
use crate::request::sample::AnswerSample;
use crate::settings::ProxySettings;
use crate::upstream::{MakeResolver, UpstreamClient};
use foxy_base::WallTime;
use foxy_http::{Headers, RequestHead, ResponseHead, Version};
use foxy_rules::coding::varies_by_coding;
use foxy_rules::{Policy, date};
use foxy_store::Key;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::{Notify, watch};

/// The phase of the proxy, which decides how it treats its connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    Serve,
    /// Another foxy process has taken over and serves new connections. Open connections move to
    /// that process, or end after their next request.
    Leave,
    /// The proxy ends. It accepts no more requests.
    Stop,
}

/// State that all workers share.
pub(crate) struct Shared {
    pub(crate) settings: ProxySettings,
    pub(crate) cache: Cache,
    pub(crate) flights: Flights,
    pub(crate) purges: Purges,
    pub(crate) authenticator: Authenticator,
    pub(crate) refusals: Refusals,
    pub(crate) parts: SharedParts,
    pub(crate) compressions: Compressions,
    /// Memory budget for body bytes that clients have not read yet.
    pub(crate) waiting: ByteBudget,
    /// Memory budget in bytes for requests in progress. For each connection, one request with a
    /// small head does not count.
    pub(crate) requests: ByteBudget,
    pub(crate) sink: Option<Arc<dyn AccessSink>>,
    pub(crate) sample: Option<Arc<dyn AnswerSample>>,
    /// Function that creates a resolver of host names.
    pub(crate) resolver: MakeResolver,
    /// True if the phase of the proxy is not [`Course::Serve`].
    pub(crate) leaving: AtomicBool,
    /// Receives the idle connections when another process takes over ([`Course::Leave`]).
    pub(crate) heir: OnceLock<Heir>,
    pub(crate) places: Arc<Places>,
    /// Number of workers that were created so far.
    pub(crate) workers: AtomicU64,
}

/// Each worker has 2 to this power numbers for its requests. No other worker uses these numbers.
const REQUESTS_OF_WORKER: u32 = 48;

impl Shared {
    /// Returns true if another process takes over, or if the proxy ends. New requests are then not
    /// answered from the cache.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Joins the flight of a URL, or starts a new flight. A flight is a fetch that several requests
    /// share. A request joins a flight if `fits` accepts the flight, and if no newer response of
    /// the `variant` was stored after the flight began. `epoch` tells when a new flight would
    /// begin.
    pub(crate) fn board(
        &self,
        key: &CacheKey,
        variant: Option<Key>,
        epoch: Epoch,
        fits: impl Fn(&Flight) -> bool,
        landed: impl FnOnce() -> Option<Arc<Stored>>,
    ) -> Boarding {
        let fits =
            |flight: &Flight| self.cache.may_join(key, variant, flight.epoch) && fits(flight);
        self.flights.board(key.hash, epoch, fits, landed)
    }
}

pub(crate) struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) upstream: UpstreamClient,
    pub(crate) counters: Arc<Counters>,
    pub(crate) course: watch::Receiver<Course>,
    /// True when idle connections must move to another proxy.
    has_left: Cell<bool>,
    leaving: Notify,
    policies: Policies,
    date: RefCell<(u64, String)>,
    /// Number of the next request. All requests of the proxy have different numbers.
    next_request: Cell<u64>,
    /// The proxy's entry in Via for messages of HTTP/1.0, HTTP/1.1 and HTTP/2.
    via: [String; 3],
}

impl Worker {
    pub(crate) fn new(
        shared: Arc<Shared>,
        upstream: UpstreamClient,
        counters: Arc<Counters>,
        course: watch::Receiver<Course>,
    ) -> Self {
        let via =
            ["1.0", "1.1", "2"].map(|version| format!("{version} {}", shared.settings.via_name));
        let number = shared.workers.fetch_add(1, Ordering::Relaxed);
        let first_request = shared.settings.seed.wrapping_add(number << REQUESTS_OF_WORKER);
        Self {
            policies: shared.settings.policies(),
            shared,
            upstream,
            counters,
            course,
            has_left: Cell::new(false),
            leaving: Notify::new(),
            date: RefCell::new((u64::MAX, String::new())),
            next_request: Cell::new(first_request),
            via,
        }
    }

    pub(crate) fn next_request(&self) -> u64 {
        let number = self.next_request.get();
        self.next_request.set(number.wrapping_add(1));
        number
    }

    pub(crate) fn settings(&self) -> &ProxySettings {
        &self.shared.settings
    }

    /// Gives an idle client connection to `heir`, so that it moves to the process that takes over.
    pub(crate) fn give_away(
        &self,
        stream: Transport,
        peer: SocketAddr,
        aimed_at: Option<SocketAddr>,
    ) {
        if let (Transport::Plain(stream), Some(heir)) = (stream, self.shared.heir.get())
            && let Ok(stream) = stream.into_std()
        {
            self.counters.add(Counter::ConnectionsMoved, 1);
            heir(IdleClient { stream, peer, aimed_at });
        }
    }

    /// Wakes [`Self::has_left`] when idle connections must move to another proxy.
    pub(crate) async fn watch_leaving(&self) {
        let left = self.course.clone().wait_for(|course| *course == Course::Leave).await.is_ok();
        if left && self.shared.heir.get().is_some() {
            self.has_left.set(true);
            self.leaving.notify_waiters();
        }
    }

    /// Waits until idle connections must move to another proxy. A connection waits for a
    /// notification of its worker, because a future of the channel takes 300 bytes.
    pub(crate) async fn has_left(&self) {
        let leaving = self.leaving.notified();
        if !self.has_left.get() {
            leaving.await;
        }
    }

    /// Returns the number of the node whose name is in the client's certificate. Returns `None` for
    /// every other client.
    pub(crate) fn node_of(&self, presented: Option<&HandshakeFacts>) -> Option<usize> {
        let (link, facts) = self.settings().upstream.fleet.as_ref().zip(presented)?;
        link.fleet.others().iter().find(|node| facts.proves(&node.name)).map(|node| node.number)
    }

    /// Returns the caching policy for a response. `key` is its cache key, and `length` the length
    /// of the whole body in bytes, if known.
    pub(crate) fn policy(&self, key: &[u8], head: &ResponseHead, length: Option<u64>) -> Policy {
        self.policies.of(self.settings().mode.role(), key, head, length)
    }

    /// Returns the time as an HTTP date. Formats the date at most once per second.
    pub(crate) fn http_date(&self, now: WallTime) -> String {
        let mut date = self.date.borrow_mut();
        if date.0 != now.seconds() {
            *date = (now.seconds(), http_date(now));
        }
        date.1.clone()
    }

    /// Returns true if a client of this forward proxy claims to be another proxy, with fields such
    /// as X-Forwarded-For. The origin's answer may depend on these fields, but the cache key does
    /// not contain them.
    pub(crate) fn claims_to_be_forwarded(&self, request: &RequestHead) -> bool {
        self.settings().mode.is_forward() && forwarding_fields::are_in(&request.headers)
    }

    /// Returns true if the proxy may also send this response with a coding of its own, and Vary
    /// does not say so yet. `length` is the length of the body in bytes, if known.
    pub(crate) fn varies_by_coding(
        &self,
        status: u16,
        headers: &Headers,
        length: Option<u64>,
    ) -> bool {
        let (compression, fields) = (&self.settings().compression, View(headers));
        !compression.is_off()
            && compression.why_never(status, &fields, length).is_none()
            && !varies_by_coding(&fields)
    }

    /// Remembers and counts why the last response of a URL was not stored.
    pub(crate) fn remember_refusal(&self, url: &CacheKey, refused: Refused) {
        self.counters.not_stored.add(refused.why.name());
        self.shared.refusals.remember(url, refused);
    }

    pub(crate) fn count_response(&self, version: Version) {
        if version == Version::Http2 {
            self.counters.add(Counter::OriginHttp2Responses, 1);
        }
    }

    /// Adds this proxy to the Via field of a message that arrived with `version` (RFC 9110 §7.6.3).
    pub(crate) fn add_via(&self, version: Version, headers: &mut Headers) {
        let [http10, http11, http2] = &self.via;
        let via = match version {
            Version::Http10 => http10,
            Version::Http11 => http11,
            Version::Http2 => http2,
        };
        headers.append("Via", via);
    }
}

/// Formats a time as an HTTP date (RFC 9110 §5.6.7).
pub(crate) fn http_date(time: WallTime) -> String {
    String::from_utf8_lossy(&date::preferred(time)).into_owned()
}
