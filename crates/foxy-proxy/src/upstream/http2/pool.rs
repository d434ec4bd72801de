//! The HTTP/2 connections of a worker, by route. A route also tells whether a client or the
//! operator chose the origin. Two routes never share a connection, even if a certificate contains
//! the names of both origins. The pool opens no connections.

use crate::core::transport::Transport;
use crate::upstream::error::ConnectError;
use crate::upstream::http2::connection::{Http2Connection, Lease};
use crate::upstream::route::Route;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Largest number of connections to one origin. The proxy opens another connection only if no
/// existing connection accepts more requests.
const MAX_CONNECTIONS: usize = 8;

/// Largest number of exchanges that may wait until a connection to one origin accepts another
/// request.
const MAX_WAITING_EXCHANGES: usize = 8192;

/// Number of origins that the pool remembers. Above this number, the pool forgets origins without a
/// connection.
const MAX_ORIGINS: usize = 4096;

/// The result of an attempt to connect. All exchanges that wait for the attempt receive it.
pub(crate) enum DialOutcome {
    /// The origin now has one more HTTP/2 connection.
    Joined,
    /// The origin chose HTTP/1.1. The first waiting exchange uses the connection.
    Http1(Cell<Option<Transport>>),
    Failed(ConnectError),
}

/// An attempt to connect to an origin. Several exchanges may wait for its result.
#[derive(Default)]
pub(crate) struct Attempt {
    outcome: RefCell<Option<Rc<DialOutcome>>>,
}

/// The HTTP/2 connections on one route, and the attempt to open another connection.
pub(crate) struct OriginConnections {
    connections: RefCell<Vec<Rc<Http2Connection>>>,
    attempt: RefCell<Option<Rc<Attempt>>>,
    chose_http1: Cell<bool>,
    /// Largest number of connections to this origin at the moment. The number is smaller after an
    /// attempt to open a further connection has failed.
    most: Cell<usize>,
    waiting: Cell<usize>,
    used: Cell<Instant>,
    changed: Rc<Notify>,
}

/// Counts one exchange as waiting until a connection accepts another request. Dropping this value
/// ends the wait.
pub(crate) struct WaitingForRoom<'a>(&'a OriginConnections);

impl Drop for WaitingForRoom<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get() - 1);
    }
}

impl Attempt {
    pub(crate) fn outcome(&self) -> Option<Rc<DialOutcome>> {
        self.outcome.borrow().clone()
    }
}

impl OriginConnections {
    fn new() -> Self {
        Self {
            connections: RefCell::default(),
            attempt: RefCell::default(),
            chose_http1: Cell::new(false),
            most: Cell::new(MAX_CONNECTIONS),
            waiting: Cell::new(0),
            used: Cell::new(Instant::now()),
            changed: Rc::default(),
        }
    }

    /// Returns the notifier for two events: a connection may accept another request, or an attempt
    /// to connect has ended.
    pub(crate) fn changed(&self) -> &Rc<Notify> {
        &self.changed
    }

