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
    /// Records that a connection to a node failed. Counts the node if it is lost now.
    pub(crate) fn fails(&self, counters: &Counters, number: usize) {
        counters.add(Counter::FleetNodesLost, self.fleet.fails(number).into());
    }

    /// Records that a node did not answer a ping. Counts the node if it is lost now.
    pub(crate) fn misses_ping(&self, counters: &Counters, number: usize) {
        counters.add(Counter::FleetNodesLost, self.fleet.misses_ping(number).into());
    }
}
