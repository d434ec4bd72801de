//! Tests a store on a block device instead of a file: which devices a store accepts or leaves
//! untouched, and how large the store is.

use super::{SIZE, length, settings};
use crate::contract::Answer;
use crate::one_file::medium::Medium;
use crate::settings::{SizeWish, StoreSettings};
use crate::status::{OpenStoreError, StoreStatus};
use crate::testing::Store;
use crate::webcosm::FILE_NAME;
use crate::webcosm::check::{CheckScope, Refused, check, superblocks};
use foxy_base::Instant;
use foxy_device::{Device, FileId, IoBuffer, IoId, IoOp, Memory, StorePath};

/// Before foxy creates a store on a device, it checks the beginning of the device for data of other
/// programs. The check ends at this byte offset.
const LOOKED_AT: u64 = 16 << 20;
/// The check for data of other programs also covers the end of the device. On the test's device of
/// 32 MiB, this part starts at this byte offset.
const LOOKED_AT_AGAIN: u64 = 31 << 20;

fn path() -> StorePath {
    StorePath::new(FILE_NAME)
}

/// Creates a device of `size` bytes, with the given bytes at the given offsets.
fn device(size: u64, written: &[(u64, &[u8])]) -> Memory {
    let (mut device, file) = (Memory::volatile(), FileId(77));
    device.add_block_device(path(), size);
    device.submit(IoId(0), IoOp::OpenBlockDevice { file, path: path() }, Instant::ZERO);
    for &(offset, bytes) in written {
        let buffer = IoBuffer::copy_of(bytes);
        device.submit(IoId(1), IoOp::Write { file, offset, buffer }, Instant::ZERO);
    }
    device.submit(IoId(2), IoOp::Sync { file }, Instant::ZERO);
    device.close_all();
    device
}

fn open(settings: &StoreSettings, device: Memory) -> (Store, StoreStatus) {
    let store = Store::webcosm(settings, device);
    let status = store.observer.status.get();
    (store, status)
}

fn fill(store: &mut Store, keys: std::ops::Range<u64>) {
    for key in keys {
        assert_eq!(store.put(key, 0, length(key)), Answer::Stored, "{key}");
    }
    store.flush();
}

fn held(store: &mut Store, keys: std::ops::Range<u64>) -> usize {
    keys.filter(|&key| store.holds(key, 0, length(key))).count()
}

#[test]
fn a_blank_device_becomes_a_store_and_gives_back_what_it_holds() {
    for closed in [true, false] {
        let (mut store, status) = open(&settings(), device(SIZE, &[]));
        assert_eq!((status, store.counter("device_errors")), (StoreStatus::Serving, 0));
        fill(&mut store, 0..100);
        let device = if closed { store.close() } else { store.kill() };
        let (mut store, status) = open(&settings(), device);
        assert_eq!(
            (status, held(&mut store, 0..100)),
            (StoreStatus::Serving, 100),
            "closed: {closed}"
        );
    }
}

#[test]
fn what_lies_behind_the_store_is_never_written() {
    let behind: &[u8] = &[7; 8192];
    let (mut store, _) = open(
        &settings(),
        device(32 << 20, &[(LOOKED_AT, behind), (LOOKED_AT_AGAIN - 8192, behind)]),
    );
    fill(&mut store, 0..2_000);
    let smaller = StoreSettings { size: SIZE / 2, ..settings() };
    let (store, status) = open(&smaller, store.close());
    assert_eq!(status, StoreStatus::Serving);
    let bytes = store.close().content(&path()).expect("a device");
    assert_eq!(bytes.len(), 32 << 20);
    for (at, &byte) in bytes.iter().enumerate().skip(4 << 20) {
        let ours = (16 << 20..(16 << 20) + 8192).contains(&at)
            || ((31 << 20) - 8192..31 << 20).contains(&at);
        assert_eq!(byte, if ours { 7 } else { 0 }, "{at}");
    }
}

