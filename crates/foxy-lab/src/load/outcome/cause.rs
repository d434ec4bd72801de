//! What a request can fail of.

use crate::wire::loss::Loss;
use rustix::io::Errno;
use std::io;

/// Why a request did not end in a whole, right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// No connection to the proxy.
    Connect,
    /// No free local port.
    NoPort,
    /// No free file descriptor.
    NoDescriptor,
    /// Not whole within the time limit.
    Timeout,
    /// The connection closed before the first byte.
    Closed,
    /// The connection was reset within the exchange.
    Reset,
    /// The connection closed within the answer.
    Incomplete,
    /// Surplus bytes after the answer (RFC 9112 §9.2).
    Surplus,
    /// The answer is not HTTP.
    Protocol,
    /// The wrong status.
    Status,
    /// A complete answer of the wrong length.
    Length,
    /// Wrong bytes.
    BodyMismatch,
    /// The answer is for another object, or not the origin's.
    Foreign,
    /// A stored answer with an outdated version.
    Stale,
    /// A stored answer to a request that asked for none.
    HitOnReload,
    /// A stored answer that must not be stored.
    HitOnUncachable,
    /// Never sent: too many requests were waiting.
    NotSent,
    /// The proxy did not open the tunnel.
    Tunnel,
    /// The certificate is untrusted, for another name, or not valid now.
    Certificate,
    /// TLS failed otherwise, or chose another protocol.
    Handshake,
}

impl ErrorCause {
    /// All causes, in the order of `LoadReport::errors`.
    pub const ALL: [Self; 20] = [
        Self::Connect,
        Self::NoPort,
        Self::NoDescriptor,
        Self::Timeout,
        Self::Closed,
        Self::Reset,
        Self::Incomplete,
        Self::Surplus,
        Self::Protocol,
        Self::Status,
        Self::Length,
        Self::BodyMismatch,
        Self::Foreign,
        Self::Stale,
        Self::HitOnReload,
        Self::HitOnUncachable,
        Self::NotSent,
        Self::Tunnel,
        Self::Certificate,
        Self::Handshake,
    ];

    /// Name in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::NoPort => "no_port",
            Self::NoDescriptor => "no_descriptor",
            Self::Timeout => "timeout",
            Self::Closed => "closed",
            Self::Reset => "reset",
            Self::Incomplete => "incomplete",
            Self::Surplus => "surplus",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::Length => "length",
            Self::BodyMismatch => "body_mismatch",
            Self::Foreign => "foreign_reply",
            Self::Stale => "stale",
            Self::HitOnReload => "hit_on_reload",
            Self::HitOnUncachable => "hit_on_uncachable",
            Self::NotSent => "not_sent",
            Self::Tunnel => "tunnel_refused",
            Self::Certificate => "tls_certificate",
            Self::Handshake => "tls_handshake",
        }
    }

    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::Closed | Self::Reset | Self::Incomplete)
    }

    /// The cause of a failed connect.
    pub fn of_connect(error: &io::Error) -> Self {
        match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ADDRNOTAVAIL) => Self::NoPort,
            Some(Errno::MFILE | Errno::NFILE) => Self::NoDescriptor,
            _ => Self::Connect,
        }
    }
}

impl From<Loss> for ErrorCause {
    fn from(loss: Loss) -> Self {
        match loss {
            Loss::Unanswered => Self::Closed,
            Loss::Within => Self::Incomplete,
            Loss::Reset => Self::Reset,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_stand_in_the_order_of_their_counts() {
        for (index, cause) in ErrorCause::ALL.into_iter().enumerate() {
            assert_eq!(cause as usize, index, "{}", cause.name());
        }
    }
}
