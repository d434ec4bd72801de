//! Tests gets on a thread that has its own io_uring. The thread reads records from the disk itself.
//! If the disk fails, the gets are misses with a reason.

use foxy_base::clock;
use foxy_device::{DeviceKind, DeviceSettings, Root, open_device};
use foxy_store::webcosm::{FILE_NAME, Webcosm};
use foxy_store::{
    AbsentReason, Answer, Key, Observer, PlacementHint, Record, Reply, Shard, ShardSettings,
    StoreSettings, StoreStatus, ThreadRing,
};
use std::fs::OpenOptions;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::task::Waker;
use std::time::Duration;

const RECORDS: u64 = 60;

fn key(number: u64) -> Key {
    Key::of(&number.to_le_bytes())
}

fn record(number: u64) -> Record {
    let body = vec![number as u8; 5000 + number as usize];
    Record { head: "head".into(), body: body.into() }
}

/// Opens the store in `folder`. Returns `None` where io_uring is not available.
fn open(folder: &Path) -> Option<(Shard, Root)> {
    let root = Root::open(folder).expect("a folder");
    let (device, kind) = open_device(&root, DeviceSettings::default()).expect("a device");
    let observer = Observer::default();
    let scheme = Webcosm::boxed(&StoreSettings::with_size(64 << 20), observer.clone());
    let settings = ShardSettings::new(clock::monotonic);
    let shard = Shard::start(scheme, device, observer.clone(), settings).expect("a thread");
    while observer.status.get() != StoreStatus::Serving {
        std::thread::yield_now();
    }
    (kind == DeviceKind::Uring).then_some((shard, root))
}

fn wait_for(ask: impl FnOnce(Reply)) -> Receiver<Answer> {
    let (sender, receiver) = channel();
    ask(Box::new(move |answer| drop(sender.send(answer))));
    receiver
}

/// Fills a store, closes it, and opens it again. Its file is then not in the page cache, except on
/// file systems in memory.
fn reopened(folder: &Path) -> Option<(Shard, Root)> {
    let (shard, root) = open(folder)?;
    let store = shard.handle();
    for number in 0..RECORDS {
        let put = |reply| store.put(key(number), record(number), PlacementHint::default(), reply);
        assert_eq!(wait_for(put).recv(), Ok(Answer::Stored));
    }
    drop((shard, root));
    let opened = open(folder)?;
    let store = opened.0.handle();
    // The first get of a store always goes to its thread, which begins to write use counters.
    while wait_for(|reply| store.get(key(0), reply)).recv() != Ok(Answer::Found(record(0))) {}
    let file = OpenOptions::new().write(true).open(folder.join(FILE_NAME)).expect("the file");
    file.sync_all().expect("synced");
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advised");
    Some(opened)
}

/// Gets all records at once on this thread.
fn get_all(shard: &Shard) -> Vec<Answer> {
    let ring = ThreadRing::open().expect("io_uring");
    let store = shard.handle();
    let get = |number| wait_for(|reply| store.get(key(number), reply));
    let waiting: Vec<_> = (0..RECORDS).map(get).collect();
    let mut answers = Vec::new();
    for receiver in waiting {
        answers.push(loop {
            ring.turn(Waker::noop());
            match receiver.try_recv() {
                Ok(answer) => break answer,
                Err(_) => std::thread::yield_now(),
            }
        });
    }
    // The store's thread replies before it notes the end of the operation.
    let is_done = |_| {
        std::thread::sleep(Duration::from_millis(10));
        store.observer().owed.since().is_none()
    };
    assert!((0..1000).any(is_done), "an operation did not end");
    answers
}

#[test]
fn a_thread_with_a_ring_reads_small_records_itself() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((shard, _root)) = reopened(folder.path()) else { return };
    let statistics = shard.handle().observer().statistics.clone();
    let read_here = || statistics.read_by_caller.get() + statistics.read_at_once.get();
    let round_reads_all_here = |_| {
        let before = read_here();
        for (answer, number) in get_all(&shard).into_iter().zip(0..) {
            assert_eq!(answer, Answer::Found(record(number)), "record {number}");
        }
        read_here() - before == RECORDS
    };
    // If the store's thread uses the index at the moment of a get, it reads the record itself.
    assert!((0..20).any(round_reads_all_here), "the store's thread reads records in each round");
    assert!(statistics.adds_up());
}

#[test]
fn a_disk_that_fails_reads_costs_misses_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((shard, _root)) = reopened(folder.path()) else { return };
    let file = OpenOptions::new().write(true).open(folder.path().join(FILE_NAME));
    file.and_then(|file| file.set_len(0)).expect("truncated");
    for answer in get_all(&shard) {
        let failed = matches!(answer, Answer::Absent(AbsentReason::DeviceFailed(_)));
        assert!(failed, "{answer:?}");
    }
    let statistics = shard.handle().observer().statistics.clone();
    assert_eq!((statistics.read_by_caller.get(), statistics.misses_device.get()), (0, RECORDS));
}
