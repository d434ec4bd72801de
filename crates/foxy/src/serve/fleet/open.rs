//! Opens the fleet: gives the proxy the list of nodes, and shows the states of the nodes to the
//! operator.

use super::OpenFleet;
use super::certificates::{FleetCertificates, OpenCertificates};
use super::discovery::Discovery;
use crate::failure::Failure;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::serve::fleet_purges::{FleetPurgeFacts, FleetPurges};
use crate::settings::Settings;
use crate::settings::rows::FleetChapter;
use crate::terminal::{self, Level};
use foxy_base::clock;
use foxy_fleet::purges::runner::MemberList;
use foxy_fleet::{JoinTerms, NodeStatus, Nodes};
use foxy_proxy::cache::purge::NotPurged;
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
    /// The list of members in the log of purges, if the fleet has an engine.
    list: Option<MemberList>,
    /// The state of the fleet's purges.
    purges: FleetPurgeFacts,
    /// The search for members by DNS, if the settings list no members.
    discovery: Option<Arc<Discovery>>,
}

/// Reads the files of the fleet. Changes of the members also reach `purges`. Returns `None` if the
/// settings name no fleet.
pub fn open(
    settings: &Settings,
    purges: Option<&FleetPurges>,
) -> Result<Option<OpenFleet>, Failure> {
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
    let (list, facts) = (purges.and_then(FleetPurges::list), purges.map(FleetPurges::facts));
    let (certificates, purges) = (Arc::new(certificates), facts.unwrap_or_default());
    let view = FleetView { nodes, certificates, list, purges, discovery: None };
    Ok(Some(OpenFleet { link, tls, cache_name, view }))
}

impl FleetView {
    /// Gives the other nodes a hash of this node's members, weights, rules and origins. Warns of
    /// each node whose hash began to differ since the last call.
    pub fn compare(&self, rules_and_origins: &str) {
        self.nodes.set_settings(rules_and_origins);
        for name in self.nodes.new_differences() {
            let text = format!(
                "foxy: node `{name}` of the fleet has other members, weights, rules or origins \
                 than this node; give all nodes the same, or nodes may answer differently"
            );
            terminal::report(Level::Warning, &text);
        }
    }

    /// Joins the fleet: takes no keys at first, and then more and more within the time of
    /// `fleet.ramp`.
    pub fn join(&self, settings: &Settings) {
        let FleetChapter { ramp, former_owner, .. } = settings.fleet;
        self.nodes.join(JoinTerms { ramp, former_owner }, clock::monotonic());
    }

    /// Makes this node begin to leave the fleet, or stay if `is_leaving` is false.
    pub fn leave(&self, is_leaving: bool) {
        self.nodes.leave(is_leaving, clock::monotonic());
    }

    /// Starts to look up the members by DNS, if the settings name DNS records.
    pub fn discover(&mut self, settings: &Settings) -> Result<(), Failure> {
        self.discovery = Discovery::start(settings)?.map(Arc::new);
        Ok(())
    }

    /// Returns the DNS records of the members as JSON. `None` if the settings list the members.
    pub fn members_from(&self) -> Option<Value> {
        self.discovery.as_ref().map(|discovery| discovery.as_json())
    }

    /// Takes over more keys if this node is joining the fleet and the next step is due. The first
    /// step waits for the node's lease, if the fleet has an engine. Also applies changed
    /// DNS records of the members.
    pub fn tick(&self) {
        if let Some(discovery) = &self.discovery
            && let Some(fleet) = discovery.changed()
            && self.replace_members(&fleet).is_ok()
        {
            discovery.applied(fleet);
        }
        let purges = self.purges.0.as_ref();
        let is_ready = purges.is_none_or(|status| !status.figures().report.lease_left.is_zero());
        self.nodes.tick(is_ready, clock::monotonic());
    }

    /// Replaces the list of members by the list of these settings, unless DNS gives the members.
    pub fn set_members(&self, settings: &Settings) {
        if self.discovery.is_none()
            && let Err(why) = self.replace_members(&settings.fleet)
        {
            let text =
                format!("foxy: the log of purges keeps the old members: {why}; reload again");
            terminal::report(Level::Warning, &text);
        }
    }

    /// Replaces the list of members, first for requests and then for purges.
    fn replace_members(&self, fleet: &FleetChapter) -> Result<(), NotPurged> {
        let Some(Ok(members)) = fleet.fleet() else { return Ok(()) };
        self.nodes.set_members(members);
        self.list.as_ref().map_or(Ok(()), |list| list.set(fleet.member_names()))
    }

    /// Reads the fleet's certificates again.
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
                "is_leaving": node.standing.is_leaving,
                "taken_part": f64::from(node.standing.part) / 1000.0,
                "share": node.share,
                "load": node.load,
                "p99_seconds": node.p99.map(|p99| p99.as_secs_f64()),
            })
        };
        self.nodes.status().into_iter().map(node).collect()
    }

    /// Returns the name of each other node, and whether the node is lost.
    pub fn others(&self) -> Vec<(String, bool)> {
        let others = self.nodes.status().into_iter().filter(|node| !node.is_own);
        others.map(|node| (node.member.id.as_str().to_owned(), node.is_lost)).collect()
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
        if let Some(discovery) = &self.discovery {
            let help = "Whether DNS gave the members of the fleet at the last look-up.";
            let is_up = u8::from(!discovery.fails());
            exposition.single("foxy_fleet_dns_up", FamilyKind::Gauge, help, is_up);
        }
    }
}
