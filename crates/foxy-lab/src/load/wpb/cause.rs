//! Why a request of the benchmark has no whole, right answer.

use std::io;

/// A cause of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The connection was refused, or reset before anything came.
    Refused,
    /// No connection for another reason, such as too few ports or descriptors here.
    NoConnection,
    /// Not the whole answer within the time limit.
    Timeout,
    /// The connection was closed before anything came.
    Unanswered,
    /// The connection ended within the answer.
    Incomplete,
    /// What came is not HTTP.
    Protocol,
    /// A status other than 200.
    Status,
    /// A complete answer of the wrong length.
    Length,
    /// Bytes that are not the file's.
    BodyMismatch,
    /// An answer that no server of the benchmark made.
    ForeignReply,
    /// An answer from the cache to a request of the control, which nothing may store.
    HitOnNoStore,
}

impl Cause {
    /// Every cause, in the order of a report's counts.
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

    /// Its name in tables and records.
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

    /// Why a connection was not to be had.
    pub(super) fn of_connect(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::ConnectionReset => Self::Refused,
            io::ErrorKind::TimedOut => Self::Timeout,
            _ => Self::NoConnection,
        }
    }

    /// Why a connection ended before the answer was complete: with an error or, where there is
    /// none, closed; `begun` when some of the answer had come.
    pub(super) fn of_end(error: Option<&io::Error>, begun: bool) -> Self {
        match error {
            _ if begun => Self::Incomplete,
            Some(_) => Self::Refused,
            None => Self::Unanswered,
        }
    }
}
