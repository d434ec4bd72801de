//! Tests that the simulated disk answers every operation once, and that its behaviour depends only
//! on the seed.

use super::*;
use foxy_device::StorePath;

fn drain(disk: &mut Disk) -> Vec<IoDone> {
    let mut done = Vec::new();
    while let Some(at) = disk.next_completion() {
        disk.reap(at, &mut done);
    }
    done
}

fn conversation(seed: u64, faults: Faults) -> Vec<String> {
    let mut disk = Disk::new(seed);
    let create = IoOp::Create { file: FileId(1), path: StorePath::new("a"), size: 8192 };
    disk.submit(IoId(1), create, Instant::ZERO);
    let mut seen = drain(&mut disk);
    disk.set_faults(faults);
    for id in 2..40 {
        let (file, offset) = (FileId(1), (id % 4) * 1024);
        let op = match id % 3 {
            0 => IoOp::Sync { file },
            1 => IoOp::Read { file, offset, buffer: IoBuffer::zeroed(100) },
            _ => IoOp::Write { file, offset, buffer: IoBuffer::copy_of(&[7; 100]) },
        };
        disk.submit(IoId(id), op, Instant(id));
    }
    assert_eq!(disk.in_flight(), 38);
    seen.append(&mut drain(&mut disk));
    assert_eq!(disk.in_flight(), 0);
    seen.iter().map(|done| format!("{:?} {:?} {:?}", done.id, done.result, done.buffer)).collect()
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let faults = Faults { errors: 200, flips: 100 };
    assert_eq!(conversation(4, faults), conversation(4, faults));
    assert_ne!(conversation(4, faults), conversation(5, faults));
    assert_eq!(conversation(6, faults).len(), 39);
}

#[test]
fn what_is_written_is_read() {
    let mut disk = Disk::new(1);
    let file = FileId(3);
    let path = StorePath::new("a");
    disk.submit(IoId(1), IoOp::Create { file, path: path.clone(), size: 100 }, Instant::ZERO);
    drain(&mut disk);
    disk.submit(
        IoId(2),
        IoOp::Write { file, offset: 10, buffer: IoBuffer::copy_of(b"fox") },
        Instant::ZERO,
    );
    drain(&mut disk);
    disk.submit(IoId(3), IoOp::Close { file }, Instant::ZERO);
    drain(&mut disk);
    disk.submit(IoId(4), IoOp::Open { file, path }, Instant::ZERO);
    let opened = drain(&mut disk);
    assert!(matches!(opened[0].result, Ok(IoOutput::Opened { size: 100 })), "{opened:?}");
    disk.submit(
        IoId(5),
        IoOp::Read { file, offset: 9, buffer: IoBuffer::zeroed(200) },
        Instant::ZERO,
    );
    let read = drain(&mut disk).remove(0);
    assert!(matches!(read.result, Ok(IoOutput::Moved { count: 91 })), "{read:?}");
    assert_eq!(&read.buffer.expect("a read gives its buffer back").as_ref()[..5], b"\0fox\0");
}

#[test]
fn files_that_are_not_open_or_not_there_are_errors() {
    let mut disk = Disk::new(1);
    disk.submit(IoId(1), IoOp::Sync { file: FileId(9) }, Instant::ZERO);
    assert!(matches!(drain(&mut disk)[0].result, Err(IoError::NotOpen)));
    disk.submit(IoId(2), IoOp::Open { file: FileId(9), path: StorePath::new("no") }, Instant::ZERO);
    assert!(matches!(drain(&mut disk)[0].result, Err(IoError::NotFound)));
    disk.submit(IoId(3), IoOp::MakeDir { path: StorePath::new("no/where") }, Instant::ZERO);
    assert!(matches!(drain(&mut disk)[0].result, Err(IoError::NotFound)));
}
