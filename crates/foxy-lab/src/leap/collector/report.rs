//! The counts of a Collector (common parent proxy), and their conversion into run records (the
//! lines of `--json`).

use super::failure::Failure;
use super::line::{CollectorLine, Source};
use super::reasons::Refusal;
use crate::wire::tls::HandshakeFailure;
use foxy_report::{Latencies, Measurable, Measure, Record};
use std::time::Duration;

/// The counts of one proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProxyReport {
    /// The proxy's name, or its address if it has no name.
    pub name: String,
    /// The number of requests that the Collector (common parent proxy) did not refuse.
    pub requests: u64,
    /// The number of requests that caused a request to the origin.
    pub fetches: u64,
    /// The number of bytes sent to the proxy.
    pub bytes: u64,
    /// The number of prefetches: requests for URLs that no client has requested.
    pub prefetches: u64,
    /// The URL of the first prefetch.
    pub prefetched: Option<String>,
}

/// The counts of a Collector (common parent proxy).
#[derive(Clone, Debug, Default)]
pub struct CollectorReport {
    /// The counts of each proxy.
    pub proxies: Vec<ProxyReport>,
    /// The number of answers by their [`Source`] (origin, memory, file and so on).
    pub sources: [u64; Source::ALL.len()],
    /// The number of exchanges with origins. Several requests can share one exchange.
    pub fetches: u64,
    /// The number of failed exchanges by [`Failure`].
    pub failures: [u64; Failure::ALL.len()],
    /// The number of refused requests and connections by [`Refusal`].
    pub refused: [u64; Refusal::ALL.len()],
    /// The number of failed TLS handshakes of proxies by [`HandshakeFailure`].
    pub not_entered: [u64; HandshakeFailure::ALL.len()],
    /// The number of answers that a proxy received only in part, because the proxy left or the
    /// origin failed.
    pub aborted: u64,
    /// The times to connect to an origin, one for each exchange.
    pub connect: Latencies,
    /// The times until the first byte of an origin's answer, including the time to connect.
    pub first_byte: Latencies,
    /// The number of body bytes received from origins.
    pub bytes_in: u64,
    /// The number of initiators (requests that started a fetch) that stopped reading for so long
    /// that other requests no longer waited for them.
    pub stalled: u64,
    /// The number of exchanges in which the origin sent bytes after the end of the answer.
    pub surplus: u64,
    /// The number of answers that the Collector (common parent proxy) removed because its memory
    /// was full.
    pub evicted: u64,
    /// The absolute differences between the duration of a cached answer and the duration of its
    /// original fetch. They show how exactly the Collector (common parent proxy) repeats durations.
    pub differences: Latencies,
    /// The largest time by which a cached answer was faster than its original fetch.
    pub fastest_lead: Duration,
}

impl CollectorReport {
    /// Returns the number of requests of all proxies that the Collector (common parent proxy) did
    /// not refuse.
    pub fn requests(&self) -> u64 {
        self.proxies.iter().map(|proxy| proxy.requests).sum()
    }

