//! Idle HTTP/1.1 connections to origins. The last connection put back is taken first, so that the
//! rest grow old and close. It dials nothing.

use crate::core::transport::Transport;
use crate::upstream::dial::Origin;
use bytes::BytesMut;
use foxy_http::{Limits, ResponseDecoder};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

/// A connection to an origin, with bytes that were read and not understood.
pub(crate) struct Connection {
    pub(crate) stream: Transport,
    pub(crate) decoder: ResponseDecoder,
    pub(crate) buffer: BytesMut,
}

impl Connection {
    pub(crate) fn new(stream: Transport, limits: Limits) -> Self {
        Self { stream, decoder: ResponseDecoder::new(limits), buffer: BytesMut::new() }
    }

    /// Whether nothing arrived since the last response: neither unrequested bytes nor the end.
    fn is_silent(&mut self) -> bool {
        self.stream.is_silent()
    }
}

struct Idle {
    connection: Connection,
    since: Instant,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolLimits {
    pub(crate) per_origin: usize,
    pub(crate) total: usize,
    pub(crate) idle: Duration,
}

/// Idle connections by origin. An origin's key says who chose it, so that a client never gets a
/// connection to an address that only the operator may name.
pub(crate) struct Pool {
    limits: PoolLimits,
    idle: HashMap<Origin, VecDeque<Idle>>,
    total: usize,
}

impl Pool {
    pub(crate) fn new(limits: PoolLimits) -> Self {
        Self { limits, idle: HashMap::new(), total: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// Takes the youngest connection to `origin` that looks alive. Closes those that do not.
    pub(crate) fn take(&mut self, origin: &Origin, now: Instant) -> Option<Connection> {
        let waiting = self.idle.get_mut(origin)?;
        let mut found = None;
        while let Some(mut idle) = waiting.pop_back() {
            self.total -= 1;
            if now.duration_since(idle.since) < self.limits.idle && idle.connection.is_silent() {
                found = Some(idle.connection);
                break;
            }
        }
        if waiting.is_empty() {
            self.idle.remove(origin);
        }
        found
    }

    /// Keeps a connection whose last exchange ended cleanly. Beyond a limit closes the oldest.
    pub(crate) fn put(&mut self, origin: &Origin, mut connection: Connection, now: Instant) {
        if self.limits.per_origin == 0 || self.limits.total == 0 {
            return;
        }
        connection.buffer = BytesMut::new();
        let waiting = self.idle.entry(origin.clone()).or_default();
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

    /// Closes connections that waited too long, that the origin closed, or that have unrequested
    /// bytes.
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
            .map(|(origin, _)| origin.clone());
        let Some(origin) = oldest else { return };
        if let Some(waiting) = self.idle.get_mut(&origin) {
            waiting.pop_front();
            self.total -= 1;
            if waiting.is_empty() {
                self.idle.remove(&origin);
            }
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
