//! Forward proxy or reverse proxy.

use crate::upstream::{ChosenBy, Origin, Scheme};
use foxy_rules::Role;

/// The kind of proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// For clients that name any origin, in absolute form or by CONNECT.
    #[default]
    Forward,
    /// For one origin, in origin form.
    Reverse {
        /// The origin.
        origin: ReverseOrigin,
    },
}

impl Mode {
    /// The role that the caching rules know.
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
    /// The protocol to the origin.
    pub scheme: Scheme,
    /// The host name or address.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl ReverseOrigin {
    /// The origin for the upstream side: the operator chose it, so no policy forbids its address.
    pub fn origin(&self) -> Origin {
        Origin::new(self.scheme, &self.host, self.port, ChosenBy::Operator)
    }

    /// The authority as in Host.
    pub fn authority(&self) -> String {
        let bare = self.host.contains(':') && !self.host.starts_with('[');
        let host = if bare { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}
