//! A stream of HTTP/2, for the time of its request.

use crate::client::http2::body::Http2Body;
use crate::client::http2::sender::{Http2Sender, Out};
use crate::client::http2::tunnel::Http2Tunnel;
use crate::upstream::Scheme;
use std::cell::RefCell;
use std::time::Duration;

/// A stream, for the time of its request.
pub(crate) struct Http2Stream<'a> {
    pub(crate) out: &'a RefCell<Out>,
    pub(crate) body: &'a mut Http2Body,
    pub(crate) scheme: Scheme,
}

impl Http2Stream<'_> {
    pub(crate) fn split(&mut self, write_limit: Duration) -> (&mut Http2Body, Http2Sender<'_>) {
        (&mut *self.body, Http2Sender::new(self.out, write_limit))
    }

    pub(crate) fn as_tunnel(&mut self) -> Http2Tunnel<'_> {
        Http2Tunnel::new(self.out, self.body)
    }
}
