//! Limits the number of client connections. Each connection needs a *place*, and each client may
//! have a limited number of the places. If no place is free, a new connection takes the place of an
//! idle connection, which closes. All workers share the places. A connection locks the table of
//! places only when it opens and closes. A request usually changes just one atomic number.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;
use tokio::task::AbortHandle;
use tokio::time::Instant;

/// State of a connection that has a request in progress, and is still in the queues of idle
/// connections. Two further states are [`UNQUEUED`] and [`ENDING`]. Every other value is the time
/// since which the connection has been idle, in microseconds since the proxy started.
const AT_WORK: u64 = u64::MAX;
/// State of a connection that has a request in progress and is not in the queues of idle
/// connections.
const UNQUEUED: u64 = u64::MAX - 1;
/// State of a connection that closes, because it gave up its place (slot for a connection) to
/// another connection.
const ENDING: u64 = u64::MAX - 2;

/// Time for which a connection must be idle before it is closed for another client's connection.
/// The next request of the idle connection may already be on the way.
const YIELD_GRACE: Duration = Duration::from_millis(20);

/// A client with more than 1/`GREEDY_PART` of all places is greedy. Idle connections of a greedy
/// client close for other clients without the delay `YIELD_GRACE`. New connections of the greedy
/// client itself still wait for the delay, so that a burst of requests does not close the client's
/// own connections.
const GREEDY_PART: usize = 4;

/// The reason why a new connection gets no place (slot for a connection).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoPlace {
    /// All places (slots for connections) are taken, and each connection has a request in progress.
    All,
    /// The client has as many connections as one client may have, and each of them has a request in
    /// progress.
    Client,
    /// A connection is idle, but its next request may already be on the way. The connection closes
    /// for another client's connection only after `YIELD_GRACE`.
    Soon,
    /// Places are free, but no file descriptors are left, and each connection has a request in
    /// progress.
    Descriptors,
}

/// Identifies one client by its IPv4 address, or by the /64 of its IPv6 address. A /64 is the
/// smallest block that a site receives (RFC 6177).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientBlock(u128);

impl From<IpAddr> for ClientBlock {
    fn from(address: IpAddr) -> Self {
        const HOSTS_OF_A_SITE: u32 = 64;
        match address.to_canonical() {
            IpAddr::V4(address) => Self(address.to_ipv6_mapped().to_bits()),
            IpAddr::V6(address) => Self(address.to_bits() >> HOSTS_OF_A_SITE << HOSTS_OF_A_SITE),
        }
    }
}

/// All places (slots for connections) of the process.
pub(crate) struct Places {
    limit: usize,
    share: usize,
    /// Number of connections for which the process has enough file descriptors.
    descriptors: usize,
    grace: Option<Duration>,
    began: Instant,
    table: Mutex<Table>,
    /// Number of new connections to which the proxy is sending a refusal, because no place (slot
    /// for a connection) is free.
    refusals: AtomicUsize,
    freed: Notify,
}

/// An entry in a queue of idle connections: a time in microseconds, and the connection's number.
/// The connection has been idle since this time or since a later time.
type Ticket = (u64, u64);

#[derive(Default)]
struct Table {
    next: u64,
    taken: HashMap<u64, Taken>,
    waiting: BTreeSet<Ticket>,
    clients: HashMap<ClientBlock, Share>,
}

/// The places (slots for connections) of one client.
#[derive(Default)]
struct Share {
    taken: usize,
    waiting: BTreeSet<Ticket>,
}

/// A place (slot for a connection) in use.
struct Taken {
    state: Arc<AtomicU64>,
    client: Option<ClientBlock>,
    /// The time in the connection's entries in the queues. `None` if the connection is not in the
    /// queues.
    queued: Option<u64>,
    task: Option<AbortHandle>,
}

impl Places {
    /// Creates `limit` places (slots for connections). One client may have up to `share` places.
    /// The process has enough file descriptors for `descriptors` connections.
    pub(crate) fn new(limit: usize, share: usize, descriptors: usize) -> Arc<Self> {
        let (table, refusals, freed) = (Mutex::default(), AtomicUsize::new(0), Notify::new());
        Arc::new(Self {
            limit,
            share,
            descriptors,
            grace: Some(YIELD_GRACE),
            began: Instant::now(),
            table,
            refusals,
            freed,
        })
    }

    pub(crate) fn taken(&self) -> usize {
        self.table().taken.len()
    }

