//! Opens a webcosm store with another size than before. Records that stay must match byte for byte.
//! No removed or replaced record may return, even if the opening is interrupted. The store must use
//! the new disk space.

use foxy_base::{Instant, Random};
use foxy_device::memory::CrashPolicy;
use foxy_device::{FaultPlan, Faulty, Memory, StorePath};
use foxy_store::medium::Medium;
use foxy_store::webcosm::FILE_NAME;
use foxy_store::webcosm::Webcosm;
use foxy_store::webcosm::check::{CheckScope, Level, LogName, Report, SegmentReport, check};
use foxy_store::{
    Answer, Key, Observer, PlacementHint, Record, StepDriver, StoreSettings, StoreStatus,
};
use std::collections::HashMap;
use std::time::Duration;

const MILLISECOND: u64 = 1_000_000;
const KIB: u64 = 1 << 10;

type Device = Faulty<Memory>;

fn device(seed: u64) -> Device {
    let plan =
        FaultPlan { latency: (Duration::ZERO, Duration::from_millis(2)), ..FaultPlan::default() };
    Faulty::new(Memory::volatile(), plan, seed)
}

fn name(key: u64) -> Key {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&key.to_le_bytes());
    Key(bytes)
}

fn record(key: u64, version: u64) -> Record {
    let mut body = vec![0; [120, 700, 2_900, 7_000][(key % 4) as usize]];
    Random::new(key << 20 | version).fill(&mut body);
    Record { head: format!("{key} {version}").into_bytes().into(), body: body.into() }
}

struct Store {
    driver: StepDriver<Device>,
    observer: Observer,
}

impl Store {
    fn begin(size: u64, device: Device) -> Self {
        let settings =
            StoreSettings { page_buffer: 16 << 10, seed: 21, ..StoreSettings::with_size(size) };
        let observer = Observer::default();
        let made = Webcosm::boxed(&settings, observer.clone());
        Self { driver: StepDriver::start(made, device, observer.clone(), Instant::ZERO), observer }
    }

    fn open(size: u64, device: Device) -> Self {
        let mut store = Self::begin(size, device);
        store.driver.run_until_idle();
        assert_eq!(store.observer.status.get(), StoreStatus::Serving);
        store
    }

    fn counter(&self, name: &str) -> u64 {
        let all = self.observer.statistics.snapshot();
        all.iter().find(|measure| measure.name == name).expect("a counter").value
    }

    /// Puts new records with keys from `first` on, until the records have `bytes` bytes in total.
    /// Returns the number of records.
    fn fill(&mut self, first: u64, bytes: u64) -> u64 {
        let (mut done, mut key) = (0, first);
        while done < bytes {
            let record = record(key, 0);
            done += record.len() as u64;
            if self.driver.put(name(key), record, PlacementHint::default()) == Answer::Stored {
                key += 1;
            } else {
                self.flush();
            }
        }
        self.flush();
        key - first
    }

    fn flush(&mut self) {
        let later = self.driver.now() + Duration::from_secs(2);
        self.driver.run_until(later);
        self.driver.run_until_idle();
    }

    fn held(&mut self, keys: std::ops::Range<u64>) -> Vec<u64> {
        keys.filter(|&key| match self.driver.get(name(key)) {
            Answer::Found(found) => {
                assert!(found == record(key, 0), "{key}");
                true
            }
            _ => false,
        })
        .collect()
    }

    fn close(mut self) -> Device {
        assert_eq!(self.driver.close(), Answer::Closed);
        let mut device = self.driver.into_device();
        device.crash(&CrashPolicy::KEEP_ALL);
        device
    }
}

fn look(device: &Device) -> Report {
    let bytes = device.inner().content(&StorePath::new(FILE_NAME)).expect("a store");
    let report = check(
        Medium::File,
        bytes.len() as u64,
        CheckScope { records: true, listed: None },
        &mut |offset, buffer: &mut [u8]| {
            let from = usize::try_from(offset).expect("small");
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(buffer.len())
        },
    );
    report.expect("a store")
}

fn live(report: &Report, log: LogName) -> u64 {
    report
        .segments
        .iter()
        .filter(|segment| segment.log == log)
        .map(|segment| segment.live_records)
        .sum()
}

#[test]
fn a_store_that_grows_keeps_its_records_and_uses_the_new_space() {
    for (number, turns) in (0..).zip([2, 9, 13, 17, 26, 31]) {
        let mut store = Store::open(512 * KIB, device(number));
        let keys = store.fill(0, 512 * KIB * turns / 10);
        let device = store.close();
        let before = look(&device);
        let mut store = Store::open(2048 * KIB, device);
        assert_eq!(store.counter("recovered"), live(&before, LogName::Main), "{turns}");
        assert_eq!(store.counter("size_bytes"), 2048 * KIB);
        let held = store.held(0..keys);
        assert_eq!(held.len() as u64, live(&before, LogName::Main));
        let more = store.fill(1_000_000, 6144 * KIB);
        let now = store.held(1_000_000..1_000_000 + more).len();
        assert!(now > 3 * held.len().max(60), "{now} after {}", held.len());
        let report = look(&store.close());
        assert_eq!(report.findings.kept, []);
        assert_eq!(report.superblock.origin, 512 * KIB);
    }
}

