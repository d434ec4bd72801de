//! Runs a store on its own thread, which is called a shard. Requests reach the thread through a
//! mailbox of limited size. If the mailbox is full, requests are refused at once. Even if the
//! thread panics, all requests are answered.

#[doc(hidden)]
pub mod engine;
mod mailbox;
mod thread_ring;

pub use thread_ring::ThreadRing;

#[cfg(test)]
mod tests;

use crate::contract::{
    AbsentReason, Answer, Find, Key, Lookup, PlacementHint, Record, RecordPlace, RefusedReason,
    Scheme,
};
use crate::map::{LayoutVisit, PlacedRecord};
use crate::observe::Observer;
use crate::shard::engine::{Ask, Engine, Wake};
use crate::shard::mailbox::{Attention, MAX_DOZE, Mailbox};
use crate::statistics::RequestKind;
use crate::status::StoreStatus;
use foxy_base::Instant;
use foxy_device::{BlockingDevice, IoBuffer, KeptFiles, Reader, Waker};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time for which a caller waits until the store's thread has run a function that inspects
/// the store's layout.
const MAX_VISIT_WAIT: Duration = Duration::from_secs(2);

/// A function that receives the answer to a request. It is called exactly once, on the shard's or
/// the caller's thread, and must not block.
pub type Reply = Box<dyn FnOnce(Answer) + Send>;

/// Settings of a shard: limits of its mailbox, and its clock.
#[derive(Clone, Copy, Debug)]
pub struct ShardSettings {
    /// Number of requests that may wait in the mailbox. The shard refuses further requests as busy.
    pub mailbox_requests: usize,
    /// Number of bytes of puts that may wait in the mailbox. The shard refuses further puts as
    /// busy.
    pub mailbox_bytes: usize,
    /// The clock that tells the shard the time. The proxy uses `foxy_base::clock::monotonic`.
    pub clock: fn() -> Instant,
    /// A function that the shard calls to return freed memory to the operating system. It returns
    /// the time to wait until the next call.
    pub give_back: Option<fn() -> Duration>,
}

impl ShardSettings {
    /// Returns settings with the recommended limits and this clock.
    pub const fn new(clock: fn() -> Instant) -> Self {
        Self { mailbox_requests: 4096, mailbox_bytes: 16 << 20, clock, give_back: None }
    }
}

/// A running shard. Dropping the shard closes the store and waits until its thread has ended.
pub struct Shard {
    handle: StoreHandle,
    thread: Option<JoinHandle<()>>,
}

impl Shard {
    /// Starts the shard's thread. The thread opens the store and recovers its records.
    ///
    /// # Errors
    /// If the operating system refuses to create a thread.
    pub fn start<D: BlockingDevice + 'static>(
        scheme: Box<dyn Scheme + Send>,
        device: D,
        observer: Observer,
        settings: ShardSettings,
    ) -> std::io::Result<Self> {
        let (lookup, mailbox) = (scheme.lookup(), Mutex::new(Mailbox::new()));
        let is_shared = lookup.as_ref().is_some_and(|lookup| lookup.layout().is_some());
        let has_layout = is_shared || scheme.layout().is_some();
        let (reader, waker) = (device.reader(), device.waker());
        let handle = StoreHandle(Arc::new(Shared {
            lookup,
            has_layout,
            reader,
            lent: OnceLock::new(),
            mailbox,
            waker,
            observer,
            settings,
        }));
        let shared = handle.0.clone();
        let observer = shared.observer.clone();
        let thread = std::thread::Builder::new()
            .name("foxy-store".into())
            .spawn(move || live(Engine::new(scheme, device, observer), &shared))?;
        Ok(Self { handle, thread: Some(thread) })
    }

    /// Returns a handle that sends requests to the shard.
    pub fn handle(&self) -> StoreHandle {
        self.handle.clone()
    }
}

impl Drop for Shard {
    fn drop(&mut self) {
        self.handle.close(Box::new(|_| {}));
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(
                ended.is_ok() || std::thread::panicking(),
                "panics of the shard are caught inside it"
            );
        }
    }
}

/// Sends requests to a shard from any thread.
#[derive(Clone)]
pub struct StoreHandle(Arc<Shared>);

