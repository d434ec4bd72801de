//! Resolves the names of origins, and decides which addresses the policy allows.

pub(crate) mod destination;
pub(crate) mod name_resolver;
pub(crate) mod resolve;
