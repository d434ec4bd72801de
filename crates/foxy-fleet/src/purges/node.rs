//! The state machine of a member: it follows the purge log, holds the lease, and decides when a
//! purge is acknowledged. It does no IO and reads no clock. The caller calls the engine (the server
//! with the log), applies purges, and passes on the results.
//!
//! ```text
//! connected ─► record ─► (engine: exchange) ─► exchanged ─► (apply durably) ─► applied ─► settle
//!                 ▲                                                                        │
//!                 └──────── next_append ─► (engine: append) ─► appended ◄──────────────────┘
//! ```

use super::chain::{Advice, Broken, Chain, advise};
use super::engine::{Append, Appended, LogView};
use super::entry::{Content, Entry, MAX_ENTRY_ORDERS, Process};
use super::history::History;
use super::lease::{LeaseTerms, Leases, MemberRecord, Place};
use super::saved::Saved;
use super::session::{Exchange, Session, Task, Ticket, ValidateCause, Wish};
use super::status::NodeReport;
use super::waiting::{Waiting, find_own};
use super::witnesses::Witnesses;
use foxy_base::{Instant, Random};
use foxy_proxy::cache::purge::{LogPlace, NotPurged, Order};
use std::collections::VecDeque;
use std::time::Duration;

/// Interval between renewals of this member's lease.
const RENEWAL: Duration = Duration::from_millis(500);
/// Interval between reads of the members' records while a purge waits until other members have
/// applied it.
const CONFIRMATION_CHECK: Duration = Duration::from_millis(3);
/// Largest number of purges that wait until they are appended or acknowledged.
const MAX_WAITING: usize = 1024;

/// The state machine of a fleet's member, which follows the purge log.
pub struct Node {
    me: Process,
    terms: LeaseTerms,
    leases: Leases,
    saved: Option<Saved>,
    history: History,
    session: Option<Session>,
    last_incarnation: Option<u64>,
    exchange: Option<Exchange>,
    records: u64,
    written: u64,
    lease_until: Instant,
    next_exchange: Instant,
    /// The last record of this member that the engine has confirmed on the present connection.
    told: Option<MemberRecord>,
    next_renewal: Instant,
    /// The time when the last read of the members' records began.
    last_read: Instant,
    broken: Option<Broken>,
    breaks: Vec<(Broken, u64)>,
    wishes: VecDeque<Wish>,
    in_flight: usize,
    waiting: Vec<Waiting>,
    /// Purges that failed because their entries left the log before this member read them.
    lost: Vec<Ticket>,
    is_stopping: bool,
    random: Random,
}

impl Node {
    /// Creates a member of a fleet, which continues from its saved position in the purge log.
    /// `members` has the names of all members.
    pub fn new(
        me: Process,
        members: &[Box<str>],
        terms: LeaseTerms,
        saved: Option<Saved>,
        seed: u64,
    ) -> Self {
        let known = saved.as_ref().map_or(&[][..], |saved| &saved.witnesses);
        let witnesses = Witnesses::new(&me.member, members, known);
        Self {
            leases: Leases::new(terms, me.clone(), witnesses),
            history: saved.as_ref().map(|saved| History::at(&saved.chain)).unwrap_or_default(),
            me,
            terms,
            saved,
            session: None,
            last_incarnation: None,
            exchange: None,
            records: 0,
            written: 0,
            lease_until: Instant::ZERO,
            next_exchange: Instant::ZERO,
            told: None,
            next_renewal: Instant::ZERO,
            last_read: Instant::ZERO,
            broken: None,
            breaks: Broken::ALL.map(|why| (why, 0)).to_vec(),
            wishes: VecDeque::new(),
            in_flight: 0,
            waiting: Vec::new(),
            lost: Vec::new(),
            is_stopping: false,
            random: Random::new(seed),
        }
    }

    /// Replaces the list of the fleet's members by the names `members`.
    pub fn set_members(&mut self, members: &[Box<str>], now: Instant) {
        self.leases.set_members(members);
        self.next_exchange = self.next_exchange.min(now);
    }

