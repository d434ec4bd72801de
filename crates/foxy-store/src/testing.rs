//! Helpers for tests of storage schemes: a store on a device in memory, and records whose content
//! identifies their key and version.

use crate::contract::{AbsentReason, Answer, Key, PlacementHint, Record, Scheme};
use crate::observe::Observer;
use crate::settings::StoreSettings;
use crate::status::StoreStatus;
use crate::step::StepDriver;
use crate::webcosm::Webcosm;
use bytes::Bytes;
use foxy_base::{Instant, Random};
use foxy_device::{BlockingDevice, Device, IoDone, IoId, IoOp, Memory, Waker};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A test's decision about a disk operation of the store.
pub enum Intercept {
    Pass(IoOp),
    /// The operation never finishes.
    Swallow,
    End(IoDone),
}

/// A device in memory. A test can intercept the device's operations and count how often the device
/// is woken.
pub struct Intercepted<F> {
    pub inner: Memory,
    pub wakes: Arc<AtomicU64>,
    intercept: F,
    done: Vec<IoDone>,
}

impl<F: FnMut(IoId, IoOp) -> Intercept> Intercepted<F> {
    pub fn new(inner: Memory, intercept: F) -> Self {
        Self { inner, wakes: Arc::default(), intercept, done: Vec::new() }
    }
}

impl<F: FnMut(IoId, IoOp) -> Intercept> Device for Intercepted<F> {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        match (self.intercept)(id, op) {
            Intercept::Pass(op) => self.inner.submit(id, op, now),
            Intercept::Swallow => {}
            Intercept::End(done) => self.done.push(done),
        }
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        done.append(&mut self.done);
        self.inner.reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.inner.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight() + self.done.len()
    }
}

impl<F: FnMut(IoId, IoOp) -> Intercept + Send> BlockingDevice for Intercepted<F> {
    fn wait(&mut self, timeout: Option<Duration>) {
        self.inner.wait(timeout);
    }

    fn waker(&self) -> Waker {
        let (waker, wakes) = (self.inner.waker(), Arc::clone(&self.wakes));
        Waker::new(move || {
            wakes.fetch_add(1, Ordering::Relaxed);
            waker.wake();
        })
    }
}

pub struct Store<D = Memory> {
    pub driver: StepDriver<D>,
    pub observer: Observer,
}

impl<D: Device> Store<D> {
    /// Opens a store on the device and runs it until no disk operation is in flight.
    pub fn open(make: impl FnOnce(Observer) -> Box<dyn Scheme + Send>, device: D) -> Self {
        let observer = Observer::default();
        let scheme = make(observer.clone());
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        Self { driver, observer }
    }

    /// Opens a store of the default storage scheme, webcosm.
    pub fn webcosm(settings: &StoreSettings, device: D) -> Self {
        Self::open(|observer| Webcosm::boxed(settings, observer), device)
    }

    /// Puts the record `content(key, version, length)` under the key.
    pub fn put(&mut self, key: u64, version: u64, length: usize) -> Answer {
        self.driver.put(name(key), content(key, version, length), PlacementHint::default())
    }

    /// Returns whether a get of the key finds `content(key, version, length)`. Panics if the get
    /// finds another record or fails.
    pub fn holds(&mut self, key: u64, version: u64, length: usize) -> bool {
        match self.driver.get(name(key)) {
            Answer::Found(found) => {
                assert_eq!(found, content(key, version, length), "key {key}");
                true
            }
            Answer::Absent(AbsentReason::NotIndexed) => false,
            other => panic!("key {key}: {other:?}"),
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == name).expect("a counter of that name").value
    }

    /// Runs the store for two seconds, so that it writes its buffered records.
    pub fn flush(&mut self) {
        let later = self.driver.now() + Duration::from_secs(2);
        self.driver.run_until(later);
        self.driver.run_until_idle();
    }
}

impl Store {
    /// Stops the store without closing it, like a crash, and returns the device.
    pub fn kill(self) -> Memory {
        let mut device = self.driver.into_device();
        device.close_all();
        device
    }

    /// Closes the store and returns the device.
    pub fn close(mut self) -> Memory {
        assert_eq!(self.driver.close(), Answer::Closed);
        assert_eq!(self.observer.status.get(), StoreStatus::Closed);
        self.kill()
    }
}

pub fn name(key: u64) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[8..].copy_from_slice(&key.to_le_bytes());
    Key(bytes)
}

/// Returns a record of `length` bytes whose content differs for each key and version.
pub fn content(key: u64, version: u64, length: usize) -> Record {
    let mut bytes = vec![0; length];
    Random::new(key << 20 ^ version).fill(&mut bytes);
    let all = Bytes::from(bytes);
    let head = length.min(40);
    Record { head: all.slice(..head), body: all.slice(head..) }
}
