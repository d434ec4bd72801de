//! The two kinds of proxy: forward and reverse.

use crate::upstream::{ChosenBy, Origin, Scheme};
use foxy_rules::Role;

/// The kind of proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// A forward proxy. Clients choose the origin, with an absolute URL or by CONNECT.
    #[default]
    Forward,
    /// A reverse proxy for one origin. Clients send only the path.
    Reverse {
        /// The origin behind the proxy.
        origin: ReverseOrigin,
    },
}

impl Mode {
    /// Returns the proxy's role in the caching rules.
    pub const fn role(&self) -> Role {
        match self {
            Self::Forward => Role::Proxy,
            Self::Reverse { .. } => Role::Gateway,
        }
    }
}

/// The origin behind a reverse proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReverseOrigin {
    /// The protocol that the proxy uses with the origin.
    pub scheme: Scheme,
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl ReverseOrigin {
    /// Returns the origin in the form that the upstream code uses. The operator chose this origin,
    /// so no policy forbids its address.
    pub fn origin(&self) -> Origin {
        Origin::new(self.scheme, &self.host, self.port, ChosenBy::Operator)
    }

    /// Returns the authority in the form of the Host field.
    pub fn authority(&self) -> String {
        let bare = self.host.contains(':') && !self.host.starts_with('[');
        let host = if bare { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}
