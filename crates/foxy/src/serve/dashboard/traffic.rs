//! Recent traffic for the dashboard: the top hosts, objects and clients, recent requests and
//! errors. Nearly all values are samples. While no dashboard is open, foxy notes up to
//! [`MAX_ERRORS`] errors a second and nothing else.

use super::sketch::{CountedRequest, NameCount, Sketch};
use foxy_base::{Instant, WallTime, clock};
use foxy_proxy::request::access::{AccessRecord, AccessSink, Finished, without_credentials};
use foxy_proxy::request::cache_status::CacheStatus;
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Number of counters of each sketch (counters of frequent names).
const TALLIES: usize = 256;
/// Number of names that the dashboard shows of each sketch (counters of frequent names).
const SHOWN: usize = 12;
/// The counts are halved after this time, so that the list of frequent names follows the traffic.
const HALF_LIFE: Duration = Duration::from_secs(60);
/// Number of the newest errors that are kept. Further errors of the same second are left out.
const MAX_ERRORS: u32 = 60;
const MAX_REQUESTS: usize = 40;
/// The workers take at most about this number of samples in a second.
const SAMPLES_PER_SECOND: u64 = 1000;
/// foxy takes samples for this time after a dashboard last asked.
const WATCH_TIME: Duration = Duration::from_secs(10);
const MAX_URL_BYTES: usize = 300;

#[derive(Debug)]
struct Samples {
    hosts: Sketch,
    objects: Sketch,
    clients: Sketch,
    requests: VecDeque<Value>,
    /// Number of samples in `requests` that the dashboard has not seen yet. Further samples are
    /// only counted, because the dashboard would not show all of them.
    unseen: usize,
    errors: VecDeque<Value>,
    /// Estimated number of requests: each sample counts as the requests that it represents. The
    /// number is halved whenever the counts of frequent URLs are halved.
    seen: u64,
    halved: Instant,
    asked: Option<Instant>,
}

/// Collects recent traffic from the workers.
#[derive(Debug)]
pub struct Traffic {
    is_watched: AtomicBool,
    /// Number of errors that may still be noted in this second.
    errors_left: AtomicU32,
    /// A worker takes a sample of each `stride`th request.
    stride: AtomicU32,
    samples: Mutex<Samples>,
}

thread_local! {
    /// Number of requests of this worker since its last sample.
    static PASSED: Cell<u32> = const { Cell::new(0) };
    /// Number of requests that the sample represents, if the request that ends now is a sample.
    /// Otherwise 0.
    static WEIGHT: Cell<u32> = const { Cell::new(0) };
}

impl Default for Traffic {
    fn default() -> Self {
        let samples = Samples {
            hosts: Sketch::new(TALLIES),
            objects: Sketch::new(TALLIES),
            clients: Sketch::new(TALLIES),
            requests: VecDeque::new(),
            unseen: 0,
            errors: VecDeque::new(),
            seen: 0,
            halved: clock::monotonic(),
            asked: None,
        };
        Self {
            is_watched: AtomicBool::new(false),
            errors_left: AtomicU32::new(MAX_ERRORS),
            stride: AtomicU32::new(1),
            samples: Mutex::new(samples),
        }
    }
}

impl AccessSink for Traffic {
    fn record(&self, record: &AccessRecord<'_>) {
        if is_error(record.outcome) && self.may_note_error() {
            let error = described(record);
            push(&mut self.samples().errors, MAX_ERRORS as usize, error);
        }
        let weight = WEIGHT.take();
        if weight > 0
            && let Ok(mut samples) = self.samples.try_lock()
        {
            samples.add(record, u64::from(weight));
        }
    }

    fn wants(&self, finished: &Finished) -> bool {
        let stride = self.stride.load(Ordering::Relaxed).max(1);
        let is_sampled = self.is_watched.load(Ordering::Relaxed) && is_next(stride);
        WEIGHT.set(if is_sampled { stride } else { 0 });
        let has_room = || self.errors_left.load(Ordering::Relaxed) > 0;
        is_sampled || is_error(finished.status) && has_room()
    }
}

/// Counts a request of this worker. Returns whether it is the `stride`th since the last sample.
fn is_next(stride: u32) -> bool {
    let passed = PASSED.get() + 1;
    PASSED.set(if passed >= stride { 0 } else { passed });
    passed >= stride
}

