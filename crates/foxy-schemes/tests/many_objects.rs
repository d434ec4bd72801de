//! Puts many objects with sizes like on the web into a store that has space for a tenth of their
//! bytes. Every hit must match byte for byte. Memory and disk must stay within their limits, and
//! the counters must be consistent. Release builds use all 200,000 objects, debug builds a tenth of
//! them.

use bytes::Bytes;
use foxy_base::{Instant, Random};
use foxy_device::Memory;
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::{Answer, Ask, Key, Observer, PlacementHint, Record, StepDriver, StoreSettings};
use std::time::Duration;

const OBJECTS: u64 = if cfg!(debug_assertions) { 20_000 } else { 200_000 };

/// Returns the size of an object in bytes. Sizes are lognormal with median 4 KiB, times 20 for 2 %
/// of the objects, and at most 512 KiB.
fn size_of(object: u64) -> usize {
    let mut random = Random::new(object ^ 0x5eed);
    let normal: f64 = (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
    let tail = if random.chance(0.02) { 20.0 } else { 1.0 };
    let size = (4096.0 * (normal * 1.2).exp() * tail).min(524_288.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and 512 Ki"
    )]
    let size = size as usize;
    size
}

fn key_of(object: u64) -> Key {
    let mut random = Random::new(object);
    let mut key = [0; 16];
    random.fill(&mut key);
    Key(key)
}

/// Computes the content of an object from its number and version.
fn content_of(object: u64, version: u64) -> Record {
    let mut body = vec![0; size_of(object)];
    Random::new(object << 8 | version).fill(&mut body);
    let head = format!("object {object} version {version}");
    Record { head: Bytes::from(head), body: Bytes::from(body) }
}

fn value(observer: &Observer, name: &str) -> u64 {
    let all = observer.statistics.snapshot();
    all.iter().find(|measure| measure.name == name).expect("a value of that name").value
}

fn settings(size: u64) -> SchemeSettings {
    StoreSettings { seed: 1, ..StoreSettings::with_size(size) }.into()
}

#[test]
fn many_objects_keep_their_bytes_within_bounds_and_counters_add_up() {
    let total: u64 = (0..OBJECTS).map(|object| size_of(object) as u64).sum();
    let size = total / 10 / 4096 * 4096;
    let settings = settings(size);
    let observer = Observer::default();
    let start = |device, observer: &Observer| {
        let scheme = SchemeName::StreamPacketizer.make(&settings, observer.clone());
        let mut driver = StepDriver::start(scheme, device, observer.clone(), Instant::ZERO);
        driver.run_until_idle();
        driver
    };
    let mut store = start(Memory::default(), &observer);
    let mut random = Random::new(2);
    let mut versions = vec![0u64; usize::try_from(OBJECTS).expect("small")];
    let (mut gets, mut puts, mut removes, mut hits) = (0, 0, 0, 0);
    for object in 0..OBJECTS {
        versions[usize::try_from(object).expect("small")] = 1;
        puts += 1;
        let put = store.put(key_of(object), content_of(object, 1), PlacementHint::default());
        assert_eq!(put, Answer::Stored, "object {object}");
        let recent = object - random.below(object.min(3000) + 1);
        let place = usize::try_from(recent).expect("small");
        match random.below(40) {
            0 => {
                removes += 1;
                assert_eq!(store.remove(key_of(recent)), Answer::Removed);
                versions[place] = 0;
            }
            1 => {
                puts += 1;
                let version = versions[place] % 200 + 1;
                let record = content_of(recent, version);
                let put = store.put(key_of(recent), record, PlacementHint::default());
                assert_eq!(put, Answer::Stored);
                versions[place] = version;
            }
            2..20 => {
                gets += 1;
                if let Answer::Found(record) = store.answer_to(Ask::Get(key_of(recent))) {
                    hits += 1;
                    let expected = content_of(recent, versions[place]);
                    assert_eq!(record, expected, "seed 2, object {recent}");
                }
            }
            _ => {}
        }
        if object % 1000 == 0 {
            store.run_until(store.now() + Duration::from_secs(3));
            assert_eq!(store.device().bytes(), size);
            assert!(value(&observer, "records") <= u64::from(settings.store.record_limit));
            let bound = 200 * u64::from(settings.store.record_limit) + size / 4096;
            let taken = value(&observer, "index_bytes");
            assert!(taken <= bound, "{taken} B");
        }
    }
    assert!(observer.statistics.adds_up());
    let counted = ["gets", "puts", "removes", "hits"].map(|name| value(&observer, name));
    assert_eq!(counted, [gets, puts, removes, hits]);
    assert!(hits * 2 > gets, "{hits} of {gets}");

    let mut device = store.into_device();
    device.close_all();
    let observer = Observer::default();
    let mut store = start(device, &observer);
    let (recovered, mut found) = (value(&observer, "recovered"), 0);
    for (object, &version) in (0..OBJECTS).zip(&versions) {
        if let Answer::Found(record) = store.get(key_of(object)) {
            assert_eq!(record, content_of(object, version), "object {object} after reopening");
            found += 1;
        }
    }
    assert!(found * 100 >= recovered * 99 && found > OBJECTS / 20, "{found} of {recovered}");
}
