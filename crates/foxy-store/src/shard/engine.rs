//! Connects a storage scheme with a device and processes their events. The shard (a thread), the
//! simulator and the tests use this engine. The engine reads no clock and never blocks.

use crate::contract::{
    Answer, Key, Outbox, PlacementHint, Record, Scheme, StoreReply, StoreRequest, Ticket,
};
use crate::map::LayoutVisit;
use crate::observe::Observer;
use crate::statistics::RequestKind;
use foxy_base::Instant;
use foxy_device::{Device, FileId, IoDone, IoError, IoId, IoOp};
use std::collections::BTreeMap;

/// A request from a caller to the store.
#[derive(Debug)]
pub enum Ask {
    /// Requests a record.
    Get(Key),
    /// Stores a record.
    Put(Key, Record, PlacementHint),
    /// Removes a record durably.
    Remove(Key),
}

/// An event for the engine of a shard (the thread of a store). `R` receives the answer to a
/// request.
pub enum Wake<R> {
    Request(Ask, R),
    IoDone(IoDone),
    Deadline,
    Visit(LayoutVisit),
    Shutdown(R),
}

/// Runs a storage scheme on a device. Passes each event to the scheme, submits the scheme's disk
/// operations, and sends its answers.
pub struct Engine<D, R> {
    scheme: Box<dyn Scheme + Send>,
    device: D,
    observer: Observer,
    outbox: Outbox,
    done: Vec<IoDone>,
    waiters: Waiters<R>,
    /// The submission time of each disk operation in flight. A smaller `IoId` means an earlier
    /// submission.
    submitted: BTreeMap<IoId, Instant>,
    head: Option<(FileId, u64)>,
    closed: bool,
}

impl<D: Device, R> Engine<D, R> {
    /// Creates an engine. The caller must call [`Engine::start`] before any other work.
    pub fn new(scheme: Box<dyn Scheme + Send>, device: D, observer: Observer) -> Self {
        Self {
            scheme,
            device,
            observer,
            outbox: Outbox::default(),
            done: Vec::new(),
            waiters: Waiters::default(),
            submitted: BTreeMap::new(),
            head: None,
            closed: false,
        }
    }

    pub const fn observer(&self) -> &Observer {
        &self.observer
    }

    /// Opens the store and starts to recover its records.
    pub fn start(&mut self, now: Instant, deliver: &mut impl FnMut(R, Answer)) {
        self.scheme.start(now, &mut self.outbox);
        self.empty_outbox(now, deliver);
    }

    /// Processes an event. Passes all answers that are ready to `deliver`.
    pub fn wake(&mut self, wake: Wake<R>, now: Instant, deliver: &mut impl FnMut(R, Answer)) {
        match wake {
            Wake::Request(ask, waiter) => {
                let request = self.register(ask, waiter);
                self.scheme.on_request(request, now, &mut self.outbox);
            }
            Wake::IoDone(done) => {
                self.submitted.remove(&done.id);
                let statistics = &self.observer.statistics;
                statistics.no_room.add(u64::from(matches!(done.result, Err(IoError::NoSpace))));
                statistics.read_only.add(u64::from(matches!(done.result, Err(IoError::ReadOnly))));
                self.scheme.on_io_done(done, now, &mut self.outbox);
            }
            Wake::Deadline => {
                if self.scheme.deadline().is_some_and(|deadline| deadline <= now) {
                    self.scheme.on_deadline(now, &mut self.outbox);
                }
            }
            Wake::Visit(visit) => {
                if let Some(layout) = self.scheme.layout() {
                    visit(layout);
                }
            }
            Wake::Shutdown(waiter) => {
                let ticket = self.waiters.add(RequestKind::Close, waiter);
                self.scheme.on_request(StoreRequest::Close { ticket }, now, &mut self.outbox);
            }
        }
        self.empty_outbox(now, deliver);
    }

    /// Processes all finished disk operations, and the storage scheme's deadline if it has passed.
    /// Returns whether there was any work.
    pub fn turn(&mut self, now: Instant, deliver: &mut impl FnMut(R, Answer)) -> bool {
        let mut done = std::mem::take(&mut self.done);
        self.device.reap(now, &mut done);
        let restarts = &self.observer.statistics.helper_restarts;
        restarts.add(self.device.restarts().saturating_sub(restarts.get()));
        let due = self.scheme.deadline().is_some_and(|deadline| deadline <= now);
        let anything = due || !done.is_empty();
        for done in done.drain(..) {
            self.wake(Wake::IoDone(done), now, deliver);
        }
        if due {
            self.wake(Wake::Deadline, now, deliver);
        }
        self.done = done;
        anything
    }

