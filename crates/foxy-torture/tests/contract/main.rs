//! The contract suite: tests the contract of stores (`foxy_store::contract`) with every storage
//! scheme on every device. A new scheme or device needs one row in a table. The torture tests cover
//! crashes and faults.

mod place;
mod policies;
mod store;

use foxy_base::Random;
use foxy_schemes::{PreferredDevice, SCHEMES, SchemeName, SchemeSettings};
use foxy_store::settings::RECORD_BODY_LIMIT;
use foxy_store::{AbsentReason, Answer, Newcomers, RefusedReason, StoreSettings, WriteBudget};
use foxy_torture::content::RecordName;
use foxy_torture::model::Asked;
use place::{KINDS, Kind, Place};
use store::Store;

const MEBIBYTE: u64 = 1 << 20;

/// Runs a test for every storage scheme that stores records, on every device. The helper device is
/// slow, so only schemes that prefer it run on it.
fn everywhere(settings: &SchemeSettings, test: impl Fn(&mut Store)) {
    for row in SCHEMES.iter().filter(|row| !row.stores_nothing()) {
        let helped = row.device == PreferredDevice::Helper;
        for kind in KINDS.into_iter().filter(|&kind| kind != Kind::Helper || helped) {
            for settings in variants(row.name, settings) {
                let place = Place::new(kind);
                if let Some(mut store) = Store::open(&place, row.name, settings) {
                    test(&mut store);
                    store.finish();
                }
            }
        }
    }
}

/// Returns the settings with which a storage scheme is tested: `settings` themselves, and
/// `settings` with each optional feature of the scheme. These are prefetching and keeping new
/// records in memory.
fn variants(scheme: SchemeName, settings: &SchemeSettings) -> Vec<SchemeSettings> {
    let mut variants = vec![settings.clone()];
    if scheme.row().gathers_by_site() {
        variants.push(SchemeSettings { prefetch: 32 << 10, ..settings.clone() });
    }
    if scheme == SchemeName::Webcosm {
        let budget = WriteBudget { bytes_a_day: 0, memory: 1 << 20, newcomers: Newcomers::All };
        variants.push(SchemeSettings {
            store: StoreSettings { write_budget: Some(budget), ..settings.clone().store },
            ..settings.clone()
        });
    }
    variants
}

fn small() -> SchemeSettings {
    SchemeSettings::from(StoreSettings {
        page_buffer: 32 << 10,
        ..StoreSettings::with_size(2 * MEBIBYTE)
    })
}

/// Puts records of mixed sizes, `bytes` in total and several at a time. Meanwhile gets old and new
/// records. Returns the keys in the order of the puts.
fn fill(store: &mut Store, bytes: u64, seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed);
    let (mut keys, mut written) = (Vec::new(), 0);
    while written < bytes {
        for _ in 0..6 {
            let key = u32::try_from(keys.len()).expect("few keys");
            let size =
                [200, 3000, 12_000, 60_000][usize::try_from(random.below(4)).expect("small")];
            let size = u32::try_from(random.below(size)).expect("small");
            let ticket = store.ask(Asked::Put(RecordName { key, version: 1, size }));
            keys.push(key);
            written += u64::from(size);
            store.ask(Asked::Get(u32::try_from(random.below(keys.len() as u64)).expect("small")));
            if store.ready(ticket).is_some_and(|answer| *answer != Answer::Stored) {
                panic!("seed {seed}: put of {size} bytes was not stored");
            }
        }
        store.settle();
    }
    keys
}

#[test]
fn three_wraps_are_exact_to_the_byte_and_the_newest_records_are_hits() {
    everywhere(&small(), |store| {
        let size = store.settings.store.size;
        let keys = fill(store, 3 * size + size / 2, 11);
        let newest = &keys[keys.len() - 20..];
        let hits = newest.iter().filter(|&&key| store.has(key)).count();
        assert_eq!(hits, newest.len(), "the newest records are there");
        let first = keys[..100].iter().filter(|&&key| store.has(key)).count();
        assert!(first < 100, "not all of the first can be, the store was filled three times");
        assert!(store.observer.statistics.evicted.get() > 0);
    });
}

#[test]
fn a_replaced_record_is_gone_at_once_and_after_reopening() {
    everywhere(&small(), |store| {
        for version in 1..=20 {
            assert_eq!(store.put(3, version, version * 500), Answer::Stored);
            assert!(store.has(3), "version {version}");
        }
        store.reopen();
        assert!(store.has(3), "the last version survives, the model knows which that is");
    });
}

#[test]
fn a_removed_record_is_gone_at_once_and_after_reopening() {
    everywhere(&small(), |store| {
        for key in 0..4 {
            assert_eq!(store.put(key, 1, 5000), Answer::Stored);
        }
        assert_eq!(store.answer(Asked::Remove(1)), Answer::Removed);
        assert_eq!(store.answer(Asked::Remove(77)), Answer::Removed, "of a key that never was");
        assert_eq!(store.answer(Asked::Get(1)), Answer::Absent(AbsentReason::NotIndexed));
        store.reopen();
        assert_eq!([0, 1, 2, 3].map(|key| store.has(key)), [true, false, true, true]);
        assert_eq!(store.put(1, 2, 100), Answer::Stored);
        assert!(store.has(1), "a removed key can be stored again");
    });
}

