//! Tests that the faulty device injects the faults of its plan. A random seed determines which
//! operations have faults. An empty plan injects no faults.

use foxy_base::{Instant, Random};
use foxy_device::{
    CrashPolicy, Device, FaultKind, FaultPlan, Faulty, FileId, IoBuffer, IoDone, IoError, IoId,
    IoOp, IoOutput, Memory, StorePath,
};
use std::time::Duration;

const FILE: FileId = FileId(0);
const LENGTH: usize = 4096;

fn path() -> StorePath {
    StorePath::new("a")
}

/// Creates a device with one file whose bytes are all 1. The faults of `plan` start after the file
/// was written.
fn device(plan: FaultPlan, seed: u64) -> Faulty<Memory> {
    let mut device = Faulty::new(Memory::volatile(), FaultPlan::default(), seed);
    let operations = [
        IoOp::Create { file: FILE, path: path(), size: 0 },
        write(&[1; LENGTH]),
        IoOp::Sync { file: FILE },
    ];
    for op in operations {
        assert!(run(&mut device, op).result.is_ok());
    }
    device.set_plan(plan);
    device
}

fn write(bytes: &[u8]) -> IoOp {
    IoOp::Write { file: FILE, offset: 0, buffer: IoBuffer::copy_of(bytes) }
}

fn read() -> IoOp {
    IoOp::Read { file: FILE, offset: 0, buffer: IoBuffer::zeroed(LENGTH) }
}

fn drain(device: &mut Faulty<Memory>) -> Vec<IoDone> {
    let mut done = Vec::new();
    while let Some(at) = device.next_completion() {
        device.reap(at, &mut done);
    }
    assert_eq!(device.in_flight(), 0);
    done
}

fn run(device: &mut Faulty<Memory>, op: IoOp) -> IoDone {
    device.submit(IoId(0), op, Instant::ZERO);
    let mut done = drain(device);
    assert_eq!(done.len(), 1);
    done.remove(0)
}

fn content(device: &Faulty<Memory>) -> Vec<u8> {
    device.inner().content(&path()).expect("the file is there")
}

fn differing_bits(left: &[u8], right: &[u8]) -> u32 {
    left.iter().zip(right).map(|(left, right)| (left ^ right).count_ones()).sum()
}

#[test]
fn an_empty_plan_changes_nothing() {
    let mut device = device(FaultPlan::default(), 1);
    assert!(matches!(
        run(&mut device, write(&[2; LENGTH])).result,
        Ok(IoOutput::Moved { count: LENGTH })
    ));
    assert_eq!(run(&mut device, read()).buffer.expect("the buffer").as_ref(), [2; LENGTH]);
    assert_eq!(device.counts().total(), 0);
}

#[test]
fn a_failed_write_returns_its_buffer_and_may_be_partial() {
    for seed in 0..20 {
        let mut device = device(FaultPlan { errors: 1.0, ..FaultPlan::default() }, seed);
        let done = run(&mut device, write(&[2; LENGTH]));
        assert!(matches!(done.result, Err(IoError::Device)), "seed {seed}");
        assert_eq!(done.buffer.expect("the buffer").as_ref(), [2; LENGTH], "seed {seed}");
        let kept = content(&device).iter().take_while(|&&byte| byte == 2).count();
        assert!(content(&device)[kept..].iter().all(|&byte| byte == 1), "seed {seed}");
        assert!(matches!(run(&mut device, IoOp::Sync { file: FILE }).result, Err(IoError::Device)));
        device.crash(&CrashPolicy::LOSE_ALL);
        assert_eq!(
            content(&device),
            [1; LENGTH],
            "seed {seed}: a failed sync makes nothing durable"
        );
    }
}

#[test]
fn a_full_disk_fails_writes_and_creates_only() {
    let mut device = device(FaultPlan { no_space: 1.0, ..FaultPlan::default() }, 1);
    assert!(matches!(run(&mut device, write(&[2; LENGTH])).result, Err(IoError::NoSpace)));
    let create = IoOp::Create { file: FileId(1), path: StorePath::new("b"), size: 0 };
    assert!(matches!(run(&mut device, create).result, Err(IoError::NoSpace)));
    assert!(run(&mut device, read()).result.is_ok());
    assert_eq!(device.counts().of(FaultKind::NoSpace), 2);
}

#[test]
fn short_transfers_say_how_many_bytes_they_moved() {
    for seed in 0..20 {
        let plan = FaultPlan { short_reads: 1.0, short_writes: 1.0, ..FaultPlan::default() };
        let mut device = device(plan, seed);
        let done = run(&mut device, write(&[2; LENGTH]));
        let Ok(IoOutput::Moved { count }) = done.result else { panic!("seed {seed}: {done:?}") };
        assert!(count < LENGTH, "seed {seed}");
        assert_eq!(done.buffer.map(|buffer| buffer.len()), Some(LENGTH), "seed {seed}");
        assert_eq!(
            content(&device),
            [vec![2; count], vec![1; LENGTH - count]].concat(),
            "seed {seed}"
        );
        let done = run(&mut device, read());
        let Ok(IoOutput::Moved { count }) = done.result else { panic!("seed {seed}: {done:?}") };
        let buffer = done.buffer.expect("the buffer");
        assert_eq!(buffer.as_ref()[..count], content(&device)[..count], "seed {seed}");
        assert!(
            buffer.as_ref()[count..].iter().all(|&byte| byte > 2),
            "seed {seed}: the rest is garbage"
        );
    }
}