const fn is_error(outcome: CacheStatus) -> bool {
    match outcome {
        CacheStatus::Error(_) => true,
        CacheStatus::Forwarded { status: Some(status), .. } => status >= 500,
        _ => false,
    }
}

impl Traffic {
    /// Returns whether fewer than [`MAX_ERRORS`] errors were noted in this second, and counts one
    /// more error.
    fn may_note_error(&self) -> bool {
        let one_less = |left: u32| left.checked_sub(1);
        self.errors_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok()
    }

    /// Takes no more samples if no dashboard has asked for some time, and lets further errors be
    /// noted. The caller must call this method about each second.
    pub fn tick(&self, now: Instant) {
        self.errors_left.store(MAX_ERRORS, Ordering::Relaxed);
        let asked = self.samples().asked;
        if asked.is_some_and(|asked| now.since(asked) > WATCH_TIME) {
            self.is_watched.store(false, Ordering::Relaxed);
        }
    }

    /// Returns the recent traffic. `rate` is the number of requests in a second. It determines
    /// which share of the requests is sampled from now on.
    pub fn as_json(&self, now: Instant, rate: u64) -> Value {
        let stride = (rate / SAMPLES_PER_SECOND).next_power_of_two();
        self.stride.store(u32::try_from(stride).unwrap_or(u32::MAX), Ordering::Relaxed);
        self.is_watched.store(true, Ordering::Relaxed);
        let mut samples = self.samples();
        (samples.asked, samples.unseen) = (Some(now), 0);
        samples.fade(now);
        let share = |tally: &NameCount| shown(tally, samples.seen);
        let top = |sketch: &Sketch| sketch.top(SHOWN).into_iter().map(share).collect::<Vec<_>>();
        json!({
            "sampled_each": stride,
            "hosts": top(&samples.hosts),
            "objects": top(&samples.objects),
            "clients": top(&samples.clients),
            "requests": samples.requests,
            "errors": samples.errors,
        })
    }