    /// Notes a new connection to the engine. `incarnation` identifies the run of the engine's
    /// server.
    pub fn connected(&mut self, incarnation: u64, now: Instant) {
        if self.last_incarnation != Some(incarnation) {
            self.leases.restart(now);
        }
        self.last_incarnation = Some(incarnation);
        let (attests, tail) = (false, None);
        self.session = Some(Session { incarnation, since: now, attests, tail, is_empty: false });
        self.next_exchange = now;
    }

    /// Notes that the engine does not answer. Returns all purges in progress as failed. Whether
    /// such a purge takes effect is unknown.
    pub fn away(&mut self) -> Vec<(Ticket, Result<u64, NotPurged>)> {
        (self.session, self.exchange, self.told, self.in_flight) = (None, None, None, 0);
        self.fail_all(NotPurged::EngineAway)
    }

    /// Gives up the lease. Returns all purges that are not acknowledged yet, as failed.
    pub fn stop(&mut self) -> Vec<(Ticket, Result<u64, NotPurged>)> {
        self.is_stopping = true;
        self.lease_until = Instant::ZERO;
        self.fail_all(NotPurged::Stopping)
    }

    fn fail_all(&mut self, why: NotPurged) -> Vec<(Ticket, Result<u64, NotPurged>)> {
        let wished = self.wishes.drain(..).map(|wish| wish.ticket);
        let waiting = self.waiting.drain(..).flat_map(|waiting| waiting.tickets);
        wished.chain(waiting).map(|ticket| (ticket, Err(why))).collect()
    }

    /// Returns true if the member has a connection to the engine.
    pub const fn is_connected(&self) -> bool {
        self.session.is_some()
    }

    /// Queues a purge, which is then appended to the purge log.
    ///
    /// # Errors
    /// Returns the reason why the fleet cannot purge now.
    pub fn purge(&mut self, ticket: Ticket, orders: Vec<Order>) -> Result<(), NotPurged> {
        match () {
            () if self.is_stopping => Err(NotPurged::Stopping),
            () if self.session.is_none() => Err(NotPurged::EngineAway),
            () if self.wishes.len() + self.waiting.len() >= MAX_WAITING => Err(NotPurged::Busy),
            () => {
                self.wishes.push_back(Wish { ticket, orders });
                Ok(())
            }
        }
    }

    /// Gives up a purge that waited too long for its acknowledgement. Whether the purge takes
    /// effect is unknown.
    pub fn give_up(&mut self, ticket: Ticket) {
        self.waiting
            .iter_mut()
            .for_each(|waiting| waiting.tickets.retain(|other| *other != ticket));
        self.waiting.retain(|waiting| !waiting.tickets.is_empty());
    }

    /// Returns the next entry to append to the purge log. Returns `None` if there is nothing to
    /// append, or if this member has not applied the whole log yet.
    pub fn next_append(&mut self) -> Option<Append> {
        let session = self.session.as_ref()?;
        let tail = session.tail?;
        if self.is_stopping || self.exchange.is_some() || self.in_flight > 0 {
            return None;
        }
        if self.broken.is_some() || session.is_empty {
            let known = self.saved.as_ref().map_or(0, |saved| saved.chain.position);
            let chain = self.random.next_u64().max(1);
            let entry = self.entry(chain, tail.max(known) + 1, 0, Content::Begin);
            self.in_flight = 1;
            return Some(Append {
                position: entry.position,
                bytes: entry.encode(),
                drops_earlier: true,
            });
        }
        let chain = &self.saved.as_ref()?.chain;
        if chain.position != tail || self.wishes.is_empty() {
            return None;
        }
        let mut orders = Vec::new();
        let mut count = 0;
        for wish in &self.wishes {
            if count > 0 && orders.len() + wish.orders.len() > MAX_ENTRY_ORDERS {
                break;
            }
            orders.extend_from_slice(&wish.orders);
            count += 1;
        }
        let entry = self.entry(chain.number, tail + 1, chain.hash, Content::Purge(orders));
        self.in_flight = count;
        Some(Append { position: entry.position, bytes: entry.encode(), drops_earlier: false })
    }

