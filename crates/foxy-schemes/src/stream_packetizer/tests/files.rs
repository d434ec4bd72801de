//! Tests files that belong to another program, have another version, are truncated, or are damaged.

use super::{SIZE, new, open, settings};
use crate::SchemeSettings;
use crate::stream_packetizer::FILE_NAME;
use foxy_base::{Instant, Random};
use foxy_device::{Device, FileId, IoBuffer, IoDone, IoId, IoOp, Memory, StorePath};
use foxy_store::StoreSettings;
use foxy_store::beginning::Beginning;
use foxy_store::contract::{AbsentReason, Answer, RefusedReason};
use foxy_store::journal::BLOCK_BYTES;
use foxy_store::layout::{Layout, PAGE};
use foxy_store::status::{OpenStoreError, StoreStatus};
use foxy_store::testing::{content, name};

/// Performs one operation on a device and returns its result.
fn io(device: &mut Memory, op: IoOp) -> IoDone {
    device.submit(IoId(1), op, Instant::ZERO);
    let mut done = Vec::new();
    device.reap(Instant::ZERO, &mut done);
    done.pop().expect("memory answers at once")
}

fn bytes_of(device: &Memory) -> Vec<u8> {
    device.content(&StorePath::new(FILE_NAME)).expect("the store's file")
}

fn device_with(bytes: &[u8]) -> Memory {
    let mut device = Memory::default();
    let file = FileId(900);
    io(&mut device, IoOp::Create { file, path: StorePath::new(FILE_NAME), size: 0 });
    io(&mut device, IoOp::Write { file, offset: 0, buffer: IoBuffer::copy_of(bytes) });
    device.close_all();
    device
}

#[test]
fn a_foreign_file_is_left_alone() {
    let device = device_with(&[b'x'; 300_000]);
    let mut store = open(&settings(), device);
    assert_eq!(store.observer.status.get(), StoreStatus::Unusable(OpenStoreError::Foreign));
    assert_eq!(store.put(1, 1, 10), Answer::Refused(RefusedReason::Closed));
    assert_eq!(store.driver.get(name(1)), Answer::Absent(AbsentReason::Closed));
    assert_eq!(store.driver.close(), Answer::Closed);
    assert_eq!(bytes_of(&store.kill()), [b'x'; 300_000]);
}

#[test]
fn a_truncated_file_serves_its_remaining_records() {
    let mut store = new();
    for key in 0..80 {
        store.put(key, 1, 9000);
    }
    let bytes = bytes_of(&store.close());
    let mut store = open(&settings(), device_with(&bytes[..bytes.len() / 2]));
    assert_eq!(store.observer.status.get(), StoreStatus::Serving);
    let cut = Beginning::Cut { found: SIZE / 2, expected: SIZE };
    assert_eq!(store.observer.beginning.get(), Some(cut));
    let held = (0..80).filter(|&key| store.holds(key, 1, 9000)).count();
    assert!((20..60).contains(&held), "{held} of 80");
    assert_eq!(store.put(100, 1, 500), Answer::Stored);
    assert!(store.holds(100, 1, 500));

    let store = open(&settings(), device_with(&bytes[..9000]));
    let StoreStatus::Unusable(OpenStoreError::Truncated { found: 9000, expected: SIZE }) =
        store.observer.status.get()
    else {
        panic!("{:?}", store.observer.status.get());
    };
}

/// Opens a store on a file with these bytes and returns its status. Checks that opening did not
/// change the file.
fn left_alone(bytes: &[u8]) -> StoreStatus {
    let store = open(&settings(), device_with(bytes));
    let status = store.observer.status.get();
    assert_eq!(bytes_of(&store.kill()), bytes, "{status:?}");
    status
}

#[test]
fn a_short_rest_of_a_store_is_left_alone_whatever_its_size_was() {
    let other = SchemeSettings {
        store: StoreSettings { size: SIZE / 2, ..settings().store },
        ..settings()
    };
    for made in [settings(), other] {
        let stamped = bytes_of(&open(&made, Memory::default()).close());
        for left in [100, 4096, 9000] {
            let truncated = OpenStoreError::Truncated { found: left, expected: made.store.size };
            let rest = &stamped[..usize::try_from(left).expect("small")];
            assert_eq!(left_alone(rest), StoreStatus::Unusable(truncated));
        }
    }
}

