//! Where a connection goes: names into addresses, and the addresses that the policy allows.

pub(crate) mod destination;
pub(crate) mod known_names;
pub(crate) mod name_resolver;
pub(crate) mod own_machine;
pub(crate) mod resolve;
