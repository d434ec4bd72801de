//! Runs a store in simulated time, for the simulator and tests.

use crate::contract::{Answer, Key, PlacementHint, Record, Scheme};
use crate::observe::Observer;
use crate::shard::engine::{Ask, Engine, Wake};
use foxy_base::Instant;
use foxy_device::Device;

/// Identifies a request until the caller fetches its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// Runs a store in simulated time, for the simulator and tests.
pub struct StepDriver<D> {
    engine: Engine<D, Call>,
    now: Instant,
    calls: u64,
    answers: Vec<(Call, Answer)>,
}

impl<D: Device> StepDriver<D> {
    /// Starts a store at time `now`.
    pub fn start(
        scheme: Box<dyn Scheme + Send>,
        device: D,
        observer: Observer,
        now: Instant,
    ) -> Self {
        let mut driver = Self {
            engine: Engine::new(scheme, device, observer),
            now,
            calls: 0,
            answers: Vec::new(),
        };
        driver.engine.start(now, &mut |call, answer| driver.answers.push((call, answer)));
        driver
    }

    /// Sends a request. The answer is ready at once, or after the store has run for some simulated
    /// time.
    pub fn ask(&mut self, ask: Ask) -> Call {
        self.calls += 1;
        let call = Call(self.calls);
        self.wake(Wake::Request(ask, call));
        call
    }

    /// Requests that the store closes.
    pub fn shut_down(&mut self) -> Call {
        self.calls += 1;
        let call = Call(self.calls);
        self.wake(Wake::Shutdown(call));
        call
    }

    fn wake(&mut self, wake: Wake<Call>) {
        let Self { engine, now, answers, .. } = self;
        engine.wake(wake, *now, &mut |call, answer| answers.push((call, answer)));
    }

    fn turn(&mut self) -> bool {
        let Self { engine, now, answers, .. } = self;
        engine.turn(*now, &mut |call, answer| answers.push((call, answer)))
    }

    /// Runs the store until the simulated time `limit`.
    pub fn run_until(&mut self, limit: Instant) {
        loop {
            while self.turn() {}
            match self.engine.next_event() {
                Some(next) if next <= limit => self.now = self.now.max(next),
                _ => break,
            }
        }
        self.now = self.now.max(limit);
    }

    /// Runs the store until no disk operation is in flight. Does not wait for later deadlines of
    /// the storage scheme.
    pub fn run_until_idle(&mut self) {
        loop {
            while self.turn() {}
            match self.engine.device().next_completion() {
                Some(next) => self.now = self.now.max(next),
                None => break,
            }
        }
    }

    /// Removes and returns the answers that are ready, in the order in which the store gave them.
    pub fn take_answers(&mut self) -> Vec<(Call, Answer)> {
        std::mem::take(&mut self.answers)
    }

    /// Sends a request and runs the store until the answer arrives.
    ///
    /// # Panics
    /// If the store does not answer.
    pub fn answer_to(&mut self, ask: Ask) -> Answer {
        let call = self.ask(ask);
        self.wait_for(call)
    }

    /// Closes the store and runs it until it is closed.
    ///
    /// # Panics
    /// If the store does not answer.
    pub fn close(&mut self) -> Answer {
        let call = self.shut_down();
        self.wait_for(call)
    }

    fn wait_for(&mut self, call: Call) -> Answer {
        self.run_until_idle();
        let place = self.answers.iter().position(|(other, _)| *other == call);
        self.answers.swap_remove(place.expect("every request is answered")).1
    }

    /// Requests a record and runs the store until the answer arrives.
    pub fn get(&mut self, key: Key) -> Answer {
        self.answer_to(Ask::Get(key))
    }

    /// Puts a record and runs the store until the answer arrives.
    pub fn put(&mut self, key: Key, record: Record, hint: PlacementHint) -> Answer {
        self.answer_to(Ask::Put(key, record, hint))
    }

    /// Removes a record and runs the store until the answer arrives.
    pub fn remove(&mut self, key: Key) -> Answer {
        self.answer_to(Ask::Remove(key))
    }

    /// Returns the current simulated time.
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Returns the storage scheme that the driver runs.
    pub fn scheme(&self) -> &dyn Scheme {
        self.engine.scheme()
    }

    /// Returns the device of the store.
    pub const fn device(&mut self) -> &mut D {
        self.engine.device()
    }

    /// Stops the store without closing it, like a crash, and returns the device.
    pub fn into_device(self) -> D {
        self.engine.into_device()
    }
}
