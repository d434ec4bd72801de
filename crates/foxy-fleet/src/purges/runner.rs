//! The two threads of a fleet's member. The first thread calls the engine (the server with the
//! purge log) and applies purges, as the member's state machine demands. The second thread waits
//! for new entries of the log, and wakes the first thread.

use super::engine::{Connected, Durability, Engine, EngineError, Watch};
use super::entry::Process;
use super::lease::LeaseTerms;
use super::node::Node;
use super::saved::{Binding, BoundPlace, Saved};
use super::session::{Task, Ticket, ValidateCause};
use super::status::FleetPurgeStatus;
use foxy_base::{Instant, clock};
use foxy_proxy::cache::purge::{
    NotPurged, Order, PurgeBook, PurgeKeeper, PurgeReply, Purges, Scope, Strength,
};
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time limit for making purges durable on this node.
const APPLY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after which the member gives up a purge that is not acknowledged. The proxy answers the
/// client earlier, after `PURGE_TIMEOUT`.
const GIVE_UP: Duration = Duration::from_secs(5);
/// Pause before the next attempt to connect to the engine.
const RETRY: Duration = Duration::from_millis(100);
const MAX_QUEUED: usize = 1024;
/// Longest time that dropping a member waits for its thread. The engine may block this thread.
const STOP_PATIENCE: Duration = Duration::from_secs(3);
const STOP_POLL: Duration = Duration::from_millis(10);

/// Saves a member's position in the purge log durably.
pub trait PlaceFile: Send {
    /// Returns the saved position. Returns `None` if the file is missing or damaged.
    fn read(&self) -> Option<Saved>;

    /// Writes the member's position durably, with the node and the list of purges to which the
    /// position belongs.
    fn write(&self, place: &BoundPlace) -> io::Result<()>;
}

/// An event in the fleet that foxy reports to the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetNews {
    /// The engine may lose entries of the purge log that it confirmed.
    NotDurable(Durability),
    /// This node must validate every response that it stored before.
    ValidatesAll(ValidateCause),
    /// The member's position in the purge log cannot be saved, so this node loses its lease.
    /// Contains the error.
    PlaceNotSaved(String),
}

/// The arguments of [`FleetMember::start`].
pub struct MemberParts {
    /// The process of this member.
    pub me: Process,
    /// The names of all members of the fleet.
    pub members: Vec<Box<str>>,
    /// The engine: the connection to the server with the purge log.
    pub engine: Box<dyn Engine>,
    /// Waits for new entries of the purge log.
    pub watch: Box<dyn Watch>,
    /// The purges that this node applies to its own cache. The member adds the purges of the
    /// fleet's log.
    pub local: Purges,
    /// The file with the member's position in the purge log.
    pub place: Box<dyn PlaceFile>,
    /// A function that reports events to the operator.
    pub news: Box<dyn Fn(FleetNews) + Send>,
    /// Seed of the member's random numbers.
    pub seed: u64,
}

enum Message {
    Purge(Vec<Order>, PurgeReply),
    Members(Vec<Box<str>>),
    NewEntries,
    Stop,
}

/// Passes the purges of this node's clients to the thread that appends them to the fleet's purge
/// log.
struct FleetKeeper(SyncSender<Message>);

impl PurgeKeeper for FleetKeeper {
    fn purge(&self, orders: Vec<Order>, reply: PurgeReply) {
        let (message, why) = match self.0.try_send(Message::Purge(orders, reply)) {
            Ok(()) => return,
            Err(TrySendError::Full(message)) => (message, NotPurged::Busy),
            Err(TrySendError::Disconnected(message)) => (message, NotPurged::Stopping),
        };
        if let Message::Purge(_, reply) = message {
            reply(Err(why));
        }
    }
}

/// Changes the list of members of a running [`FleetMember`].
#[derive(Clone)]
pub struct MemberList(SyncSender<Message>);

impl fmt::Debug for MemberList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemberList")
    }
}

impl MemberList {
    /// Replaces the list of the fleet's members.
    ///
    /// # Errors
    /// Returns an error if the queue of this node's own member is full, or if that member has
    /// stopped.
    pub fn set(&self, names: Vec<Box<str>>) -> Result<(), NotPurged> {
        self.0.try_send(Message::Members(names)).map_err(|error| match error {
            TrySendError::Full(_) => NotPurged::Busy,
            TrySendError::Disconnected(_) => NotPurged::Stopping,
        })
    }
}

/// A running member of a fleet. Dropping the value gives up the member's lease.
pub struct FleetMember {
    sender: SyncSender<Message>,
    status: Arc<FleetPurgeStatus>,
    thread: Option<JoinHandle<()>>,
}