#[test]
fn a_device_with_something_else_on_it_is_left_as_it_is() {
    let boot_sector: (u64, &[u8]) = (510, &[0x55, 0xaa]);
    let ext4: (u64, &[u8]) = (1080, &[0x53, 0xef]);
    let btrfs: (u64, &[u8]) = (0x1_0040, b"_BHRfS_M");
    let late: (u64, &[u8]) = (LOOKED_AT - 1, b"!");
    let array_member: (u64, &[u8]) = ((32 << 20) - 8192, &[0xfc, 0x4e, 0x2b, 0xa9]);
    let second_partition_table: (u64, &[u8]) = ((32 << 20) - 512, b"EFI PART");
    let label: (u64, &[u8]) = (LOOKED_AT_AGAIN, b"!");
    for written in [boot_sector, ext4, btrfs, late, array_member, second_partition_table, label] {
        let device = device(32 << 20, &[written]);
        let before = device.content(&path());
        let (store, status) = open(&settings(), device);
        assert_eq!(
            status,
            StoreStatus::Unusable(OpenStoreError::ForeignDevice { at: written.0 }),
            "{written:?}"
        );
        assert!(store.kill().content(&path()) == before, "{written:?}");
    }
}

#[test]
fn a_device_that_was_a_stores_and_is_somebody_elses_since_is_left_as_it_is() {
    let (mut store, _) = open(&settings(), device(SIZE, &[]));
    fill(&mut store, 0..100);
    let ours = store.close().content(&path()).expect("a device");
    let swap: (u64, &[u8]) = (4086, b"SWAPSPACE2");
    let boot_sector: (u64, &[u8]) = (510, &[0x55, 0xaa]);
    let volume: (u64, &[u8]) = (512, b"LABELONE");
    let array_member: (u64, &[u8]) = (4096, &[0xfc, 0x4e, 0x2b, 0xa9]);
    let partitions: (u64, &[u8]) = (1024, &[0xaf; 7000]);
    let cleared: (u64, &[u8]) = (0, &[0; 1024]);
    // Each case is the content of a device that another program formatted. Such programs keep the
    // bytes before their own mark or clear them.
    let cases: [&[(u64, &[u8])]; 6] = [
        &[swap],
        &[cleared, swap],
        &[boot_sector],
        &[cleared, volume],
        &[array_member],
        &[boot_sector, partitions],
    ];
    for written in cases {
        let mut bytes = ours.clone();
        for &(at, part) in written {
            let at = usize::try_from(at).expect("small");
            bytes[at..at + part.len()].copy_from_slice(part);
        }
        let device = device(SIZE, &[(0, &bytes)]);
        let (store, status) = open(&settings(), device);
        let at = written.iter().map(|(at, _)| *at).filter(|&at| at > 0).min().expect("a mark");
        assert_eq!(
            status,
            StoreStatus::Unusable(OpenStoreError::ForeignDevice { at }),
            "{written:?}"
        );
        assert!(store.kill().content(&path()).is_some_and(|left| left == bytes), "{written:?}");
    }
}

#[test]
fn a_store_whose_superblocks_are_damaged_begins_anew_where_it_is() {
    let (mut store, _) = open(&settings(), device(SIZE, &[]));
    fill(&mut store, 0..100);
    let mut device = store.close();
    assert!([20, 4096 + 20].into_iter().all(|at| device.rot(&path(), at, 1)));
    let (mut store, status) = open(&StoreSettings { seed: 100, ..settings() }, device);
    assert_eq!((status, store.counter("begun_anew")), (StoreStatus::Serving, 1));
    assert_eq!(held(&mut store, 0..100), 0);
    fill(&mut store, 0..100);
    assert_eq!(held(&mut store, 0..100), 100);
}

