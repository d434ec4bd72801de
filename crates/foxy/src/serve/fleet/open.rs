//! Opens the fleet: reads the certificates of this node, and gives the proxy the list of nodes.

use super::OpenFleet;
use crate::failure::Failure;
use crate::secret_file;
use crate::serve::admin::metrics::{Exposition, FamilyKind};
use crate::serve::tls::add_authorities;
use crate::settings::Settings;
use crate::settings::rows::FleetChapter;
use foxy_fleet::{NodeStatus, Nodes};
use foxy_proxy::core::client_certificates::{CertificateNeed, ClientAuthorities};
use foxy_proxy::core::tls::{ClientCertificates, ClientTls};
use foxy_proxy::upstream::{Authorities, FleetLink, OriginTls, OwnCertificate};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;

/// The state of the fleet, for the operator.
#[derive(Clone, Debug)]
pub struct FleetView(Arc<Nodes>);

/// Reads the files of the fleet. Returns `None` if the settings name no fleet.
pub fn open(settings: &Settings) -> Result<Option<OpenFleet>, Failure> {
    let fleet = &settings.fleet;
    let Some(members) = fleet.fleet() else { return Ok(None) };
    let members = members.map_err(Failure::Unusable)?;
    let name = &members.own().id;
    // Leaking is harmless, because a process opens one fleet.
    let cache_name = format!("foxy-{name}").leak();
    let (chain, key) = (certificate(fleet)?, key(fleet)?);
    let mut certificates = ClientCertificates::default();
    let unusable = |error: String| Failure::Unusable(format!("fleet.certificate: {error}"));
    certificates.add(&chain, &key).map_err(|error| unusable(error.to_string()))?;
    if !certificates.has(name.as_str()) {
        let text = format!("the certificate is not for the DNS name `{name}`, this node's name");
        return Err(unusable(text));
    }
    let tls = ClientTls::new(certificates);
    tls.ask_clients(Some(node_authorities(fleet)?));
    let mut authorities = Authorities::none();
    add_authorities(&mut authorities, &fleet.ca, "fleet.ca")?;
    let own = OwnCertificate::read(&chain, &key).map_err(unusable)?;
    let origin_tls = OriginTls::presenting(own, authorities).map_err(unusable)?;
    let nodes = Arc::new(Nodes::new(members, hot_rate(fleet)));
    let link = FleetLink { fleet: Arc::clone(&nodes) as _, tls: origin_tls };
    Ok(Some(OpenFleet { link, tls, cache_name, view: FleetView(nodes) }))
}

/// Returns the least rate for which this node keeps copies. With an engine for purges it keeps no
/// copies: this node could copy a purged response from an owner that has not applied the purge yet.
fn hot_rate(fleet: &FleetChapter) -> u32 {
    let rate = u32::try_from(fleet.hot_rate).unwrap_or(u32::MAX);
    if fleet.engine.is_some() { u32::MAX } else { rate }
}

fn certificate(fleet: &FleetChapter) -> Result<Vec<u8>, Failure> {
    read_public(given(fleet.certificate.as_deref()), "fleet.certificate")
}

fn key(fleet: &FleetChapter) -> Result<Vec<u8>, Failure> {
    let path = given(fleet.key.as_deref());
    secret_file::read(path).map_err(|error| {
        Failure::Unusable(format!("{} (fleet.key): the private key {error}", path.display()))
    })
}

/// Returns a path that every fleet must have.
fn given(path: Option<&Path>) -> &Path {
    path.expect("`settings::fleet` has refused a fleet without this file")
}

fn node_authorities(fleet: &FleetChapter) -> Result<ClientAuthorities, Failure> {
    let read = |path| read_public(path, "fleet.ca");
    let files: Vec<_> = fleet.ca.iter().map(|path| read(path)).collect::<Result<_, _>>()?;
    let read = ClientAuthorities::read(files.iter().map(Vec::as_slice), CertificateNeed::Required);
    read.map_err(|(number, error)| {
        Failure::Unusable(format!("{} (fleet.ca): {error}", fleet.ca[number].display()))
    })
}

fn read_public(path: &Path, key: &str) -> Result<Vec<u8>, Failure> {
    std::fs::read(path).map_err(|error| {
        let path = path.display();
        Failure::Unusable(format!("{path} ({key}): {error}; name a readable file in PEM"))
    })
}

impl FleetView {
    /// Returns the nodes as JSON, with their states, shares and loads.
    pub fn as_json(&self) -> Value {
        let node = |node: NodeStatus| {
            json!({
                "name": node.member.id.as_str(),
                "address": format!("{}:{}", node.member.host, node.member.port),
                "weight": node.member.weight,
                "is_own": node.is_own,
                "is_lost": node.is_lost,
                "share": node.share,
                "load": node.load,
                "p99_seconds": node.p99.map(|p99| p99.as_secs_f64()),
            })
        };
        self.0.status().into_iter().map(node).collect()
    }

    /// Adds the state of each other node to `/metrics`.
    pub fn expose(&self, exposition: &mut Exposition) {
        let nodes = self.0.status();
        let others = || nodes.iter().filter(|node| !node.is_own);
        let labels: Vec<_> = others().map(|node| [("node", node.member.id.as_str())]).collect();
        let samples = labels.iter().zip(others());
        let samples = samples.map(|(labels, node)| (&labels[..], u8::from(!node.is_lost)));
        let help = "Whether this node of the fleet reaches another node.";
        exposition.family("foxy_fleet_node_up", FamilyKind::Gauge, help, samples);
        let samples = labels.iter().zip(others());
        let samples = samples.map(|(labels, node)| (&labels[..], node.load));
        let help = "Requests of other nodes in progress at a node of the fleet.";
        exposition.family("foxy_fleet_node_load", FamilyKind::Gauge, help, samples);
    }
}