    /// Takes a place (slot for a connection) for a new connection. The returned flag is true if
    /// another connection gave up its place. If `client` is `None`, only the total limit applies.
    pub(crate) fn take(
        self: &Arc<Self>,
        client: Option<ClientBlock>,
    ) -> Result<(Place, bool), NoPlace> {
        let now = self.since(Instant::now());
        let before = self.grace.map_or(u64::MAX, |grace| now.saturating_sub(micros(grace)));
        let mut table = self.table();
        let ended = table.make_room(client, self.limit.min(self.descriptors), self.share, before);
        let ended = ended.map_err(|full| match full {
            NoPlace::All if self.descriptors < self.limit => NoPlace::Descriptors,
            full => full,
        })?;
        let (number, state) = table.add(client, now);
        drop(table);
        let yielded = end(ended);
        Ok((Place { activity: Activity { places: Arc::clone(self), number, state } }, yielded))
    }

    /// Closes the connection that has been idle longest, because the process or the system has no
    /// file descriptors left. Returns false if no connection is idle.
    pub(crate) fn free_one(&self) -> bool {
        let ended = self.table().end_longest_waiting(None, u64::MAX);
        end(ended.ok())
    }

    /// Waits until a connection closes. If no connection was idle, the wait also ends when a
    /// connection becomes idle.
    pub(crate) fn freed(&self) -> Notified<'_> {
        self.freed.notified()
    }

    /// Permits the caller to tell a client that no place is free. Returns `None` if the proxy is
    /// already telling this to 256 clients.
    pub(crate) fn refuse(self: &Arc<Self>) -> Option<Refusal> {
        const AT_A_TIME: usize = 256;
        let refusal = Refusal(Arc::clone(self));
        (self.refusals.fetch_add(1, Ordering::Relaxed) < AT_A_TIME).then_some(refusal)
    }

    fn since(&self, now: Instant) -> u64 {
        micros(now.saturating_duration_since(self.began))
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(0)
}

/// Counts a new connection to which the proxy is sending a refusal. Dropping this value lowers the
/// count again.
pub(crate) struct Refusal(Arc<Places>);

impl Drop for Refusal {
    fn drop(&mut self) {
        self.0.refusals.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The permit of a connection to be open (its place). Dropping this value frees the place.
pub(crate) struct Place {
    activity: Activity,
}

impl Place {
    pub(crate) const fn activity(&self) -> &Activity {
        &self.activity
    }

    /// Records that the connection belongs to `client`, once the proxy knows the client. From then
    /// on, the connection counts against the client's limit. Returns true if another connection of
    /// the client gave up its place (slot for a connection).
    pub(crate) fn name(&self, client: ClientBlock) -> Result<bool, NoPlace> {
        let Activity { places, number, .. } = &self.activity;
        let mut table = places.table();
        let ended = table.make_room(Some(client), usize::MAX, places.share, u64::MAX)?;
        table.name(*number, client);
        drop(table);
        Ok(end(ended))
    }
}

fn end(ended: Option<Taken>) -> bool {
    if let Some(task) = ended.as_ref().and_then(|taken| taken.task.as_ref()) {
        task.abort();
    }
    ended.is_some()
}

impl Drop for Place {
    fn drop(&mut self) {
        let Activity { places, number, .. } = &self.activity;
        places.table().remove(*number);
        places.freed.notify_waiters();
    }
}

/// Sets the state of a connection: idle, or with a request in progress.
#[derive(Clone)]
pub(crate) struct Activity {
    places: Arc<Places>,
    number: u64,
    state: Arc<AtomicU64>,
}

impl Activity {
    /// Sets the task of the connection. The task is aborted when the connection gives up its place
    /// (slot for a connection).
    pub(crate) fn set_task(&self, task: AbortHandle) {
        match self.places.table().taken.get_mut(&self.number) {
            Some(taken) => taken.task = Some(task),
            None => task.abort(),
        }
    }

    /// Marks the connection as idle since `now`. If it is already idle, its start of idleness does
    /// not change.
    pub(crate) fn begin_wait(&self, now: Instant) {
        let since = self.places.since(now);
        let began =
            |state| self.state.compare_exchange(state, since, Ordering::AcqRel, Ordering::Acquire);
        if began(AT_WORK) == Err(UNQUEUED) && began(UNQUEUED).is_ok() {
            self.places.table().queue(self.number, since);
            self.places.freed.notify_waiters();
        }
    }

    /// Marks that a request is in progress. Returns false if the connection gave up its place (slot
    /// for a connection).
    pub(crate) fn begin_work(&self) -> bool {
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            match state {
                AT_WORK | UNQUEUED => return true,
                ENDING => return false,
                _ => {}
            }
            match self.state.compare_exchange(state, AT_WORK, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return true,
                Err(other) => state = other,
            }
        }
    }
}

impl Table {
    /// Makes room for one more connection. Returns the connection that gave up its place (slot for
    /// a connection), or `None` if a place was free.
    fn make_room(
        &mut self,
        client: Option<ClientBlock>,
        limit: usize,
        share: usize,
        before: u64,
    ) -> Result<Option<Taken>, NoPlace> {
        let held = client.and_then(|client| self.clients.get(&client)).map_or(0, |held| held.taken);
        if held >= share {
            return self
                .end_longest_waiting(client, u64::MAX)
                .map(Some)
                .map_err(|_| NoPlace::Client);
        }
        if self.taken.len() < limit {
            return Ok(None);
        }
        match (self.end_longest_waiting(None, before), self.greedy(limit)) {
            (Err(NoPlace::Soon), Some(greedy)) if client != Some(greedy) => {
                self.end_longest_waiting(Some(greedy), u64::MAX).map(Some)
            }
            (ended, _) => ended.map(Some),
        }
    }

