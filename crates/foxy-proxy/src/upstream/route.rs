//! The *route* to an origin: directly, or through a parent proxy. Idle connections are found by
//! their route.

use crate::core::addresses::client_ends::ClientEnds;
use crate::upstream::address::destination::ChosenBy;
use crate::upstream::dial::Origin;
use crate::upstream::fleet::FleetNode;
use crate::upstream::origins::group::GroupMember;
use foxy_base::Instant;
use foxy_http::Scheme;
use std::time::Duration;

/// Whether and how a route leads through a parent proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// The proxy connects to the origin itself.
    Direct,
    /// The parent proxy with this number receives each request, and itself connects to the origin.
    /// The field `origin` of such a route is the parent. So requests to several origins share
    /// connections to the parent.
    Parent(usize),
    /// The parent proxy with this number opens a tunnel to the origin.
    Tunnel(usize),
    /// The node of the fleet with this number receives each request. The `origin` of such a route
    /// is the node.
    Node(usize),
}

impl By {
    /// Returns the number of the parent proxy, if the route has one.
    pub(crate) const fn parent(self) -> Option<usize> {
        match self {
            Self::Direct | Self::Node(_) => None,
            Self::Parent(number) | Self::Tunnel(number) => Some(number),
        }
    }

    /// Returns the number of the node of the fleet that receives the request. `None` without a node.
    pub(crate) const fn node(self) -> Option<usize> {
        match self {
            Self::Node(number) => Some(number),
            Self::Direct | Self::Parent(_) | Self::Tunnel(_) => None,
        }
    }
}

/// The route to an origin. Requests share a connection only if their routes are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// The server that reads the requests: the origin, or the parent proxy that receives each
    /// request.
    pub(crate) origin: Origin,
    pub(crate) by: By,
    /// The single client that connections on this route serve, because the origin sees its address.
    /// `None` if all clients share the connections.
    pub(crate) client: Option<ClientEnds>,
}

/// The server and the parent proxy that answered a request, and the times of the answer, for the
/// access log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Responder {
    /// The number of the parent proxy, if there is one.
    pub(crate) parent: Option<usize>,
    /// The server of the operator's origin, if the operator has set the origin.
    pub(crate) server: Option<GroupMember>,
    /// The node of the fleet that answered, and where the node found the response.
    pub(crate) node: Option<(usize, NodeSource)>,
    /// The times of the fetch.
    pub(crate) times: Option<OriginTimes>,
}

impl Responder {
    /// Notes that the node which answered had the response in its cache.
    pub(crate) fn found_in_cache(self) -> Self {
        let node = self.node.map(|(number, _)| (number, NodeSource::Cache));
        Self { node, ..self }
    }
}

/// The place where another node of the fleet found the response that it gave this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeSource {
    /// The node's cache.
    Cache,
    /// The origin, which the node asked.
    Origin,
}

/// The times of a fetch from an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OriginTimes {
    /// Time when the fetch began.
    pub started: Instant,
    /// Time for which the fetch waited for a connection.
    pub connect: Duration,
    /// Time from the start of the fetch to the head of the final response.
    pub first_byte: Duration,
}

impl Route {
    /// Returns the route to a node of the fleet. The operator chose its address.
    pub(crate) fn to_node(node: &FleetNode) -> Self {
        let origin = Origin::new(Scheme::Https, &node.host, node.port, ChosenBy::Operator);
        Self { origin, by: By::Node(node.number), client: None }
    }

    pub(crate) const fn direct(origin: Origin) -> Self {
        Self { origin, by: By::Direct, client: None }
    }
}
