//! Runs the same tests on every device that stores content. The tests check the guarantees of
//! `io::Device` for each operation. Random sequences of operations must give equal results on all
//! devices.

mod subject;

use foxy_base::{Instant, Random};
use foxy_device::{FileId, IoBuffer, IoError, IoId, IoOp, IoOutput, StorePath};
use std::time::Duration;
use subject::subjects;

#[test]
fn written_bytes_are_read_and_reads_stop_at_the_end() {
    for mut subject in subjects() {
        let name = subject.name;
        subject.create(0, "data", 2 << 20).expect(name);
        assert_eq!(
            subject.read(0, 0, 4096),
            Ok(vec![0; 4096]),
            "{name}: preallocated bytes read as zero"
        );
        let bytes: Vec<u8> = (0..20_000).map(|number: u32| number.to_le_bytes()[0]).collect();
        assert_eq!(subject.write(0, 5, &bytes), Ok(20_000), "{name}");
        assert_eq!(subject.write(0, 65_536, &bytes[..8192]), Ok(8192), "{name}");
        assert_eq!(subject.read(0, 5, 20_000).as_deref(), Ok(&bytes[..]), "{name}");
        assert_eq!(subject.read(0, 65_536, 8192).as_deref(), Ok(&bytes[..8192]), "{name}");
        assert_eq!(subject.read(0, (2 << 20) - 3, 4096), Ok(vec![0; 3]), "{name}");
        assert_eq!(subject.read(0, 1 << 30, 10), Ok(Vec::new()), "{name}");
    }
}

#[test]
fn names_are_made_listed_and_removed() {
    for mut subject in subjects() {
        let name = subject.name;
        assert_eq!(subject.create(0, "a/b", 0), Err(IoError::NotFound), "{name}: no parent");
        for _ in 0..2 {
            let made = subject.run(IoOp::MakeDir { path: StorePath::new("a") });
            assert!(made.result.is_ok(), "{name}: making a directory twice is no error");
        }
        subject.create(0, "a/b", 0).expect(name);
        subject.write(0, 0, b"12345").expect(name);
        let done = subject.run(IoOp::List { path: StorePath::new("a") });
        let Ok(IoOutput::Listing(entries)) = done.result else {
            panic!("{name}: {:?}", done.result)
        };
        let found: Vec<_> = entries
            .iter()
            .map(|entry| (entry.name.as_str(), entry.is_directory, entry.size))
            .collect();
        assert_eq!(found, [("b", false, 5)], "{name}");
        assert!(subject.run(IoOp::Remove { path: StorePath::new("a/b") }).result.is_ok(), "{name}");
        assert_eq!(
            subject.read(0, 0, 5).as_deref(),
            Ok(&b"12345"[..]),
            "{name}: an open file outlives its name"
        );
        let again = subject.run(IoOp::Open { file: FileId(1), path: StorePath::new("a/b") });
        assert_eq!(again.result.err(), Some(IoError::NotFound), "{name}");
    }
}

#[test]
fn operations_on_closed_files_fail_and_return_their_buffer() {
    for mut subject in subjects() {
        let name = subject.name;
        let done =
            subject.run(IoOp::Write { file: FileId(9), offset: 0, buffer: IoBuffer::zeroed(10) });
        assert_eq!(
            (done.result.err(), done.buffer.map(|buffer| buffer.len())),
            (Some(IoError::NotOpen), Some(10)),
            "{name}"
        );
        subject.create(9, "x", 0).expect(name);
        assert!(subject.run(IoOp::Close { file: FileId(9) }).result.is_ok(), "{name}");
        assert_eq!(subject.read(9, 0, 1), Err(IoError::NotOpen), "{name}");
        assert_eq!(
            subject.run(IoOp::Sync { file: FileId(9) }).result.err(),
            Some(IoError::NotOpen),
            "{name}"
        );
    }
}

