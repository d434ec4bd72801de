//! Runs a store on a folder of a real disk. The records of the store must be found after closing
//! and opening again. They must also be found in a copy of the open file, because a killed process
//! leaves such a file.

use bytes::Bytes;
use foxy_base::clock::monotonic;
use foxy_device::{DirectIo, Root, Threads};
use foxy_schemes::{SchemeName, SchemeSettings};
use foxy_store::{
    Answer, Key, Observer, PlacementHint, Record, Reply, Shard, ShardSettings, StoreSettings,
    StoreStatus,
};
use std::path::Path;
use std::sync::atomic::{
    AtomicBool, AtomicU8,
    Ordering::{Relaxed, SeqCst},
};
use std::sync::mpsc::channel;
use std::time::Duration;

const COUNT: u8 = 100;

fn start(folder: &Path) -> Shard {
    start_with(folder, SchemeName::StreamPacketizer, DirectIo::WhenAligned)
}

fn start_with(folder: &Path, scheme: SchemeName, direct: DirectIo) -> Shard {
    let flush_after = Duration::from_millis(1);
    let settings = SchemeSettings::from(StoreSettings {
        seed: 5,
        flush_after,
        ..StoreSettings::with_size(4 << 20)
    });
    let observer = Observer::default();
    let scheme = scheme.make(&settings, observer.clone());
    let root = Root::open(folder).expect("a folder of our own");
    let device = Threads::new(&root, 2, direct).expect("two threads");
    let shard = Shard::start(scheme, device, observer.clone(), ShardSettings::new(monotonic))
        .expect("a thread");
    while observer.status.get() != StoreStatus::Serving {
        std::thread::yield_now();
    }
    shard
}

fn answer(ask: impl FnOnce(Reply)) -> Answer {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| drop(sender.send(answer))));
    receiver.recv().expect("every request is answered")
}

fn record(number: u8) -> Record {
    let body = vec![number; usize::from(number) * 150];
    Record { head: Bytes::from(vec![number; 9]), body: Bytes::from(body) }
}

fn found(shard: &Shard) -> usize {
    let store = shard.handle();
    let hits =
        (0..COUNT).filter(|&number| match answer(|reply| store.get(Key([number; 16]), reply)) {
            Answer::Found(found) => {
                assert_eq!(found, record(number));
                true
            }
            Answer::Absent(_) => false,
            other => panic!("{other:?}"),
        });
    hits.count()
}

fn fill(shard: &Shard) {
    let store = shard.handle();
    for number in 0..COUNT {
        let hint = PlacementHint::default();
        let put = answer(|reply| store.put(Key([number; 16]), record(number), hint, reply));
        assert_eq!(put, Answer::Stored);
    }
}

#[test]
fn records_survive_closing_and_being_left_behind() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let copy = tempfile::tempdir().expect("another");
    let shard = start(folder.path());
    fill(&shard);
    assert_eq!(found(&shard), usize::from(COUNT));
    drop(shard);

    let shard = start(folder.path());
    assert_eq!(found(&shard), usize::from(COUNT), "after closing");
    for entry in std::fs::read_dir(folder.path()).expect("the folder") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("files have names");
        std::fs::copy(&path, copy.path().join(name)).expect("room for a copy");
    }
    drop(shard);

    let shard = start(copy.path());
    assert_eq!(found(&shard), usize::from(COUNT), "without closing");
    let recovered = shard.handle().observer().statistics.recovered.get();
    assert_eq!(recovered, u64::from(COUNT));
}

#[test]
fn threads_that_read_beside_the_stores_own_never_see_replaced_records() {
    const KEYS: u8 = 4;
    const VERSIONS: u8 = 60;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shard = start_with(folder.path(), SchemeName::Webcosm, DirectIo::Off);
    let store = shard.handle();
    let newest = [(); KEYS as usize].map(|()| AtomicU8::new(0));
    let is_over = AtomicBool::new(false);
    let read = || {
        let mut found = 0;
        while !is_over.load(Relaxed) {
            for key in 0..KEYS {
                let least = newest[usize::from(key)].load(SeqCst);
                if let Answer::Found(record) = answer(|reply| store.get(Key([key; 16]), reply)) {
                    let version = record.head[0];
                    assert!(
                        version >= least,
                        "key {key}: version {version} after {least} was stored"
                    );
                    assert_eq!(record, self::record(version));
                    found += 1;
                }
            }
        }
        found
    };
    let found: u64 = std::thread::scope(|scope| {
        let readers = [(); 3].map(|()| scope.spawn(read));
        for version in 1..=VERSIONS {
            for key in 0..KEYS {
                let hint = PlacementHint::default();
                let put = answer(|reply| store.put(Key([key; 16]), record(version), hint, reply));
                assert_eq!(put, Answer::Stored);
                newest[usize::from(key)].store(version, SeqCst);
            }
            std::thread::sleep(Duration::from_millis(3));
        }
        is_over.store(true, Relaxed);
        readers.map(|reader| reader.join().expect("nothing older")).iter().sum()
    });
    assert_eq!(store.observer().statistics.hits.get(), found);
}
