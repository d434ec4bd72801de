//! HTTP/2 with a client: its streams, the frames of answers, and the bytes that pass.

pub(crate) mod io;
pub(crate) mod sender;
pub(crate) mod stream;
pub(crate) mod wire;
