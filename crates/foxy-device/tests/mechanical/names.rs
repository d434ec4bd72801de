//! Tests the simulated cost of finding a name in a directory. A directory is searched from its
//! first entry to its last, unless the name is cached.

use crate::disk::{Disk, FILE, create, directory, open};
use foxy_device::mechanical::MetadataMode;
use foxy_device::{DiskProfile, FileId, IoOp, StorePath};
use std::time::Duration;

/// A disk without a name cache, on which no operation waits for writes of metadata. The processor
/// needs 1 µs to examine a name.
fn profile() -> DiskProfile {
    let mut profile = DiskProfile::st15150w();
    profile.system.metadata = MetadataMode::Asynchronous;
    profile.system.search_rate = 20_000_000;
    profile.system.name_cache = 0;
    profile
}

/// Creates an idle disk with `files` files in the directory `d`.
fn filled(profile: DiskProfile, files: u32) -> Disk {
    let mut disk = Disk::new(profile, 1, 1);
    disk.time(directory("d"));
    for number in 0..files {
        disk.time(create(FILE, &format!("d/{number}"), 0));
    }
    disk.settle();
    disk
}

fn remove(path: &str) -> IoOp {
    IoOp::Remove { path: StorePath::new(path) }
}

const fn microseconds(count: u64) -> Duration {
    Duration::from_micros(count)
}

#[test]
fn a_directory_is_searched_from_front_to_back_for_each_name() {
    let mut disk = filled(profile(), 1000);
    let whole = microseconds(2 * 1001);
    assert_eq!(disk.time(create(FILE, "d/new", 0)), whole, "for the name, and for room");
    assert_eq!(disk.time(remove("d/9")), microseconds(10 + 10), "looked up, and from the front");
    assert_eq!(disk.time(remove("d/4")), microseconds(1001 - 9 + 5 + 5), "a look-up goes around");
    assert_eq!(disk.time(create(FILE, "d/newer", 0)), whole);
    let first = microseconds(1 + 5);
    assert_eq!(disk.time(remove("d/newer")), first, "the first free entry was taken");
    disk.time(create(FILE, "x", 0));
    let of_three = microseconds(2 * 3);
    assert_eq!(
        disk.time(create(FILE, "y", 0)),
        of_three,
        "d, x and y: other directories are not searched"
    );
}

#[test]
fn a_look_up_continues_from_the_last_one() {
    let mut disk = filled(profile(), 1000);
    assert_eq!(disk.time(open(FILE, "d/99")), microseconds(100));
    assert_eq!(disk.time(open(FILE, "d/101")), microseconds(3));
    assert_eq!(
        disk.time(create(FILE, "d/103", 0)),
        microseconds(3),
        "one that is there is looked up"
    );
    assert_eq!(disk.time(open(FILE, "d/100")), microseconds(1000 - 103 + 101));
}

#[test]
fn cached_names_are_opened_without_a_search() {
    let mut profile = profile();
    profile.system.name_cache = 2;
    let mut disk = filled(profile, 100);
    let mut opened = |number: u64| disk.time(open(FILE, &format!("d/{number}")));
    assert_eq!(opened(0), microseconds(1));
    assert_eq!((opened(99), opened(0)), (Duration::ZERO, Duration::ZERO));
    assert_eq!((opened(98), opened(99)), (microseconds(99), microseconds(2)), "the oldest went");
    assert_eq!(disk.time(remove("d/99")), microseconds(100), "its entry has to be found");
}

#[test]
fn a_search_reads_the_blocks_in_front_of_the_name() {
    let reads_of = |search_rate| {
        let mut profile = profile();
        profile.system.search_rate = search_rate;
        let mut disk = filled(profile, 1000);
        disk.now = disk.device.restart(disk.now);
        let before = disk.device.counts().metadata_reads;
        disk.time(open(FILE, "d/900"));
        disk.device.counts().metadata_reads - before
    };
    assert_eq!(reads_of(20_000_000), 3 + 1, "409 names in a block, and the inode");
    assert_eq!(reads_of(0), 1 + 1, "found at once in its block");
}

#[test]
fn one_processor_searches_one_directory_after_the_other() {
    let mut disk = filled(profile(), 300);
    let start = disk.now;
    disk.submit(open(FILE, "d/199"));
    disk.submit(open(FileId(1), "d/99"));
    assert_eq!(disk.finish().len(), 2);
    assert_eq!(disk.now.since(start), microseconds(200 + 300 - 199 + 100));
}
