//! Counts finished requests, failures and hits. Hits are counted in slots of 10 ms, so that the hit
//! ratio of each second is known.

use foxy_base::clock;
use foxy_base::time::Instant;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

const SLOT_MILLISECONDS: u128 = 10;
/// Number of slots, enough for two hours. Later requests count in the last slot.
const SLOTS: usize = 2 * 3600 * 100;
/// Number of failures whose reason is kept.
const MAX_REASONS: usize = 40;

/// The kind of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Page,
    NewPage,
    Form,
    SecurePage,
    SecureBody,
    StoredBody,
    PassedBody,
    Tunnel,
    WebSocket,
    Events,
}

/// All kinds, with their names in the record.
pub const KINDS: [(&str, Kind); 10] = [
    ("stored_pages_http1", Kind::Page),
    ("new_pages_http1", Kind::NewPage),
    ("posts_http1", Kind::Form),
    ("stored_pages_http2", Kind::SecurePage),
    ("large_bodies_http2", Kind::SecureBody),
    ("large_stored_bodies_http1", Kind::StoredBody),
    ("large_passed_bodies_http1", Kind::PassedBody),
    ("tunnel_messages", Kind::Tunnel),
    ("websocket_messages", Kind::WebSocket),
    ("server_sent_events", Kind::Events),
];

#[derive(Default)]
struct Slot {
    requests: AtomicU32,
    hits: AtomicU32,
}

pub struct Tally {
    began: Instant,
    slots: Vec<Slot>,
    counts: [AtomicU64; KINDS.len()],
    failures: AtomicU64,
    reasons: Mutex<Vec<String>>,
    /// HTTP/2 requests that foxy refused by GOAWAY, and that the client therefore sent again.
    pub refused_streams: AtomicU64,
    /// Connections and streams that were opened.
    pub opened: AtomicU64,
    /// Whether the clients must stop sending requests.
    pub is_over: AtomicBool,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            began: clock::monotonic(),
            slots: (0..SLOTS).map(|_| Slot::default()).collect(),
            counts: Default::default(),
            failures: AtomicU64::new(0),
            reasons: Mutex::default(),
            refused_streams: AtomicU64::new(0),
            opened: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    pub fn finished(&self, kind: Kind) {
        self.counts[kind as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub fn count(&self, kind: Kind) -> u64 {
        self.counts[kind as usize].load(Ordering::Relaxed)
    }

    /// Counts a request for a stored page.
    pub fn looked_up(&self, is_hit: bool) {
        let slot = &self.slots[self.slot(clock::monotonic())];
        slot.requests.fetch_add(1, Ordering::Relaxed);
        slot.hits.fetch_add(u32::from(is_hit), Ordering::Relaxed);
    }

    fn slot(&self, at: Instant) -> usize {
        let number = at.since(self.began).as_millis() / SLOT_MILLISECONDS;
        usize::try_from(number).map_or(SLOTS - 1, |number| number.min(SLOTS - 1))
    }

    /// Returns the share of hits among the requests for stored pages that ended in this time, and
    /// the number of these requests.
    pub fn hit_ratio(&self, from: Instant, time: Duration) -> (f64, u64) {
        let slots = &self.slots[self.slot(from)..self.slot(from + time)];
        let sum = |part: fn(&Slot) -> &AtomicU32| {
            slots.iter().map(|slot| u64::from(part(slot).load(Ordering::Relaxed))).sum::<u64>()
        };
        let (requests, hits) = (sum(|slot| &slot.requests), sum(|slot| &slot.hits));
        (hits as f64 / requests.max(1) as f64, requests)
    }

    pub fn failed(&self, why: String) {
        // After the end of the test, foxy is stopped and its connections break. Such broken
        // connections do not count as failures.
        if self.is_over() {
            return;
        }
        self.failures.fetch_add(1, Ordering::Relaxed);
        let at = clock::monotonic().since(self.began).as_secs_f64();
        let mut reasons = self.lock();
        if reasons.len() < MAX_REASONS {
            reasons.push(format!("{at:.3} s: {why}"));
        }
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    pub fn reasons(&self) -> Vec<String> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
