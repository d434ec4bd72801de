//! The ways in which a store can break its contract, as the torture tests name them.

use crate::content::RecordName;
use foxy_store::Ticket;
use std::fmt;

/// A broken promise. The numbers in the docs are those of `foxy_store::contract`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// 4: an answer to a request that was never made, or had its answer already.
    AnsweredTwice(Ticket),
    /// 4: no answer, though nothing was left for the store to wait for.
    NeverAnswered(Ticket),
    /// 4: an answer that does not belong to that kind of request.
    WrongKind(Ticket),
    /// 1: bytes that nobody put.
    WrongBytes {
        /// The key that was asked for.
        key: u32,
    },
    /// 1: another key's record.
    OtherKey {
        /// The key that was asked for.
        asked: u32,
        /// What came.
        found: RecordName,
    },
    /// 1 and 3: a record that was replaced or removed before the get.
    CameBack(RecordName),
    /// 2: a record whose put had been refused before the get.
    RefusedPut(RecordName),
    /// A record that the scheme found although a look had said that there is none.
    LookedAbsent {
        /// The key that was asked for.
        key: u32,
    },
    /// 5: more than the scheme was allowed.
    OverBound {
        /// What is limited.
        what: Bound,
        /// The limit.
        limit: u64,
        /// What was seen.
        seen: u64,
    },
    /// An operation with the id of one still in flight.
    ReusedId(u64),
    /// The scheme panicked, with this text.
    Panicked(String),
}

/// What a scheme must stay within.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bytes in files on the device.
    DiskBytes,
    /// Operations submitted and not finished.
    OperationsInFlight,
    /// Bytes in the buffers of those operations.
    BufferBytes,
}

impl Violation {
    /// Whether two violations are of one kind, whatever their numbers; shrinking keeps the kind.
    pub fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnsweredTwice(ticket) => {
                write!(f, "request {} was answered though no answer was due", ticket.0)
            }
            Self::NeverAnswered(ticket) => write!(f, "request {} was never answered", ticket.0),
            Self::WrongKind(ticket) => {
                write!(f, "request {} got an answer to another kind of request", ticket.0)
            }
            Self::WrongBytes { key } => write!(f, "a get of key {key} gave bytes that nobody put"),
            Self::OtherKey { asked, found } => {
                write!(f, "a get of key {asked} gave key {} version {}", found.key, found.version)
            }
            Self::CameBack(name) => {
                write!(
                    f,
                    "key {} version {} came back after it was replaced or removed",
                    name.key, name.version
                )
            }
            Self::RefusedPut(name) => {
                write!(
                    f,
                    "key {} version {} was found though its put was refused",
                    name.key, name.version
                )
            }
            Self::LookedAbsent { key } => {
                write!(f, "key {key} was found after a look had called it absent")
            }
            Self::OverBound { what, limit, seen } => {
                let what = match what {
                    Bound::DiskBytes => "bytes on disk",
                    Bound::OperationsInFlight => "operations in flight",
                    Bound::BufferBytes => "bytes in buffers in flight",
                };
                write!(f, "{seen} {what}, the limit is {limit}")
            }
            Self::ReusedId(id) => write!(f, "operation id {id} was used again while in flight"),
            Self::Panicked(text) => write!(f, "the scheme panicked: {text}"),
        }
    }
}
