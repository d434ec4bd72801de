//! The foxy program.
fn main() {}
