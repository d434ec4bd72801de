//! Tests that each call of the storage scheme evicts only a few records, because all requests wait
//! during a call.

use super::settings;
use crate::contract::{Outbox, PlacementHint, Scheme, StoreRequest};
use crate::observe::Observer;
use crate::settings::StoreSettings;
use crate::step::StepDriver;
use crate::testing::{content, name};
use crate::webcosm::Webcosm;
use foxy_base::Instant;
use foxy_device::{IoDone, Memory};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A storage scheme, and the largest number of records that a single call of the scheme evicted.
struct Counted {
    scheme: Box<dyn Scheme + Send>,
    observer: Observer,
    most: Arc<AtomicU64>,
}

impl Counted {
    fn count(&self, call: impl FnOnce(&Self) -> u64) {
        self.most.fetch_max(call(self), Ordering::Relaxed);
    }

    fn evicted(&self) -> u64 {
        self.observer.statistics.evicted.get()
    }
}

impl Scheme for Counted {
    fn start(&mut self, now: Instant, out: &mut Outbox) {
        self.scheme.start(now, out);
    }

    fn on_request(&mut self, request: StoreRequest, now: Instant, out: &mut Outbox) {
        let before = self.evicted();
        self.scheme.on_request(request, now, out);
        self.count(|counted| counted.evicted() - before);
    }

    fn on_io_done(&mut self, done: IoDone, now: Instant, out: &mut Outbox) {
        let before = self.evicted();
        self.scheme.on_io_done(done, now, out);
        self.count(|counted| counted.evicted() - before);
    }

    fn deadline(&self) -> Option<Instant> {
        self.scheme.deadline()
    }

    fn on_deadline(&mut self, now: Instant, out: &mut Outbox) {
        let before = self.evicted();
        self.scheme.on_deadline(now, out);
        self.count(|counted| counted.evicted() - before);
    }
}

#[test]
fn the_records_of_a_segment_leave_a_few_at_a_time() {
    let (observer, most) = (Observer::default(), Arc::default());
    let settings = StoreSettings { record_limit: u32::MAX, ..settings() };
    let scheme = Webcosm::boxed(&settings, observer.clone());
    let counted = Counted { scheme, observer: observer.clone(), most: Arc::clone(&most) };
    let mut store =
        StepDriver::start(Box::new(counted), Memory::default(), observer.clone(), Instant::ZERO);
    store.run_until_idle();
    for key in 0..60_000 {
        store.put(name(key), content(key, 0, 100), PlacementHint::default());
    }
    let (evicted, most) = (observer.statistics.evicted.get(), most.load(Ordering::Relaxed));
    assert!(evicted > 10_000, "{evicted}");
    assert!((1..=512).contains(&most), "{most} at once");
}