#[test]
fn a_flip_changes_one_bit_and_not_the_submitters_buffer() {
    let mut device = device(FaultPlan { flips_written: 1.0, ..FaultPlan::default() }, 1);
    let done = run(&mut device, write(&[2; LENGTH]));
    assert_eq!(done.buffer.expect("the buffer").as_ref(), [2; LENGTH]);
    assert_eq!(differing_bits(&content(&device), &[2; LENGTH]), 1);
    device.set_plan(FaultPlan { flips_read: 1.0, ..FaultPlan::default() });
    let done = run(&mut device, read());
    assert_eq!(differing_bits(done.buffer.expect("the buffer").as_ref(), &content(&device)), 1);
}

#[test]
fn lost_and_misdirected_writes_claim_success() {
    let mut device = device(FaultPlan { lost_writes: 1.0, ..FaultPlan::default() }, 1);
    assert!(matches!(
        run(&mut device, write(&[2; LENGTH])).result,
        Ok(IoOutput::Moved { count: LENGTH })
    ));
    assert_eq!(content(&device), [1; LENGTH]);
    device.set_plan(FaultPlan { misdirected_writes: 1.0, ..FaultPlan::default() });
    assert!(matches!(
        run(&mut device, write(&[2; LENGTH])).result,
        Ok(IoOutput::Moved { count: LENGTH })
    ));
    let astray = content(&device).iter().position(|&byte| byte == 2).expect("written somewhere");
    assert!(astray > 0 && astray.is_multiple_of(512), "at {astray}");
}

/// Runs operations on a device with every kind of fault. Returns the log of the run.
fn conversation(seed: u64) -> Vec<String> {
    let plan = FaultPlan {
        errors: 0.05,
        no_space: 0.05,
        short_reads: 0.1,
        short_writes: 0.1,
        flips_written: 0.1,
        flips_read: 0.1,
        lost_writes: 0.05,
        misdirected_writes: 0.05,
        latency: (Duration::from_micros(10), Duration::from_millis(1)),
    };
    let (mut device, mut random, mut log) = (device(plan, seed), Random::new(seed), Vec::new());
    for round in 0..20 {
        for number in 0..10 {
            let op = match random.below(3) {
                0 => read(),
                1 => IoOp::Sync { file: FILE },
                _ => write(&[7; LENGTH]),
            };
            device.submit(IoId(number), op, Instant(round));
        }
        assert_eq!(device.in_flight(), 10);
        let done = drain(&mut device);
        assert_eq!(done.len(), 10);
        log.extend(done.into_iter().map(|done| format!("{} {:?}", done.id.0, done.result)));
    }
    device.crash(&CrashPolicy::MIXED);
    log.push(format!("{:?} {:?}", device.counts(), device.inner().content(&path())));
    log
}

#[test]
fn the_same_seed_gives_the_same_faults_in_the_same_order() {
    assert_eq!(conversation(3), conversation(3));
    assert_ne!(conversation(3), conversation(4));
    let in_order = conversation(3).windows(2).all(|pair| pair[0] <= pair[1]);
    assert!(!in_order, "latency changes the order of completions");
}

#[test]
fn nothing_completes_before_its_time() {
    let latency = (Duration::from_millis(5), Duration::from_millis(5));
    let mut device = device(FaultPlan { latency, ..FaultPlan::default() }, 1);
    device.submit(IoId(1), write(&[2; LENGTH]), Instant(7));
    let due = Instant(7) + Duration::from_millis(5);
    assert_eq!(device.next_completion(), Some(due));
    let mut done = Vec::new();
    device.reap(due - Duration::from_nanos(1), &mut done);
    assert!(done.is_empty());
    device.reap(due, &mut done);
    assert_eq!(done.len(), 1);
}

#[test]
fn a_close_completes_after_all_earlier_operations() {
    for seed in 0..20 {
        let latency = (Duration::ZERO, Duration::from_millis(5));
        let mut device = device(FaultPlan { latency, ..FaultPlan::default() }, seed);
        for number in 0..5 {
            device.submit(IoId(number), write(&[2; LENGTH]), Instant::ZERO);
        }
        device.submit(IoId(9), IoOp::Close { file: FILE }, Instant::ZERO);
        let done = drain(&mut device);
        assert!(done.iter().all(|done| done.result.is_ok()), "seed {seed}: {done:?}");
    }
}

#[test]
fn a_crash_keeps_or_loses_a_write_in_flight() {
    let mut seen = [0; 2];
    for seed in 0..40 {
        let latency = (Duration::from_millis(1), Duration::from_millis(5));
        let mut device = device(FaultPlan { latency, ..FaultPlan::default() }, seed);
        device.submit(IoId(1), write(&[2; LENGTH]), Instant::ZERO);
        device.crash(&CrashPolicy::KEEP_ALL);
        assert_eq!((device.in_flight(), device.next_completion()), (0, None), "seed {seed}");
        seen[usize::from(content(&device) == [2; LENGTH])] += 1;
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
}
