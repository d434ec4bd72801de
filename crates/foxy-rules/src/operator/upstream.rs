//! The *upstream* of a request, which a rule may choose: an origin that the operator has
//! configured, or the server that the URL names. A rule also chooses the ways to this server:
//! directly, or through parent proxies.

use std::sync::Arc;

/// The upstream that a rule chooses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upstream {
    /// The operator's origin with this name receives the requests.
    Origin(String),
    /// The server of the URL receives the requests. The proxy reaches it in one of these ways.
    Ways(Arc<Ways>),
}

/// The ways by which the proxy may reach the server of a URL: directly or through a parent proxy.
/// If a permitted parent works, the proxy uses it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Ways {
    /// Whether the proxy may use every parent proxy.
    pub all_parents: bool,
    /// Host and port of each parent proxy that the proxy may use.
    pub parents: Vec<(String, u16)>,
    /// Whether the proxy may connect to the server itself.
    pub direct: bool,
}

impl Ways {
    /// Returns whether the proxy may use the parent with this host and port.
    pub fn permits(&self, host: &str, port: u16) -> bool {
        let is_named = |(name, number): &(String, u16)| name == host && *number == port;
        self.all_parents || self.parents.iter().any(is_named)
    }

    /// Returns whether the proxy may use any parent.
    pub const fn permits_parents(&self) -> bool {
        self.all_parents || !self.parents.is_empty()
    }
}