#[test]
fn a_trimmed_range_reads_as_zero_or_as_before() {
    for mut subject in subjects() {
        let name = subject.name;
        subject.create(0, "x", 0).expect(name);
        subject.write(0, 0, &[7; 20_000]).expect(name);
        for (offset, length) in [(4000, 9000), (0, 0), (19_000, 90_000)] {
            let done = subject.run(IoOp::Trim { file: FileId(0), offset, length });
            assert!(done.result.is_ok(), "{name}: {offset} {length} {done:?}");
        }
        let bytes = subject.read(0, 0, 30_000).expect(name);
        assert_eq!(bytes.len(), 20_000, "{name}: the size stays");
        let trimmed = |at: usize| (4000..13_000).contains(&at) || at >= 19_000;
        assert!((0..20_000).all(|at| bytes[at] == 7 || (trimmed(at) && bytes[at] == 0)), "{name}");
    }
}

#[test]
fn impossible_offsets_are_errors() {
    for mut subject in subjects() {
        let name = subject.name;
        subject.create(0, "x", 0).expect(name);
        for offset in [u64::MAX, u64::MAX / 2] {
            assert!(subject.write(0, offset, b"fox").is_err(), "{name}: {offset}");
        }
        assert!(subject.read(0, u64::MAX, 3).is_err(), "{name}");
    }
}

#[test]
fn all_operations_beyond_the_devices_depth_complete() {
    const BLOCK: usize = 16_384;
    for mut subject in subjects() {
        let name = subject.name;
        subject.create(0, "x", 0).expect(name);
        let block = |number: u64| vec![number.to_le_bytes()[0] + 1; BLOCK];
        for number in 0..40 {
            let (file, buffer) = (FileId(0), IoBuffer::copy_of(&block(number)));
            let op = IoOp::Write { file, offset: number * BLOCK as u64, buffer };
            subject.device.submit(IoId(number), op, Instant::ZERO);
        }
        assert_eq!(subject.device.in_flight(), 40, "{name}");
        let mut done = Vec::new();
        subject.reap_until(40, &mut done);
        let mut ids: Vec<u64> = done.iter().map(|done| done.id.0).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(0..40), "{name}: each once");
        assert!(
            subject.run(IoOp::Sync { file: FileId(0) }).result.is_ok(),
            "{name}: the name is new"
        );
        assert!(
            subject.run(IoOp::Sync { file: FileId(0) }).result.is_ok(),
            "{name}: the name is known"
        );
        for number in 0..40 {
            let read = subject.read(0, number * BLOCK as u64, BLOCK);
            assert!(read.as_deref() == Ok(&block(number)[..]), "{name}: block {number}");
        }
    }
}

#[test]
fn the_waker_ends_a_wait_even_if_called_before() {
    for mut subject in subjects() {
        let waker = subject.device.waker();
        waker.wake();
        waker.wake();
        subject.device.reap(Instant::ZERO, &mut Vec::new());
        subject.device.wait(None);
        let thread = std::thread::spawn(move || waker.wake());
        subject.device.wait(Some(Duration::MAX));
        thread.join().expect(subject.name);
    }
}

#[test]
fn an_idle_wait_ends_with_its_timeout() {
    for mut subject in subjects() {
        subject.device.wait(Some(Duration::from_millis(1)));
    }
}

#[test]
fn a_reader_returns_the_files_content_or_nothing_on_any_thread() {
    let mut given = 0;
    for mut subject in subjects() {
        let Some(reader) = subject.device.reader() else { continue };
        let name = subject.name;
        assert!(!name.ends_with("direct"), "{name}: what goes past the page cache is not in it");
        subject.create(0, "data", 1 << 20).expect(name);
        let bytes: Vec<u8> = (0..20_000).map(|number: u32| number.to_le_bytes()[0]).collect();
        subject.write(0, 5, &bytes).expect(name);
        let read = |file, offset, length| {
            let reader = reader.clone();
            let reading = std::thread::spawn(move || reader.read(FileId(file), offset, length));
            reading.join().expect("no panic").map(|buffer| buffer.as_ref().to_vec())
        };
        let found = read(0, 5, 20_000);
        given += usize::from(found.is_some());
        assert!(found.is_none_or(|found| found == bytes), "{name}");
        let ends = [(7, 0, 10), (0, (1 << 20) - 3, 4096), (0, u64::MAX - 3, 10)];
        for (file, offset, length) in ends.into_iter().cycle().take(100) {
            assert_eq!(read(file, offset, length), None, "{name}: not open, or too few bytes");
        }
        assert!(subject.run(IoOp::Close { file: FileId(0) }).result.is_ok(), "{name}");
        assert!((0..100).all(|_| read(0, 5, 10).is_none()), "{name}: not open any more");
    }
    assert_eq!(given > 0, can_read_without_waiting(), "this file system's files");
}

