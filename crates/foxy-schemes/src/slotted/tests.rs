//! Counts the disk operations of each plan on a device in memory. The tests of `foxy-torture` cover
//! the behaviour that all storage schemes share.

mod ahead;

use super::plan::*;
use super::*;
use bytes::Bytes;
use foxy_base::Instant;
use foxy_device::{Device, IoOp, Memory, StorePath};
use foxy_store::StoreSettings;
use foxy_store::contract::{Key, PlacementHint, Record, Site};
use foxy_store::engine::Ask;
use foxy_store::step::StepDriver;
use std::time::Duration;

/// Returns the number of body bytes of a record that takes exactly `slots` slots (512 bytes each).
const fn body_of(slots: usize) -> usize {
    slots * SLOT - foxy_store::record::HEADER
}

fn settings() -> SchemeSettings {
    SchemeSettings { high_watermark: 100, low_watermark: 100, ..SchemeSettings::with_size(4 << 20) }
}

/// A device that passes each operation through `spoil` before it performs the operation. So a test
/// can replace an operation by an operation that fails.
struct Spoilt {
    inner: Memory,
    spoil: fn(IoOp) -> IoOp,
}

impl Device for Spoilt {
    fn submit(&mut self, id: IoId, op: IoOp, now: Instant) {
        self.inner.submit(id, (self.spoil)(op), now);
    }

    fn reap(&mut self, now: Instant, done: &mut Vec<IoDone>) {
        self.inner.reap(now, done);
    }

    fn next_completion(&self) -> Option<Instant> {
        self.inner.next_completion()
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }
}

struct Store<D> {
    driver: StepDriver<D>,
    observer: Observer,
}