impl FleetMember {
    /// Starts the threads of a member. From now on, this node needs a lease to serve stored
    /// responses without validation.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn start(parts: MemberParts) -> io::Result<Self> {
        let MemberParts { me, members, engine, watch, local, place, news, seed } = parts;
        local.book.lease().set(Instant::ZERO);
        let (sender, receiver) = sync_channel(MAX_QUEUED);
        let status = Arc::new(FleetPurgeStatus::default());
        let name = me.member.clone();
        let node = Node::new(me, &members, LeaseTerms::usual(), place.read(), seed);
        let position = Arc::new(AtomicU64::new(node.position()));
        local.book.followed().finish(node.log_place());
        let driver = Driver {
            name,
            node,
            engine,
            book: local.book,
            local: local.keeper,
            place,
            news,
            status: Arc::clone(&status),
            position: Arc::clone(&position),
            replies: BTreeMap::new(),
            next_ticket: 0,
            was_weak: false,
        };
        let wake = sender.clone();
        let waiting = Arc::downgrade(&position);
        let named = |name: &str| std::thread::Builder::new().name(name.into());
        named("fleet-watch").spawn(move || watch_entries(watch, &waiting, &wake))?;
        drop(position);
        let thread = named("fleet-purges").spawn(move || driver.run(&receiver))?;
        Ok(Self { sender, status, thread: Some(thread) })
    }

    /// Returns the object through which the proxy purges on all nodes of the fleet.
    pub fn keeper(&self) -> Arc<dyn PurgeKeeper> {
        Arc::new(FleetKeeper(self.sender.clone()))
    }

    /// Returns a handle that can change the list of the fleet's members.
    pub fn list(&self) -> MemberList {
        MemberList(self.sender.clone())
    }

    /// Returns the state of this member. The member's thread keeps this state up to date.
    pub fn status(&self) -> Arc<FleetPurgeStatus> {
        Arc::clone(&self.status)
    }
}

impl Drop for FleetMember {
    /// Waits at most 3 seconds until the member's thread has given up the lease. If the thread
    /// takes longer, it runs on until the process ends, and the lease ends by itself.
    fn drop(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let limit = clock::monotonic() + STOP_PATIENCE;
        let mut stop = Some(Message::Stop);
        while !thread.is_finished() && clock::monotonic() < limit {
            if let Some(message) = stop.take() {
                stop = match self.sender.try_send(message) {
                    Err(TrySendError::Full(message)) => Some(message),
                    Ok(()) | Err(TrySendError::Disconnected(_)) => None,
                };
            }
            std::thread::sleep(STOP_POLL);
        }
        if thread.is_finished() {
            let _ended = thread.join();
        }
    }
}

/// Wakes the driver (the member's other thread) when the purge log has new entries. This function
/// returns after the driver has ended.
fn watch_entries(
    mut watch: Box<dyn Watch>,
    position: &std::sync::Weak<AtomicU64>,
    wake: &SyncSender<Message>,
) {
    while let Some(after) = position.upgrade().map(|position| position.load(Ordering::Acquire)) {
        match watch.wait(after) {
            Ok(()) => {
                // The driver may not have applied the entries yet. The pause keeps this thread
                // from waking it again and again.
                let is_new =
                    position.upgrade().map(|now| now.load(Ordering::Acquire)) == Some(after);
                if matches!(wake.try_send(Message::NewEntries), Err(TrySendError::Disconnected(_)))
                {
                    return;
                }
                if is_new {
                    std::thread::sleep(Duration::from_millis(2));
                }
            }
            Err(_) => std::thread::sleep(RETRY),
        }
    }
}

struct WaitingReply {
    reply: PurgeReply,
    since: Instant,
}

struct Driver {
    /// The name of this node.
    name: Box<str>,
    node: Node,
    engine: Box<dyn Engine>,
    book: Arc<PurgeBook>,
    local: Arc<dyn PurgeKeeper>,
    place: Box<dyn PlaceFile>,
    news: Box<dyn Fn(FleetNews) + Send>,
    status: Arc<FleetPurgeStatus>,
    position: Arc<AtomicU64>,
    replies: BTreeMap<Ticket, WaitingReply>,
    next_ticket: Ticket,
    was_weak: bool,
}

