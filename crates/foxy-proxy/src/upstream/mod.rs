//! The upstream side of the proxy: resolves names, connects to origins, and sends requests to them.
//! It caches nothing, and does not know the connections of clients. Start to read at
//! [`UpstreamClient`]. `address::destination` decides to which addresses the proxy may connect.

mod address;
mod client;
mod dial;
mod dialled;
mod error;
mod exchange;
mod fail_over;
pub mod fleet;
pub(crate) mod foresight;
mod http1;
mod http2;
mod origins;
mod parents;
mod pool;
mod protocol_link;
mod reach;
mod route;
mod sending;
mod settings;
mod through;
mod tls;
mod tunnel;

pub use address::destination::{ChosenBy, DestinationPolicy, DestinationRefusal};
pub use address::name_resolver::{NameResolver, ResolverUnusable};
pub use address::records::ServiceRecord;
pub use address::resolve::{Addresses, MakeResolver, Resolve};
pub use client::{OpenTunnel, UpstreamClient, UpstreamCounts, UpstreamRequest};
pub use dial::Origin;
pub use error::{ConnectError, Http2Error, ParentFailure, ResolveError, TlsError, UpstreamError};
pub use exchange::{BodyEvent, HeadEvent, UpstreamExchange};
pub use fleet::link::FleetLink;
pub(crate) use fleet::nodes;
pub use foxy_http::Scheme;
pub(crate) use origins::NoOrigin;
pub use origins::Origins;
pub(crate) use origins::group::GroupMember;
pub use origins::group::{GroupSettings, MAX_SERVERS, OriginGroup, Probe, SentHost, ServerStatus};
pub use origins::matching::{BadServedHost, ServedHost};
pub(crate) use origins::probing;
pub use origins::server::OriginServer;
pub use parents::no_proxy::{BadNoProxy, NoProxy};
pub use parents::parent::{BadParent, Parent, ParentCredentials};
pub use parents::{
    ExpectedWay, MAX_PARENTS, ParentChoice, ParentFallback, ParentSettings, Parents,
};
pub(crate) use route::Responder;
pub use route::{NodeSource, OriginTimes};
pub use sending::{BodyPiece, BodySender, RequestBody};
pub use settings::{OriginHttp2, OriginSource, UpstreamSettings};
pub(crate) use through::expected_way;
pub use tls::{Authorities, AuthoritiesError, OriginTls, OwnCertificate};
pub use tunnel::{Tunnel, TunnelEnd, TunnelReport};
