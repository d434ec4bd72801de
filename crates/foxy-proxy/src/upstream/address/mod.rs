//! Resolves the names of origins, and decides to which addresses the proxy may connect.

pub(crate) mod destination;
pub(crate) mod name_resolver;
pub(crate) mod records;
pub(crate) mod resolve;