#[test]
fn a_device_too_small_for_what_is_asked_is_refused_or_used_whole() {
    let wish = |size_wish| StoreSettings { size_wish, ..settings() };
    let (store, status) = open(&wish(SizeWish::Exactly), device(SIZE - 4096, &[]));
    assert_eq!(status, StoreStatus::Unusable(OpenStoreError::NoSpace));
    let (store, status) = open(&wish(SizeWish::AtMost), {
        let refused = store.kill();
        assert!(refused.content(&path()).expect("a device").iter().all(|&byte| byte == 0));
        refused
    });
    assert_eq!((status, store.counter("size_bytes")), (StoreStatus::Serving, SIZE - 4096));
    let (_, status) = open(&wish(SizeWish::AtMost), device(8192, &[]));
    assert_eq!(status, StoreStatus::Unusable(OpenStoreError::NoSpace));
}

#[test]
fn a_store_grows_to_what_its_device_has_and_no_further() {
    let (mut store, _) = open(&settings(), device(2 * SIZE, &[]));
    fill(&mut store, 0..100);
    let larger = |size| StoreSettings { size, ..settings() };
    let (store, status) = open(&larger(2 * SIZE + 4096), store.close());
    assert_eq!(status, StoreStatus::Unusable(OpenStoreError::NoSpace));
    let (mut store, status) = open(&larger(2 * SIZE), store.kill());
    assert_eq!((status, store.counter("size_bytes")), (StoreStatus::Serving, 2 * SIZE));
    assert_eq!(held(&mut store, 0..100), 100);
}

#[test]
fn the_check_judges_a_device_as_an_opening_does() {
    let judge = |written: &[(u64, &[u8])]| {
        let bytes = device(32 << 20, written).content(&path()).expect("a device");
        let mut read = |offset, buffer: &mut [u8]| {
            let from = usize::try_from(offset).expect("small");
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(buffer.len())
        };
        superblocks(Medium::BlockDevice, bytes.len() as u64, &mut read).err()
    };
    assert_eq!(judge(&[]), Some(Refused::Blank));
    assert_eq!(judge(&[(LOOKED_AT, b"!")]), Some(Refused::Blank));
    assert_eq!(judge(&[(LOOKED_AT_AGAIN - 1, b"!")]), Some(Refused::Blank));
    for at in [0, LOOKED_AT - 1, LOOKED_AT_AGAIN, (32 << 20) - 1] {
        let foreign = Some(Refused::Unusable(OpenStoreError::ForeignDevice { at }));
        assert_eq!(judge(&[(at, b"!")]), foreign);
    }
}

#[test]
fn a_closed_store_of_any_earlier_size_is_not_taken_for_killed() {
    let (mut on, mut anew) = (device(16 * SIZE, &[]), 0);
    // Some of these sizes are too small for the store's content, or too far from its size at
    // creation. The opening then discards the content and creates an empty store on the same
    // device.
    let sizes = [SIZE, 2 * SIZE, SIZE / 2, 4 * SIZE, 16 * SIZE, 16 * SIZE, 8 * SIZE, 16 * SIZE];
    for (turn, size) in sizes.into_iter().enumerate() {
        let (mut store, status) = open(&StoreSettings { size, ..settings() }, on);
        assert_eq!(status, StoreStatus::Serving);
        anew += store.counter("begun_anew");
        fill(&mut store, 0..100);
        on = store.close();
        let bytes = on.content(&path()).expect("a device");
        let mut read = |offset, buffer: &mut [u8]| {
            let from = usize::try_from(offset).expect("small");
            buffer.copy_from_slice(&bytes[from..from + buffer.len()]);
            Ok(buffer.len())
        };
        let all = CheckScope { records: true, listed: None };
        let report =
            check(Medium::BlockDevice, bytes.len() as u64, all, &mut read).expect("a store");
        assert_eq!(report.findings.kept, [], "{turn}");
    }
    assert!((1..6).contains(&anew), "{anew}");
}
