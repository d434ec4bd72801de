//! The ways in which a store can break its contract.

use crate::content::RecordName;
use foxy_store::Ticket;
use std::fmt;

/// A violation of the store's contract. `foxy_store::contract` lists the rules of the contract as
/// points 1 to 5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The store answered without a request, or answered a request twice (point 4 of the contract).
    AnsweredTwice(Ticket),
    /// The store did not answer, although it waits for no disk operation or deadline (point 4 of
    /// the contract).
    NeverAnswered(Ticket),
    /// The kind of the answer does not fit the request (point 4 of the contract).
    WrongKind(Ticket),
    /// The store returned a record with bytes that no `put` of the script contained (point 1 of the
    /// contract).
    WrongBytes {
        /// Number of the requested key.
        key: u32,
    },
    /// The store returned a record of another key (point 1 of the contract).
    OtherKey {
        /// Number of the requested key.
        asked: u32,
        /// Name of the record in the answer.
        found: RecordName,
    },
    /// The store returned a record that was replaced or removed before the `get` (points 1 and 3 of
    /// the contract).
    CameBack(RecordName),
    /// The store returned the record of a `put` that it had refused before the `get` (point 2 of
    /// the contract).
    RefusedPut(RecordName),
    /// A `get` found a record although a look-up just before had reported that the record is
    /// absent.
    LookedAbsent {
        /// Number of the requested key.
        key: u32,
    },
    /// The storage scheme exceeded a limit of its settings (point 5 of the contract).
    OverBound {
        /// The resource whose limit was exceeded.
        what: Bound,
        /// Value of the limit, in the unit of `what`: bytes or operations.
        limit: u64,
        /// Value that the test saw, in the same unit.
        seen: u64,
    },
    /// A new disk operation has the id of an operation in progress.
    ReusedId(u64),
    /// The storage scheme panicked with this text.
    Panicked(String),
}

/// The resource that a limit of the storage scheme bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Total size in bytes of all files on the device.
    DiskBytes,
    /// Number of disk operations in progress.
    OperationsInFlight,
    /// Total size in bytes of the buffers of all disk operations in progress.
    BufferBytes,
}

impl Violation {
    /// Returns whether two violations are of one kind. Shrinking a script must not change the kind.
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
