//! Tests three nodes of a fleet, with real connections between them.

mod bench;
mod joining;
mod owners;
mod slow;
mod strangers;
