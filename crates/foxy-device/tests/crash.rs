//! Tests the state of a volatile device in memory after a simulated crash. Synced bytes and names
//! always survive. A crash policy decides which other changes survive.

use foxy_base::{Instant, Random};
use foxy_device::{
    CrashPolicy, Device, FileId, IoBuffer, IoError, IoId, IoOp, IoOutput, Memory, StorePath,
};

const SECTOR: usize = 512;
const FILE: FileId = FileId(0);

fn run(device: &mut Memory, op: IoOp) -> Result<IoOutput, IoError> {
    device.submit(IoId(0), op, Instant::ZERO);
    let mut done = Vec::new();
    device.reap(Instant::ZERO, &mut done);
    done.pop().expect("memory finishes at once").result
}

fn path(name: &str) -> StorePath {
    StorePath::new(name)
}

fn create(device: &mut Memory, name: &str) {
    run(device, IoOp::Create { file: FILE, path: path(name), size: 0 }).expect("created");
}

fn write(device: &mut Memory, offset: u64, bytes: &[u8]) {
    run(device, IoOp::Write { file: FILE, offset, buffer: IoBuffer::copy_of(bytes) })
        .expect("written");
}

fn sync(device: &mut Memory) {
    run(device, IoOp::Sync { file: FILE }).expect("synced");
}

fn remove(device: &mut Memory, name: &str) {
    run(device, IoOp::Remove { path: path(name) }).expect("removed");
}

fn synced(name: &str, bytes: &[u8]) -> Memory {
    let mut device = Memory::volatile();
    create(&mut device, name);
    write(&mut device, 0, bytes);
    sync(&mut device);
    device
}

fn after(device: &Memory, policy: CrashPolicy, seed: u64, name: &str) -> Option<Vec<u8>> {
    let mut device = device.fork();
    device.crash(&policy, &mut Random::new(seed));
    device.content(&path(name))
}

/// A crash policy with which each change survives with probability one half.
const EVEN: CrashPolicy = CrashPolicy { keep_write: 0.5, tear_write: 0.0, keep_name: 0.5 };

/// Simulates 64 crashes of copies of `device`. Returns the different contents of file `name` after
/// the crashes, sorted.
fn outcomes(device: &Memory, policy: CrashPolicy, name: &str) -> Vec<Option<Vec<u8>>> {
    let mut seen: Vec<_> = (0..64).map(|seed| after(device, policy, seed, name)).collect();
    seen.sort();
    seen.dedup();
    seen
}

#[test]
fn synced_bytes_survive_every_crash() {
    let device = synced("a", b"kept");
    assert_eq!(outcomes(&device, CrashPolicy::MIXED, "a"), [Some(b"kept".to_vec())]);
    assert_eq!(outcomes(&device, CrashPolicy::LOSE_ALL, "a"), [Some(b"kept".to_vec())]);
}

#[test]
fn a_later_write_may_survive_an_earlier_one() {
    let mut device = synced("a", b"..");
    write(&mut device, 0, b"x");
    write(&mut device, 1, b"y");
    let expected = ["..", ".y", "x.", "xy"].map(|text| Some(text.as_bytes().to_vec()));
    assert_eq!(outcomes(&device, EVEN, "a"), expected);
    assert_eq!(after(&device, CrashPolicy::KEEP_ALL, 0, "a"), expected[3]);
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "a"), expected[0]);
}

