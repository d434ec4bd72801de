//! The *fleet*: several foxy processes, its *nodes*, that share one cache. For each cache key, the
//! nodes have an order. The first node, the *owner*, fetches and stores the key's responses. The
//! next node, the *second*, replaces a lost or busy owner. This module has the interface to the
//! code that knows the members, and the header field with which nodes speak to each other.

pub(crate) mod link;
pub(crate) mod nodes;
pub(crate) mod owners_state;
pub(crate) mod signs;

use crate::cache::purge::LogPlace;
use foxy_base::Instant;
use foxy_http::Headers;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Name of the header field with which nodes speak to each other. The field has a meaning only on
/// connections between nodes. The proxy removes it from all other messages.
pub(crate) const FIELD: &str = "Foxy-Fleet";

/// The field's value in a request to the second node for a key, which replaces the owner.
pub(crate) const SECOND: &str = "second";

/// The field's value in a request that only a stored response may answer. A node sends such a
/// request to another node if the owner is slow. A new owner sends it to the former owner.
pub(crate) const STORED: &str = "stored";

/// A node of the fleet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetNode {
    /// Number of the node in this process. No other node ever gets this number.
    pub number: usize,
    /// The name, which the node's certificate contains as a DNS name.
    pub name: Arc<str>,
    /// Host where other nodes reach the node. An IPv6 address has brackets.
    pub host: String,
    /// TCP port where other nodes reach the node.
    pub port: u16,
}

impl FleetNode {
    /// Returns host and port where other nodes reach this node.
    pub(crate) fn authority(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// Returns the name with which this node appears in `CDN-Loop` (RFC 8586).
    pub(crate) fn loop_id(&self) -> String {
        format!("foxy-{}", self.name)
    }

    /// Returns true if the `CDN-Loop` field of a request shows that the request has passed this
    /// node.
    pub(crate) fn has_passed(&self, request: &Headers) -> bool {
        let own = self.loop_id();
        // Quotes are ignored, because an unclosed quote must not hide the names after it.
        let mut names =
            request.get_all("cdn-loop").flat_map(|line| line.split(|byte| *byte == b','));
        names.any(|name| {
            let id = name.split(|byte| *byte == b';').next().unwrap_or_default();
            id.trim_ascii().eq_ignore_ascii_case(own.as_bytes())
        })
    }
}

/// The node to ask for the response of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenNode {
    /// The node to ask.
    pub node: Arc<FleetNode>,
    /// If the node does not answer within this time, the caller also asks another node.
    pub patience: Duration,
}

/// The facts about itself that a node sends to another node with an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// Number of requests of other nodes in progress at the node.
    pub load: u32,
    /// Number of requests per second that the nodes send for the key.
    pub rate: u32,
    /// True if the node refuses the request, because it has too many requests in progress.
    pub is_busy: bool,
    /// The cause of the error, if the answer is an error that the node made itself.
    pub error: Option<ErrorCause>,
    /// A hash of the settings that must be equal on all nodes. Only answers to pings have it.
    pub settings: Option<u64>,
    /// The share of its keys that the node accepts now. Only answers to pings have it.
    pub standing: Standing,
    /// Position in the fleet's purge log. The node had applied all purges up to this position
    /// before its look-up. Only nodes with `fleet.engine` send it.
    pub applied: Option<LogPlace>,
}

/// The cause of an error that a node answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// The origin gave the node no response. The client receives this error, because another node
    /// would only burden the origin with the same request.
    Origin,
    /// The node itself cannot answer, but another node may.
    Node,
}

impl ErrorCause {
    const ALL: [Self; 2] = [Self::Origin, Self::Node];

    /// Returns the word in the field for this cause. Nodes of earlier versions send and understand
    /// only `failed`.
    const fn word(self) -> &'static str {
        match self {
            Self::Origin => "origin-failed",
            Self::Node => "failed",
        }
    }
}

/// The share of its keys that a node accepts. A node that joins the fleet accepts more and more of
/// its keys. A node that leaves accepts no keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The share of its keys, in thousandths.
    pub part: u32,
    /// True if the node leaves the fleet.
    pub is_leaving: bool,
}

impl Standing {
    /// The standing of a node that accepts all its keys.
    pub const WHOLE: Self = Self { part: 1000, is_leaving: false };
}

impl Default for Standing {
    fn default() -> Self {
        Self::WHOLE
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { load, rate, is_busy, error, settings, standing, applied } = self;
        write!(f, "load={load}, rate={rate}")?;
        f.write_str(if *is_busy { ", busy" } else { "" })?;
        if let Some(cause) = error {
            write!(f, ", {}", cause.word())?;
        }
        f.write_str(if standing.is_leaving { ", leaving" } else { "" })?;
        if standing.part != Standing::WHOLE.part {
            write!(f, ", keys={}", standing.part)?;
        }
        if let Some(place) = applied {
            write!(f, ", applied={place}")?;
        }
        settings.map_or(Ok(()), |hash| write!(f, ", settings={hash:016x}"))
    }
}