/// The state that the handles of a shard share with the thread of the shard.
struct Shared {
    lookup: Option<Arc<dyn Lookup>>,
    has_layout: bool,
    reader: Option<Reader>,
    /// The store's files, if gets must still find records after the store has closed (see
    /// [`StoreHandle::lend`]).
    lent: OnceLock<KeptFiles>,
    mailbox: Mutex<Mailbox>,
    waker: Waker,
    observer: Observer,
    settings: ShardSettings,
}

impl StoreHandle {
    /// Requests a record. `reply` receives the answer.
    pub fn get(&self, key: Key, reply: Reply) {
        if let Err(reply) = self.get_here(key, reply) {
            self.get_elsewhere(key, reply);
        }
    }

    /// Requests a record, if the calling thread can answer the request itself. It can if the record
    /// is absent, or small and in the page cache. With a [`ThreadRing`], the record may also be
    /// small and on disk. A later call of [`ThreadRing::turn`] then calls `reply`.
    ///
    /// # Errors Returns `reply` if only the store's thread can answer.
    pub fn get_here(&self, key: Key, reply: Reply) -> Result<(), Reply> {
        let (place, reader) = match (self.0.find(key), &self.0.reader) {
            (Find::Absent, _) => {
                self.answer(Answer::Absent(AbsentReason::NotIndexed), reply);
                return Ok(());
            }
            (Find::At(place), Some(reader)) => (place, reader),
            _ => return Err(reply),
        };
        let statistics = &self.0.observer.statistics;
        if let Some(buffer) = reader.read(place.file, place.offset, place.length) {
            let Some(record) = self.0.verify(key, place, buffer) else { return Err(reply) };
            statistics.read_at_once.add_shared(1);
            self.answer(Answer::Found(record), reply);
            return Ok(());
        }
        if !thread_ring::has_room(reader, place.length) {
            return Err(reply);
        }
        statistics.reads.add_shared(1);
        statistics.read_bytes.add_shared(place.length as u64);
        let read = OwnRead::begin(self.clone());
        let then = Box::new(move |buffer| read.store().was_read(key, place, buffer, reply));
        thread_ring::begin(reader, place, then);
        Ok(())
    }

    /// Whether the store certainly has no record of the key. Waits for neither the disk nor the
    /// store's thread. Does not count as a get.
    pub fn lacks(&self, key: Key) -> bool {
        self.0.find(key) == Find::Absent
    }

    /// Whether the store's device uses io_uring, so that threads with a [`ThreadRing`] read records
    /// themselves.
    pub fn is_for_rings(&self) -> bool {
        self.0.reader.as_ref().is_some_and(Reader::is_for_rings)
    }

    /// Answers a get after this thread has read the bytes at `place`. If the read failed or the
    /// bytes are not the record, the store's thread reads again, and reports the reason.
    fn was_read(&self, key: Key, place: RecordPlace, buffer: Option<IoBuffer>, reply: Reply) {
        let is_open = self.0.lock().is_open();
        let record = buffer.filter(|_| is_open).and_then(|it| self.0.verify(key, place, it));
        match record {
            Some(record) => {
                self.0.observer.statistics.read_by_caller.add_shared(1);
                self.answer(Answer::Found(record), reply);
            }
            None => self.get_elsewhere(key, reply),
        }
    }

    /// Requests a record that the calling thread cannot read itself.
    fn get_elsewhere(&self, key: Key, reply: Reply) {
        match self.0.read_lent(key) {
            Some(record) => {
                self.0.observer.statistics.read_at_once.add_shared(1);
                self.answer(Answer::Found(record), reply);
            }
            None => self.ask(Ask::Get(key), reply),
        }
    }

    fn answer(&self, answer: Answer, reply: Reply) {
        self.0.observer.statistics.count_answer(RequestKind::Get, &answer);
        reply(answer);
    }

    /// Stores a record, or replaces the record of `key`. `reply` receives the answer.
    pub fn put(&self, key: Key, record: Record, hint: PlacementHint, reply: Reply) {
        self.ask(Ask::Put(key, record, hint), reply);
    }

    /// Removes a record durably. `reply` receives the answer.
    pub fn remove(&self, key: Key, reply: Reply) {
        self.ask(Ask::Remove(key), reply);
    }

