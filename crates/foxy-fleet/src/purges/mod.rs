//! Purges on all members of a fleet. An external *engine* (a server) has one ordered log of purges.
//! Each member applies the entries in order. It serves stored responses without validation only
//! within its *lease*. A purge is acknowledged when every member has applied it durably, or has no
//! lease. `docs/fleet.md` describes the behaviour for operators.
//!
//! - `entry` has the log's entries. `chain` and `history` notice entries that the engine lost.
//! - `lease` has the leases, and `node` the state machine of a member with the purges of `waiting`
//!   and the connection of `session`. None of these modules does IO.
//! - `witnesses` explains why the list of members may change, and which members then count.
//! - `engine` has the trait of an engine. `redis` implements it with Redis or Valkey, `nats` with
//!   NATS. `address` chooses between them.
//! - `runner` drives a node: it calls the engine, and applies purges. `saved` is the node's
//!   position in the log, `place` the file that contains it, and `status` the node's state for the
//!   operator.

pub mod address;
pub mod chain;
pub mod engine;
pub mod entry;
pub mod history;
pub mod lease;
pub mod nats;
pub mod node;
pub mod place;
pub mod redis;
pub mod runner;
pub mod saved;
pub mod session;
pub mod status;
mod waiting;
pub mod witnesses;
