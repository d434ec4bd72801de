//! What a request can fail of.

use crate::wire::loss::Loss;
use rustix::io::Errno;
use std::io;

/// Why a request did not end in a whole, right answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorCause {
    /// No connection to the proxy.
    Connect,
    /// No connection, because this machine has no port left for it.
    NoPort,
    /// No connection, because this process may have no more open files.
    NoDescriptor,
    /// No answer, or not all of it, within the time limit.
    Timeout,
    /// The connection was closed before a byte of the answer had come.
    Closed,
    /// The connection was reset before the answer was complete.
    Reset,
    /// The connection was closed within the answer.
    Incomplete,
    /// More than the answer came: bytes behind it that nobody asked for (RFC 9112 §9.2).
    Surplus,
    /// The answer is not HTTP.
    Protocol,
    /// A status that does not answer the request.
    Status,
    /// A complete answer of the wrong length.
    Length,
    /// Bytes that are not those of the object.
    BodyMismatch,
    /// The answer is about another object, or not the origin's.
    Foreign,
    /// A stored answer whose version had ended.
    Stale,
    /// A stored answer to a request that asked for none.
    HitOnReload,
    /// A stored answer that must not be stored.
    HitOnUncachable,
    /// Never sent: too many requests were waiting for the proxy already.
    NotSent,
    /// The proxy opened no tunnel: it answered CONNECT with another status than 2xx, or not at all.
    Tunnel,
    /// The certificate is of nobody trusted, for another name, or not valid now.
    Certificate,
    /// TLS failed for another reason, or was not to carry the protocol.
    Handshake,
}

impl ErrorCause {
    /// Every cause, in the order of `LoadReport::errors`.
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

    /// Its name in records.
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

    /// Whether the connection was lost, in whichever way, before the answer was complete.
    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::Closed | Self::Reset | Self::Incomplete)
    }

    /// Why there is no connection: this machine's own want of something, or that nobody took it.
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