/// Returns whether the file system of temporary folders supports reads that fail (RWF_NOWAIT)
/// instead of waiting for the disk.
fn can_read_without_waiting() -> bool {
    let mut file = tempfile::tempfile().expect("a temporary file");
    std::io::Write::write_all(&mut file, b"foxy").expect("room for four bytes");
    let mut bytes = [0; 4];
    let slices = &mut [rustix::io::IoSliceMut::new(&mut bytes)];
    rustix::io::preadv2(&file, slices, 0, rustix::io::ReadWriteFlags::NOWAIT) == Ok(4)
}

#[test]
fn dropping_a_device_finishes_submitted_operations() {
    for mut subject in subjects() {
        let name = subject.name;
        subject.create(0, "x", 0).expect(name);
        let op =
            IoOp::Write { file: FileId(0), offset: 1, buffer: IoBuffer::copy_of(&[7; 300_000]) };
        subject.device.submit(IoId(7), op, Instant::ZERO);
        for number in 0..9 {
            let op = IoOp::Read { file: FileId(0), offset: 0, buffer: IoBuffer::zeroed(200_000) };
            subject.device.submit(IoId(number), op, Instant::ZERO);
        }
        drop(subject.device);
        if let Some(folder) = &subject.folder {
            let found = std::fs::read(folder.path().join("x")).expect(name);
            assert!(found.len() == 300_001 && found[1..].iter().all(|&byte| byte == 7), "{name}");
        }
    }
}

#[test]
fn all_devices_agree_on_random_work() {
    let seed = 20_261_121;
    let mut seen: Option<Vec<String>> = None;
    for mut subject in subjects() {
        let mut random = Random::new(seed);
        let mut log = Vec::new();
        for step in 0..600 {
            let file = u32::try_from(random.below(3)).expect("small");
            let offset =
                random.below(4) * 4096 + if random.chance(0.5) { random.below(5000) } else { 0 };
            let length =
                usize::try_from(random.below(3) * 4096 + random.below(2) * 77).expect("small");
            let path = StorePath::new(format!("f{file}"));
            let folder = StorePath::new(
                ["f0", "d", "d/e", "x/y"][usize::try_from(random.below(4)).expect("small")],
            );
            let outcome = match random.below(12) {
                0 => format!("{:?}", subject.create(file, path.as_str(), (random.below(2)) << 21)),
                1 => format!("{:?}", subject.run(IoOp::Open { file: FileId(file), path }).result),
                2 => format!("{:?}", subject.run(IoOp::Remove { path }).result),
                3..=5 => {
                    format!("{:?}", subject.read(file, offset, length).map(|bytes| xor(&bytes)))
                }
                6 => format!("{:?}", subject.run(IoOp::MakeDir { path: folder }).result),
                7 => format!("{:?}", subject.listing(folder)),
                8 => format!("{:?}", subject.listing(StorePath::root())),
                9 => format!("{:?}", subject.run(IoOp::Close { file: FileId(file) }).result),
                _ => {
                    let mut bytes = vec![0; length.max(1)];
                    random.fill(&mut bytes);
                    format!("{:?}", subject.write(file, offset, &bytes))
                }
            };
            log.push(format!("{step}: {outcome}"));
        }
        match &seen {
            None => seen = Some(log),
            Some(first) => {
                assert_eq!(&log, first, "{} differs from memory, seed {seed}", subject.name)
            }
        }
    }
}

fn xor(bytes: &[u8]) -> (usize, u64) {
    let sum =
        bytes.iter().enumerate().fold(0, |sum, (at, byte)| sum ^ (u64::from(*byte) << (at % 57)));
    (bytes.len(), sum)
}
