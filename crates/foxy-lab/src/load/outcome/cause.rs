//! Causes of failed requests.

use crate::named::named;
use crate::wire::patience::Loss;
use rustix::io::Errno;
use std::io;

named! {
    /// Why a request did not end in a whole, right answer.
    pub enum ErrorCause {
        /// No connection to the proxy.
        Connect = "connect",
        /// No free local port.
        NoPort = "no_port",
        /// No free file descriptor.
        NoDescriptor = "no_descriptor",
        /// Not whole within the time limit.
        Timeout = "timeout",
        /// The connection closed before the first byte.
        Closed = "closed",
        /// The connection was reset within the exchange.
        Reset = "reset",
        /// The connection closed within the answer.
        Incomplete = "incomplete",
        /// Surplus bytes after the answer (RFC 9112 §9.2).
        Surplus = "surplus",
        /// The answer is not HTTP.
        Protocol = "protocol",
        /// The wrong status.
        Status = "status",
        /// A complete answer of the wrong length.
        Length = "length",
        /// Wrong bytes.
        BodyMismatch = "body_mismatch",
        /// The answer is for another object, or not the origin's.
        Foreign = "foreign_reply",
        /// A stored answer with an outdated version.
        Stale = "stale",
        /// A stored answer to a request that asked for none.
        HitOnReload = "hit_on_reload",
        /// A stored answer that must not be stored.
        HitOnUncachable = "hit_on_uncachable",
        /// Never sent: too many requests were waiting.
        NotSent = "not_sent",
        /// The proxy did not open the tunnel.
        Tunnel = "tunnel_refused",
        /// The certificate is untrusted, for another name, or not valid now.
        Certificate = "tls_certificate",
        /// TLS failed otherwise, or chose another protocol.
        Handshake = "tls_handshake",
    }
}

impl ErrorCause {
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
