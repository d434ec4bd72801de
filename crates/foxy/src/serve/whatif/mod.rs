//! Estimates from a sample of the requests how many hits the disk and the memory would have with
//! other sizes and policies. The workers put the sample into a queue, and a thread simulates it.

pub mod report;

use crate::failure::Failure;
use crate::serve::stores::RunningStore;
use crate::settings::Settings;
use foxy_base::{Instant, clock};
use foxy_proxy::cache::MEMORY_SHARDS;
use foxy_proxy::core::metrics::request_metrics::RequestOutcome;
use foxy_proxy::core::outcome::ForwardReason;
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::request::sample::{AnswerSample, SampledAnswer};
use foxy_proxy::server::{Gauges, OutcomeMetrics};
use foxy_schemes::policy::POLICIES;
use foxy_schemes::{PolicyName, SchemeName};
use foxy_store::Key;
use foxy_whatif::{Estimator, SampleRate, SampledRequest, Tier, Totals};
use report::{TierReport, WhatIfReport};
use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The number that makes the hashes of the sample independent of other hashes of the keys. It never
/// changes, so a restart keeps the sample.
const SALT: u64 = 0x5eed_0f5a_3713_d0e5;

/// Largest number of sampled requests in a second. Further sampled requests are lost.
const MAX_PER_SECOND: u32 = 4000;
/// If the sample has more requests per second than this on average, the sampling rate of one tier
/// is halved. If requests were lost in the last second, the rate is halved at once.
const WANTED_PER_SECOND: u64 = 2000;
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The sampling rate of a tier with fewer sampled keys than this is not halved, because its curves
/// would lose too much precision.
const MIN_KEYS: usize = 2048;
/// Requests lose half of their weight after this time, so that the curves follow the traffic.
const HALF_LIFE: Duration = Duration::from_secs(6 * 3600);
const MAX_QUEUE: usize = 4096;
/// The thread collects requests for this time, so that it wakes rarely.
const BATCH_TIME: Duration = Duration::from_millis(200);

/// Limits on the memory of the simulated caches of a tier, in bytes. Between these limits, the
/// caches use 1/`MEMORY_PART` of the setting `memory`.
const MEMORY_LIMITS: (u64, u64) = (2 << 20, 9 << 20);
const MEMORY_PART: u64 = 64;

/// Estimated bytes that a stored response takes besides its body and its head.
const DISK_OVERHEAD: u64 = 100;
/// Units in which schemes allocate disk space, in bytes.
const PAGE: u64 = 4096;
const SLOT: u64 = 512;
const MEMORY_OVERHEAD: u64 = 600;

/// A sampled request that waits in the queue.
struct QueuedRequest {
    key_hash: u64,
    host: Box<str>,
    head_bytes: u64,
    body_bytes: u64,
    /// Whether the body is the whole object.
    is_whole: bool,
    may_hit: bool,
    may_store: bool,
}

/// The disk or the memory, with the caches that simulate it.
struct SimulatedTier {
    name: &'static str,
    tier: Tier,
    estimator: Estimator,
    /// Whether a finished request was a hit of this tier.
    counts_hit: fn(RequestOutcome) -> bool,
    /// Returns the bytes that a response takes in this tier.
    size: fn(&QueuedRequest) -> u64,
}

impl SimulatedTier {
    fn add(&mut self, request: &QueuedRequest) {
        self.estimator.add(&SampledRequest {
            key_hash: request.key_hash,
            host: &request.host,
            size: if request.is_whole { (self.size)(request) } else { 0 },
            sent: request.body_bytes,
            may_hit: request.may_hit,
            may_store: request.may_store && request.is_whole,
        });
    }

    fn has_many_keys(&self) -> bool {
        self.estimator.keys() >= MIN_KEYS
    }
}

/// The counted requests, bytes and hits of each tier.
type TierTotals = Vec<Totals>;

struct Simulation {
    tiers: Vec<SimulatedTier>,
    /// For each tier, the counts to subtract from the counts since the start: the weight that old
    /// requests have lost.
    forgotten: TierTotals,
    halved: Instant,
    looked: Instant,
    /// Number of sampled requests from the start of foxy until the time `looked`.
    seen: u64,
    /// Number of lost requests at the last tick.
    lost: u64,
}

