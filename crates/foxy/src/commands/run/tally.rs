//! Counts requests and hits while the command of `foxy run` is running, and prints a summary at its
//! end.

use foxy_base::ByteSize;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::request::access::{AccessRecord, AccessSink};
use foxy_proxy::request::cache_status::CacheStatus;
use foxy_proxy::server::Gauges;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of requests and of body bytes. A CONNECT request does not count, but the requests
/// inside its tunnel do.
#[derive(Debug, Default)]
pub struct Tally {
    requests: AtomicU64,
    hits: AtomicU64,
    bytes: AtomicU64,
    hit_bytes: AtomicU64,
    /// Number of this run's requests that went through the proxy of another `foxy run`, because
    /// that process has the store open.
    shared: AtomicU64,
    /// Host and port of the proxy of the other `foxy run` that has the store open. `None` if this
    /// run has its own store.
    sibling: Option<String>,
}

impl AccessSink for Tally {
    fn record(&self, record: &AccessRecord<'_>) {
        if record.method == b"CONNECT" {
            return;
        }
        self.requests.fetch_add(1, Relaxed);
        self.bytes.fetch_add(record.body_bytes, Relaxed);
        if record.parent.is_some() && record.parent == self.sibling.as_deref() {
            self.shared.fetch_add(1, Relaxed);
        }
        if matches!(record.outcome, CacheStatus::Hit { .. }) {
            self.hits.fetch_add(1, Relaxed);
            self.hit_bytes.fetch_add(record.body_bytes, Relaxed);
        }
    }
}

impl Tally {
    /// Starts to count. `sibling` is host and port of the proxy of another `foxy run` that has the
    /// store open.
    pub fn new(sibling: Option<String>) -> Self {
        Self { sibling, ..Self::default() }
    }

    pub fn summary(&self, gauges: &Gauges) -> String {
        let mut text = self.cached();
        let shared = self.shared.load(Relaxed);
        if shared > 0 {
            text.push_str(&format!("; {shared} of them used the store of another `foxy run`"));
        }
        let tunnels = gauges.count(Counter::Tunnels);
        if tunnels > 0 {
            text.push_str(&format!(
                "; {tunnels} connections to other hosts were tunnelled unread (--intercept HOST \
                 caches a host)"
            ));
        }
        let distrusted = gauges.count(Counter::InterceptDistrusted);
        if distrusted > 0 {
            text.push_str(&format!(
                "; {distrusted} connections failed because a program does not trust foxy (see \
                 --help)"
            ));
        }
        text
    }

    fn cached(&self) -> String {
        let requests = self.requests.load(Relaxed);
        if requests == 0 {
            return "foxy: no request that foxy can cache arrived".into();
        }
        let hits = self.hits.load(Relaxed);
        let bytes = ByteSize(self.bytes.load(Relaxed));
        let hit_bytes = ByteSize(self.hit_bytes.load(Relaxed));
        let s = if requests == 1 { "" } else { "s" };
        format!(
            "foxy: {requests} request{s}, {hits} of them from the cache; {hit_bytes} of {bytes} \
             were not downloaded again"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use foxy_base::{Instant, WallTime};
    use foxy_proxy::core::outcome::ForwardReason;
    use foxy_proxy::core::outcome::HitSource;
    use std::time::Duration;

    #[test]
    fn requests_and_hits_count_but_connects_do_not() {
        let hit =
            CacheStatus::Hit { source: HitSource::Memory, ttl: 1, permit: None, coding: None };
        let miss = CacheStatus::Forwarded {
            reason: ForwardReason::UriMiss,
            status: Some(200),
            stored: true,
            collapsed: false,
            detail: None,
        };
        let tally = Tally::default();
        assert_eq!(tally.cached(), "foxy: no request that foxy can cache arrived");
        for (method, outcome, body_bytes) in
            [(&b"GET"[..], hit, 3072), (b"GET", miss, 1024), (b"CONNECT", miss, 77)]
        {
            tally.record(&AccessRecord {
                end: WallTime(0),
                started: Instant(0),
                elapsed: Duration::ZERO,
                client: ([127, 0, 0, 1], 1).into(),
                outcome,
                status: 200,
                bytes: body_bytes,
                body_bytes,
                method,
                site: None,
                cut: None,
                url: b"",
                version: "",
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
            });
        }
        let text = tally.cached();
        assert!(text.starts_with("foxy: 2 requests, 1 of them from the cache; "), "{text}");
        assert!(text.contains(&format!("{} of {} were", ByteSize(3072), ByteSize(4096))), "{text}");
    }
}
