//! Takes the listening sockets that systemd opened for foxy (sd_listen_fds(3)). systemd keeps them
//! open while foxy restarts. Connections then wait instead of being refused.

use crate::failure::Failure;
use crate::serve::listeners::{OpenSockets, shared};
use foxy_proxy::server::listener::{ListenSocket, ListenerKind};
use listenfd::ListenFd;
use serde::{Deserialize, Serialize};
use socket2::SockRef;

/// The environment variable in which systemd gives the names of the sockets, separated by colons.
pub const NAMES: &str = "LISTEN_FDNAMES";

/// The use of a socket. The setting `FileDescriptorName=` of systemd's socket unit gives the use as
/// a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Purpose {
    Listen,
    ListenTls,
    Admin,
    ListenTransparent,
    FleetListen,
}

impl Purpose {
    /// Returns foxy's command-line flag for addresses with this use.
    pub const fn flag(self) -> &'static str {
        match self {
            Self::Listen => "--listen",
            Self::ListenTls => "--listen-tls",
            Self::Admin => "--admin",
            Self::ListenTransparent => "--listen-transparent",
            Self::FleetListen => "--fleet-listen",
        }
    }

    /// Returns the kind of listener for this use.
    pub const fn kind(self) -> ListenerKind {
        match self {
            Self::Listen | Self::Admin => ListenerKind::Plain,
            Self::ListenTls => ListenerKind::Tls,
            Self::ListenTransparent => ListenerKind::Transparent,
            Self::FleetListen => ListenerKind::Nodes,
        }
    }

    /// Returns the use that a socket's name gives. Without `FileDescriptorName=`, systemd passes
    /// the name of the unit, such as `foxy.socket`.
    fn named(name: &str) -> Option<Self> {
        match name {
            "listen-tls" => Some(Self::ListenTls),
            "listen-transparent" => Some(Self::ListenTransparent),
            "admin" => Some(Self::Admin),
            "" | "listen" | "unknown" => Some(Self::Listen),
            unit if unit.ends_with(".socket") => Some(Self::Listen),
            _ => None,
        }
    }
}

/// Takes all sockets that systemd passed. Fails if foxy cannot serve a socket, because clients
/// would connect to it and wait for ever. `names` is the value of the variable [`NAMES`].
pub fn take(names: &str) -> Result<OpenSockets, Failure> {
    let mut given = ListenFd::from_env();
    let mut names = names.split(':');
    let mut sockets = Vec::with_capacity(given.len());
    for index in 0..given.len() {
        let name = names.next().unwrap_or_default();
        let refuse = |why: &str| {
            Failure::Unusable(format!("systemd passes foxy the socket {index} ({name:?}): {why}"))
        };
        let purpose = Purpose::named(name).ok_or_else(|| {
            refuse(
                "set FileDescriptorName= of its unit to listen, listen-tls, listen-transparent or \
                 admin",
            )
        })?;
        let socket = take_one(&mut given, index)
            .ok_or_else(|| refuse("use ListenStream= and Accept=no in its unit"))?;
        sockets.push((purpose, shared(purpose, socket, true)));
    }
    Ok(sockets)
}

fn take_one(given: &mut ListenFd, index: usize) -> Option<ListenSocket> {
    if let Ok(Some(listener)) = given.take_tcp_listener(index) {
        let is_listening = SockRef::from(&listener).is_listener().unwrap_or(false);
        return is_listening.then_some(ListenSocket::Tcp(listener));
    }
    let listener = given.take_unix_listener(index).ok()??;
    let is_listening = SockRef::from(&listener).is_listener().unwrap_or(false);
    is_listening.then_some(ListenSocket::Unix(listener))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_the_purpose() {
        for (name, expected) in [
            ("foxy.socket", Some(Purpose::Listen)),
            ("listen", Some(Purpose::Listen)),
            ("listen-tls", Some(Purpose::ListenTls)),
            ("listen-transparent", Some(Purpose::ListenTransparent)),
            ("admin", Some(Purpose::Admin)),
            ("metrics", None),
        ] {
            assert_eq!(Purpose::named(name), expected, "{name}");
        }
    }
}
