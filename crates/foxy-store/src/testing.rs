//! What tests of schemes share: a store on a device that is stepped through, and records that say
//! whose they are.

use crate::contract::{AbsentReason, Answer, Key, PlacementHint, Record, Scheme};
use crate::observe::Observer;
use crate::settings::StoreSettings;
use crate::status::StoreStatus;
use crate::step::StepDriver;
use crate::webcosm::Webcosm;
use bytes::Bytes;
use foxy_base::{Instant, Random};
use foxy_device::{Device, Memory};
use std::time::Duration;

/// A store that was opened.
pub struct Store<D = Memory> {
    /// Takes requests to it.
    pub driver: StepDriver<D>,
    /// What it tells of itself.
    pub observer: Observer,
}

impl<D: Device> Store<D> {
    /// Opens the store of a scheme, and waits until it has nothing more to do.
    pub fn open(make: impl FnOnce(Observer) -> Box<dyn Scheme + Send>, device: D) -> Self {
        let observer = Observer::default();
        let scheme = make(observer.clone());
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        Self { driver, observer }
    }

    /// Opens a store of the default engine.
    pub fn webcosm(settings: &StoreSettings, device: D) -> Self {
        Self::open(|observer| Webcosm::boxed(settings, observer), device)
    }

    /// Stores [`content`].
    pub fn put(&mut self, key: u64, version: u64, length: usize) -> Answer {
        self.driver.put(name(key), content(key, version, length), PlacementHint::default())
    }

    /// Whether [`content`] is there; anything else in its place is a failure.
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

    /// A counter or gauge.
    pub fn counter(&self, name: &str) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == name).expect("a counter of that name").value
    }

    /// Lets what waits be written.
    pub fn flush(&mut self) {
        let later = self.driver.now() + Duration::from_secs(2);
        self.driver.run_until(later);
        self.driver.run_until_idle();
    }
}

impl Store {
    /// What is left when the process is killed.
    pub fn kill(self) -> Memory {
        let mut device = self.driver.into_device();
        device.close_all();
        device
    }

    /// What is left when the store is closed.
    pub fn close(mut self) -> Memory {
        assert_eq!(self.driver.close(), Answer::Closed);
        assert_eq!(self.observer.status.get(), StoreStatus::Closed);
        self.kill()
    }
}

/// The name of a record.
pub fn name(key: u64) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes());
    bytes[8..].copy_from_slice(&key.to_le_bytes());
    Key(bytes)
}

/// A record of `length` bytes that nothing but that version of that key has.
pub fn content(key: u64, version: u64, length: usize) -> Record {
    let mut bytes = vec![0; length];
    Random::new(key << 20 ^ version).fill(&mut bytes);
    let all = Bytes::from(bytes);
    let head = length.min(40);
    Record { head: all.slice(..head), body: all.slice(head..) }
}