    fn entry(&self, chain: u64, position: u64, previous: u128, content: Content) -> Entry {
        let known = self.saved.as_ref().map_or(0, |saved| saved.chain.written_by(&self.me));
        let counter = known.max(self.written) + 1;
        Entry { chain, position, writer: self.me.clone(), counter, previous, content }
    }

    /// Notes the result of appending the entry `append` to the purge log.
    pub fn appended(&mut self, append: &Append, result: Appended, now: Instant) {
        let count = std::mem::take(&mut self.in_flight);
        self.next_exchange = now;
        if result == Appended::Taken {
            self.session.iter_mut().for_each(|session| session.tail = None);
            return;
        }
        let known = self.saved.as_ref().map_or(0, |saved| saved.chain.written_by(&self.me));
        self.written = known.max(self.written) + 1;
        // After a `Begin`, this member must first read the new chain before it appends again.
        let tail = (!append.drops_earlier).then_some(append.position);
        self.session.iter_mut().for_each(|session| session.tail = tail);
        if !append.drops_earlier {
            let chain = self.saved.as_ref().map_or(0, |saved| saved.chain.number);
            let tickets = self.wishes.drain(..count).map(|wish| wish.ticket).collect();
            let (position, unread) = (append.position, Some(Entry::hash(&append.bytes)));
            self.waiting.push(Waiting { tickets, chain, position, unread, appended: now });
        }
    }

    /// Begins an exchange with the engine. Returns the record to write. Returns `None` if the
    /// engine already has an equal record, and the lease needs no renewal yet. The exchange then
    /// only reads, so that the engine need not wait for its disk.
    pub fn record(&mut self, now: Instant) -> Option<MemberRecord> {
        let LogPlace { chain, position } = self.log_place();
        let session = self.session.as_ref().filter(|session| session.attests);
        let incarnation = session.map(|session| session.incarnation);
        let record = MemberRecord {
            process: self.me.clone(),
            counter: self.records,
            attests: incarnation,
            vouches: incarnation != self.saved.as_ref().and_then(|saved| saved.missed),
            chain,
            position,
            hash: self.saved.as_ref().map_or(0, |saved| saved.chain.hash),
            wants_lease: !self.is_stopping,
        };
        let is_renewal = now >= self.next_renewal.min(self.lease_until);
        let record = (is_renewal || self.told.as_ref() != Some(&record)).then(|| {
            self.records += 1;
            MemberRecord { counter: self.records, ..record }
        });
        self.exchange =
            Some(Exchange { started: now, record: record.clone(), goal: u64::MAX, next: None });
        record
    }

    /// Returns how far this member has applied the log.
    pub fn log_place(&self) -> LogPlace {
        self.saved.as_ref().map(Saved::log_place).unwrap_or_default()
    }

    /// Returns the position in the purge log after which the next exchange reads entries.
    pub fn position(&self) -> u64 {
        self.log_place().position
    }

    /// Returns the processes whose records the next exchange removes from the engine.
    pub fn gone(&self, now: Instant) -> Vec<Process> {
        self.leases.useless(now)
    }

    /// Reads the result of an exchange with the engine. `now` is a time after the result arrived.
    /// The caller must do the returned task durably, and then call `applied`.
    pub fn exchanged(&mut self, view: &LogView, now: Instant) -> Task {
        let task = self.follow(view, now);
        let witnesses = self.leases.witnesses().to_save();
        if let Some(exchange) = &mut self.exchange
            && let Some(saved) = exchange.next.take().or_else(|| self.saved.clone())
        {
            let next = Saved { witnesses, ..saved };
            exchange.next = (self.saved.as_ref() != Some(&next)).then_some(next);
        }
        task
    }