    /// Returns the time of the next event: the storage scheme's deadline, or the next result of a
    /// simulated device.
    pub fn next_event(&self) -> Option<Instant> {
        self.scheme.deadline().into_iter().chain(self.device.next_completion()).min()
    }

    pub fn deadline(&self) -> Option<Instant> {
        self.scheme.deadline()
    }

    pub fn waiting(&self) -> usize {
        self.waiters.count
    }

    pub const fn is_closed(&self) -> bool {
        self.closed
    }

    pub fn scheme(&self) -> &dyn Scheme {
        &*self.scheme
    }

    pub const fn device(&mut self) -> &mut D {
        &mut self.device
    }

    pub fn into_device(self) -> D {
        self.device
    }

    /// Removes and returns all requests that are not answered yet.
    pub fn abandon(&mut self) -> Vec<(RequestKind, R)> {
        self.waiters.take_all()
    }

    fn register(&mut self, ask: Ask, waiter: R) -> StoreRequest {
        match ask {
            Ask::Get(key) => {
                StoreRequest::Get { ticket: self.waiters.add(RequestKind::Get, waiter), key }
            }
            Ask::Put(key, record, hint) => StoreRequest::Put {
                ticket: self.waiters.add(RequestKind::Put, waiter),
                key,
                record,
                hint,
            },
            Ask::Remove(key) => {
                StoreRequest::Remove { ticket: self.waiters.add(RequestKind::Remove, waiter), key }
            }
        }
    }

    fn empty_outbox(&mut self, now: Instant, deliver: &mut impl FnMut(R, Answer)) {
        for StoreReply { ticket, answer } in self.outbox.replies.drain(..) {
            if let Some((kind, waiter)) = self.waiters.take(ticket) {
                self.observer.statistics.count_answer(kind, &answer);
                self.closed |= answer == Answer::Closed;
                deliver(waiter, answer);
            }
        }
        for (id, op) in self.outbox.operations.drain(..) {
            self.observer.statistics.count_operation(&op);
            if let Some((place, end)) = extent(&op) {
                self.observer.statistics.seeks.add(u64::from(self.head != Some(place)));
                self.head = Some(end);
            }
            self.submitted.insert(id, now);
            self.observer.owed.set(oldest(&self.submitted));
            self.device.submit(id, op, now);
        }
        self.observer.owed.set(oldest(&self.submitted));
    }
}

fn oldest(submitted: &BTreeMap<IoId, Instant>) -> Option<Instant> {
    submitted.first_key_value().map(|(_, &since)| since)
}

fn extent(op: &IoOp) -> Option<((FileId, u64), (FileId, u64))> {
    match op {
        IoOp::Read { file, offset, buffer } | IoOp::Write { file, offset, buffer } => {
            Some(((*file, *offset), (*file, offset + buffer.len() as u64)))
        }
        _ => None,
    }
}

/// The callers that wait for an answer, by ticket. A place in the list is used again with a new
/// number, so the ticket of an old request never matches a new caller.
struct Waiters<R> {
    places: Vec<(u32, Option<(RequestKind, R)>)>,
    free: Vec<u32>,
    count: usize,
}

impl<R> Default for Waiters<R> {
    fn default() -> Self {
        Self { places: Vec::new(), free: Vec::new(), count: 0 }
    }
}

impl<R> Waiters<R> {
    fn add(&mut self, kind: RequestKind, waiter: R) -> Ticket {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push((0, None));
            u32::try_from(self.places.len() - 1).expect("requests are bounded")
        });
        let (round, slot) = &mut self.places[place as usize];
        *round = round.wrapping_add(1);
        *slot = Some((kind, waiter));
        self.count += 1;
        Ticket(u64::from(*round) << 32 | u64::from(place))
    }

    fn take(&mut self, Ticket(ticket): Ticket) -> Option<(RequestKind, R)> {
        let place = u32::try_from(ticket & u64::from(u32::MAX)).ok()?;
        let (round, slot) = self.places.get_mut(place as usize)?;
        if u64::from(*round) != ticket >> 32 {
            return None;
        }
        let waiter = slot.take()?;
        self.free.push(place);
        self.count -= 1;
        Some(waiter)
    }

    fn take_all(&mut self) -> Vec<(RequestKind, R)> {
        let all = std::mem::take(self);
        all.places.into_iter().filter_map(|(_, waiter)| waiter).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_for_one_answer() {
        let mut waiters = Waiters::default();
        let first = waiters.add(RequestKind::Get, 'a');
        assert_eq!(waiters.take(first), Some((RequestKind::Get, 'a')));
        let second = waiters.add(RequestKind::Put, 'b');
        assert_ne!(first, second);
        assert_eq!(waiters.take(first), None);
        assert_eq!(waiters.take(Ticket(77)), None);
        assert_eq!(waiters.take_all(), [(RequestKind::Put, 'b')]);
    }
}
