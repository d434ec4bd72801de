//! The numbers that the dashboard asks for each second. The dashboard computes rates from the
//! differences of counters.

use foxy_base::{ByteSize, WallTime, clock};
use foxy_cli::process::{own_cpu_time, resident_bytes};
use foxy_proxy::core::counters::Counter;
use foxy_proxy::server::{Gauges, OutcomeMetrics};
use foxy_store::statistics::Measure;
use foxy_store::{StoreHandle, StoreStatus};
use serde_json::{Map, Value, json};
use std::cell::Cell;

/// The time and the number of requests when a dashboard last asked. The growth since then gives the
/// rate of requests, and the rate decides how many requests are sampled.
#[derive(Debug, Default)]
pub struct LastLook(Cell<Option<(foxy_base::Instant, u64)>>);

impl LastLook {
    /// Returns the mean number of requests per second since the last call. The first call returns
    /// 0.
    pub fn rate(&self, now: foxy_base::Instant, requests: u64) -> u64 {
        let last = self.0.replace(Some((now, requests)));
        last.map_or(0, |(then, earlier)| {
            let seconds = now.since(then).as_secs_f64().max(0.1);
            (requests.saturating_sub(earlier) as f64 / seconds) as u64
        })
    }
}

/// Facts for the dashboard that only its caller has.
pub struct Facts {
    /// The settings `memory` and `limits.connections`.
    pub limits: (ByteSize, usize),
    pub started: WallTime,
    pub troubles: Vec<String>,
    /// For each store, whether it is out of use.
    pub out_of_use: Vec<bool>,
}

pub fn as_json(facts: &Facts, proxy: &Gauges, stores: &[(String, StoreHandle)]) -> Value {
    let Facts { limits, started, troubles, out_of_use } = facts;
    let counters: Map<String, Value> = Counter::ALL
        .iter()
        .map(|counter| (counter.name().to_owned(), proxy.count(*counter).into()))
        .collect();
    let outcomes: Vec<_> = proxy.outcomes().iter().map(outcome).collect();
    let (bytes, entries) = proxy.memory();
    let store = |(number, (folder, handle)): (usize, &(String, StoreHandle))| {
        store(folder, handle, out_of_use.get(number).is_some_and(|is_out| *is_out))
    };
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "now_ms": clock::wall().0,
        "started_ms": started.0,
        "counters": counters,
        "outcomes": outcomes,
        "memory": { "bytes": bytes, "entries": entries, "limit": limits.0.0 },
        "connections": { "open": proxy.connections(), "limit": limits.1 },
        "cpu_seconds": own_cpu_time().as_secs_f64(),
        "resident_bytes": resident_bytes(),
        "troubles": troubles,
        "stores": stores.iter().enumerate().map(store).collect::<Vec<_>>(),
    })
}

/// Describes the finished requests with one outcome. A bucket has its end in seconds (`null`: no
/// end), and the number of requests that took no longer.
fn outcome(metrics: &OutcomeMetrics) -> Value {
    json!({
        "name": metrics.outcome.name(),
        "is_hit": metrics.outcome.is_hit(),
        "is_cacheable": metrics.outcome.is_cacheable(),
        "count": metrics.durations.count(),
        "buckets": metrics.durations.up_to(),
    })
}

fn store(folder: &str, handle: &StoreHandle, is_out: bool) -> Value {
    let observer = handle.observer();
    let measures: Map<String, Value> = observer
        .statistics
        .snapshot()
        .into_iter()
        .map(|Measure { name, value, .. }| (name.to_owned(), value.into()))
        .collect();
    json!({
        "folder": folder,
        "status": word(observer.status.get()),
        "out_of_use": is_out,
        "has_map": handle.has_layout(),
        "measures": measures,
    })
}

const fn word(status: StoreStatus) -> &'static str {
    match status {
        StoreStatus::Opening => "opening",
        StoreStatus::Rebuilding => "rebuilding its index",
        StoreStatus::Serving => "serving",
        StoreStatus::Unusable(_) => "unusable",
        StoreStatus::Closed => "closed",
        StoreStatus::Panicked => "failed",
    }
}