/// The state that the workers and the thread share.
struct SharedSample {
    simulation: Mutex<Simulation>,
    /// How often the sampling rate was halved, for the tier with the highest rate.
    halvings: AtomicU8,
    /// Number of sampled requests that may still enter the queue in this second.
    left: AtomicU32,
    taken: AtomicU64,
    lost: AtomicU64,
}

impl SharedSample {
    fn lock(&self) -> MutexGuard<'_, Simulation> {
        self.simulation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn publish_rate(&self, simulation: &Simulation) {
        let rates = simulation.tiers.iter().map(|tier| tier.estimator.rate());
        let highest = rates.min().unwrap_or_default();
        self.halvings.store(highest.halvings(), Ordering::Relaxed);
    }
}

/// Receives the sample, and computes the what-if curves.
pub struct WhatIf {
    shared: Arc<SharedSample>,
    queue: SyncSender<QueuedRequest>,
    is_on: bool,
}

impl WhatIf {
    /// Starts the thread, unless the settings want no estimates. The thread ends when the value is
    /// dropped.
    pub fn start(settings: &Settings, stores: &[RunningStore]) -> Result<Self, Failure> {
        let now = clock::monotonic();
        let is_on = settings.operation.what_if == "on";
        let tiers = if is_on { tiers(settings, stores) } else { Vec::new() };
        let forgotten = tiers.iter().map(|_| Totals::default()).collect();
        let simulation =
            Simulation { tiers, forgotten, halved: now, looked: now, seen: 0, lost: 0 };
        let shared = Arc::new(SharedSample {
            simulation: Mutex::new(simulation),
            halvings: AtomicU8::new(0),
            left: AtomicU32::new(MAX_PER_SECOND),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        });
        let (queue, receiver) = sync_channel(MAX_QUEUE);
        if is_on {
            let thread = std::thread::Builder::new().name("foxy-whatif".into());
            let sample = Arc::clone(&shared);
            thread.spawn(move || simulate(&receiver, &sample)).map_err(|error| {
                Failure::Failed(format!("cannot start the thread of the what-if curves: {error}"))
            })?;
        }
        Ok(Self { shared, queue, is_on })
    }

    /// Returns the receiver of the sample, unless the settings want no estimates.
    pub fn sample(self: &Arc<Self>) -> Option<Arc<dyn AnswerSample>> {
        self.is_on.then(|| Arc::clone(self) as Arc<dyn AnswerSample>)
    }

    /// Lets further requests into the sample, and adapts the rate. The caller must call this
    /// method about each second.
    pub fn tick(&self, proxy: &Gauges, now: Instant) {
        self.shared.left.store(MAX_PER_SECOND, Ordering::Relaxed);
        let Self { shared, .. } = self;
        let lost = shared.lost.load(Ordering::Relaxed);
        let seen = shared.taken.load(Ordering::Relaxed) + lost;
        let mut simulation = self.shared.lock();
        if simulation.has_too_many(seen, lost, now) {
            simulation.thin();
            shared.publish_rate(&simulation);
        }
        if now.since(simulation.halved) >= HALF_LIFE {
            simulation.halved = now;
            simulation.halve(&cacheable(proxy.outcomes(), proxy.failed_changes()));
        }
    }

    /// Returns the what-if curves.
    pub fn report(&self, proxy: &Gauges) -> WhatIfReport {
        let outcomes = cacheable(proxy.outcomes(), proxy.failed_changes());
        let simulation = self.shared.lock();
        let lost = self.shared.lost.load(Ordering::Relaxed);
        let sampled = self.shared.taken.load(Ordering::Relaxed) + lost;
        let lost_share = lost as f64 / sampled.max(1) as f64;
        let totals: TierTotals = simulation
            .totals(&outcomes)
            .into_iter()
            .map(|totals| Totals { lost_share, ..totals })
            .collect();
        let tier = |(tier, totals): (&SimulatedTier, &Totals)| {
            TierReport::new(tier.name, tier.tier, &tier.estimator, totals)
        };
        let all = totals.first().copied().unwrap_or_default();
        WhatIfReport {
            requests: all.requests,
            bytes: all.bytes,
            lost,
            tiers: simulation.tiers.iter().zip(&totals).map(tier).collect(),
        }
    }
}

