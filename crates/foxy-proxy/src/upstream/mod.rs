//! The upstream side: finding an origin, connecting to it, and one exchange with it. It caches
//! nothing and knows no client. Start at [`UpstreamClient`]; `destination` decides where
//! connections may go.

mod body;
mod cidr;
mod client;
mod connect_error;
mod destination;
mod dial;
mod error;
mod exchange;
mod http1;
mod http2;
mod known_names;
mod name_resolver;
mod own_machine;
mod pool;
mod reach;
mod resolve;
mod sending;
mod settings;
mod tls;
mod tunnel;

pub use body::{BodyPiece, BodySender, RequestBody};
pub use cidr::{Cidr, CidrError};
pub use client::{UpstreamClient, UpstreamCounts, UpstreamRequest};
pub use destination::{ChosenBy, DestinationPolicy, DestinationRefusal};
pub use dial::Origin;
pub use error::{ConnectError, ResolveError, TlsError, UpstreamError};
pub use exchange::{BodyEvent, HeadEvent, UpstreamExchange};
pub use foxy_http::Scheme;
pub use http2::{Http2Error, OriginHttp2};
pub use name_resolver::{NameResolver, ResolverUnusable};
pub use resolve::{Addresses, Resolve};
pub use settings::UpstreamSettings;
pub use tls::{Authorities, AuthoritiesError, OriginTls};
pub use tunnel::{Tunnel, TunnelEnd, TunnelReport};
