//! The two kinds of proxy. Clients of a forward proxy choose the origin. A reverse proxy serves the
//! operator's origins.

use crate::core::live::Live;
use crate::upstream::{GroupSettings, OriginServer, Origins};
use foxy_base::clock;
use foxy_rules::Role;

/// The kind of proxy that runs.
#[derive(Clone, Debug, Default)]
pub enum Mode {
    /// A forward proxy. Clients choose the origin, with an absolute URL or by CONNECT.
    #[default]
    Forward,
    /// A reverse proxy for the operator's origins. Clients send only the path.
    Reverse {
        /// The origins behind the proxy.
        origins: Live<Origins>,
    },
}

impl Mode {
    /// Returns a reverse proxy for one server.
    pub fn reverse(server: OriginServer) -> Self {
        let all = vec![GroupSettings::of_one(server)];
        let origins = Origins::new(all, &Origins::default(), clock::monotonic(), 0);
        Self::Reverse { origins: origins.into() }
    }

    /// Returns true for a forward proxy.
    pub const fn is_forward(&self) -> bool {
        matches!(self, Self::Forward)
    }

    /// Returns the origins of a reverse proxy.
    pub const fn origins(&self) -> Option<&Live<Origins>> {
        match self {
            Self::Forward => None,
            Self::Reverse { origins } => Some(origins),
        }
    }

    /// Returns true if a server of an origin receives the addresses of the client's connection in a
    /// PROXY header.
    pub fn names_clients(&self) -> bool {
        self.origins().is_some_and(|origins| origins.get().name_clients())
    }

    /// Returns the role of the proxy, on which some caching rules depend.
    pub const fn role(&self) -> Role {
        match self {
            Self::Forward => Role::Proxy,
            Self::Reverse { .. } => Role::Gateway,
        }
    }
}
