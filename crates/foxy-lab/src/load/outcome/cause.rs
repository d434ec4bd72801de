//! The causes of failed requests in a load run.

use crate::named::named;
use crate::wire::patience::Loss;
use rustix::io::Errno;
use std::io;

named! {
    /// The reason why a request did not end with a complete and correct answer.
    pub enum ErrorCause {
        /// The proxy accepted no connection.
        Connect = "connect",
        /// No local port was free.
        NoPort = "no_port",
        /// No file descriptor was free.
        NoDescriptor = "no_descriptor",
        /// The answer was not complete within the time limit.
        Timeout = "timeout",
        /// The connection closed before the first byte.
        Closed = "closed",
        /// The connection was reset during the exchange.
        Reset = "reset",
        /// The connection closed before the end of the answer.
        Incomplete = "incomplete",
        /// More bytes arrived after the answer (RFC 9112 §9.2).
        Surplus = "surplus",
        /// The answer is not HTTP.
        Protocol = "protocol",
        /// The status code is wrong.
        Status = "status",
        /// The answer is complete but has the wrong length.
        Length = "length",
        /// The body contains wrong bytes.
        BodyMismatch = "body_mismatch",
        /// The answer is for another object, or does not come from the origin.
        Foreign = "foreign_reply",
        /// A cache sent an old version after the object had changed.
        Stale = "stale",
        /// A cache answered a request with `Cache-Control: no-cache`, which forbids cached answers.
        HitOnReload = "hit_on_reload",
        /// A cache sent an answer that caches must not store.
        HitOnUncachable = "hit_on_uncachable",
        /// The client never sent the request, because too many requests were waiting.
        NotSent = "not_sent",
        /// The proxy refused to open a tunnel (CONNECT).
        Tunnel = "tunnel_refused",
        /// The certificate is not trusted, is for another name, or is not valid now.
        Certificate = "tls_certificate",
        /// The TLS handshake failed for a reason other than the certificate, or chose another
        /// protocol.
        Handshake = "tls_handshake",
    }
}

impl ErrorCause {
    pub(crate) const fn is_loss(self) -> bool {
        matches!(self, Self::Closed | Self::Reset | Self::Incomplete)
    }

    /// Returns the cause for a connection that could not be opened.
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
