//! The HTTP/2 connections of a worker by origin, and what is known of origins without any. An
//! origin's key says who chose it; nothing is shared between two keys, whatever names their
//! certificates hold. It dials nothing itself.

use crate::core::transport::Transport;
use crate::upstream::dial::Origin;
use crate::upstream::error::ConnectError;
use crate::upstream::http2::connection::{Http2Connection, Lease};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::Instant;

/// HTTP/2 connections to one origin. Another is opened only when the others have no room.
const CONNECTIONS: usize = 8;

/// Exchanges that wait for room on the connections of one origin.
const WAITING: usize = 8192;

/// Origins of which something is remembered; what is known of those without a connection is dropped
/// beyond.
const ORIGINS: usize = 4096;

/// How an attempt to connect ended, for all who waited for it.
pub(crate) enum DialOutcome {
    /// There is one more HTTP/2 connection.
    Joined,
    /// The origin chose HTTP/1.1; the connection is for whoever takes it first.
    Http1(Cell<Option<Transport>>),
    /// There is no connection.
    Failed(ConnectError),
}

/// An attempt to connect that may be waited for.
#[derive(Default)]
pub(crate) struct Attempt {
    outcome: RefCell<Option<Rc<DialOutcome>>>,
}

/// What is known of one origin.
pub(crate) struct OriginConnections {
    connections: RefCell<Vec<Rc<Http2Connection>>>,
    attempt: RefCell<Option<Rc<Attempt>>>,
    chose_http1: Cell<bool>,
    /// Connections beyond which the origin took no more.
    most: Cell<usize>,
    waiting: Cell<usize>,
    used: Cell<Instant>,
    changed: Rc<Notify>,
}

/// A place among those who wait for room.
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
            most: Cell::new(CONNECTIONS),
            waiting: Cell::new(0),
            used: Cell::new(Instant::now()),
            changed: Rc::default(),
        }
    }

    /// What tells when there may be room, or an attempt ended.
    pub(crate) fn changed(&self) -> &Rc<Notify> {
        &self.changed
    }

    /// Room for a request on one of the connections. The first one with room is taken, so that the
    /// others grow idle.
    pub(crate) fn lease(&self) -> Option<Lease> {
        self.used.set(Instant::now());
        self.connections.borrow().iter().find_map(Http2Connection::lease)
    }

    /// Whether the origin chose HTTP/1.1 when it was last asked.
    pub(crate) fn chose_http1(&self) -> bool {
        self.chose_http1.get()
    }

    /// The attempt that is under way.
    pub(crate) fn attempt(&self) -> Option<Rc<Attempt>> {
        self.attempt.borrow().clone()
    }

    /// Whether another connection may be attempted.
    pub(crate) fn has_room_for_another(&self) -> bool {
        self.usable() < self.most.get()
    }

    /// Begins an attempt, if there are not connections enough.
    pub(crate) fn begin(&self) -> Option<Rc<Attempt>> {
        if !self.has_room_for_another() {
            return None;
        }
        let attempt = Rc::new(Attempt::default());
        *self.attempt.borrow_mut() = Some(Rc::clone(&attempt));
        Some(attempt)
    }

    /// Ends it. An origin that has connections and refuses another is not asked for more until the
    /// next sweep.
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

    /// A place to wait in, unless too many wait.
    pub(crate) fn wait(&self) -> Option<WaitingForRoom<'_>> {
        if self.waiting.get() >= WAITING {
            return None;
        }
        self.waiting.set(self.waiting.get() + 1);
        Some(WaitingForRoom(self))
    }

    /// Whether there is any connection that takes further requests.
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

    /// Forgets the connections that take no further request.
    pub(crate) fn prune(&self) {
        self.connections.borrow_mut().retain(|connection| !connection.is_retired());
        self.most.set(CONNECTIONS);
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

/// All of a worker's lines.
#[derive(Default)]
pub(crate) struct Lines {
    lines: HashMap<Origin, Rc<OriginConnections>>,
}

impl Lines {
    /// The line of an origin.
    pub(crate) fn line(&mut self, origin: &Origin) -> Rc<OriginConnections> {
        if let Some(line) = self.lines.get(origin) {
            return Rc::clone(line);
        }
        if self.lines.len() >= ORIGINS {
            self.lines.retain(|_, line| Rc::strong_count(line) > 1 || line.is_connected());
        }
        let line = Rc::new(OriginConnections::new());
        self.lines.insert(origin.clone(), Rc::clone(&line));
        line
    }

    /// Connections that carry no request.
    pub(crate) fn idle(&self) -> usize {
        self.connections().filter(|connection| connection.idle_since().is_some()).count()
    }

    /// Drops what was not used for so long, and closes the idle connections that are more than
    /// `most`, those first that have been idle longest.
    pub(crate) fn sweep(&mut self, now: Instant, idle: Duration, most: usize) {
        self.lines.retain(|_, line| {
            line.prune();
            Rc::strong_count(line) > 1 || line.is_of_use(now, idle)
        });
        let idle = |connection: Rc<Http2Connection>| Some((connection.idle_since()?, connection));
        let mut waiting: Vec<_> = self.connections().filter_map(idle).collect();
        waiting.sort_by_key(|(since, _)| *since);
        let spare = waiting.len().saturating_sub(most);
        waiting.iter().take(spare).for_each(|(_, connection)| connection.retire());
    }

    fn connections(&self) -> impl Iterator<Item = Rc<Http2Connection>> {
        self.lines.values().flat_map(|line| line.connections.borrow().clone())
    }
}
