//! Addresses of origins: names into addresses, and the addresses that the policy allows.

pub(crate) mod destination;
pub(crate) mod name_resolver;
pub(crate) mod resolve;
