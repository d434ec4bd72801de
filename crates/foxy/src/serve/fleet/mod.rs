//! The fleet of this node: several foxy nodes that share one cache. Without the feature `fleet`,
//! no settings can name a fleet.

#[cfg(not(feature = "fleet"))]
mod absent;
#[cfg(feature = "fleet")]
mod certificates;
#[cfg(feature = "fleet")]
mod open;

#[cfg(not(feature = "fleet"))]
pub use absent::{NoFleet as FleetView, open};
#[cfg(feature = "fleet")]
pub use open::{FleetView, open};

use crate::failure::Failure;
use crate::settings::Settings;
use foxy_proxy::core::counters::Counter;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::server::Gauges;
use foxy_proxy::settings::ProxySettings;
use foxy_proxy::upstream::FleetLink;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;

/// The fleet of this node, ready for the proxy.
pub struct OpenFleet {
    pub link: FleetLink,
    /// TLS settings for connections of other nodes.
    pub tls: ClientTls,
    /// Name of this node's cache in `Cache-Status`.
    pub cache_name: &'static str,
    pub view: FleetView,
}

/// Opens the fleet, and adds it to the settings `of_proxy`. Returns the state of the fleet for the
/// operator, or `None` without a fleet.
pub fn join(
    of_proxy: &mut ProxySettings,
    listen: Vec<SocketAddr>,
    settings: &Settings,
) -> Result<Option<FleetView>, Failure> {
    let Some(OpenFleet { link, tls, cache_name, view }) = open(settings)? else { return Ok(None) };
    of_proxy.listen_nodes = listen;
    of_proxy.upstream.fleet = Some(link);
    of_proxy.node_tls = Some(tls);
    of_proxy.cache_name = cache_name;
    Ok(Some(view))
}

/// Returns the nodes, and the counts of requests between them, as JSON. The nodes are null if foxy
/// has no fleet.
pub fn as_json(view: Option<&FleetView>, proxy: &Gauges) -> Value {
    let counters = Counter::ALL.iter().filter(|counter| counter.name().starts_with("fleet_"));
    let counter =
        |counter: &Counter| (counter.name().to_owned(), Value::from(proxy.count(*counter)));
    let counters: Map<String, Value> = counters.map(counter).collect();
    json!({ "nodes": view.map(FleetView::as_json), "counters": counters })
}
