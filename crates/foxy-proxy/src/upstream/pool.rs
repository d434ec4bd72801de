//! Idle HTTP/1.1 connections to origins. The pool returns the connection that was used last, so
//! that unneeded connections stay idle and close. The pool opens no connections.

use crate::core::transport::Transport;
use crate::upstream::route::Route;
use bytes::BytesMut;
use foxy_http::{Limits, ResponseDecoder};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// An HTTP/1.1 connection to an origin, with bytes that were read but not parsed yet.
pub(crate) struct Connection {
    pub(crate) stream: Transport,
    pub(crate) decoder: ResponseDecoder,
    pub(crate) buffer: BytesMut,
}

impl Connection {
    pub(crate) fn new(stream: Transport, limits: Limits) -> Self {
        Self { stream, decoder: ResponseDecoder::new(limits), buffer: BytesMut::new() }
    }

    /// Returns true if neither bytes nor the end of the stream arrived after the last response.
    /// Otherwise the connection cannot be used for another request.
    fn is_silent(&mut self) -> bool {
        self.stream.is_silent()
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

/// The limits of the pool: idle connections for one origin, idle connections in total, and idle
/// time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    pub(crate) per_origin: usize,
    pub(crate) total: usize,
    pub(crate) idle: Duration,
}

/// Idle connections by route. A route also tells whether a client or the operator chose the origin.
/// So a client never receives a connection to an address that only the operator may choose.
pub(crate) struct Pool {
    limits: PoolLimits,
    idle: HashMap<Route, VecDeque<Idle>>,
    total: usize,
}

impl Pool {
    pub(crate) fn new(limits: PoolLimits) -> Self {
        Self { limits, idle: HashMap::new(), total: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// Returns the most recently used connection of `route` on which nothing has arrived since.
    /// Closes the connections on which something has arrived.
    pub(crate) fn take(&mut self, route: &Route, now: Instant) -> Option<Connection> {
        let waiting = self.idle.get_mut(route)?;
        let mut found = None;
        while let Some(mut idle) = waiting.pop_back() {
            self.total -= 1;
            if now.duration_since(idle.since) < self.limits.idle && idle.connection.is_silent() {
                found = Some(idle.connection);
                break;
            }
        }
        if waiting.is_empty() {
            self.idle.remove(route);
        }
        found
    }

    /// Keeps a connection whose last exchange ended without an error. If the pool then exceeds a
    /// limit, closes the oldest connection.
    pub(crate) fn put(&mut self, route: &Route, mut connection: Connection, now: Instant) {
        if self.limits.per_origin == 0 || self.limits.total == 0 {
            return;
        }
        connection.buffer = BytesMut::new();
        let waiting = self.idle.entry(route.clone()).or_default();
        waiting.push_back(Idle { connection, since: now });
        self.total += 1;
        if waiting.len() > self.limits.per_origin {
            waiting.pop_front();
            self.total -= 1;
        }
        if self.total > self.limits.total {
            self.close_oldest();
        }
    }

    /// Closes connections that were idle too long or that the origin closed. Also closes
    /// connections on which bytes arrived without a request.
    pub(crate) fn sweep(&mut self, now: Instant) {
        let limit = self.limits.idle;
        self.idle.retain(|_, waiting| {
            waiting.retain_mut(|idle| {
                now.duration_since(idle.since) < limit && idle.connection.is_silent()
            });
            !waiting.is_empty()
        });
        self.total = self.idle.values().map(VecDeque::len).sum();
    }

    fn close_oldest(&mut self) {
        let age = |waiting: &VecDeque<Idle>| waiting.front().map(|idle| idle.since);
        let oldest = self
            .idle
            .iter()
            .min_by_key(|(_, waiting)| age(waiting))
            .map(|(route, _)| route.clone());
        let Some(route) = oldest else { return };
        if let Some(waiting) = self.idle.get_mut(&route) {
            waiting.pop_front();
            self.total -= 1;
            if waiting.is_empty() {
                self.idle.remove(&route);
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
