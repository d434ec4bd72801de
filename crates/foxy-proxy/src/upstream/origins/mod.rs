//! The origins of a reverse proxy. The operator sets the hosts, the path and the servers of each
//! origin. All servers of an origin have the same content. `Origins` finds the origin of a request,
//! and the origin chooses one of its servers.

pub(crate) mod attempts;
pub(crate) mod choice;
pub(crate) mod group;
pub(crate) mod load;
pub(crate) mod matching;
pub(crate) mod probing;
pub(crate) mod server;

use crate::upstream::origins::group::{GroupSettings, OriginGroup, ServerStatus};
use crate::upstream::origins::matching::KeyParts;
use foxy_base::{Instant, Random};
use std::sync::Arc;

/// The origins of a reverse proxy, in the operator's order.
#[derive(Debug, Default)]
pub struct Origins {
    groups: Vec<Arc<OriginGroup>>,
    /// Whether a server receives the addresses of the client's connection in a PROXY header.
    name_clients: bool,
}

/// The reason why no origin receives a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoOrigin {
    /// No origin serves the host.
    Host,
    /// Origins serve the host, but not the path.
    Path,
}

impl Origins {
    /// Creates the origins after a start or reload. An origin of `earlier` with equal settings
    /// stays, with its connections. In a changed origin, the servers that stay keep their state.
    pub fn new(all: Vec<GroupSettings>, earlier: &Self, now: Instant, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let group = |settings: GroupSettings| {
            let mut known = earlier.groups.iter();
            let known = known.find(|group| group.settings.name == settings.name);
            match known {
                Some(group) if group.settings == settings => Arc::clone(group),
                _ => {
                    let earlier = known.map(|group| &**group);
                    Arc::new(OriginGroup::new(settings, earlier, now, random.next_u64()))
                }
            }
        };
        let name_clients = all.iter().any(|settings| settings.proxy_header.is_some());
        Self { groups: all.into_iter().map(group).collect(), name_clients }
    }

    /// Returns true if a server receives the addresses of the client's connection in a PROXY
    /// header.
    pub(crate) const fn name_clients(&self) -> bool {
        self.name_clients
    }

    /// Returns the first origin that serves the URL of a cache key.
    pub(crate) fn find(&self, key: &[u8]) -> Result<&Arc<OriginGroup>, NoOrigin> {
        let parts = KeyParts::of(key);
        let mut missed = NoOrigin::Host;
        for group in &self.groups {
            if parts.is_of_host(&group.settings.hosts) {
                if parts.is_below(&group.settings.path) {
                    return Ok(group);
                }
                missed = NoOrigin::Path;
            }
        }
        Err(missed)
    }

    /// Returns the origin with this name.
    pub(crate) fn named(&self, name: &str) -> Option<&Arc<OriginGroup>> {
        self.groups.iter().find(|group| group.settings.name == name)
    }

    /// Returns the Host that a request without a Host field gets. Only HTTP/1.0 permits such a
    /// request.
    pub(crate) fn usual_authority(&self) -> String {
        let mut groups = self.groups.iter();
        let usual = groups.find(|group| group.settings.hosts.is_empty());
        usual.or(self.groups.first()).map(|group| group.settings.authority()).unwrap_or_default()
    }

    pub(crate) fn groups(&self) -> &[Arc<OriginGroup>] {
        &self.groups
    }

    /// Returns the state of the servers of all origins, for metrics and explanations.
    pub fn status(&self, now: Instant) -> Vec<ServerStatus> {
        self.groups.iter().flat_map(|group| group.status(now)).collect()
    }
}

#[cfg(test)]
#[path = "origins_tests.rs"]
mod tests;
