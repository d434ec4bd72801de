//! Reads counters, timings and sizes of a running proxy, for its admin server.

use crate::cache::{Describer, RecordDescription};
use crate::core::counters::{self, Counter, Counters, NamedCounts};
use crate::core::metrics::exemplar::Exemplar;
use crate::core::metrics::request_metrics::{CLASSES, RequestOutcome};
use crate::core::metrics::timing::{BUCKETS, Durations};
use crate::upstream::ServerStatus;
use crate::worker::Shared;
use foxy_base::clock;
use foxy_store::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Reads counters and sizes of a running proxy.
#[derive(Clone)]
pub struct Gauges {
    pub(super) shared: Arc<Shared>,
    pub(super) counters: Vec<Arc<Counters>>,
}

/// The finished requests with the same outcome.
#[derive(Clone, Debug)]
pub struct OutcomeMetrics {
    /// The outcome that these requests share, such as a memory hit.
    pub outcome: RequestOutcome,
    /// Number of requests in each class of [`CLASSES`].
    pub classes: [u64; CLASSES.len()],
    /// Number of body bytes that clients received.
    pub bytes: u64,
    /// Times from the first bytes of the requests to the ends of their answers.
    pub durations: Durations,
    /// The newest traced request in each bucket of the durations.
    pub exemplars: [Option<Exemplar>; BUCKETS],
}

impl Gauges {
    /// Returns the value of a counter, summed over all workers.
    pub fn count(&self, counter: Counter) -> u64 {
        counters::total(&self.counters, counter)
    }

    /// Returns the metrics of finished requests for each outcome that has occurred, summed over all
    /// workers.
    pub fn outcomes(&self) -> Vec<OutcomeMetrics> {
        let all = RequestOutcome::ALL.iter().map(|outcome| self.outcome(*outcome));
        all.filter(|metrics| metrics.classes.iter().any(|count| *count > 0)).collect()
    }

    fn outcome(&self, outcome: RequestOutcome) -> OutcomeMetrics {
        let workers = || self.counters.iter().map(|counters| &counters.requests);
        let mut metrics = OutcomeMetrics {
            outcome,
            classes: [0; CLASSES.len()],
            durations: Durations::sum(workers().flat_map(|worker| worker.timings(outcome))),
            bytes: workers().map(|worker| worker.bytes(outcome)).sum(),
            exemplars: [None; BUCKETS],
        };
        for worker in workers() {
            for (sum, count) in metrics.classes.iter_mut().zip(worker.classes(outcome)) {
                *sum += count;
            }
            for (newest, found) in metrics.exemplars.iter_mut().zip(worker.exemplars(outcome)) {
                let is_newer = |found: &Exemplar| newest.is_none_or(|it| it.at.0 < found.at.0);
                *newest = found.filter(is_newer).or(*newest);
            }
        }
        metrics
    }

    /// Returns the number of requests with another method than GET whose origin failed, and the
    /// bytes of their bodies. The cache could not have answered these requests.
    pub fn failed_changes(&self) -> [u64; 2] {
        let counts = self.counters.iter().map(|counters| counters.requests.failed_changes());
        counts.fold([0; 2], |[requests, bytes], [more, body]| [requests + more, bytes + body])
    }

    /// Returns the times from the start of requests to origins until the heads of their responses
    /// arrived.
    pub fn first_bytes(&self) -> Durations {
        Durations::sum(self.counters.iter().map(|counters| &counters.first_bytes))
    }

    /// Returns the number of the proxy's own error answers, for each reason that has occurred.
    pub fn errors(&self) -> BTreeMap<&'static str, u64> {
        NamedCounts::total(self.counters.iter().map(|counters| &counters.errors))
    }

    /// Returns the number of fetched responses that were not stored, for each reason that has
    /// occurred.
    pub fn not_stored(&self) -> BTreeMap<&'static str, u64> {
        NamedCounts::total(self.counters.iter().map(|counters| &counters.not_stored))
    }

    /// Returns the number of bytes and the number of entries in the memory tier.
    pub fn memory(&self) -> (u64, usize) {
        (self.shared.cache.memory.bytes(), self.shared.cache.memory.entries())
    }

    /// Calls `take` for some responses in the memory tier, starting at position `from`. The first
    /// call must pass 0. Returns the position at which the next call must continue. A call does not
    /// delay the workers.
    pub fn visit_memory(&self, from: u64, mut take: impl FnMut(RecordDescription)) -> Option<u64> {
        let purges = Some(&*self.shared.purges.book);
        self.shared.cache.memory.visit(from, |stored| take(stored.described(purges)))
    }

    /// Returns whether the store certainly has no record under this key.
    pub fn lacks(&self, key: Key) -> bool {
        self.shared.cache.storage().is_none_or(|storage| storage.lacks(key))
    }

    /// Returns a describer of stored records, with the caching policy and the purges in force.
    pub fn describer(&self) -> Describer {
        let purges = Some(Arc::clone(&self.shared.purges.book));
        Describer { policies: self.shared.settings.policies(), purges }
    }

    /// Returns the parent proxies that recently refused a connection or the credentials. The texts
    /// are their URLs without credentials.
    pub fn parents_down(&self) -> Vec<String> {
        let parents = self.shared.settings.upstream.parents.as_ref();
        let down = parents.into_iter().flat_map(|parents| parents.down(clock::monotonic()));
        down.map(ToString::to_string).collect()
    }

    /// Stops sending requests to the sibling, which is another proxy whose cache this proxy uses.
    pub fn end_sibling(&self) {
        if let Some(parents) = &self.shared.settings.upstream.parents {
            parents.end_sibling();
        }
    }

    /// Returns the state of each server of a reverse proxy's origins.
    pub fn servers(&self) -> Vec<ServerStatus> {
        let origins = self.shared.settings.mode.origins();
        origins.map(|origins| origins.get().status(clock::monotonic())).unwrap_or_default()
    }

    /// Returns the number of open client connections.
    pub fn connections(&self) -> usize {
        self.shared.places.taken()
    }
}
