//! Tests the decisions that operators take: which clients are served, and the rules.

mod admission;
mod limits;
mod rules;
mod users;
