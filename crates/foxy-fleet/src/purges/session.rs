//! The connection of a member to the engine, the call in progress, and the task after the call.

use super::lease::MemberRecord;
use super::saved::Saved;
use foxy_base::Instant;
use foxy_proxy::cache::purge::Order;

/// The caller's number for a purge.
pub type Ticket = u64;

/// The reason why a member must validate everything that it stored before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ValidateCause {
    /// The chain was broken, and a new chain begins.
    NewChain,
    /// The member is new, or entries left the log before the member read them.
    Missed,
    /// The engine's server restarted, and some member has not attested that no entry is lost.
    NoProof,
}

/// The task that a member must do durably before its next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Only save the place if it changed ([`to_save`](super::node::Node::to_save)).
    Nothing,
    /// Apply these purges, in order.
    Apply(Vec<Order>),
    /// Demand validation of every response stored so far.
    Validate(ValidateCause),
}

/// A purge that waits for its entry.
pub struct Wish {
    /// The number of the purge.
    pub ticket: Ticket,
    /// The places to purge.
    pub orders: Vec<Order>,
}

/// An exchange with the engine in progress.
pub struct Exchange {
    /// When it began.
    pub started: Instant,
    /// The record that the engine writes in this exchange.
    pub record: Option<MemberRecord>,
    /// The position that the member must have applied before its lease counts.
    pub goal: u64,
    /// The place to save after the durable task.
    pub next: Option<Saved>,
}

/// A connection to the engine.
pub struct Session {
    /// Number of the run of the engine's server.
    pub incarnation: u64,
    /// When it began.
    pub since: Instant,
    /// Whether the member has compared the log with its chain.
    pub attests: bool,
    /// The highest position of the log. `None` before the first exchange.
    pub tail: Option<u64>,
    /// Whether the log has no entry.
    pub is_empty: bool,
}