    fn samples(&self) -> MutexGuard<'_, Samples> {
        self.samples.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Samples {
    fn add(&mut self, record: &AccessRecord<'_>, weight: u64) {
        let is_hit = record.request_outcome.is_hit();
        let event = CountedRequest { weight, is_hit, bytes: record.bytes };
        self.seen += weight;
        self.hosts.add(record.authority(), event);
        self.objects.add(&url(record), event);
        self.clients.add(record.client.ip().to_string().as_bytes(), event);
        if self.unseen < MAX_REQUESTS {
            self.unseen += 1;
            push(&mut self.requests, MAX_REQUESTS, described(record));
        }
    }

    fn fade(&mut self, now: Instant) {
        if now.since(self.halved) < HALF_LIFE {
            return;
        }
        self.halved = now;
        self.seen /= 2;
        self.hosts.halve();
        self.objects.halve();
        self.clients.halve();
    }
}

fn push(ring: &mut VecDeque<Value>, room: usize, value: Value) {
    if ring.len() >= room {
        ring.pop_front();
    }
    ring.push_back(value);
}

fn shown(tally: &NameCount, seen: u64) -> Value {
    json!({
        "name": String::from_utf8_lossy(&tally.name),
        "requests": tally.requests,
        "share": tally.requests as f64 / seen.max(1) as f64,
        "excess": tally.excess,
        "hits": tally.hits,
        "bytes": tally.bytes,
    })
}

fn url(record: &AccessRecord<'_>) -> Vec<u8> {
    let mut whole = Vec::new();
    if let Some((scheme, host)) = record.site {
        whole.extend_from_slice(scheme.as_bytes());
        whole.extend_from_slice(b"://");
        whole.extend_from_slice(host);
    }
    whole.extend_from_slice(&without_credentials(record.url));
    whole.truncate(MAX_URL_BYTES);
    whole
}

fn described(record: &AccessRecord<'_>) -> Value {
    let WallTime(end) = record.end;
    let (reason, says) = match record.outcome {
        CacheStatus::Error(reason) => (Some(reason.name()), Some(reason.description())),
        _ => (None, None),
    };
    json!({
        "end_ms": end,
        "elapsed_us": u64::try_from(record.elapsed.as_micros()).unwrap_or(u64::MAX),
        "client": record.client.ip().to_string(),
        "method": String::from_utf8_lossy(record.method),
        "url": String::from_utf8_lossy(&url(record)),
        "status": record.status,
        "bytes": record.bytes,
        "outcome": record.request_outcome.name(),
        "cache_status": record.outcome.to_string(),
        "reason": reason,
        "says": says,
        "cut": record.cut.map(|cut| cut.name()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_proxy::core::outcome::HitSource;
    use foxy_proxy::request::reason::ErrorReason;

    fn record(url: &'static str, outcome: CacheStatus) -> AccessRecord<'static> {
        AccessRecord {
            end: WallTime(7),
            started: Instant(0),
            elapsed: Duration::from_micros(80),
            client: ([192, 0, 2, 1], 1).into(),
            outcome,
            cut: None,
            status: 200,
            bytes: 100,
            body_bytes: 50,
            method: b"GET",
            site: None,
            url: url.as_bytes(),
            version: "HTTP/1.1",
            request_outcome: outcome.request_outcome(),
            parent: None,
            node: None,
            user: None,
            server: None,
            rules: None,
            content_type: None,
            referer: None,
            user_agent: None,
            fields: None,
            id: "",
            origin: None,
        }
    }

    fn finished(status: CacheStatus) -> Finished {
        let outcome = status.request_outcome();
        Finished { status, outcome, cut: None, elapsed: Duration::ZERO, now: Instant(0) }
    }

    const HIT: CacheStatus =
        CacheStatus::Hit { source: HitSource::Memory, ttl: 9, permit: None, coding: None };
    const ERROR: CacheStatus = CacheStatus::Error(ErrorReason::Loop);

    #[test]
    fn requests_are_noted_only_while_a_dashboard_asks_and_errors_always() {
        let traffic = Traffic::default();
        assert!(!traffic.wants(&finished(HIT)) && traffic.wants(&finished(ERROR)));
        traffic.record(&record("http://a.test/x", HIT));
        traffic.record(&record("http://user:word@a.test/y", ERROR));
        let now = clock::monotonic();
        let first = traffic.as_json(now, 0);
        assert_eq!(first["hosts"], json!([]));
        assert_eq!(first["errors"][0]["reason"], "loop");
        assert_eq!(first["errors"][0]["url"], "http://***@a.test/y");
        assert!(traffic.wants(&finished(HIT)));
        traffic.record(&record("http://a.test/x", HIT));
        let second = traffic.as_json(now, 0);
        assert_eq!(second["hosts"][0]["name"], "a.test");
        assert_eq!(second["objects"][0]["name"], "http://a.test/x");
        assert_eq!(second["requests"][0]["outcome"], "memory-hit");
        traffic.tick(now + WATCH_TIME + WATCH_TIME);
        assert!(!traffic.wants(&finished(HIT)));
    }

    #[test]
    fn a_flood_of_errors_is_noted_only_in_part() {
        let traffic = Traffic::default();
        let now = clock::monotonic();
        let noted = || {
            let errors = (0..1000).filter(|_| traffic.wants(&finished(ERROR)));
            errors.map(|_| traffic.record(&record("http://a.test/y", ERROR))).count()
        };
        assert_eq!(noted(), MAX_ERRORS as usize);
        traffic.tick(now);
        assert_eq!(noted(), MAX_ERRORS as usize);
        assert_eq!(traffic.as_json(now, 0)["errors"].as_array().map(Vec::len), Some(60));
    }

    #[test]
    fn a_busy_proxy_is_sampled_and_the_counts_still_stand_for_all_requests() {
        let traffic = Traffic::default();
        let now = clock::monotonic();
        assert_eq!(traffic.as_json(now, 50_000)["sampled_each"], 64);
        let wanted = (0..6400).filter(|_| traffic.wants(&finished(HIT)));
        let sampled = wanted.map(|_| traffic.record(&record("http://a.test/x", HIT))).count();
        assert_eq!(sampled, 100, "a request without a sample costs no record");
        let shown = traffic.as_json(now, 50_000);
        assert_eq!(shown["hosts"][0]["requests"], 6400);
        assert!(shown["requests"].as_array().is_some_and(|all| all.len() == MAX_REQUESTS));
    }
}