    /// Reserves a permit for a request. Prefers the connections at the beginning of the list, so
    /// that the connections at its end can become idle and close.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.used.set(Instant::now());
        self.connections.borrow().iter().find_map(Http2Connection::lease)
    }

    /// Returns true if the origin chose HTTP/1.1 when the proxy last connected to it.
    pub(crate) fn chose_http1(&self) -> bool {
        self.chose_http1.get()
    }

    /// Returns the attempt to connect that is in progress, if any.
    pub(crate) fn attempt(&self) -> Option<Rc<Attempt>> {
        self.attempt.borrow().clone()
    }

    pub(crate) fn has_room_for_another(&self) -> bool {
        self.usable() < self.most.get()
    }

    /// Starts an attempt to connect, if another connection is allowed.
    pub(crate) fn begin(&self) -> Option<Rc<Attempt>> {
        if !self.has_room_for_another() {
            return None;
        }
        let attempt = Rc::new(Attempt::default());
        *self.attempt.borrow_mut() = Some(Rc::clone(&attempt));
        Some(attempt)
    }

    /// Ends an attempt to connect. If it failed, the proxy opens no further connections to this
    /// origin until the next call of [`Self::prune`].
    pub(crate) fn end(&self, attempt: &Attempt, outcome: DialOutcome) {
        match &outcome {
            DialOutcome::Joined => self.chose_http1.set(false),
            DialOutcome::Http1(_) => self.chose_http1.set(true),
            DialOutcome::Failed(_) => self.most.set(self.usable().max(1)),
        }
        *attempt.outcome.borrow_mut() = Some(Rc::new(outcome));
        self.attempt.take();
        self.changed.notify_waiters();
    }

    /// Counts an exchange as waiting. Returns `None` if too many exchanges wait already.
    pub(crate) fn wait(&self) -> Option<WaitingForRoom<'_>> {
        if self.waiting.get() >= MAX_WAITING_EXCHANGES {
            return None;
        }
        self.waiting.set(self.waiting.get() + 1);
        Some(WaitingForRoom(self))
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.usable() > 0
    }

    fn usable(&self) -> usize {
        self.connections.borrow().iter().filter(|connection| connection.is_usable()).count()
    }

    pub(crate) fn join(&self, connection: Rc<Http2Connection>) {
        if !connection.is_retired() {
            self.chose_http1.set(false);
            self.connections.borrow_mut().push(connection);
        }
    }

    /// Forgets the connections that accept no more requests.
    pub(crate) fn prune(&self) {
        self.connections.borrow_mut().retain(|connection| !connection.is_retired());
        self.most.set(MAX_CONNECTIONS);
    }

    fn is_of_use(&self, now: Instant, idle: Duration) -> bool {
        self.is_connected()
            || self.attempt.borrow().is_some()
            || self.waiting.get() > 0
            || now.duration_since(self.used.get()) < idle
    }
}

impl Drop for OriginConnections {
    fn drop(&mut self) {
        self.connections.get_mut().iter().for_each(|connection| connection.retire());
    }
}

/// The HTTP/2 connections of a worker.
#[derive(Default)]
pub(crate) struct Http2Pool {
    origins: HashMap<Route, Rc<OriginConnections>>,
}

impl Http2Pool {
    pub(crate) fn connections_on(&mut self, route: &Route) -> Rc<OriginConnections> {
        if let Some(known) = self.origins.get(route) {
            return Rc::clone(known);
        }
        if self.origins.len() >= MAX_ORIGINS {
            self.origins.retain(|_, known| Rc::strong_count(known) > 1 || known.is_connected());
        }
        let known = Rc::new(OriginConnections::new());
        self.origins.insert(route.clone(), Rc::clone(&known));
        known
    }

    /// Returns the number of connections without requests.
    pub(crate) fn idle(&self) -> usize {
        self.all().filter(|connection| connection.idle_since().is_some()).count()
    }

    /// Forgets origins that were not used for the time `idle`. If more than `most` connections are
    /// idle, closes the connections that have been idle longest.
    pub(crate) fn sweep(&mut self, now: Instant, idle: Duration, most: usize) {
        self.origins.retain(|_, known| {
            known.prune();
            Rc::strong_count(known) > 1 || known.is_of_use(now, idle)
        });
        let idle = |connection: Rc<Http2Connection>| Some((connection.idle_since()?, connection));
        let mut waiting: Vec<_> = self.all().filter_map(idle).collect();
        waiting.sort_by_key(|(since, _)| *since);
        let spare = waiting.len().saturating_sub(most);
        waiting.iter().take(spare).for_each(|(_, connection)| connection.retire());
    }

    fn all(&self) -> impl Iterator<Item = Rc<Http2Connection>> {
        self.origins.values().flat_map(|origin| origin.connections.borrow().clone())
    }
}