    /// Returns how many requests share one exchange with an origin, on average. Returns `None`
    /// without exchanges.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn collapse_factor(&self) -> Option<f64> {
        (self.fetches > 0).then(|| self.requests() as f64 / self.fetches as f64)
    }

    /// Returns the number of requests and connections refused for this reason.
    pub const fn refused(&self, reason: Refusal) -> u64 {
        self.refused[reason as usize]
    }

    /// Returns the number of exchanges that failed for this reason.
    pub const fn failed(&self, reason: Failure) -> u64 {
        self.failures[reason as usize]
    }

    pub(super) fn take(&mut self, line: &CollectorLine, proxy: usize) {
        self.sources[line.source as usize] += 1;
        self.aborted += u64::from(line.aborted);
        if line.source == Source::Refused {
            return;
        }
        let of = self.of(proxy);
        of.name.clone_from(&line.proxy);
        of.requests += 1;
        of.fetches += u64::from(line.source.is_fetch());
        of.bytes += line.size;
    }

    pub(super) fn prefetch(&mut self, url: &str, proxy: usize) {
        let of = self.of(proxy);
        of.prefetches += 1;
        of.prefetched.get_or_insert_with(|| url.to_owned());
    }

    fn of(&mut self, proxy: usize) -> &mut ProxyReport {
        if self.proxies.len() <= proxy {
            self.proxies.resize_with(proxy + 1, ProxyReport::default);
        }
        &mut self.proxies[proxy]
    }

    pub(super) fn compare(&mut self, hit: Duration, miss: Duration) {
        self.differences.add(hit.abs_diff(miss));
        self.fastest_lead = self.fastest_lead.max(miss.saturating_sub(hit));
    }

    /// Returns the names of all measures that the Collector's records can contain for these
    /// proxies.
    pub fn measurable(proxies: &[&str]) -> Vec<Measurable> {
        let own = [
            "requests",
            "origin_fetches",
            "origin_bytes",
            "collapse_factor",
            "answers_{source}",
            "refused_{refusal}",
            "not_entered_{reason}",
            "failed_{failure}",
            "aborted",
            "stalled_initiators",
            "evicted",
            "surplus_answers",
            "origin_{part}_{quantile}_us",
            "hit_minus_miss_median_ms",
            "hit_minus_miss_p90_ms",
            "hit_minus_miss_p99_ms",
            "hit_before_miss_most_ms",
        ];
        let own = Measurable::of("collector", &own)
            .choosing("source", Source::ALL.map(|source| source.name().to_ascii_lowercase()))
            .choosing("refusal", Refusal::ALL.map(Refusal::name))
            .choosing("reason", HandshakeFailure::ALL.map(HandshakeFailure::name))
            .choosing("failure", Failure::ALL.map(Failure::name))
            .choosing("part", ["connect", "first_byte"])
            .choosing("quantile", ["p50", "p90"]);
        let each = ["requests", "origin_fetches", "bytes"];
        let of_proxies: Vec<Measurable> = match proxies {
            [] => vec![Measurable::of_any(&each)],
            known => known.iter().map(|proxy| Measurable::of(proxy, &each)).collect(),
        };
        std::iter::once(own).chain(of_proxies).collect()
    }

    /// Returns the report as run records.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    pub fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        let mut add = |name: &str, subject: &str, value: f64, unit: &str| {
            records.push(Record::Measure(Measure::once(name, subject, value, unit)));
        };
        for proxy in self.proxies.iter().filter(|proxy| proxy.requests > 0) {
            add("requests", &proxy.name, proxy.requests as f64, "requests");
            add("origin_fetches", &proxy.name, proxy.fetches as f64, "requests");
            add("bytes", &proxy.name, proxy.bytes as f64, "B");
        }
        let own = "collector";
        add("requests", own, self.requests() as f64, "requests");
        add("origin_fetches", own, self.fetches as f64, "requests");
        add("origin_bytes", own, self.bytes_in as f64, "B");
        if let Some(factor) = self.collapse_factor() {
            add("collapse_factor", own, factor, "requests");
        }
        for source in Source::ALL {
            let name = format!("answers_{}", source.name().to_ascii_lowercase());
            add(&name, own, self.sources[source as usize] as f64, "answers");
        }
        for refusal in Refusal::ALL {
            add(
                &format!("refused_{}", refusal.name()),
                own,
                self.refused(refusal) as f64,
                "requests",
            );
        }
        for reason in HandshakeFailure::ALL {
            let count = self.not_entered[reason as usize];
            add(&format!("not_entered_{}", reason.name()), own, count as f64, "connections");
        }
        for failure in Failure::ALL {
            add(
                &format!("failed_{}", failure.name()),
                own,
                self.failed(failure) as f64,
                "requests",
            );
        }
        add("aborted", own, self.aborted as f64, "answers");
        add("stalled_initiators", own, self.stalled as f64, "answers");
        add("evicted", own, self.evicted as f64, "answers");
        add("surplus_answers", own, self.surplus as f64, "requests");
        for (name, latencies) in [("connect", &self.connect), ("first_byte", &self.first_byte)] {
            for (part, quantile) in [("p50", 0.5), ("p90", 0.9)] {
                add(&format!("origin_{name}_{part}_us"), own, latencies.at(quantile) as f64, "us");
            }
        }
        if self.differences.count() > 0 {
            let milliseconds = |quantile| self.differences.at(quantile) as f64 / 1000.0;
            add("hit_minus_miss_median_ms", own, milliseconds(0.5), "ms");
            add("hit_minus_miss_p90_ms", own, milliseconds(0.9), "ms");
            add("hit_minus_miss_p99_ms", own, milliseconds(0.99), "ms");
            add("hit_before_miss_most_ms", own, self.fastest_lead.as_secs_f64() * 1000.0, "ms");
        }
        records
    }
}
