//! A connection that was just opened, and its HTTP version.

use crate::core::transport::Transport;

/// An HTTP version: in use on a connection, or offered to an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DialedProtocol {
    Http1,
    Http2,
}

pub(crate) struct Dialled {
    pub(crate) stream: Transport,
    pub(crate) spoken: DialedProtocol,
}
