//! The fleet of this node: several foxy nodes that share one cache. Without the feature `fleet`,
//! no settings can name a fleet.

#[cfg(not(feature = "fleet"))]
mod absent;
#[cfg(feature = "fleet")]
mod certificates;
#[cfg(feature = "fleet")]
mod discovery;
#[cfg(feature = "fleet")]
mod open;

#[cfg(not(feature = "fleet"))]
pub use absent::{NoFleet as FleetView, open, with_found_members};
#[cfg(feature = "fleet")]
pub use discovery::with_found_members;
#[cfg(feature = "fleet")]
pub use open::{FleetView, open};

use crate::failure::Failure;
use crate::serve::fleet_purges::{FleetPurgeFacts, FleetPurges};
use crate::settings::Settings;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::server::{Gauges, OutcomeMetrics};
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::FleetLink;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// The fleet of this node, ready for the proxy.
pub struct OpenFleet {
    pub link: FleetLink,
    /// TLS settings for the connections that other nodes open to this node.
    pub tls: ClientTls,
    /// Name of this node's cache in `Cache-Status`.
    pub cache_name: &'static str,
    pub view: FleetView,
}

/// Opens the fleet, and adds it to the settings `of_proxy`. Returns the state of the fleet for the
/// operator, or `None` without a fleet. If an upgrade started this process (`is_successor`), it has
/// the cache of the old process. So it serves all its keys at once. Any other node takes its keys
/// in steps.
pub fn join(
    of_proxy: &mut ProxySettings,
    (listen, is_successor): (Vec<SocketAddr>, bool),
    settings: &Settings,
    purges: &FleetPurges,
) -> Result<Option<FleetView>, Failure> {
    let Some(OpenFleet { link, tls, cache_name, mut view }) = open(settings, Some(purges))? else {
        return Ok(None);
    };
    of_proxy.listen_nodes = listen;
    of_proxy.upstream.fleet = Some(link);
    of_proxy.node_tls = Some(tls);
    of_proxy.cache_name = cache_name;
    view.discover(settings)?;
    if !is_successor {
        view.join(settings);
    }
    Ok(Some(view))
}

/// Returns the nodes, the counts of requests between them, and the purges, as JSON. `nodes` is null
/// if foxy belongs to no fleet, and `purges` is null without an engine.
pub fn as_json(view: Option<&FleetView>, purges: &FleetPurgeFacts, proxy: &Gauges) -> Value {
    let counters = Counter::ALL.iter().filter(|counter| counter.name().starts_with("fleet_"));
    let counter =
        |counter: &Counter| (counter.name().to_owned(), Value::from(proxy.count(*counter)));
    let counters: Map<String, Value> = counters.map(counter).collect();
    let outcomes = proxy.outcomes();
    let of = |outcomes: &mut dyn Iterator<Item = &OutcomeMetrics>| -> u64 {
        outcomes.map(|outcome| outcome.durations.count()).sum()
    };
    let hits = of(&mut outcomes.iter().filter(|it| it.outcome.is_hit()));
    let cacheable = of(&mut outcomes.iter().filter(|it| it.outcome.is_cacheable()));
    let asked = proxy.count(Counter::FleetRequests);
    json!({
        "nodes": view.map(FleetView::as_json),
        "members_from": view.and_then(FleetView::members_from),
        "counters": counters,
        "purges": purges.as_json(),
        "hit_ratio_here": ratio(hits, cacheable),
        "hit_ratio_at_owners": ratio(proxy.count(Counter::FleetHits), asked),
    })
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