impl Driver {
    fn run(mut self, messages: &Receiver<Message>) {
        let mut retry = Instant::ZERO;
        loop {
            let now = clock::since_boot();
            if !self.node.is_connected() && now >= retry && self.connect().is_err() {
                retry = clock::since_boot() + RETRY;
            }
            if self.node.is_connected()
                && let Err(error) = self.steps()
            {
                self.away(error);
                retry = clock::since_boot() + RETRY;
            }
            self.show();
            let due = if self.node.is_connected() { self.node.due() } else { retry };
            let wait = due.since(clock::since_boot());
            match messages.recv_timeout(wait) {
                Ok(first) => {
                    for message in std::iter::once(first).chain(messages.try_iter()) {
                        match message {
                            Message::Purge(orders, reply) => self.wish(orders, reply),
                            Message::Members(names) => {
                                self.node.set_members(&names, clock::since_boot());
                            }
                            Message::NewEntries => self.node.look(clock::since_boot()),
                            Message::Stop => return self.stop(),
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return self.stop(),
            }
        }
    }

    fn connect(&mut self) -> Result<(), ()> {
        match self.engine.connect() {
            Ok(Connected { incarnation, durability }) => {
                self.node.connected(incarnation, clock::since_boot());
                self.status.set_connected(durability.clone());
                let is_weak = durability != Durability::Always;
                if is_weak && !self.was_weak {
                    (self.news)(FleetNews::NotDurable(durability));
                }
                self.was_weak = is_weak;
                Ok(())
            }
            Err(error) => {
                self.away(error);
                Err(())
            }
        }
    }

    fn away(&mut self, error: EngineError) {
        let failed = self.node.away();
        self.answer(failed);
        self.status.set_away(error);
    }

    /// Appends the queued purges and exchanges data with the engine, until the state machine
    /// demands no further step.
    fn steps(&mut self) -> Result<(), EngineError> {
        loop {
            while let Some(append) = self.node.next_append() {
                let result = self.engine.append(&append)?;
                self.node.appended(&append, result, clock::since_boot());
            }
            let now = clock::since_boot();
            if self.node.due() > now {
                return Ok(());
            }
            let (gone, after) = (self.node.gone(now), self.node.position());
            let record = self.node.record(now);
            let view = self.engine.exchange(record.as_ref(), &gone, after)?;
            let task = self.node.exchanged(&view, clock::since_boot());
            // If the chain is broken, the lease has already ended here, before the purges are
            // applied.
            self.book.lease().set(self.node.lease_until());
            if let Some(next) = self.node.to_save() {
                self.book.followed().begin(next.log_place());
            }
            let is_done = self.apply(task) && self.save();
            self.node.applied(is_done, clock::since_boot());
            if is_done {
                self.book.followed().finish(self.node.log_place());
            }
            self.book.lease().set(self.node.lease_until());
            self.position.store(self.node.position(), Ordering::Release);
            let answers = self.node.settle();
            self.answer(answers);
            self.give_up_old();
        }
    }

    fn apply(&mut self, task: Task) -> bool {
        let orders = match task {
            Task::Nothing => return true,
            Task::Apply(orders) => orders,
            Task::Validate(cause) => {
                (self.news)(FleetNews::ValidatesAll(cause));
                self.status.count_validation(cause);
                let at = clock::steady();
                vec![Order { scope: Scope::All, strength: Strength::Doubt, at }]
            }
        };
        if orders.is_empty() {
            return true;
        }
        let at = clock::steady();
        let orders = orders.into_iter().map(|order| Order { at, ..order }).collect();
        let (sender, receiver) = mpsc::channel();
        let reply = move |answer: Result<u64, NotPurged>| {
            // Ignore the error: the receiver may have stopped waiting.
            let _ = sender.send(answer.is_ok());
        };
        self.local.purge(orders, Box::new(reply));
        receiver.recv_timeout(APPLY_TIMEOUT).unwrap_or(false)
    }

    fn save(&mut self) -> bool {
        let Some(saved) = self.node.to_save() else { return true };
        let binding = Binding::new(&self.name, self.book.era(), self.book.latest());
        let written = self.place.write(&BoundPlace { saved: Some(saved.clone()), binding });
        if let Err(error) = &written {
            (self.news)(FleetNews::PlaceNotSaved(error.to_string()));
        }
        written.is_ok()
    }

    fn wish(&mut self, orders: Vec<Order>, reply: PurgeReply) {
        self.next_ticket += 1;
        match self.node.purge(self.next_ticket, orders) {
            Ok(()) => {
                let since = clock::since_boot();
                self.replies.insert(self.next_ticket, WaitingReply { reply, since });
            }
            Err(why) => {
                self.status.count_purge(Err(why), Duration::ZERO);
                reply(Err(why));
            }
        }
    }

    fn answer(&mut self, answers: Vec<(Ticket, Result<u64, NotPurged>)>) {
        for (ticket, answer) in answers {
            if let Some(WaitingReply { reply, since }) = self.replies.remove(&ticket) {
                self.status.count_purge(answer, clock::since_boot().since(since));
                reply(answer);
            }
        }
    }

    fn give_up_old(&mut self) {
        let now = clock::since_boot();
        let old = self.replies.iter().filter(|(_, reply)| now.since(reply.since) >= GIVE_UP);
        let old: Vec<Ticket> = old.map(|(ticket, _)| *ticket).collect();
        for ticket in old {
            self.node.give_up(ticket);
            self.answer(vec![(ticket, Err(NotPurged::Late))]);
        }
    }

    fn show(&self) {
        self.status.set_report(self.node.report(clock::since_boot()));
    }

    fn stop(mut self) {
        self.book.lease().set(Instant::ZERO);
        let failed = self.node.stop();
        self.answer(failed);
        if self.node.is_connected() {
            let now = clock::since_boot();
            let (gone, after) = (self.node.gone(now), self.node.position());
            // This record gives up the lease. If the engine does not receive the record, other
            // members wait until the lease ends.
            let _ = self.engine.exchange(self.node.record(now).as_ref(), &gone, after);
        }
    }
}

#[cfg(test)]
#[path = "runner_tests.rs"]
mod tests;