impl Simulation {
    /// Returns whether the sample has too many requests. `seen` counts the sampled requests since
    /// the start, and `lost` those that did not enter the queue.
    fn has_too_many(&mut self, seen: u64, lost: u64, now: Instant) -> bool {
        let has_lost = std::mem::replace(&mut self.lost, lost) < lost;
        let elapsed = now.since(self.looked);
        let mut is_fast = false;
        if elapsed >= LOOK_INTERVAL {
            is_fast = (seen - self.seen) / elapsed.as_secs().max(1) > WANTED_PER_SECOND;
            (self.looked, self.seen) = (now, seen);
        }
        has_lost || is_fast
    }

    /// Halves the sampling rate of one tier: the tier with the highest rate among the tiers with
    /// many keys.
    fn thin(&mut self) {
        let tiers = self.tiers.iter_mut().filter(|tier| tier.has_many_keys());
        if let Some(tier) = tiers.min_by_key(|tier| tier.estimator.rate()) {
            tier.estimator.thin();
        }
    }

    /// Halves the weight of all requests so far.
    fn halve(&mut self, outcomes: &[OutcomeMetrics]) {
        for (tier, forgotten) in self.tiers.iter_mut().zip(&mut self.forgotten) {
            let counted = counted(tier, outcomes);
            *forgotten = combined(&counted, forgotten, |counted, old| (counted + old) / 2.0);
            tier.estimator.halve();
        }
    }

    fn totals(&self, outcomes: &[OutcomeMetrics]) -> TierTotals {
        let tiers = self.tiers.iter().zip(&self.forgotten);
        let difference = |counted: f64, old: f64| counted - old;
        tiers.map(|(tier, old)| combined(&counted(tier, outcomes), old, difference)).collect()
    }
}

/// Returns the outcomes of requests without the failed requests of other methods than GET, which no
/// cache could answer.
fn cacheable(mut outcomes: Vec<OutcomeMetrics>, failed: [u64; 2]) -> Vec<OutcomeMetrics> {
    let [mut requests, bytes] = failed;
    for metrics in outcomes.iter_mut().filter(|it| it.outcome == RequestOutcome::OriginFailed) {
        metrics.bytes = metrics.bytes.saturating_sub(bytes);
        for class in metrics.classes.iter_mut().rev() {
            let fewer = requests.min(*class);
            (*class, requests) = (*class - fewer, requests - fewer);
        }
    }
    outcomes
}

/// Returns the requests that the cache could answer, and the hits of a tier, since the start.
fn counted(tier: &SimulatedTier, outcomes: &[OutcomeMetrics]) -> Totals {
    let (mut totals, mut hits) = (Totals::default(), (0.0, 0.0));
    for metrics in outcomes.iter().filter(|metrics| metrics.outcome.is_cacheable()) {
        let requests = metrics.classes.iter().sum::<u64>() as f64;
        totals.requests += requests;
        totals.bytes += metrics.bytes as f64;
        if (tier.counts_hit)(metrics.outcome) {
            hits = (hits.0 + requests, hits.1 + metrics.bytes as f64);
        }
    }
    Totals { hits: Some(hits), ..totals }
}

fn combined(a: &Totals, b: &Totals, of: impl Fn(f64, f64) -> f64) -> Totals {
    let (x, y) = (a.hits.unwrap_or_default(), b.hits.unwrap_or_default());
    Totals {
        requests: of(a.requests, b.requests),
        bytes: of(a.bytes, b.bytes),
        hits: Some((of(x.0, y.0), of(x.1, y.1))),
        ..Totals::default()
    }
}

