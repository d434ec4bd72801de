//! For whom the proxy speaks: clients that name any origin, or one origin.

use crate::upstream::{ChosenBy, Origin, Scheme};
use foxy_rules::Role;

/// For whom the proxy speaks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// For clients that name any origin: absolute-form requests and CONNECT.
    #[default]
    Forward,
    /// For one origin: origin-form requests.
    Reverse {
        /// Host and port of the origin.
        origin: ReverseOrigin,
    },
}

impl Mode {
    /// In whose service it caches.
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
    /// What is spoken with it.
    pub scheme: Scheme,
    /// Its host name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl ReverseOrigin {
    /// As the upstream side names it: chosen by the operator, so no policy forbids its address.
    pub fn origin(&self) -> Origin {
        Origin::new(self.scheme, &self.host, self.port, ChosenBy::Operator)
    }

    /// Its own authority, as Host says it.
    pub fn authority(&self) -> String {
        let bare = self.host.contains(':') && !self.host.starts_with('[');
        let host = if bare { format!("[{}]", self.host) } else { self.host.clone() };
        if self.port == self.scheme.default_port() { host } else { format!("{host}:{}", self.port) }
    }
}
