//! Opens the fleet: gives the proxy the list of nodes, and shows their states.

use super::OpenFleet;
use super::certificates::{FleetCertificates, OpenCertificates};
use crate::failure::Failure;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::settings::Settings;
use crate::terminal::{self, Level};
use foxy_fleet::{NodeStatus, Nodes};
use foxy_proxy::core::live::Live;
use foxy_proxy::core::tls::ClientTls;
use foxy_proxy::upstream::FleetLink;
use serde_json::{Value, json};
use std::sync::Arc;

/// The state of the fleet, for the operator.
#[derive(Clone, Debug)]
pub struct FleetView {
    nodes: Arc<Nodes>,
    certificates: Arc<FleetCertificates>,
}

/// Reads the files of the fleet. Returns `None` if the settings name no fleet.
pub fn open(settings: &Settings) -> Result<Option<OpenFleet>, Failure> {
    let fleet = &settings.fleet;
    let Some(members) = fleet.fleet() else { return Ok(None) };
    let members = members.map_err(Failure::Unusable)?;
    let name = &members.own().id;
    // Leaking is harmless, because a process opens one fleet.
    let cache_name = format!("foxy-{name}").leak();
    let OpenCertificates { own, authorities, link } = OpenCertificates::read(fleet)?;
    let tls = ClientTls::new(own);
    tls.ask_clients(Some(authorities));
    let link_tls = Live::from(link);
    let certificates = FleetCertificates::new(fleet, tls.clone(), link_tls.clone());
    let hot_rate = u32::try_from(fleet.hot_rate).unwrap_or(u32::MAX);
    let nodes = Arc::new(Nodes::new(members, hot_rate));
    let link = FleetLink { fleet: Arc::clone(&nodes) as _, tls: link_tls };
    let view = FleetView { nodes, certificates: Arc::new(certificates) };
    Ok(Some(OpenFleet { link, tls, cache_name, view }))
}

impl FleetView {
    /// Tells the nodes this node's rules and origins. Reports each node that began to differ.
    pub fn compare(&self, rules_and_origins: &str) {
        self.nodes.set_settings(rules_and_origins);
        for member in self.nodes.new_differences() {
            let text = format!(
                "foxy: node `{}` of the fleet has other members, weights, rules or origins than \
                 this node; give all nodes the same, or nodes may answer differently",
                member.id
            );
            terminal::report(Level::Warning, &text);
        }
    }

    /// Reads the certificates again.
    pub fn reload(&self) -> Result<(), String> {
        self.certificates.reload()
    }

    /// Reads the certificates again if the files have changed, and have then stayed the same for a
    /// while. Returns `None` if there is nothing to read.
    pub fn renew(&self) -> Option<Result<(), String>> {
        self.certificates.renew()
    }

    /// Returns the nodes as JSON, with their states, shares and loads.
    pub fn as_json(&self) -> Value {
        let node = |node: NodeStatus| {
            json!({
                "name": node.member.id.as_str(),
                "address": format!("{}:{}", node.member.host, node.member.port),
                "weight": node.member.weight,
                "is_own": node.is_own,
                "is_lost": node.is_lost,
                "differs": node.differs,
                "share": node.share,
                "load": node.load,
                "p99_seconds": node.p99.map(|p99| p99.as_secs_f64()),
            })
        };
        self.nodes.status().into_iter().map(node).collect()
    }

    /// Adds the state of each other node to `/metrics`.
    pub fn expose(&self, exposition: &mut Exposition) {
        let nodes = self.nodes.status();
        let others = || nodes.iter().filter(|node| !node.is_own);
        let labels: Vec<_> = others().map(|node| [("node", node.member.id.as_str())]).collect();
        let samples = labels.iter().zip(others());
        let samples = samples.map(|(labels, node)| (&labels[..], u8::from(!node.is_lost)));
        let help = "Whether this node of the fleet reaches another node.";
        exposition.family("foxy_fleet_node_up", FamilyKind::Gauge, help, samples);
        let samples = labels.iter().zip(others());
        let samples = samples.map(|(labels, node)| (&labels[..], u8::from(node.differs)));
        let help =
            "Whether a node of the fleet has other members, rules or origins than this node.";
        exposition.family("foxy_fleet_node_differs", FamilyKind::Gauge, help, samples);
        let samples = labels.iter().zip(others());
        let samples = samples.map(|(labels, node)| (&labels[..], node.load));
        let help = "Requests of other nodes in progress at a node of the fleet.";
        exposition.family("foxy_fleet_node_load", FamilyKind::Gauge, help, samples);
    }
}