    /// Returns the client of the connection that has been idle longest, if this client has more
    /// than 1/`GREEDY_PART` of `limit` places (slots for connections).
    fn greedy(&self, limit: usize) -> Option<ClientBlock> {
        let &(_, number) = self.waiting.first()?;
        let client = self.taken.get(&number)?.client?;
        (self.clients.get(&client)?.taken > limit / GREEDY_PART).then_some(client)
    }

    /// Removes the connection that has been idle longest, if it became idle earlier than `before`.
    /// If `of` names a client, considers only the connections of this client.
    ///
    /// The time in a queue entry may be too early, because the connection may have had a request
    /// since. Such a connection is queued again with its correct time. A connection with a request
    /// in progress leaves the queues until it is idle.
    fn end_longest_waiting(
        &mut self,
        of: Option<ClientBlock>,
        before: u64,
    ) -> Result<Taken, NoPlace> {
        loop {
            let queue = match of {
                None => &self.waiting,
                Some(client) => &self.clients.get(&client).ok_or(NoPlace::All)?.waiting,
            };
            let &(queued, number) = queue.first().ok_or(NoPlace::All)?;
            let state = Arc::clone(&self.taken.get(&number).ok_or(NoPlace::All)?.state);
            let (found, next) = match state.load(Ordering::Acquire) {
                AT_WORK => (AT_WORK, UNQUEUED),
                since if since == queued && since >= before => return Err(NoPlace::Soon),
                since if since == queued => (since, ENDING),
                since => {
                    self.unqueue(number);
                    self.queue(number, since);
                    continue;
                }
            };
            if state.compare_exchange(found, next, Ordering::AcqRel, Ordering::Acquire).is_err() {
                continue;
            }
            if next == ENDING {
                return self.remove(number).ok_or(NoPlace::All);
            }
            self.unqueue(number);
        }
    }

    fn add(&mut self, client: Option<ClientBlock>, now: u64) -> (u64, Arc<AtomicU64>) {
        let (number, state) = (self.next, Arc::new(AtomicU64::new(now)));
        self.next += 1;
        let taken = Taken { state: Arc::clone(&state), client: None, queued: None, task: None };
        self.taken.insert(number, taken);
        if let Some(client) = client {
            self.name(number, client);
        }
        self.queue(number, now);
        (number, state)
    }

    fn name(&mut self, number: u64, client: ClientBlock) {
        let Some(taken) = self.taken.get_mut(&number) else { return };
        taken.client = Some(client);
        let share = self.clients.entry(client).or_default();
        share.taken += 1;
        share.waiting.extend(taken.queued.map(|since| (since, number)));
    }

    fn remove(&mut self, number: u64) -> Option<Taken> {
        self.unqueue(number);
        let taken = self.taken.remove(&number)?;
        if let Some(client) = taken.client
            && let Entry::Occupied(mut share) = self.clients.entry(client)
        {
            share.get_mut().taken -= 1;
            if share.get().taken == 0 {
                share.remove();
            }
        }
        Some(taken)
    }

    fn queue(&mut self, number: u64, since: u64) {
        let Some(taken) = self.taken.get_mut(&number) else { return };
        taken.queued = Some(since);
        self.waiting.insert((since, number));
        if let Some(share) = taken.client.and_then(|client| self.clients.get_mut(&client)) {
            share.waiting.insert((since, number));
        }
    }

    fn unqueue(&mut self, number: u64) {
        let Some(taken) = self.taken.get_mut(&number) else { return };
        let Some(since) = taken.queued.take() else { return };
        self.waiting.remove(&(since, number));
        if let Some(share) = taken.client.and_then(|client| self.clients.get_mut(&client)) {
            share.waiting.remove(&(since, number));
        }
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
