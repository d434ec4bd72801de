//! Tests the simulated disks: their times against calibrated values, the costs of names, and
//! parallel disks. Also tests that file content equals the content on the memory device.

mod disk;
mod names;
mod pages;

use disk::{Disk, FILE, MIB, create, directory, open, read, write};
use foxy_base::{Instant, Random};
use foxy_device::mechanical::{AccessTimes, MetadataMode, RequestKind};
use foxy_device::{
    Device, DiskProfile, FileId, IoBuffer, IoError, IoId, IoOp, Memory, StorePath, calibrate,
};
use std::time::Duration;

#[test]
fn calibration_holds_for_every_seed() {
    for seed in 1..=3 {
        let calibration = calibrate(&DiskProfile::st15150w(), seed);
        assert!(calibration.holds(), "seed {seed}:\n{calibration}");
    }
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_seed_others() {
    let run = |seed: u64| {
        let mut random = Random::new(5);
        let mut disk = Disk::new(DiskProfile::st15150w(), 2, seed);
        disk.device.keep_records(10_000);
        for number in 0..20 {
            disk.time(directory(&format!("{number}")));
        }
        for number in 0..100 {
            let path = format!("{}/{number}", random.below(20));
            disk.submit(create(FileId(number), &path, 0));
            disk.submit(write(FileId(number), random.below(9000), 20_000));
        }
        disk.finish();
        (disk.device.take_records(), disk.now)
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn two_disks_work_side_by_side() {
    let run = |spindles: usize| {
        let mut disk = Disk::new(DiskProfile::st15150w(), spindles, 3);
        for (number, path) in ["a", "b"].into_iter().enumerate() {
            disk.time(directory(path));
            let file = FileId(u32::try_from(number).expect("two"));
            disk.time(create(file, &format!("{path}/file"), 64 * MIB));
        }
        disk.settle();
        let (start, mut random) = (disk.now, Random::new(4));
        for number in 0..400 {
            disk.submit(read(FileId(number % 2), random.below(64 * MIB / 8192) * 8192, 8192));
        }
        assert_eq!(disk.finish().len(), 400);
        let busy = (0..spindles).filter_map(|spindle| disk.device.counts_of(spindle));
        let least = busy.map(|counts| counts.device_reads).min().unwrap_or(0);
        (disk.now.since(start), least)
    };
    let ((one, _), (two, least)) = (run(1), run(2));
    assert!(least > 150, "both have reads to do, one only {least}");
    assert!(two < one.mul_f64(0.7), "{two:?} on two disks, {one:?} on one");
}

#[test]
fn asynchronous_metadata_is_written_later() {
    let run = |metadata| {
        let mut profile = DiskProfile::st15150w();
        profile.system.metadata = metadata;
        profile.system.search_rate = 0;
        let mut disk = Disk::new(profile, 1, 1);
        disk.time(directory("d"));
        disk.time(create(FILE, "d/0", 0));
        let start = disk.now;
        for number in 1..50 {
            disk.time(create(FILE, &format!("d/{number}"), 0));
            disk.time(IoOp::Remove { path: StorePath::new(format!("d/{}", number - 1)) });
        }
        let took = disk.now.since(start);
        let synced = disk.time(IoOp::Sync { file: FILE });
        disk.settle();
        (took, synced, disk.device.counts().metadata_writes)
    };
    let (took, synced, writes) = run(MetadataMode::Synchronous);
    assert!(
        took > Duration::from_secs(1) && synced.is_zero() && writes > 147,
        "{took:?} {synced:?} {writes}"
    );
    let (took, synced, writes) = run(MetadataMode::Asynchronous);
    assert!(took.is_zero() && !synced.is_zero() && writes < 8, "{took:?} {synced:?} {writes}");
}

#[test]
fn reads_change_inodes_only_with_access_times() {
    let run = |access_times| {
        let mut profile = DiskProfile::st15150w();
        profile.system.access_times = access_times;
        let mut disk = Disk::new(profile, 1, 1);
        disk.time(create(FILE, "x", MIB));
        disk.settle();
        let writes = disk.device.counts().metadata_writes;
        disk.time(read(FILE, 0, 100));
        disk.now = disk.now + Duration::from_secs(60);
        disk.settle();
        disk.device.counts().metadata_writes - writes
    };
    assert_eq!((run(AccessTimes::Updated), run(AccessTimes::Unchanged)), (1, 0));
}

#[test]
fn records_are_kept_up_to_their_limit_and_add_up() {
    let mut disk = Disk::new(DiskProfile::st15150w(), 1, 1);
    disk.time(create(FILE, "x", 8 * MIB));
    disk.device.keep_records(5);
    for page in [3, 900, 17, 400, 210, 77, 640] {
        disk.time(read(FILE, page * 8192, 8192));
    }
    let (records, dropped) = disk.device.take_records();
    assert_eq!((records.len(), dropped), (5, 2));
    for record in &records {
        let parts = record.seek + record.rotation + record.transfer;
        assert_eq!(record.finish, record.start + parts, "{record:?}");
        assert_eq!((record.kind, record.size), (RequestKind::Read, 8192));
    }
    assert_eq!(disk.device.take_records(), (Vec::new(), 0));
}

#[test]
fn a_full_disk_is_an_error_and_room_comes_back_with_removal() {
    let profile = DiskProfile { cylinders: 64, ..DiskProfile::st15150w() };
    let mut disk = Disk::new(profile, 1, 1);
    let half = profile.capacity() / 2;
    disk.time(create(FILE, "half", half));
    disk.submit(create(FileId(1), "other", half));
    assert!(matches!(disk.finish()[..], [Err(IoError::NoSpace)]));
    disk.submit(open(FileId(1), "other"));
    assert!(matches!(disk.finish()[..], [Err(IoError::NotFound)]));
    for _ in 0..50 {
        disk.time(create(FileId(1), "other", half / 2));
        disk.time(IoOp::Close { file: FileId(1) });
        disk.time(IoOp::Remove { path: StorePath::new("other") });
    }
    let mut page = 0;
    disk.time(create(FileId(1), "growing", 0));
    loop {
        disk.submit(write(FileId(1), page * 65_536, 65_536));
        page += 1;
        if matches!(disk.finish()[..], [Err(IoError::NoSpace)]) {
            break;
        }
    }
    let filled = half + page * 65_536;
    assert!(filled > profile.capacity() * 8 / 10 && filled < profile.capacity(), "{filled}");
}

#[test]
fn content_equals_the_memory_devices() {
    for (seed, page_size) in [(1, 8192), (2, 4096), (3, 8192)] {
        let mut random = Random::new(seed);
        let mut profile = DiskProfile::st15150w();
        profile.system.page_size = page_size;
        let mut disk = Disk::new(profile, 2, seed);
        let mut memory = Memory::default();
        for step in 0..1500 {
            let file = FileId(u32::try_from(random.below(6)).expect("small"));
            let path = StorePath::new(["a", "b", "c", "d", "d/a", "d/b"][random.below(6) as usize]);
            let (offset, length) = (random.below(120_000), random.below(30_000));
            let mut bytes = vec![0; length as usize];
            random.fill(&mut bytes);
            let choice = random.below(14);
            let op = || match choice {
                0 => IoOp::Create { file, path: path.clone(), size: offset * (length % 2) },
                1 | 2 => IoOp::Open { file, path: path.clone() },
                3 => IoOp::Close { file },
                4 => IoOp::Remove { path: path.clone() },
                5 => IoOp::MakeDir { path: path.clone() },
                6 => IoOp::List { path: path.parent() },
                7 => IoOp::Sync { file },
                8 => IoOp::Trim { file, offset, length },
                9 | 10 => IoOp::Read { file, offset, buffer: IoBuffer::zeroed(bytes.len()) },
                _ => IoOp::Write { file, offset, buffer: IoBuffer::copy_of(&bytes) },
            };
            let mut seen = (Vec::new(), Vec::new());
            memory.submit(IoId(step), op(), Instant::ZERO);
            memory.reap(Instant::ZERO, &mut seen.0);
            disk.device.submit(IoId(step), op(), disk.now);
            while let Some(at) = disk.device.next_completion() {
                disk.now = at;
                disk.device.reap(at, &mut seen.1);
            }
            let show = |done: &foxy_device::IoDone| {
                format!(
                    "{:?} {:?} {:?}",
                    done.id,
                    done.result,
                    done.buffer.as_ref().map(AsRef::as_ref)
                )
            };
            let shown: (String, String) =
                (seen.0.iter().map(show).collect(), seen.1.iter().map(show).collect());
            assert_eq!(shown.0, shown.1, "seed {seed}, step {step}");
        }
        for path in ["a", "b", "c", "d/a", "d/b"].map(StorePath::new) {
            assert_eq!(disk.device.content(&path), memory.content(&path), "seed {seed}, {path:?}");
        }
    }
}
