//! The preface of HTTP/2, and the room that a head takes while foxy works on its request.

/// What a client begins with that speaks HTTP/2 (RFC 9113 §3.4).
pub(crate) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a head that take none of the budget.
pub(crate) const SMALL_HEAD: usize = 8 << 10;

/// How many times a head is held: as it was read, as the request that is worked on, and as it is
/// sent on.
pub(crate) const HELD_HEADS: usize = 3;
