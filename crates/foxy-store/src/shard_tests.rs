//! The shard: answers from another thread, full mailboxes, panics, closing.

use super::*;
use crate::contract::{Outbox, StoreRequest};
use crate::schemes::SchemeName;
use crate::settings::StoreSettings;
use bytes::Bytes;
use foxy_base::clock::monotonic;
use foxy_device::{IoDone, Memory};
use std::sync::mpsc::{Receiver, channel};

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
    let shard = start(SchemeName::StreamPacketizer.make(&settings, observer.clone()), observer);
    let store = shard.handle();
    while answer(|reply| store.put(KEY, record(), PlacementHint::default(), reply)) != Answer::Stored {
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

/// Holds the shard's thread inside a request until told to go on, or to panic.
struct Held(Receiver<bool>);

impl Scheme for Held {
    fn start(&mut self, _: Instant, _: &mut Outbox) {}
    fn on_request(&mut self, request: StoreRequest, _: Instant, out: &mut Outbox) {
        assert!(self.0.recv().unwrap_or(true), "told to");
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
    let (go, held) = channel();
    let shard = start(Box::new(Held(held)), Observer::default());
    let store = shard.handle();
    let waiting: Vec<_> = (0..12).map(|_| wait_for(|reply| store.remove(KEY, reply))).collect();
    let refused = waiting.iter().filter(|waiter| waiter.try_recv().is_ok()).count();
    assert!((12 - 2 * 4..=12 - 4).contains(&refused), "{refused} of 12 were turned away");
    assert_eq!(store.observer().statistics.turned_away.get(), refused as u64);
    drop(go);
}

#[test]
fn a_shard_that_panics_answers_everyone() {
    let (go, held) = channel();
    let shard = start(Box::new(Held(held)), Observer::default());
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