/// Returns the number of live records in the segments that the main log has written since it last
/// used its first slot. The number is 0 if these segments need more than `slots` slots. Also
/// returns how many of these records a smaller store discards soon. If the segments fill all
/// `slots` slots, these are the records of the oldest segment.
fn newest_turn(report: &Report, slots: u32) -> (u64, u64) {
    let main = report.segments.iter().filter(|segment| segment.log == LogName::Main);
    let begun =
        |slot: u32, sequence: Option<u32>| sequence.and_then(|sequence| sequence.checked_sub(slot));
    let newest = main
        .clone()
        .filter(|segment| segment.sequence.is_some())
        .max_by_key(|segment| segment.sequence);
    let newest = newest.filter(|newest| newest.slot < slots);
    let turn = newest.and_then(|newest| begun(newest.slot, newest.sequence));
    let of_turn =
        |segment: &&SegmentReport| turn.is_some() && begun(segment.slot, segment.sequence) == turn;
    let kept: Vec<_> = main.filter(of_turn).map(|segment| segment.live_records).collect();
    (kept.iter().sum(), if kept.len() == slots as usize { kept[0] } else { 0 })
}

#[test]
fn a_store_that_shrinks_keeps_what_was_written_since_it_last_began_at_its_front() {
    let mut kept = Vec::new();
    for (number, turns) in (0..).zip([3, 5, 9, 12, 14, 23, 26, 34]) {
        let mut store = Store::open(2048 * KIB, device(number));
        let keys = store.fill(0, 2048 * KIB * turns / 10);
        let device = store.close();
        let before = look(&device);
        let mut store = Store::open(1536 * KIB, device);
        let (kept_then, oldest) = newest_turn(&before, 3);
        assert_eq!(
            store.counter("recovered") - store.counter("evicted"),
            kept_then - oldest,
            "{turns}"
        );
        let back = store.held(0..keys).len() as u64;
        assert_eq!(back, kept_then - oldest, "{turns}");
        kept.push(back > 0);
        store.fill(1_000_000, 3072 * KIB);
        let device = store.close();
        let report = look(&device);
        assert_eq!(report.findings.kept, []);
        assert_eq!((report.superblock.size, report.superblock.requested), (1536 * KIB, 1536 * KIB));
    }
    assert!(kept.iter().filter(|&&kept| kept).count() >= 3, "{kept:?}");
}

#[test]
fn a_size_too_far_from_the_first_begins_the_store_anew() {
    let mut store = Store::open(512 * KIB, device(1));
    store.fill(0, 200 * KIB);
    let store = Store::open(16 << 20, store.close());
    assert_eq!((store.counter("recovered"), store.counter("size_bytes")), (0, 16 << 20));
}

/// The expected content of the store: for each key its latest version, or `None` after a removal.
type Model = HashMap<u64, Option<u64>>;

fn work(store: &mut Store, model: &mut Model, version: &mut u64, random: &mut Random) {
    for _ in 0..random.below(90) {
        let key = random.below(60);
        *version += 1;
        if random.below(6) == 0 {
            if store.driver.remove(name(key)) == Answer::Removed {
                model.insert(key, None);
            }
        } else if store.driver.put(name(key), record(key, *version), PlacementHint::default())
            == Answer::Stored
        {
            model.insert(key, Some(*version));
        }
        if random.below(15) == 0 {
            store.flush();
        }
    }
    for (&key, &version) in &*model {
        if let Answer::Found(found) = store.driver.get(name(key)) {
            assert!(
                version.is_some_and(|version| found == record(key, version)),
                "{key}: {version:?}"
            );
        }
    }
}

#[test]
fn no_old_record_comes_back_after_interrupted_changes_of_size() {
    const SIZES: [u64; 6] = [512 * KIB, 640 * KIB, 768 * KIB, 1024 * KIB, 1536 * KIB, 2048 * KIB];
    let mut resized = 0;
    for seed in 0..60 {
        let mut random = Random::new(seed);
        let (mut model, mut version) = (Model::new(), 0);
        let mut device = device(seed);
        for _ in 0..8 {
            let size = SIZES[random.below(6) as usize];
            if random.below(2) == 0 {
                let mut store = Store::begin(size, device);
                store.driver.run_until(Instant(random.below(40 * MILLISECOND)));
                device = store.driver.into_device();
                device.crash(&CrashPolicy::MIXED);
            }
            let mut store = Store::open(size, device);
            work(&mut store, &mut model, &mut version, &mut random);
            device = if random.below(2) == 0 {
                store.close()
            } else {
                let mut device = store.driver.into_device();
                device.crash(&CrashPolicy::MIXED);
                device
            };
            let report = look(&device);
            assert_eq!(
                report.findings.count(Level::Damage),
                0,
                "seed {seed}: {:?}",
                report.findings.kept
            );
            resized += u64::from(report.superblock.origin > 0);
        }
    }
    assert!(resized > 100, "{resized}");
}
