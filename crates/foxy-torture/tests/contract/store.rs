//! A store under test. Tests name a record by key, version and size, and the model checks every
//! answer.

use crate::place::Place;
use foxy_base::{Instant, clock};
use foxy_device::BlockingDevice;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::engine::{Engine, Wake};
use foxy_store::{Answer, Ask, Observer, PlacementHint, Site, StoreReply, Ticket};
use foxy_torture::content::{self, RecordName};
use foxy_torture::model::{Asked, Model};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time limit for one operation of a real device.
const PATIENCE: Duration = Duration::from_secs(30);

pub struct Store<'a> {
    place: &'a Place,
    scheme: SchemeName,
    pub settings: SchemeSettings,
    engine: Option<Engine<Box<dyn BlockingDevice>, Ticket>>,
    pub observer: Observer,
    model: Model,
    answers: BTreeMap<Ticket, Answer>,
    arrived: Vec<StoreReply>,
    tickets: u64,
    now: Instant,
}

impl<'a> Store<'a> {
    /// Opens a store. Returns `None` if this machine has no such device.
    pub fn open(place: &'a Place, scheme: SchemeName, settings: SchemeSettings) -> Option<Self> {
        let mut store = Self {
            place,
            scheme,
            settings,
            engine: None,
            observer: Observer::default(),
            model: Model::default(),
            answers: BTreeMap::new(),
            arrived: Vec::new(),
            tickets: 0,
            now: Instant::ZERO,
        };
        store.begin().then_some(store)
    }

    fn begin(&mut self) -> bool {
        let Some(device) = self.place.open() else { return false };
        self.observer = Observer::default();
        let scheme = self.scheme.make(&self.settings, self.observer.clone());
        let mut engine = Engine::new(scheme, device, self.observer.clone());
        let arrived = &mut self.arrived;
        engine.start(self.now, &mut |ticket, answer| arrived.push(StoreReply { ticket, answer }));
        self.engine = Some(engine);
        self.settle();
        true
    }

    /// Sends a request without waiting.
    pub fn ask(&mut self, asked: Asked) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.model.ask(ticket, asked);
        let wake = match asked {
            Asked::Get(key) => Wake::Request(Ask::Get(content::key(key)), ticket),
            Asked::Remove(key) => Wake::Request(Ask::Remove(content::key(key)), ticket),
            Asked::Put(name) => {
                let site = Site(u64::from(name.key % 7));
                let hint =
                    PlacementHint { site, size: u64::from(name.size), ..PlacementHint::default() };
                Wake::Request(Ask::Put(content::key(name.key), content::record(name), hint), ticket)
            }
            Asked::Close => Wake::Shutdown(ticket),
        };
        let (arrived, now) = (&mut self.arrived, self.now);
        let engine = self.engine.as_mut().expect("an open store");
        engine.wake(wake, now, &mut |ticket, answer| arrived.push(StoreReply { ticket, answer }));
        self.check();
        ticket
    }

    /// Sends a request, and waits for its answer.
    pub fn answer(&mut self, asked: Asked) -> Answer {
        let ticket = self.ask(asked);
        self.settle();
        self.take(ticket)
    }

    pub fn put(&mut self, key: u32, version: u32, size: u32) -> Answer {
        self.answer(Asked::Put(RecordName { key, version, size }))
    }

    /// Returns whether a `get` finds the record. The model checks its bytes.
    pub fn has(&mut self, key: u32) -> bool {
        matches!(self.answer(Asked::Get(key)), Answer::Found(_))
    }

    /// Removes and returns the answer to a request. Panics if no answer has arrived.
    pub fn take(&mut self, ticket: Ticket) -> Answer {
        self.answers.remove(&ticket).expect("each request is answered once")
    }

    /// Returns the answer to a request, if it has arrived.
    pub fn ready(&self, ticket: Ticket) -> Option<&Answer> {
        self.answers.get(&ticket)
    }

    /// Waits until every request is answered and the device is idle.
    pub fn settle(&mut self) {
        let begun = clock::monotonic();
        loop {
            let engine = self.engine.as_mut().expect("an open store");
            let arrived = &mut self.arrived;
            let mut anything = false;
            while engine
                .turn(self.now, &mut |ticket, answer| arrived.push(StoreReply { ticket, answer }))
            {
                anything = true;
            }
            let idle =
                engine.waiting() == 0 && foxy_device::Device::in_flight(engine.device()) == 0;
            let next = foxy_device::Device::next_completion(engine.device());
            if !anything && !idle {
                match next {
                    Some(next) => self.now = self.now.max(next),
                    None if foxy_device::Device::in_flight(engine.device()) > 0 => {
                        engine.device().wait(Some(Duration::from_secs(1)));
                    }
                    None => self.now = engine.deadline().expect("something to wait for"),
                }
            }
            self.check();
            if idle {
                return;
            }
            assert!(clock::monotonic().since(begun) < PATIENCE, "the store does not answer");
        }
    }

    fn check(&mut self) {
        for reply in std::mem::take(&mut self.arrived) {
            if let Err(violation) = self.model.answer(&reply) {
                panic!("{} on {:?}: {violation}", self.scheme, self.place.kind());
            }
            let again = self.answers.insert(reply.ticket, reply.answer);
            assert!(again.is_none(), "each request is answered once");
        }
    }

    /// Closes the store, and opens it again as another process would.
    pub fn reopen(&mut self) {
        assert_eq!(self.answer(Asked::Close), Answer::Closed);
        self.begin_again();
    }

    /// Opens the store again after a close.
    pub fn begin_again(&mut self) {
        self.engine = None;
        assert!(self.begin(), "a device that was there before");
    }

    /// Closes the store, and checks the conditions that must hold after every test.
    pub fn finish(mut self) {
        assert_eq!(self.answer(Asked::Close), Answer::Closed);
        assert_eq!(self.model.open_requests(), 0);
        let statistics = &self.observer.statistics;
        assert!(statistics.adds_up(), "{:?}", statistics.snapshot());
        assert!(statistics.live_bytes.get() <= statistics.capacity_bytes.get());
        let limit = if self.scheme.row().stores_nothing() { 0 } else { self.settings.store.size };
        assert!(self.place.bytes() <= limit, "{} bytes of {limit}", self.place.bytes());
    }
}
