//! The fleet of this node (`upstream::fleet`), with the TLS settings for connections to its nodes.

use crate::core::counters::{Counter, Counters};
use crate::core::live::Live;
use crate::upstream::fleet::Fleet;
use crate::upstream::tls::OriginTls;
use std::sync::Arc;

/// The fleet of this node, and the TLS settings with which the proxy connects to other nodes.
#[derive(Clone, Debug)]
pub struct FleetLink {
    /// The nodes of the fleet, and the owner of each key.
    pub fleet: Arc<dyn Fleet>,
    /// This node's certificate, and the authorities of the other nodes' certificates.
    pub tls: Live<OriginTls>,
}

impl FleetLink {
    /// Records that a connection to a node failed. If the node is lost from now on, also counts the
    /// loss in `counters`.
    pub(crate) fn fails(&self, counters: &Counters, number: usize) {
        counters.add(Counter::FleetNodesLost, self.fleet.fails(number).into());
    }

    /// Records that a node did not answer a ping. If the node is lost from now on, also counts the
    /// loss in `counters`.
    pub(crate) fn misses_ping(&self, counters: &Counters, number: usize) {
        counters.add(Counter::FleetNodesLost, self.fleet.misses_ping(number).into());
    }

    /// Records that a node did not answer a request in time. If the node is lost from now on, also
    /// counts the loss in `counters`.
    pub(crate) fn misses_request(&self, counters: &Counters, number: usize) {
        counters.add(Counter::FleetNodesLost, self.fleet.misses_request(number).into());
    }
}
