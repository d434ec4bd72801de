//! Why a request of the benchmark has no whole, right answer.

use std::io;

/// Why a request failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection was refused, or reset before the first byte.
    Refused,
    /// No connection for another reason, such as a lack of ports.
    NoConnection,
    /// Not whole within the time limit.
    Timeout,
    /// The connection closed before the first byte.
    Unanswered,
    /// The connection ended within the answer.
    Incomplete,
    /// The bytes are not HTTP.
    Protocol,
    /// Another status than 200.
    Status,
    /// A complete answer of the wrong length.
    Length,
    /// Wrong bytes.
    BodyMismatch,
    /// The answer is not from a server of the benchmark.
    ForeignReply,
    /// A cached answer in the control, whose answers must not be stored.
    HitOnNoStore,
}

impl Cause {
    /// All causes, in the order of the report's counts.
    pub const ALL: [Self; 11] = [
        Self::Refused,
        Self::NoConnection,
        Self::Timeout,
        Self::Unanswered,
        Self::Incomplete,
        Self::Protocol,
        Self::Status,
        Self::Length,
        Self::BodyMismatch,
        Self::ForeignReply,
        Self::HitOnNoStore,
    ];

    /// Name in tables and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NoConnection => "no_connection",
            Self::Timeout => "timeout",
            Self::Unanswered => "unanswered",
            Self::Incomplete => "incomplete",
            Self::Protocol => "protocol",
            Self::Status => "status",
            Self::Length => "length",
            Self::BodyMismatch => "body_mismatch",
            Self::ForeignReply => "foreign_reply",
            Self::HitOnNoStore => "hit_on_no_store",
        }
    }

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
