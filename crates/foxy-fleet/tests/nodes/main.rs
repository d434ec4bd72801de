//! Tests three nodes of a fleet, with real connections between them.

mod bench;
mod errors;
mod joining;
mod owners;
mod slow;
mod strangers;
