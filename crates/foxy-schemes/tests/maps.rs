//! Tests the map of each scheme that has a layout. It must agree with the store's statistics, after
//! random puts, removals and evictions, and after a restart. A failing test prints its seed.

use foxy_base::Random;
use foxy_base::clock::monotonic;
use foxy_device::{DirectIo, Memory, Root, Threads};
use foxy_schemes::{SCHEMES, SchemeName, SchemeRow, SchemeSettings};
use foxy_store::map::{LayoutView, RecordScan, Survey};
use foxy_store::testing::{Store, content, name};
use foxy_store::{
    Answer, Ask, Observer, PlacementHint, Scheme, Shard, ShardSettings, StoreSettings, StoreStatus,
};
use std::collections::BTreeSet;
use std::sync::mpsc::channel;
use std::time::Duration;

const SIZE: u64 = 2 << 20;
const SEEDS: u64 = 6;
const STEPS: u64 = 1000;

fn settings(seed: u64) -> SchemeSettings {
    SchemeSettings {
        buddy_threshold: 24,
        ..StoreSettings { seed, ..StoreSettings::with_size(SIZE) }.into()
    }
}

fn open(row: &SchemeRow, seed: u64, device: Memory) -> Store {
    Store::open(|observer| row.name.make(&settings(seed), observer), device)
}

/// Passes the view of the layout to `look`.
fn look<T>(scheme: &dyn Scheme, look: impl FnOnce(&dyn LayoutView) -> T) -> T {
    let lookup = scheme.lookup();
    let shared = lookup.as_ref().and_then(|lookup| lookup.layout());
    look(shared.or_else(|| scheme.layout()).expect("the scheme has a layout"))
}

fn survey(scheme: &dyn Scheme) -> Survey {
    look(scheme, |layout| {
        let mut survey = layout.begin_survey();
        while layout.continue_survey(&mut survey) {}
        while survey.finish_some() {}
        survey
    })
}

/// Requests random puts, gets and removals. Many puts need the space of older records.
fn use_randomly(store: &mut Store, seed: u64) {
    let mut random = Random::new(seed);
    for step in 0..STEPS {
        let key = random.below(500);
        let most = [800, 6000, 40_000][random.below(3) as usize];
        let length = 1 + random.below(most);
        match random.below(8) {
            0 => assert_eq!(store.driver.remove(name(key)), Answer::Removed),
            // Some schemes answer a get only when several gets wait.
            1 | 2 => drop(store.driver.ask(Ask::Get(name(key)))),
            _ => drop(store.put(key, step, length as usize)),
        }
        if random.chance(0.1) {
            let later = store.driver.now() + Duration::from_millis(1 + random.below(2000));
            store.driver.run_until(later);
        }
    }
}

/// Compares the map with the store's statistics, and the map's segments with scans of the records
/// in them.
fn compare(store: &Store, row: &SchemeRow, seed: u64) {
    let place = format!("scheme {}, seed {seed}", row.text);
    let survey = survey(store.driver.scheme());
    let (live, apart) = (survey.live(), survey.apart);
    let statistics = &store.observer.statistics;
    assert_eq!(live.records + apart.records, statistics.records.get(), "{place}");
    // The statistics of webcosm count the bytes of whole segments. A test of webcosm compares them.
    if row.name != SchemeName::Webcosm {
        assert_eq!(live.bytes + apart.bytes, statistics.live_bytes.get(), "{place}");
    }
    for segment in &survey.segments {
        let mut scan = RecordScan::new(Some(segment.part()), usize::MAX, 0);
        look(store.driver.scheme(), |layout| while layout.continue_scan(&mut scan) {});
        assert_eq!(scan.found.len(), segment.live_records as usize, "{place}: {segment:?}");
        assert!(segment.live_bytes <= segment.bytes, "{place}: {segment:?}");
    }
}

#[test]
fn the_map_agrees_with_the_account_of_each_scheme() {
    for row in SCHEMES.iter().filter(|row| row.has_layout()) {
        for seed in 0..SEEDS {
            let mut store = open(row, seed, Memory::default());
            use_randomly(&mut store, seed);
            // The statistics of webcosm also count records that its index does not contain yet.
            if row.name != SchemeName::Webcosm {
                compare(&store, row, seed);
            }
            store.flush();
            compare(&store, row, seed);
            let evicted = store.observer.statistics.evicted.get();
            assert!(evicted > 0 || row.name == SchemeName::Webcosm, "{}, seed {seed}", row.text);
            let before = survey(store.driver.scheme()).live();
            let store = open(row, seed, store.close());
            compare(&store, row, seed);
            let after = survey(store.driver.scheme()).live();
            // At a start, webcosm may discard old segments, because it keeps some clean.
            let is_same = after == before || row.name == SchemeName::Webcosm && after.records > 0;
            assert!(is_same, "{}, seed {seed}: {before:?} {after:?}", row.text);
        }
    }
}

#[test]
fn only_a_scheme_with_a_file_for_each_record_has_no_layout() {
    for row in SCHEMES {
        let scheme = row.name.make(&settings(0), Default::default());
        let has_lookup = scheme.lookup().is_some_and(|lookup| lookup.layout().is_some());
        assert_eq!(scheme.layout().is_some() || has_lookup, row.has_layout(), "{}", row.text);
        let stores_apart = row.grows() || row.stores_nothing();
        assert_eq!(row.has_layout(), !stores_apart, "{}", row.text);
    }
}

#[test]
fn other_threads_find_and_read_the_records_of_a_running_store() {
    for row in SCHEMES.iter().filter(|row| row.has_layout()) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let root = Root::open(folder.path()).expect("a folder of our own");
        let device = Threads::new(&root, 2, DirectIo::Off).expect("two threads");
        let observer = Observer::default();
        let scheme = row.name.make(&settings(1), observer.clone());
        let shard = Shard::start(scheme, device, observer.clone(), ShardSettings::new(monotonic))
            .expect("a thread");
        while observer.status.get() != StoreStatus::Serving {
            std::thread::yield_now();
        }
        let (store, (sender, receiver)) = (shard.handle(), channel());
        assert!(store.has_layout(), "{}", row.text);
        let length = |key: u64| 300 + 300 * key as usize;
        for key in 0..20 {
            let (record, sender) = (content(key, 0, length(key)), sender.clone());
            let reply = move |answer| drop(sender.send(answer));
            store.put(name(key), record, PlacementHint::default(), Box::new(reply));
            assert_eq!(receiver.recv(), Ok(Answer::Stored), "{}", row.text);
        }
        let mut keys = BTreeSet::new();
        while keys.len() < 20 {
            let (sender, receiver) = channel();
            store.visit_layout(Box::new(move |layout| {
                let mut scan = RecordScan::new(None, usize::MAX, 0);
                while layout.continue_scan(&mut scan) {}
                drop(sender.send(scan.found));
            }));
            store.read_placed(&receiver.recv().expect("a visit"), |_, key, record| {
                let number = u64::from_le_bytes(key.0[8..].try_into().expect("eight bytes"));
                assert_eq!(record, content(number, 0, length(number)), "{}", row.text);
                keys.insert(number);
                true
            });
        }
        store.close(Box::new(|_| {}));
    }
}
