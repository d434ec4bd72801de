//! Speaks HTTP/2 with a client: the streams, the frames of answers, and the watch on the
//! connection's bytes.

pub(crate) mod io;
pub(crate) mod sender;
pub(crate) mod stream;
pub(crate) mod wire;