    /// Closes the store, which refuses later requests. `reply` receives the answer.
    pub fn close(&self, reply: Reply) {
        let mailbox = self.0.lock();
        if !mailbox.is_open() {
            drop(mailbox);
            return reply(Answer::Closed);
        }
        self.0.post(mailbox, Wake::Shutdown(reply));
    }

    /// Lets gets still find the records on disk after this store has closed. Another process may
    /// then open and change the store. Such a get waits for the disk. It may find a record that the
    /// other process has replaced or removed.
    pub fn lend(&self) {
        if let Some(reader) = &self.0.reader {
            self.0.lent.get_or_init(|| reader.keep_files());
        }
    }

    /// Returns whether the storage scheme has a layout that can be inspected.
    pub fn has_layout(&self) -> bool {
        self.0.has_layout
    }

    /// Calls `visit` with a view of the layout: on the calling thread if the storage scheme permits
    /// this, otherwise on the store's thread. The store's thread drops `visit` without a call if
    /// there is no layout, the store is closed, or too many visits wait.
    pub fn visit_layout(&self, visit: LayoutVisit) {
        if let Some(layout) = self.0.lookup.as_ref().and_then(|lookup| lookup.layout()) {
            return visit(layout);
        }
        let mailbox = self.0.lock();
        if self.has_layout() && mailbox.accepts_visit() {
            self.0.post(mailbox, Wake::Visit(visit));
        }
    }

    /// Reads and verifies records that a scan of the layout found, and waits for the disk. Passes
    /// each record that is still there to `take`, until `take` returns false.
    pub fn read_placed(
        &self,
        records: &[PlacedRecord],
        mut take: impl FnMut(&PlacedRecord, Key, Record) -> bool,
    ) {
        let Some(reader) = &self.0.reader else { return };
        let (sender, receiver) = channel();
        let wanted = records.to_vec();
        self.visit_layout(Box::new(move |layout| {
            let readers: Vec<_> = wanted.iter().map(|record| layout.locate(record)).collect();
            // // The error is ignored: the receiver no longer exists if its thread stopped waiting.
            let _ = sender.send(readers);
        }));
        let readers = receiver.recv_timeout(MAX_VISIT_WAIT).unwrap_or_default();
        let files = reader.keep_files();
        let mut read = |file, offset, length| files.read(file, offset, length);
        for (placed, reader) in records.iter().zip(readers) {
            if let Some((key, record)) = reader.and_then(|reader| reader.read(&mut read))
                && !take(placed, key, record)
            {
                return;
            }
        }
    }

    /// Returns the counters and the status of the store.
    pub fn observer(&self) -> &Observer {
        &self.0.observer
    }

    fn ask(&self, ask: Ask, reply: Reply) {
        let Shared { settings, observer, .. } = &*self.0;
        let mailbox = self.0.lock();
        if let Some(reason) =
            mailbox.refuses(&ask, settings.mailbox_requests, settings.mailbox_bytes)
        {
            drop(mailbox);
            observer.statistics.turned_away.add_shared(u64::from(reason == RefusedReason::Busy));
            return reply(refusal(&ask, reason));
        }
        self.0.post(mailbox, Wake::Request(ask, reply));
    }
}

/// A read in progress that the calling thread does itself, instead of the store's thread. Dropping
/// this value reports the end of the read to [`Owed`](crate::observe::Owed).
struct OwnRead(StoreHandle);

impl OwnRead {
    fn begin(store: StoreHandle) -> Self {
        store.0.observer.owed.begin_read((store.0.settings.clock)());
        Self(store)
    }

    const fn store(&self) -> &StoreHandle {
        &self.0
    }
}