impl<D: Device> Store<D> {
    fn open(plan: Plan, device: D, settings: &SchemeSettings) -> Self {
        let observer = Observer::default();
        let scheme = Slotted::new(plan, settings, observer.clone());
        let mut driver =
            StepDriver::start(Box::new(scheme), device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        Self { driver, observer }
    }

    fn put(&mut self, key: u8, slots: usize, site: u64) {
        let record = Record { head: Bytes::new(), body: Bytes::from(vec![key; body_of(slots)]) };
        let hint = PlacementHint { site: Site(site), ..PlacementHint::default() };
        assert_eq!(self.driver.put(Key([key; 16]), record, hint), Answer::Stored);
    }

    fn has(&mut self, key: u8) -> bool {
        let call = self.driver.ask(Ask::Get(Key([key; 16])));
        let later = self.driver.now() + Duration::from_secs(5);
        self.driver.run_until(later);
        let answers = self.driver.take_answers();
        let found = answers.iter().find(|(other, _)| *other == call).map(|(_, answer)| answer);
        matches!(found.expect("answered within the patience"), Answer::Found(_))
    }

    /// Returns the numbers of file creations, writes and reads since the last call.
    fn counts(&self, before: &mut [u64; 3]) -> [u64; 3] {
        let statistics = &self.observer.statistics;
        let now = [statistics.creates.get(), statistics.writes.get(), statistics.reads.get()];
        let since = [now[0] - before[0], now[1] - before[1], now[2] - before[2]];
        *before = now;
        since
    }
}

/// Returns the numbers of file creations, writes and reads that a put of `slots` slots (512 bytes
/// each) causes. An earlier put has already created the shared file.
fn cost_of_a_put(plan: Plan, slots: usize) -> [u64; 3] {
    let mut store = Store::open(plan, Memory::default(), &settings());
    store.put(1, slots, 1);
    let mut before = [0; 3];
    store.counts(&mut before);
    store.put(2, slots, 1);
    store.counts(&mut before)
}

#[test]
fn a_put_costs_one_write_and_no_create_except_in_buddy_above_its_threshold() {
    assert_eq!(cost_of_a_put(STREAM, 5), [0, 1, 0]);
    assert_eq!(cost_of_a_put(PACKETIZER, 5), [0, 0, 0], "it waits for its page to fill");
    assert_eq!(cost_of_a_put(PACKETIZER, 40), [0, 1, 0]);
    assert_eq!(cost_of_a_put(BUDDY, 256), [0, 1, 0]);
    assert_eq!(cost_of_a_put(BUDDY, 257), [1, 1, 0]);
    assert_eq!(cost_of_a_put(COSS, 5), [0, 0, 0], "it waits for its stripe to fill");
    assert_eq!(cost_of_a_put(SQUIDM, 5), [0, 0, 0], "it waits for its page to fill");
    assert_eq!(cost_of_a_put(SQUIDM, 17), [1, 1, 0], "larger than a page");
}

#[test]
fn records_of_a_site_lie_together_with_locality_buffers() {
    let mut store = Store::open(LAZY_READS_LOC, Memory::default(), &settings());
    let mut before = [0; 3];
    store.counts(&mut before);
    for round in 0..8 {
        store.put(round, 16, 1);
        store.put(100 + round, 16, 2);
    }
    let [creates, writes, _] = store.counts(&mut before);
    assert_eq!((creates, writes), (1, 16), "two buffers of eight pages each, page by page");
    let seeks = store.observer.statistics.seeks.get();
    assert!((0..8).all(|round| store.has(round)), "one after the other");
    assert_eq!(store.observer.statistics.seeks.get() - seeks, 1, "they follow each other on disk");
}

#[test]
fn records_that_wait_for_the_room_of_a_missing_file_are_placed_at_once() {
    let spoil = |op| match op {
        IoOp::Create { file, path, size } if path.as_str().ends_with("c8") => {
            IoOp::Create { file, path: StorePath::new(format!("nowhere/{}", path.as_str())), size }
        }
        op => op,
    };
    let settings = settings();
    let mut store = Store::open(BUDDY, Spoilt { inner: Memory::default(), spoil }, &settings);
    let record = Record { head: Bytes::new(), body: Bytes::from(vec![0; body_of(200)]) };
    for key in 0..u8::try_from(slots_of(settings.store.size) / 200).expect("few") {
        store.driver.ask(Ask::Put(Key([key; 16]), record.clone(), PlacementHint::default()));
    }
    store.driver.run_until_idle();
    assert!(!store.has(0), "files of 200 slots cannot be created");
    let mut before = [0; 3];
    store.counts(&mut before);
    store.put(255, 250, 0);
    assert_eq!(store.counts(&mut before), [1, 1, 0], "it is on the disk");
}

#[test]
fn reads_wait_for_others_or_for_a_while_and_are_then_sorted() {
    let mut store = Store::open(LAZY_READS, Memory::default(), &settings());
    for key in 0..20 {
        store.put(key, 16, 0);
    }
    let asked = store.driver.now();
    let mut before = [0; 3];
    store.counts(&mut before);
    for key in (1..10).rev() {
        store.driver.ask(Ask::Get(Key([key; 16])));
    }
    store.driver.run_until(asked + Duration::from_millis(249));
    assert_eq!(store.counts(&mut before), [0; 3]);
    store.driver.run_until(asked + Duration::from_millis(250));
    assert_eq!(store.counts(&mut before), [0, 0, 9]);
    let answers = store.driver.take_answers().into_iter().filter_map(|(_, answer)| match answer {
        Answer::Found(record) => Some(record.body[0]),
        _ => None,
    });
    assert_eq!(
        answers.collect::<Vec<_>>(),
        (1..10).collect::<Vec<_>>(),
        "in the order of their places"
    );
}

#[test]
fn a_hit_moves_a_record_to_the_head_of_the_ring() {
    let mut store = Store::open(COSS, Memory::default(), &settings());
    let stripe = Ring::stripe_of(slots_of(settings().store.size)) as usize;
    for key in 0..60 {
        store.put(key, stripe / 4, 0);
        if key % 8 == 7 {
            assert!(store.has(0), "after key {key}");
        }
    }
    assert!(!store.has(1), "it was never used");
}

#[test]
fn after_a_crash_the_store_is_empty_and_its_files_are_gone() {
    for plan in [STREAM, BUDDY, COSS, SQUIDM, SQUIDMLA] {
        let mut store = Store::open(plan, Memory::default(), &settings());
        store.put(1, 300, 0);
        assert_eq!(store.driver.close(), Answer::Closed);
        let mut store = Store::open(plan, store.driver.into_device().fork(), &settings());
        assert!(store.has(1), "{}: it was closed", plan.name);
        let mut store = Store::open(plan, store.driver.into_device().fork(), &settings());
        assert!(!store.has(1), "{}: it was not closed", plan.name);
        let bytes = store.driver.device().bytes();
        assert!(bytes <= 4096 * 4, "{}: {bytes} bytes are left", plan.name);
    }
}

#[test]
fn squidm_keeps_larger_records_in_squids_folders_which_are_made_when_needed() {
    let mut store = Store::open(SQUIDM, Memory::default(), &settings());
    let directories = store.observer.statistics.directories.get();
    for key in 0..10 {
        store.put(key, 17, 0);
    }
    assert_eq!(store.observer.statistics.directories.get() - directories, 2, "both levels, once");
    assert_eq!(store.driver.close(), Answer::Closed);
    let mut store = Store::open(SQUIDM, store.driver.into_device().fork(), &settings());
    assert!((0..10).all(|key| store.has(key)));
    assert_eq!(store.observer.statistics.foreign_files.get(), 0);
}

#[test]
fn squidm_gives_all_its_room_to_whatever_comes() {
    let mut store = Store::open(SQUIDM, Memory::default(), &settings());
    let capacity = store.observer.statistics.capacity_bytes.get();
    for slots in [4, 200, 16, 60, 1] {
        for key in 0..=255 {
            store.put(key, slots, 0);
        }
        let live = store.observer.statistics.live_bytes.get();
        let all = (256 * slots * SLOT) as u64;
        assert!(
            live >= all.min(capacity * 9 / 10),
            "{live} of {capacity} bytes, {slots} slots a record"
        );
        assert!(store.has(255), "the newest, of {slots} slots");
    }
}

#[test]
fn records_are_cut_to_pieces_where_free_room_is_scattered() {
    let settings = SchemeSettings {
        store: StoreSettings { waiting_bytes: 1 << 30, ..settings().store },
        ..settings()
    };
    let mut store = Store::open(STREAM, Memory::default(), &settings);
    let capacity = usize::try_from(slots_of(settings.store.size)).expect("small");
    let count = u8::try_from(capacity / 40).expect("few");
    for key in 0..count {
        store.put(key, 40, 0);
    }
    for key in (0..count).step_by(2) {
        assert_eq!(store.driver.remove(Key([key; 16])), Answer::Removed);
    }
    store.put(255, 100, 0);
    assert!(store.has(255) && store.has(1));
}