fn tiers(settings: &Settings, stores: &[RunningStore]) -> Vec<SimulatedTier> {
    let memory = settings.memory.size.0;
    let limit = (memory / MEMORY_PART).clamp(MEMORY_LIMITS.0, MEMORY_LIMITS.1);
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let others: Vec<_> = POLICIES.iter().map(|row| row.name).collect();
    let disk = stores.first().map(|first| {
        let capacity = stores.iter().map(usable).sum();
        let policy = first.facts.scheme.row().policy(settings.disk.policy);
        let object_limit = stores.iter().map(|store| store.object_limit).max().unwrap_or(u64::MAX);
        let tier = Tier { capacity, policy, object_limit, shards: 1 };
        SimulatedTier {
            name: "disk",
            tier,
            estimator: Estimator::new(tier, &others, limit),
            counts_hit: RequestOutcome::is_hit,
            size: match first.facts.scheme {
                SchemeName::Webcosm => |request| on_shared_pages(request.record_bytes()),
                SchemeName::StreamPacketizer => QueuedRequest::record_bytes,
                scheme if scheme.row().grows() => {
                    |request| request.record_bytes().next_multiple_of(PAGE)
                }
                _ => |request| request.record_bytes().next_multiple_of(SLOT),
            },
        }
    });
    let tier = Tier {
        capacity: memory,
        policy: PolicyName::Sieve,
        object_limit: settings.memory.object_limit.0,
        shards: MEMORY_SHARDS as u64,
    };
    let memory = SimulatedTier {
        name: "memory",
        tier,
        estimator: Estimator::new(tier, &[], limit),
        counts_hit: |outcome| outcome == RequestOutcome::MemoryHit,
        size: |request| request.body_bytes + 2 * request.head_bytes + MEMORY_OVERHEAD,
    };
    disk.into_iter().chain([memory]).collect()
}

/// Returns the bytes of a store that records can take.
fn usable(store: &RunningStore) -> u64 {
    let capacity = store.shard.handle().observer().statistics.capacity_bytes.get();
    if capacity > 0 { capacity } else { store.facts.size.0 }
}

/// Returns the bytes of disk of a record in the scheme webcosm. Small records share pages, of which
/// about a twentieth stays free.
fn on_shared_pages(record: u64) -> u64 {
    let packed = record + record / 20;
    if packed < PAGE { packed } else { record.next_multiple_of(PAGE) }
}

impl AnswerSample for WhatIf {
    fn takes(&self, key: Key, body_bytes: u64) -> bool {
        let rate = SampleRate::new(self.shared.halvings.load(Ordering::Relaxed));
        rate.takes(key.hash(SALT), body_bytes)
    }

    fn add(&self, answer: &SampledAnswer<'_>) {
        let outcome = answer.outcome.request_outcome();
        let is_failed_change = outcome == RequestOutcome::OriginFailed && !answer.is_get;
        if !outcome.is_cacheable() || is_failed_change {
            return;
        }
        let one_less = |left: u32| left.checked_sub(1);
        let has_room =
            self.shared.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less).is_ok();
        let is_queued = has_room && self.queue.try_send(QueuedRequest::of(answer)).is_ok();
        let count = if is_queued { &self.shared.taken } else { &self.shared.lost };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl QueuedRequest {
    fn record_bytes(&self) -> u64 {
        self.body_bytes + self.head_bytes + DISK_OVERHEAD
    }

    /// Converts the facts about an answer for the queue. Some outcomes, such as an expired
    /// response, do not depend on the size of the cache. A request with such an outcome counts as a
    /// hit in no simulated cache.
    fn of(answer: &SampledAnswer<'_>) -> Self {
        let is_whole = answer.is_get && !matches!(answer.status, 206 | 304);
        let (may_hit, may_store) = match answer.outcome {
            CacheStatus::Hit { .. } => (true, true),
            CacheStatus::Forwarded { collapsed: true, stored, .. } => (true, stored),
            CacheStatus::Forwarded { reason, stored: true, .. } => {
                let is_absent = matches!(
                    reason,
                    ForwardReason::UriMiss | ForwardReason::VaryMiss | ForwardReason::Partial
                );
                (is_absent, true)
            }
            _ => (false, false),
        };
        Self {
            key_hash: answer.key.hash(SALT),
            host: String::from_utf8_lossy(answer.host).into(),
            head_bytes: answer.head_bytes,
            body_bytes: answer.body_bytes,
            is_whole,
            may_hit,
            may_store,
        }
    }
}

/// Simulates the requests of the queue until the sender is dropped.
fn simulate(queue: &Receiver<QueuedRequest>, shared: &SharedSample) {
    while let Ok(first) = queue.recv() {
        std::thread::sleep(BATCH_TIME);
        let mut simulation = shared.lock();
        for request in std::iter::once(first).chain(queue.try_iter().take(MAX_QUEUE)) {
            simulation.tiers.iter_mut().for_each(|tier| tier.add(&request));
        }
        shared.publish_rate(&simulation);
    }
}

#[cfg(test)]
mod tests;