impl Drop for OwnRead {
    fn drop(&mut self) {
        let shared = &self.0.0;
        shared.observer.owed.end_read((shared.settings.clock)());
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up a key on the caller's thread. As long as a put of the key is in the mailbox,
    /// returns `Unsure`: the storage scheme must process the put before the get.
    fn find(&self, key: Key) -> Find {
        let Some(lookup) = &self.lookup else { return Find::Unsure };
        let mailbox = self.lock();
        let settled = mailbox.is_open() && !mailbox.awaits(key);
        drop(mailbox);
        if settled { lookup.find(key) } else { Find::Unsure }
    }

    fn verify(&self, key: Key, place: RecordPlace, buffer: IoBuffer) -> Option<Record> {
        self.lookup.as_ref()?.verify(key, place, buffer)
    }

    fn read_lent(&self, key: Key) -> Option<Record> {
        let (lent, lookup) = (self.lent.get()?, self.lookup.as_ref()?);
        lookup.read_lent(key, &mut |file, offset, length| lent.read(file, offset, length))
    }

    /// Adds an event to the mailbox, and wakes the thread if necessary.
    fn post(&self, mut mailbox: MutexGuard<'_, Mailbox>, wake: Wake<Reply>) {
        let late = mailbox.post(wake);
        drop(mailbox);
        if late {
            self.waker.wake();
        }
    }

    /// Closes the mailbox and answers all requests in it.
    fn shut(&self) {
        let late = self.lock().shut();
        refuse(late);
    }
}

fn refuse(wakes: VecDeque<Wake<Reply>>) {
    for wake in wakes {
        match wake {
            Wake::Request(ask, reply) => reply(refusal(&ask, RefusedReason::Closed)),
            Wake::Shutdown(reply) => reply(Answer::Closed),
            Wake::IoDone(_) | Wake::Deadline | Wake::Visit(_) => {}
        }
    }
}

/// The main function of the shard's thread. Before this function ends, even after a panic, it
/// answers all requests.
fn live<D: BlockingDevice>(mut engine: Engine<D, Reply>, shared: &Shared) {
    let mut batch = VecDeque::new();
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(&mut engine, shared, &mut batch)));
    if outcome.is_err() {
        shared.observer.status.set(StoreStatus::Panicked);
    }
    shared.shut();
    refuse(batch);
    for (kind, reply) in engine.abandon() {
        reply(closed(kind));
    }
}

fn serve<D: BlockingDevice>(
    engine: &mut Engine<D, Reply>,
    shared: &Shared,
    batch: &mut VecDeque<Wake<Reply>>,
) {
    let deliver = &mut |reply: Reply, answer| reply(answer);
    engine.start((shared.settings.clock)(), deliver);
    let mut given_back = GivenBack { give_back: shared.settings.give_back, due: None };
    while !engine.is_closed() {
        shared.lock().take(batch);
        let now = (shared.settings.clock)();
        let mut anything = !batch.is_empty();
        while let Some(wake) = batch.pop_front() {
            engine.wake(wake, now, deliver);
        }
        anything |= engine.turn(now, deliver);
        let next = given_back.next(now);
        let attention = if anything { None } else { shared.lock().rest() };
        if let Some(attention) = attention {
            let deadline = engine.deadline().map(|deadline| deadline.since(now));
            let doze = (attention == Attention::Dozing).then_some(MAX_DOZE);
            engine.device().wait(deadline.into_iter().chain(doze).chain(next).min());
        }
    }
}

/// Returns the thread's freed memory to the operating system from time to time.
struct GivenBack {
    give_back: Option<fn() -> Duration>,
    due: Option<Instant>,
}

impl GivenBack {
    /// Returns freed memory to the operating system if the time since the last call is long enough.
    /// Returns the time until the next call.
    fn next(&mut self, now: Instant) -> Option<Duration> {
        let give_back = self.give_back?;
        let due = match self.due {
            Some(due) if now < due => due,
            _ => now + give_back(),
        };
        self.due = Some(due);
        Some(due.since(now))
    }
}

/// Returns the answer to a request that the store had not finished when it closed.
const fn closed(kind: RequestKind) -> Answer {
    match kind {
        RequestKind::Get => Answer::Absent(AbsentReason::Closed),
        RequestKind::Put | RequestKind::Remove => Answer::Refused(RefusedReason::Closed),
        RequestKind::Close => Answer::Closed,
    }
}

/// Returns the answer to a request that the mailbox refuses.
const fn refusal(ask: &Ask, reason: RefusedReason) -> Answer {
    match (ask, reason) {
        (Ask::Get(_), RefusedReason::Busy) => Answer::Absent(AbsentReason::Busy),
        (Ask::Get(_), _) => Answer::Absent(AbsentReason::Closed),
        (Ask::Put(..) | Ask::Remove(_), reason) => Answer::Refused(reason),
    }
}
