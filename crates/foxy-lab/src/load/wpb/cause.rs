//! Why a request of the benchmark has no whole, right answer.

use crate::named::named;
use std::io;

named! {
    /// Why a request failed.
    pub enum Cause {
        /// The connection was refused, or reset before the first byte.
        Refused = "refused",
        /// No connection for another reason, such as a lack of ports.
        NoConnection = "no_connection",
        /// Not whole within the time limit.
        Timeout = "timeout",
        /// The connection closed before the first byte.
        Unanswered = "unanswered",
        /// The connection ended within the answer.
        Incomplete = "incomplete",
        /// The bytes are not HTTP.
        Protocol = "protocol",
        /// Another status than 200.
        Status = "status",
        /// A complete answer of the wrong length.
        Length = "length",
        /// Wrong bytes.
        BodyMismatch = "body_mismatch",
        /// The answer is not from a server of the benchmark.
        ForeignReply = "foreign_reply",
        /// A cached answer in the control, whose answers must not be stored.
        HitOnNoStore = "hit_on_no_store",
    }
}

impl Cause {
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Self::Refused,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::NoConnection,
        }
    }

    /// Cause of a lost connection: `error`, or a plain close. `begun` tells whether part of the
    /// answer had come.
    pub(super) fn of_end(error: Option<&io::Error>, begun: bool) -> Self {
        match error {
            _ if begun => Self::Incomplete,
            Some(_) => Self::Refused,
            None => Self::Unanswered,
        }
    }
}
