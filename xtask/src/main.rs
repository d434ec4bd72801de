//! The checks.
fn main() {}
