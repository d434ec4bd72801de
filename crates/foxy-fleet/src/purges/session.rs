//! The state of a member's connection to the engine (the server with the purge log), the exchange
//! in progress, and the task that follows the exchange.

use super::lease::MemberRecord;
use super::saved::Saved;
use foxy_base::Instant;
use foxy_proxy::cache::purge::Order;

/// A number by which the caller of the state machine recognises a purge.
pub type Ticket = u64;

/// The reason why a member must validate all responses that it stored before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValidateCause {
    /// The engine lost entries, so a new chain of entries begins.
    NewChain,
    /// The member is new, or entries left the purge log before the member read them.
    Missed,
    /// The engine's server restarted, and not all members have attested that the log lacks no
    /// entry.
    NoProof,
}

/// The task that a member must do durably after an exchange with the engine, before its next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// No purge. The member only saves its state, if the state changed
    /// ([`to_save`](super::node::Node::to_save)).
    Nothing,
    /// The member must apply these purges, in order.
    Apply(Vec<Order>),
    /// The member must demand validation of every response that it has stored so far.
    Validate(ValidateCause),
}

/// A purge that waits until an entry with it is appended to the purge log.
pub struct Wish {
    /// The number by which the caller recognises the purge.
    pub ticket: Ticket,
    /// The responses to purge, and the strength of the purge.
    pub orders: Vec<Order>,
}

/// An exchange with the engine in progress: the engine writes this member's record, then reads all
/// records and the purge log.
pub struct Exchange {
    /// The time when the exchange began.
    pub started: Instant,
    /// The record that the engine writes in this exchange.
    pub record: Option<MemberRecord>,
    /// The log position that the member must have applied before this exchange gives it a lease.
    pub goal: u64,
    /// The state that the member saves after the task of this exchange. `None` if the state has not
    /// changed.
    pub next: Option<Saved>,
}

/// A connection to the engine, the server with the purge log.
pub struct Session {
    /// Number that identifies the run of the engine's server.
    pub incarnation: u64,
    /// The time when the connection began.
    pub since: Instant,
    /// Whether the member has compared the server's log with the entries that it knows, and found
    /// no contradiction.
    pub attests: bool,
    /// The highest position of the purge log. `None` if the member must read the log again.
    pub tail: Option<u64>,
    /// Whether the purge log never had an entry.
    pub is_empty: bool,
}
