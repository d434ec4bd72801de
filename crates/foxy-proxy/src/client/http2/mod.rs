//! Speaks HTTP/2 with a client. This module handles the streams, sends answers as frames, and
//! watches the bytes of the connection.

pub(crate) mod io;
pub(crate) mod sender;
pub(crate) mod stream;
pub(crate) mod wire;
