//! Tests the shard: answers from another thread, full mailboxes, panics and closing.

use super::*;
use crate::contract::{Outbox, StoreRequest};
use crate::settings::REMOVAL_FACTOR;
use crate::settings::StoreSettings;
use crate::testing::{Intercept, Intercepted};
use crate::webcosm::Webcosm;
use bytes::Bytes;
use foxy_base::clock::monotonic;
use foxy_device::{IoDone, Memory};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};

fn wait_for(ask: impl FnOnce(Reply)) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| drop(sender.send(answer))));
    receiver
}

fn answer(ask: impl FnOnce(Reply)) -> Answer {
    wait_for(ask).recv().expect("every request is answered")
}

fn start(scheme: Box<dyn Scheme + Send>, observer: Observer) -> Shard {
    let settings = ShardSettings { mailbox_requests: 4, ..ShardSettings::new(monotonic) };
    Shard::start(scheme, Memory::default(), observer, settings).expect("a thread")
}

fn record() -> Record {
    Record { head: Bytes::from_static(b"head"), body: Bytes::from_static(b"body") }
}

const KEY: Key = Key([3; 16]);

#[test]
fn a_record_goes_round_through_the_thread() {
    let observer = Observer::default();
    let settings = StoreSettings::with_size(1 << 20);
    let shard = start(Webcosm::boxed(&settings, observer.clone()), observer);
    let store = shard.handle();
    while answer(|reply| store.put(KEY, record(), PlacementHint::default(), reply))
        != Answer::Stored
    {
        std::thread::yield_now();
    }
    assert_eq!(answer(|reply| store.get(KEY, reply)), Answer::Found(record()));
    assert_eq!(answer(|reply| store.remove(KEY, reply)), Answer::Removed);
    assert_eq!(answer(|reply| store.get(KEY, reply)), Answer::Absent(AbsentReason::NotIndexed));
    assert_eq!(answer(|reply| store.close(reply)), Answer::Closed);
    drop(shard);
    assert_eq!(answer(|reply| store.get(KEY, reply)), Answer::Absent(AbsentReason::Closed));
    assert_eq!(answer(|reply| store.close(reply)), Answer::Closed);
    assert!(store.observer().statistics.adds_up());
}

#[test]
fn small_puts_that_follow_each_other_wake_the_thread_once_in_a_while() {
    let observer = Observer::default();
    let scheme = Webcosm::boxed(&StoreSettings::with_size(16 << 20), observer.clone());
    let device = Intercepted::new(Memory::default(), |_, op| Intercept::Pass(op));
    let woken = Arc::clone(&device.wakes);
    let shard =
        Shard::start(scheme, device, observer, ShardSettings::new(monotonic)).expect("a thread");
    let store = shard.handle();
    let put = |key| {
        wait_for(|reply| store.put(Key([key; 16]), record(), PlacementHint::default(), reply))
    };
    while put(0).recv() != Ok(Answer::Stored) {
        std::thread::yield_now();
    }
    let before = woken.load(Relaxed);
    let waiting: Vec<_> = (1..=200).map(put).collect();
    assert!(waiting.iter().all(|waiter| waiter.recv() == Ok(Answer::Stored)));
    let times = woken.load(Relaxed) - before;
    assert!(times <= 50, "200 puts at once woke the thread {times} times");
}

/// A storage scheme that blocks the shard's thread at each request, until the test lets it continue
/// or makes it panic.
struct Held {
    go: Receiver<bool>,
    entered: Sender<()>,
}

/// Starts a shard whose thread will block in a [`Held`] storage scheme. The last value of the tuple
/// is a sender that lets the thread continue. A failing test drops this sender before the shard.
/// The thread then also continues, and the test does not hang.
fn held(
    scheme: impl FnOnce(Held) -> Box<dyn Scheme + Send>,
) -> (Shard, Receiver<()>, Sender<bool>) {
    let ((tell, go), (entered, inside)) = (channel(), channel());
    (start(scheme(Held { go, entered }), Observer::default()), inside, tell)
}