#[test]
fn records_of_every_shape_survive_reopening_twice() {
    everywhere(&small(), |store| {
        let sizes = [0, 1, 447, 448, 449, 4032, 4096, 5000, 65_536, 200_000];
        for (key, &size) in (0..).zip(&sizes) {
            assert_eq!(store.put(key, 1, size), Answer::Stored, "{size} bytes");
        }
        for _ in 0..2 {
            store.reopen();
            for (key, &size) in (0..).zip(&sizes) {
                assert!(store.has(key), "{size} bytes");
            }
        }
        assert_eq!(store.observer.statistics.recovered.get(), sizes.len() as u64);
    });
}

#[test]
fn records_that_are_too_large_are_refused_and_leave_the_old_one() {
    let settings = SchemeSettings::from(StoreSettings {
        object_limit: 40_000,
        ..StoreSettings::with_size(8 * MEBIBYTE)
    });
    everywhere(&settings, |store| {
        assert_eq!(
            store.put(1, 1, 39_900),
            Answer::Stored,
            "head and body are below the threshold (LRU-TH)"
        );
        assert_eq!(store.put(1, 2, 40_001), Answer::Refused(RefusedReason::TooLarge));
        let beyond = u32::try_from(RECORD_BODY_LIMIT).expect("small") + 1;
        assert_eq!(store.put(1, 3, beyond), Answer::Refused(RefusedReason::TooLarge));
        assert!(store.has(1));
    });
}

#[test]
fn more_than_may_wait_is_refused_as_busy_and_everything_is_answered() {
    let settings = SchemeSettings {
        store: StoreSettings { waiting_bytes: 128 << 10, waiting_reads: 4, ..small().store },
        ..small()
    };
    everywhere(&settings, |store| {
        let puts: Vec<_> = (0..64)
            .map(|key| store.ask(Asked::Put(RecordName { key, version: 1, size: 20_000 })))
            .collect();
        store.settle();
        let answers: Vec<_> = puts.into_iter().map(|ticket| store.take(ticket)).collect();
        let busy = answers.iter().filter(|a| **a == Answer::Refused(RefusedReason::Busy)).count();
        let stored = answers.iter().filter(|a| **a == Answer::Stored).count();
        assert!(stored > 0 && busy > 0 && stored + busy == 64, "{stored} stored, {busy} busy");
        for key in 100..120 {
            assert_eq!(store.put(key, 1, 20_000), Answer::Stored, "not busy any more");
        }
        let gets: Vec<_> = (100..120).map(|key| store.ask(Asked::Get(key))).collect();
        store.settle();
        for ticket in gets {
            let answer = store.take(ticket);
            let expected = matches!(answer, Answer::Found(_) | Answer::Absent(AbsentReason::Busy));
            assert!(expected, "{answer:?}");
        }
    });
}

#[test]
fn what_lives_stays_below_the_high_watermark() {
    let settings = SchemeSettings { high_watermark: 60, low_watermark: 50, ..small() };
    everywhere(&settings, |store| {
        for key in 0..400 {
            assert_eq!(store.put(key, 1, 9000), Answer::Stored);
            let statistics = &store.observer.statistics;
            let (live, capacity) = (statistics.live_bytes.get(), statistics.capacity_bytes.get());
            assert!(live * 100 <= capacity * 61, "{live} of {capacity} after key {key}");
        }
        let statistics = &store.observer.statistics;
        assert!(
            statistics.live_bytes.get() * 100 > statistics.capacity_bytes.get() * 45,
            "and is not emptied"
        );
    });
}

#[test]
fn records_in_use_outlive_those_that_are_not() {
    everywhere(&small(), |store| {
        for key in 0..1000 {
            assert_eq!(store.put(key, 1, 3000), Answer::Stored);
            if key % 4 == 0 && key < 400 {
                assert!(store.has(0), "it is used all the time; key {key}");
            }
        }
        assert!(!store.has(1), "it was never used");
    });
}

#[test]
fn a_closed_store_answers_with_that_reason() {
    everywhere(&small(), |store| {
        assert_eq!(store.put(1, 1, 100), Answer::Stored);
        let close = store.ask(Asked::Close);
        let late = [
            Asked::Get(1),
            Asked::Remove(1),
            Asked::Put(RecordName { key: 1, version: 2, size: 1 }),
        ];
        let tickets = late.map(|asked| store.ask(asked));
        store.settle();
        assert_eq!(store.take(close), Answer::Closed);
        let [get, remove, put] = tickets.map(|ticket| store.take(ticket));
        assert_eq!(get, Answer::Absent(AbsentReason::Closed));
        assert_eq!(remove, Answer::Refused(RefusedReason::Closed));
        assert_eq!(put, Answer::Refused(RefusedReason::Closed));
        store.begin_again();
    });
}

#[test]
fn null_stores_nothing_anywhere() {
    for kind in KINDS.into_iter().chain([Kind::Null]) {
        let place = Place::new(kind);
        let Some(mut store) = Store::open(&place, SchemeName::Null, small()) else { continue };
        assert_eq!(store.put(1, 1, 100), Answer::Refused(RefusedReason::StoresNothing));
        assert_eq!(store.answer(Asked::Get(1)), Answer::Absent(AbsentReason::NotIndexed));
        assert_eq!(store.answer(Asked::Remove(1)), Answer::Removed);
        store.finish();
    }
}
