//! The way to an origin: directly, or through a parent proxy. Connections are kept by route.

use crate::upstream::dial::Origin;
use crate::upstream::origins::group::GroupMember;

/// The use of a parent proxy on the way to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum By {
    /// The proxy connects to the origin itself.
    Direct,
    /// The parent with this number receives each request, and connects to the origin. `origin` is
    /// the parent, so requests to several origins share connections.
    Parent(usize),
    /// The parent with this number opens a tunnel to the origin.
    Tunnel(usize),
}

impl By {
    /// Returns the number of the parent.
    pub(crate) const fn parent(self) -> Option<usize> {
        match self {
            Self::Direct => None,
            Self::Parent(number) | Self::Tunnel(number) => Some(number),
        }
    }
}

/// The way to an origin. Requests share a connection only if their routes are equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Route {
    /// The server that receives the requests on a connection.
    pub(crate) origin: Origin,
    pub(crate) by: By,
}

/// The receivers of a request on its way, for logs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Responder {
    /// The number of the parent proxy.
    pub(crate) parent: Option<usize>,
    /// The server of the operator's origin.
    pub(crate) server: Option<GroupMember>,
}

impl Route {
    pub(crate) const fn direct(origin: Origin) -> Self {
        Self { origin, by: By::Direct }
    }
}