impl Scheme for Held {
    fn start(&mut self, _: Instant, _: &mut Outbox) {}
    fn on_request(&mut self, request: StoreRequest, _: Instant, out: &mut Outbox) {
        let _unless_no_test_looks = self.entered.send(());
        assert!(self.go.recv().unwrap_or(true), "told to");
        let closing = matches!(request, StoreRequest::Close { .. });
        out.reply(request.ticket(), if closing { Answer::Closed } else { Answer::Removed });
    }
    fn on_io_done(&mut self, _: IoDone, _: Instant, _: &mut Outbox) {}
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_deadline(&mut self, _: Instant, _: &mut Outbox) {}
}

#[test]
fn a_full_mailbox_answers_busy_at_once() {
    let (shard, entered, go) = held(|held| Box::new(held));
    let store = shard.handle();
    let first = wait_for(|reply| store.get(KEY, reply));
    entered.recv().expect("the thread takes the first");
    let waiting: Vec<_> = (0..12).map(|_| wait_for(|reply| store.get(KEY, reply))).collect();
    let refused = waiting.iter().filter(|waiter| waiter.try_recv().is_ok()).count();
    assert_eq!(refused, 12 - 4);
    assert_eq!(store.observer().statistics.turned_away.get(), refused as u64);
    let removals: Vec<_> = (0..40).map(|_| wait_for(|reply| store.remove(KEY, reply))).collect();
    let refused = removals.iter().filter(|waiter| waiter.try_recv().is_ok()).count();
    assert_eq!(
        refused,
        40 - (REMOVAL_FACTOR - 1) * 4,
        "removals wait where others are turned away"
    );
    drop(go);
    assert_eq!(first.recv(), Ok(Answer::Removed));
}

/// A storage scheme that blocks like [`Held`]. Other threads can look up keys, and find no records.
struct Empty(Held);

struct Nothing;

impl Lookup for Nothing {
    fn find(&self, _: Key) -> Find {
        Find::Absent
    }

    fn verify(&self, _: Key, _: RecordPlace, _: IoBuffer) -> Option<Record> {
        None
    }
}

impl Scheme for Empty {
    fn start(&mut self, now: Instant, out: &mut Outbox) {
        self.0.start(now, out);
    }
    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        self.0.on_request(request, now, out);
    }
    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        self.0.on_io_done(done, now, out);
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn on_deadline(&mut self, _: Instant, _: &mut Outbox) {}
    fn lookup(&self) -> Option<Arc<dyn Lookup>> {
        Some(Arc::new(Nothing))
    }
}

#[test]
fn absent_lookups_answer_at_once_unless_a_put_is_in_flight() {
    let (shard, _entered, go) = held(|held| Box::new(Empty(held)));
    let store = shard.handle();
    let absent = Ok(Answer::Absent(AbsentReason::NotIndexed));
    let removal = wait_for(|reply| store.remove(KEY, reply));
    assert_eq!(wait_for(|reply| store.get(KEY, reply)).try_recv(), absent);
    assert!(store.lacks(KEY));
    let put = wait_for(|reply| store.put(KEY, record(), PlacementHint::default(), reply));
    let behind = wait_for(|reply| store.get(KEY, reply));
    assert!(behind.try_recv().is_err() && !store.lacks(KEY));
    (0..3).for_each(|_| go.send(true).expect("the thread waits"));
    for waiter in [removal, put, behind] {
        assert_eq!(waiter.recv(), Ok(Answer::Removed), "the scheme was asked");
    }
    while wait_for(|reply| store.get(KEY, reply)).try_recv() != absent {
        go.send(true).expect("the thread waits");
    }
    drop(go);
}

#[test]
fn a_shard_that_panics_answers_everyone() {
    let (shard, _entered, go) = held(|held| Box::new(held));
    let store = shard.handle();
    let waiting: Vec<_> = (0..3).map(|_| wait_for(|reply| store.get(KEY, reply))).collect();
    go.send(false).expect("the thread waits");
    for waiter in waiting {
        assert_eq!(waiter.recv(), Ok(Answer::Absent(AbsentReason::Closed)));
    }
    drop(shard);
    assert_eq!(store.observer().status.get(), StoreStatus::Panicked);
    assert_eq!(answer(|reply| store.remove(KEY, reply)), Answer::Refused(RefusedReason::Closed));
}
