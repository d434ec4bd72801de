//! The streams of HTTP/2 with a client: the body of a request, the frames of an answer, and the
//! bytes that pass.

pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod io;
pub(crate) mod sender;
pub(crate) mod stream;
pub(crate) mod tunnel;
pub(crate) mod wire;