#[test]
fn a_file_that_begins_with_zeros_is_left_alone_when_anything_follows() {
    let size = 3 << 20;
    for at in [2 * PAGE, (1 << 20) + 5, size - 1] {
        let mut bytes = vec![0; size];
        bytes[at] = 1;
        assert_eq!(left_alone(&bytes), StoreStatus::Unusable(OpenStoreError::Foreign), "{at}");
    }
    assert_eq!(left_alone(&[0; 100]), StoreStatus::Unusable(OpenStoreError::Foreign));
}

#[test]
fn a_file_that_was_begun_and_never_stamped_becomes_a_store() {
    let size = usize::try_from(SIZE).expect("small");
    for length in [0, size / 2, size] {
        let mut store = open(&settings(), device_with(&vec![0; length]));
        assert_eq!(store.put(1, 1, 500), Answer::Stored, "{length}");
        assert_eq!(store.observer.statistics.size_bytes.get(), SIZE, "{length}");
        assert_eq!(bytes_of(&store.close()).len(), size, "{length}");
    }
}

#[test]
fn any_damaged_byte_costs_hits_and_never_gives_wrong_bytes() {
    let mut store = new();
    for key in 0..60 {
        store.put(key, 1, 5000);
    }
    let sound = bytes_of(&store.close());
    let mut random = Random::new(77);
    for round in 0..60 {
        let mut bytes = sound.clone();
        for _ in 0..20 {
            let at = usize::try_from(random.below(SIZE)).expect("small");
            bytes[at] ^= 1 << random.below(8);
        }
        let mut store = open(&settings(), device_with(&bytes));
        for key in 0..60 {
            match store.driver.get(name(key)) {
                Answer::Found(found) => {
                    assert_eq!(found, content(key, 1, 5000), "seed 77, round {round}")
                }
                Answer::Absent(_) => {}
                other => panic!("seed 77, round {round}: {other:?}"),
            }
        }
    }
}

/// Returns the bytes of a store's file, and the offset of its second journal half. The journal has
/// already switched to this half, because the first half had space for only one more block. The
/// second half has two blocks. So the store has certainly answered the requests of the first block.
fn with_two_journal_blocks() -> (Vec<u8>, usize) {
    let mut store = new();
    for key in 0..3 {
        assert_eq!(store.put(key, 1, 2000), Answer::Stored);
    }
    store.driver.run_until(Instant(u64::MAX / 2));
    assert_eq!(store.driver.remove(name(1)), Answer::Removed);
    assert_eq!(store.driver.remove(name(2)), Answer::Removed);
    let bytes = bytes_of(&store.kill());
    let offset = usize::try_from(Layout::of(SIZE).journal[1].offset()).expect("small");
    (bytes, offset)
}

#[test]
fn a_journal_with_one_damaged_copy_of_a_block_is_still_obeyed() {
    for copy in 0..2 {
        let (mut bytes, journal) = with_two_journal_blocks();
        bytes[journal + copy * PAGE + 60] ^= 1;
        let mut store = open(&settings(), device_with(&bytes));
        assert!(store.holds(0, 1, 2000));
        assert!(!store.holds(1, 1, 2000) && !store.holds(2, 1, 2000));
    }
}

#[test]
fn a_journal_that_cannot_be_read_forgets_everything() {
    let (mut bytes, journal) = with_two_journal_blocks();
    bytes[journal + 60] ^= 1;
    bytes[journal + PAGE + 60] ^= 1;
    let mut store = open(&settings(), device_with(&bytes));
    assert_eq!(store.observer.status.get(), StoreStatus::Serving);
    assert!((0..3).all(|key| !store.holds(key, 1, 2000)));
    assert_eq!(store.put(1, 2, 500), Answer::Stored);
    assert!(store.holds(1, 2, 500));
}

#[test]
fn a_torn_journal_tail_was_never_answered_for() {
    let (mut bytes, journal) = with_two_journal_blocks();
    bytes[journal + BLOCK_BYTES + 48..journal + 2 * BLOCK_BYTES].fill(0);
    let mut store = open(&settings(), device_with(&bytes));
    assert!(store.holds(0, 1, 2000) && !store.holds(1, 1, 2000));
    assert!(store.holds(2, 1, 2000), "as if its removal had not been answered");
}

#[test]
fn damaged_superblocks_begin_the_store_anew() {
    let mut store = new();
    store.put(1, 1, 2000);
    let mut bytes = bytes_of(&store.close());
    bytes[30] ^= 1;
    assert!(open(&settings(), device_with(&bytes)).holds(1, 1, 2000), "one copy is sound");
    bytes[PAGE + 30] ^= 1;
    let mut store = open(&settings(), device_with(&bytes));
    assert!(!store.holds(1, 1, 2000));
    assert_eq!(store.put(1, 2, 500), Answer::Stored);
}