#[test]
fn a_torn_write_is_torn_at_sectors() {
    let mut device = synced("a", &[1; 4 * SECTOR]);
    write(&mut device, 100, &[2; 3 * SECTOR]);
    let torn = CrashPolicy { keep_write: 0.0, tear_write: 1.0, keep_name: 1.0 };
    let seen = outcomes(&device, torn, "a");
    assert_eq!(seen.len(), 16, "each of four sectors is old or new");
    for content in seen.into_iter().flatten() {
        let new: Vec<bool> = (0..4).map(|sector| content[sector * SECTOR + 300] == 2).collect();
        for (at, &byte) in content.iter().enumerate() {
            let written = (100..100 + 3 * SECTOR).contains(&at);
            // The write covers byte 300 in each of the first three sectors, but not in the last
            // sector.
            let sector_is_new =
                if at / SECTOR < 3 { new[at / SECTOR] } else { content[3 * SECTOR] == 2 };
            assert_eq!(byte, if written && sector_is_new { 2 } else { 1 }, "at {at}");
        }
    }
}

#[test]
fn a_new_name_is_durable_only_after_a_sync() {
    let mut device = Memory::volatile();
    create(&mut device, "a");
    assert_eq!(outcomes(&device, EVEN, "a"), [None, Some(Vec::new())]);
    assert_eq!(outcomes(&device, CrashPolicy::LOSE_ALL, "a"), [None]);
    sync(&mut device);
    assert_eq!(outcomes(&device, EVEN, "a"), [Some(Vec::new())]);
}

#[test]
fn a_removed_name_may_return_with_its_durable_content() {
    let mut device = synced("a", b"old");
    write(&mut device, 0, b"new");
    remove(&mut device, "a");
    assert_eq!(device.content(&path("a")), None);
    assert_eq!(outcomes(&device, CrashPolicy::LOSE_ALL, "a"), [Some(b"old".to_vec())]);
    assert_eq!(outcomes(&device, CrashPolicy::KEEP_ALL, "a"), [None]);
}

#[test]
fn a_recreated_name_may_lead_to_the_old_file_until_its_sync() {
    let mut device = synced("a", b"old");
    remove(&mut device, "a");
    create(&mut device, "a");
    write(&mut device, 0, b"new");
    assert_eq!(outcomes(&device, CrashPolicy::LOSE_ALL, "a"), [Some(b"old".to_vec())]);
    sync(&mut device);
    assert_eq!(outcomes(&device, CrashPolicy::MIXED, "a"), [Some(b"new".to_vec())]);
}

#[test]
fn names_removed_long_ago_stay_away() {
    let mut device = Memory::volatile();
    for number in 0..100 {
        create(&mut device, &format!("f{number}"));
        sync(&mut device);
        remove(&mut device, &format!("f{number}"));
    }
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "f0"), None);
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "f99"), Some(Vec::new()));
}

#[test]
fn after_a_crash_nothing_is_open_and_the_device_works() {
    let mut device = synced("a", b"kept");
    device.submit(IoId(1), IoOp::Sync { file: FILE }, Instant::ZERO);
    device.crash(&CrashPolicy::MIXED, &mut Random::new(1));
    assert_eq!(device.in_flight(), 0);
    assert!(matches!(run(&mut device, IoOp::Sync { file: FILE }), Err(IoError::NotOpen)));
    let opened = run(&mut device, IoOp::Open { file: FILE, path: path("a") });
    assert!(matches!(opened, Ok(IoOutput::Opened { size: 4 })), "{opened:?}");
    remove(&mut device, "a");
    create(&mut device, "a");
    assert_eq!(device.bytes(), 0);
}

#[test]
fn a_device_that_is_not_volatile_loses_nothing() {
    let mut device = Memory::default();
    create(&mut device, "a");
    write(&mut device, 0, b"kept");
    create(&mut device, "b");
    remove(&mut device, "b");
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "a"), Some(b"kept".to_vec()));
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "b"), None);
}

#[test]
fn rot_survives_a_crash() {
    let mut device = synced("a", b"abc");
    assert!(device.rot(&path("a"), 1, 1));
    assert!(!device.rot(&path("a"), 3, 1));
    assert_eq!(device.content(&path("a")), Some(b"acc".to_vec()));
    assert_eq!(after(&device, CrashPolicy::LOSE_ALL, 0, "a"), Some(b"acc".to_vec()));
}