    fn follow(&mut self, view: &LogView, now: Instant) -> Task {
        let (Some(session), Some(exchange)) = (&mut self.session, &mut self.exchange) else {
            return Task::Nothing;
        };
        self.leases.observe(&view.records, now);
        session.tail = Some(view.tail);
        session.is_empty = false;
        exchange.goal = view.tail;
        if let Some(record) = &exchange.record {
            self.told = Some(record.clone());
            self.next_renewal = exchange.started + RENEWAL;
        }
        self.next_exchange = self.next_renewal;
        let incarnation = session.incarnation;
        let mut advice = advise(self.saved.as_ref().map(|saved| &saved.chain), view);
        if let Advice::UpToDate | Advice::Follow(..) = advice
            && let Err(why) = find_own(&mut self.waiting, view)
        {
            advice = Advice::Broken(why);
        }
        if let Some(why) = Chain::end(view).and_then(|end| self.history.contradiction(view, &end)) {
            advice = Advice::Broken(why);
        }
        if let Advice::Follow(_, to) | Advice::Begin(to) | Advice::Missed(to) = &advice {
            self.history.follow(view, to);
        }
        let saved = self.saved.as_ref();
        let (proved, missed) = saved.map(|saved| (saved.proved, saved.missed)).unwrap_or_default();
        self.last_read = exchange.started;
        if let Advice::UpToDate | Advice::Follow(..) = advice {
            self.broken = None;
            if !session.attests {
                session.attests = true;
                self.next_exchange = now;
            }
        }
        let here = Some(incarnation);
        let (task, chain, proved, missed) = match advice {
            Advice::UpToDate => return self.prove(incarnation, now),
            Advice::Follow(entries, chain) => {
                let orders = entries.into_iter().flat_map(|entry| match entry.content {
                    Content::Purge(orders) => orders,
                    Content::Begin => Vec::new(),
                });
                (Task::Apply(orders.collect()), chain, proved, missed)
            }
            Advice::Begin(chain) => (Task::Validate(ValidateCause::NewChain), chain, here, missed),
            Advice::Missed(chain) => {
                let lost = self.waiting.extract_if(.., |waiting| waiting.unread.is_some());
                self.lost.extend(lost.flat_map(|waiting| waiting.tickets));
                (Task::Validate(ValidateCause::Missed), chain, here, here)
            }
            Advice::Empty => {
                session.is_empty = true;
                self.exchange = None;
                return Task::Nothing;
            }
            Advice::Broken(why) => {
                self.note_break(why);
                return Task::Nothing;
            }
        };
        self.broken = None;
        exchange.next = Some(Saved { chain, proved, missed, witnesses: Vec::new() });
        task
    }

    fn note_break(&mut self, why: Broken) {
        if self.broken.is_none() {
            let counts = self.breaks.iter_mut().filter(|(other, _)| *other == why);
            counts.for_each(|(_, count)| *count += 1);
        }
        self.broken = Some(why);
        self.exchange = None;
        self.lease_until = Instant::ZERO;
    }

    /// Decides whether the engine's server may have lost an acknowledged purge when it restarted.
    /// If all witnesses attest that the log is complete, the log is proved. If their records do not
    /// come within the length of a lease, this member must validate everything that it stored.
    fn prove(&mut self, incarnation: u64, now: Instant) -> Task {
        let (Some(saved), Some(exchange), Some(session)) =
            (&self.saved, &mut self.exchange, &self.session)
        else {
            return Task::Nothing;
        };
        if saved.proved == Some(incarnation) {
            return Task::Nothing;
        }
        let proved = Saved { proved: Some(incarnation), ..saved.clone() };
        if self.leases.do_all_attest(incarnation, exchange.started) {
            exchange.next = Some(proved);
        } else if now.since(session.since) >= self.terms.length {
            exchange.next = Some(proved);
            return Task::Validate(ValidateCause::NoProof);
        } else {
            self.next_exchange = now + CONFIRMATION_CHECK * 10;
        }
        Task::Nothing
    }

    /// Returns the state that the caller must save durably after the task. Returns `None` if the
    /// state has not changed.
    pub fn to_save(&self) -> Option<&Saved> {
        self.exchange.as_ref()?.next.as_ref()
    }