impl Told {
    /// Reads the field of an answer. Returns `None` if the answer lacks the field, so that no node
    /// sent the answer. Ignores elements that a newer foxy may have added to the field.
    pub(crate) fn read(headers: &Headers) -> Option<Self> {
        headers.get(FIELD)?;
        let mut told = Self::default();
        for part in headers.tokens(FIELD).filter_map(|part| std::str::from_utf8(part).ok()) {
            match part.split_once('=') {
                Some(("load", digits)) => told.load = digits.parse().unwrap_or_default(),
                Some(("rate", digits)) => told.rate = digits.parse().unwrap_or_default(),
                Some(("settings", digits)) => {
                    told.settings = u64::from_str_radix(digits, 16).ok();
                }
                Some(("applied", place)) => told.applied = LogPlace::read(place),
                Some(("keys", digits)) => {
                    let part = digits.parse().unwrap_or(Standing::WHOLE.part);
                    told.standing.part = part.min(Standing::WHOLE.part);
                }
                None if part == "leaving" => told.standing.is_leaving = true,
                None if part == "busy" => told.is_busy = true,
                None => {
                    let cause = ErrorCause::ALL.into_iter().find(|cause| cause.word() == part);
                    told.error = cause.or(told.error);
                }
                Some(_) => {}
            }
        }
        Some(told)
    }
}

/// The members of a fleet and their state. All workers share it. The members can change.
pub trait Fleet: fmt::Debug + Send + Sync {
    /// Returns this node.
    fn own(&self) -> Arc<FleetNode>;

    /// Returns the other members of the fleet.
    fn others(&self) -> Vec<Arc<FleetNode>>;

    /// Returns the node with this number, even if it left the fleet recently.
    fn node(&self, number: usize) -> Option<Arc<FleetNode>>;

    /// Returns true if the node with this number is a member now.
    fn is_member(&self, number: usize) -> bool;

    /// Returns the first two nodes for a key, the owner and the second node. Lost nodes are left
    /// out.
    fn order(&self, key: &[u8]) -> [Option<Arc<FleetNode>>; 2];

    /// Chooses the node to ask for a key, but none of the nodes `tried`. Returns `None` if this
    /// node must fetch the response itself.
    fn choose(&self, key: &[u8], tried: &[usize]) -> Option<ChosenNode>;

    /// Returns the node that may have stored the response of a key before, if this node is the
    /// owner now and was not the owner before.
    fn former_owner(&self, key: &[u8]) -> Option<Arc<FleetNode>>;

    /// Returns the share of its keys that this node accepts.
    fn standing(&self) -> Standing;

    /// Returns true if a node is lost: it accepts no connections, or answers no pings or requests.
    fn is_lost(&self, number: usize) -> bool;

    /// Records an answer of a node. `took` is the time until the head of the answer came, or `None`
    /// if the node waited for the origin.
    fn answered(&self, number: usize, took: Option<Duration>, told: Told);

    /// Records that a node has sent bytes of a body. Such a node is not lost, even if it does not
    /// answer pings because they wait behind the bytes.
    fn hears(&self, number: usize);

    /// Records the answer to a ping.
    fn pinged(&self, number: usize, told: Told);

    /// Records that a node did not answer a ping. Returns true if the node is lost now and was not
    /// lost before.
    fn misses_ping(&self, number: usize) -> bool;

    /// Records that a node accepted no connection, or broke a connection off. Returns true if the
    /// node is lost now and was not lost before.
    fn fails(&self, number: usize) -> bool;

    /// Records that a node works on a request: it has reported that it waits for the origin.
    fn works(&self, number: usize);

    /// Records that a node did not answer a request in time, although it may answer pings. Returns
    /// true if the node is lost now and was not lost before.
    fn misses_request(&self, number: usize) -> bool;

    /// Notes the beginning of a request of another node for a key. Returns the facts to tell that
    /// node with the answer. The caller must call [`Self::end`] later.
    fn begin(&self, key: &[u8], now: Instant) -> Told;

    /// Notes the end of a request of another node.
    fn end(&self);

    /// Returns the number of requests of other nodes in progress.
    fn load(&self) -> u32;

    /// Returns a hash of the settings that must be equal on all nodes, if it is known already.
    fn settings_hash(&self) -> Option<u64>;

    /// Returns the least number of requests per second for which all nodes keep a copy of a key's
    /// response in memory.
    fn hot_rate(&self) -> u32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_reads_the_facts_that_another_node_writes() {
        for told in [
            Told::default(),
            Told { load: 12, rate: 40, is_busy: true, ..Told::default() },
            Told { standing: Standing { part: 300, is_leaving: true }, ..Told::default() },
            Told { error: Some(ErrorCause::Origin), ..Told::default() },
            Told {
                rate: u32::MAX,
                error: Some(ErrorCause::Node),
                settings: Some(7),
                ..Told::default()
            },
            Told { applied: Some(LogPlace { chain: 8, position: 9 }), ..Told::default() },
        ] {
            let mut headers = Headers::new();
            headers.append(FIELD, told.to_string());
            assert_eq!(Told::read(&headers), Some(told));
        }
        let mut headers = Headers::new();
        assert_eq!(Told::read(&headers), None);
        headers.append(FIELD, "load=x, new=1, newer");
        assert_eq!(Told::read(&headers), Some(Told::default()));
    }
}
