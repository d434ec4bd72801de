//! Tests how pages move between the simulated page cache and the disk. Covers reads before writes
//! of parts of pages, cache hits, and delayed writes.

use crate::disk::{Disk, FILE, MIB, create, open, read, write};
use foxy_base::{Instant, Random};
use foxy_device::{DiskProfile, FileId, IoBuffer, IoError, IoOp, StorePath};
use std::time::Duration;

#[test]
fn writes_of_parts_of_pages_read_first_and_whole_pages_do_not() {
    /// Each case is a write into a preallocated file: offset and length in bytes, then the number
    /// of pages that must be read first.
    const CASES: [(u64, usize, u64); 8] = [
        (0, 8192, 0),
        (8192, 16_384, 0),
        (512, 100, 1),
        (100, 8192, 2),
        (8192, 10_000, 1),
        (10_000, 80_000, 2),
        (0, 1, 1),
        (MIB - 10, 10, 1),
    ];
    for (offset, length, expected) in CASES {
        let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
        disk.time(create(FILE, "stream", MIB));
        let before = disk.device.counts();
        disk.time(write(FILE, offset, length));
        disk.settle();
        let counts = disk.device.counts();
        let reads = counts.device_reads - before.device_reads;
        assert_eq!(
            (counts.read_modify_writes, reads),
            (expected, expected),
            "{length} at {offset}"
        );
        disk.time(write(FILE, offset, length));
        assert_eq!(
            disk.device.counts().read_modify_writes,
            expected,
            "the pages are in memory by now"
        );
    }
}

#[test]
fn sequential_small_writes_read_each_cold_page_once() {
    let run = |size: usize, aligned: bool| {
        let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
        disk.time(create(FILE, "stream", 64 * MIB));
        let mut offset = 0;
        for _ in 0..500 {
            disk.time(write(FILE, offset, size));
            offset += size as u64;
        }
        disk.settle();
        let pages = offset.div_ceil(8192);
        let counts = disk.device.counts();
        assert_eq!(counts.read_modify_writes, if aligned { 0 } else { pages }, "{size} bytes each");
        (disk.now.since(Instant::ZERO).as_nanos() / u128::from(pages), counts.device_writes)
    };
    let (small, small_writes) = run(1024, false);
    let (whole, whole_writes) = run(8192, true);
    assert!(small > 2 * whole, "{small} ns a page against {whole}");
    assert!(
        small_writes < 20 && whole_writes < 90,
        "consecutive writes go together: {small_writes}, {whole_writes}"
    );
}

#[test]
fn new_pages_at_the_end_of_a_file_are_not_read_before_writes() {
    let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
    disk.time(create(FILE, "new", 0));
    for offset in [0, 300, 600, 20_000] {
        disk.time(write(FILE, offset, 300));
    }
    disk.settle();
    assert_eq!(
        disk.device.counts().read_modify_writes,
        0,
        "new pages hold nothing that is not in memory"
    );
}

#[test]
fn pages_are_read_from_the_disk_once() {
    let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
    disk.time(create(FILE, "x", MIB));
    assert!(disk.time(read(FILE, 300_000, 10_000)) > Duration::from_millis(2));
    assert_eq!(disk.time(read(FILE, 305_000, 100)), Duration::ZERO);
    let reads = disk.device.counts().device_reads;
    disk.submit(read(FILE, 600_000, 100));
    disk.submit(read(FILE, 602_000, 100));
    let results = disk.finish();
    assert_eq!(results.len(), 2);
    assert_eq!(disk.device.counts().device_reads, reads + 1, "both wait for the one request");
}

#[test]
fn sequential_reads_from_the_start_are_read_ahead() {
    for (ahead, expected) in [(56 << 10, 2), (0, 4)] {
        let mut profile = DiskProfile::st15150w();
        profile.system.read_ahead = ahead;
        profile.system.page_cache = MIB;
        let mut disk = Disk::new(profile, 1, 1);
        disk.time(create(FILE, "small", 0));
        disk.time(write(FILE, 0, 30_000));
        disk.time(IoOp::Close { file: FILE });
        disk.time(create(FileId(1), "other", 4 * MIB));
        for offset in 0..64 {
            disk.time(read(FileId(1), offset * 64 * 1024 + 8192, 60_000));
        }
        disk.time(open(FILE, "small"));
        let reads = disk.device.counts().device_reads;
        for offset in [0, 8192, 16_384, 24_576] {
            disk.time(read(
                FILE,
                offset,
                8192.min(30_000 - usize::try_from(offset).expect("small")),
            ));
        }
        assert_eq!(disk.device.counts().device_reads - reads, expected, "{ahead} bytes ahead");
    }
}

#[test]
fn writers_wait_for_a_slow_disk_and_a_sync_waits_for_all_writes() {
    let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
    disk.time(create(FILE, "x", 512 * MIB));
    let mut random = Random::new(8);
    let mut held = 0;
    for _ in 0..200 {
        let page = random.below(512 * MIB / 8192);
        held += u32::from(!disk.time(write(FILE, page * 8192, 8192)).is_zero());
    }
    assert!((3..150).contains(&held), "{held} of 200 writes had to wait");
    assert!(disk.time(IoOp::Sync { file: FILE }) > Duration::from_millis(100));
    assert_eq!(
        disk.device.counts().bytes_written - disk.device.counts().metadata_writes * 8192,
        200 * 8192
    );
    assert_eq!(disk.time(IoOp::Sync { file: FILE }), Duration::ZERO);
}

#[test]
fn without_write_behind_every_write_waits_for_the_disk() {
    let mut profile = DiskProfile::st15150w();
    profile.system.write_behind = 0;
    let mut disk = Disk::new(profile, 1, 1);
    disk.time(create(FILE, "x", MIB));
    for page in [5, 90, 40] {
        assert!(disk.time(write(FILE, page * 8192, 8192)) > Duration::from_millis(1));
    }
}

#[test]
fn a_restart_keeps_content_and_drops_caches_and_open_files() {
    let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
    disk.time(create(FILE, "stream", MIB));
    disk.time(IoOp::Write { file: FILE, offset: 100, buffer: IoBuffer::copy_of(b"kept") });
    assert_eq!(disk.time(read(FILE, 0, 8192)), Duration::ZERO, "it is in memory");
    disk.now = disk.device.restart(disk.now);
    disk.submit(read(FILE, 0, 8192));
    assert!(matches!(disk.finish()[..], [Err(IoError::NotOpen)]));
    disk.time(open(FILE, "stream"));
    assert!(disk.time(read(FILE, 0, 8192)) > Duration::from_millis(1), "it comes from the disk");
    let content = disk.device.content(&StorePath::new("stream")).expect("it stays");
    assert_eq!(&content[100..104], b"kept");
}