    /// Notes that the task of an exchange is done and the member's position is saved. `is_done` is
    /// false if the disk failed.
    pub fn applied(&mut self, is_done: bool, now: Instant) {
        let Some(Exchange { started, record, goal, next }) = self.exchange.take() else { return };
        if !is_done {
            self.next_exchange = now + CONFIRMATION_CHECK * 10;
            return;
        }
        if let Some(saved) = next {
            let old = self.saved.as_ref().map_or(0, |saved| saved.chain.number);
            if saved.chain.number != old {
                // A new chain began, so all members validate everything that they stored before.
                // This has at least the effect of the waiting purges, so these purges now wait for
                // the new chain.
                for waiting in &mut self.waiting {
                    (waiting.chain, waiting.position) = (saved.chain.number, saved.chain.position);
                    (waiting.unread, waiting.appended) = (None, now);
                }
            }
            self.written = self.written.max(saved.chain.written_by(&self.me));
            self.saved = Some(saved);
            self.next_exchange = now;
        }
        let Some(session) = &self.session else { return };
        let is_proved =
            self.saved.as_ref().is_some_and(|saved| saved.proved == Some(session.incarnation));
        let is_sound = is_proved && !self.is_stopping && self.broken.is_none();
        if record.is_some() && self.position() >= goal && is_sound {
            self.lease_until = self.lease_until.max(started + self.terms.for_holder());
            self.leases.release(started);
        }
    }

    /// Returns the purges that are acknowledged now, because every member has applied them durably
    /// or has no lease. Also returns purges that failed.
    pub fn settle(&mut self) -> Vec<(Ticket, Result<u64, NotPurged>)> {
        // While the chain is broken, the same position may mean another entry in another member's
        // record.
        let (Some(session), Some(saved), None) = (&self.session, &self.saved, self.broken) else {
            return Vec::new();
        };
        let incarnation = session.incarnation;
        let lost = self.lost.drain(..).map(|ticket| (ticket, Err(NotPurged::EngineAway)));
        let mut answers: Vec<_> = lost.collect();
        let (leases, history, last_read) = (&self.leases, &self.history, self.last_read);
        self.waiting.retain(|waiting| {
            let &Waiting { chain, position, unread, appended, .. } = waiting;
            // The engine must have this member's record of the entry before the acknowledgement. If
            // this member fails later, the record proves to others that the log had the entry.
            let is_told = |told: &MemberRecord| told.chain == chain && told.position >= position;
            let is_here = unread.is_none()
                && saved.chain.number == chain
                && self.told.as_ref().is_some_and(is_told);
            let place = Place { incarnation, chain, position };
            let is_done = is_here
                && last_read >= appended
                && (leases.have_all_reached(place, |record| history.agrees(record), last_read)
                    || leases.have_earlier_ended(appended, last_read));
            if is_done {
                answers.extend(waiting.tickets.iter().map(|ticket| (*ticket, Ok(position))));
            }
            !is_done
        });
        answers
    }

    /// Makes the next exchange with the engine due at `now`, because the log has new entries.
    pub fn look(&mut self, now: Instant) {
        self.next_exchange = self.next_exchange.min(now);
    }

    /// Returns the time when the next exchange with the engine is due.
    pub fn due(&self) -> Instant {
        if self.waiting.is_empty() {
            return self.next_exchange;
        }
        self.next_exchange.min(self.last_read + CONFIRMATION_CHECK)
    }

    /// Returns the end of this member's lease. Until then, the member may serve stored responses
    /// without validation.
    pub const fn lease_until(&self) -> Instant {
        self.lease_until
    }

    /// Returns the state of this member for the operator.
    pub fn report(&self, now: Instant) -> NodeReport {
        let tail = self.session.as_ref().and_then(|session| session.tail);
        NodeReport {
            is_connected: self.session.is_some(),
            lease_left: self.lease_until.since(now),
            position: self.position(),
            lag: tail.map(|tail| tail.saturating_sub(self.position())),
            broken: self.broken,
            breaks: self.breaks.clone(),
            waiting: self.wishes.len() + self.waiting.len(),
            others: self.leases.rows(now),
        }
    }
}
