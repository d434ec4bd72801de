//! Tests of the helper device: death of a helper, blocking submissions, and invalid messages.

use super::*;
use crate::io::{FileId, StorePath};
use crate::threads::DirectIo;
use std::io::Read;
use std::path::Path;

fn open(number: u64) -> (IoId, IoOp) {
    let file = FileId(u32::try_from(number).expect("small"));
    (IoId(number), IoOp::Open { file, path: StorePath::new("x") })
}

fn reap_all(device: &mut Helper) -> Vec<IoDone> {
    let mut done = Vec::new();
    while device.in_flight() > 0 {
        device.wait(Some(Duration::from_secs(30)));
        device.reap(Instant::ZERO, &mut done);
    }
    done
}

/// Creates a device on `folder`. The first helper process of the device reads `bytes` bytes of
/// messages and dies. Later helpers work.
fn dying(bytes: usize, folder: &Path) -> Helper {
    let (mut first, folder) = (true, folder.to_owned());
    let start = move |mut socket: UnixStream| -> std::io::Result<Ending> {
        let (dies, folder) = (std::mem::take(&mut first), folder.clone());
        let thread = std::thread::spawn(move || {
            if dies {
                let mut message = vec![0; bytes];
                socket.read_exact(&mut message).expect("that much is sent");
            } else {
                serve(socket, &folder, DirectIo::Off).expect("served to the end");
            }
        });
        Ok(Box::new(move || thread.join().expect("it ends well")))
    };
    Helper::new(72, start).expect("a socket and a thread")
}

#[test]
fn a_dead_helper_fails_pending_operations_and_is_replaced() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("x"), b"fox").expect("written");
    let mut device = dying(5, folder.path());
    for number in 0..3 {
        let (id, op) = open(number);
        device.submit(id, op, Instant::ZERO);
    }
    let done = reap_all(&mut device);
    assert_eq!(done.len(), 3);
    assert!(done.iter().all(|done| matches!(done.result, Err(IoError::Device))));
    assert_eq!(device.restarts(), 0);
    let (id, op) = open(9);
    device.submit(id, op, Instant::ZERO);
    assert_eq!(reap_all(&mut device)[0].result, Ok(IoOutput::Opened { size: 3 }));
    assert_eq!(device.restarts(), 1);
}

#[test]
fn buffers_come_back_from_a_helper_that_died() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut device = dying(5, folder.path());
    let buffer = IoBuffer::copy_of(b"fox");
    device.submit(IoId(3), IoOp::Write { file: FileId(0), offset: 0, buffer }, Instant::ZERO);
    let done = reap_all(&mut device);
    assert_eq!(done[0].buffer.as_ref().map(AsRef::as_ref), Some(&b"fox"[..]));
}

#[test]
fn a_new_helper_reopens_open_files_only() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("x"), b"fox").expect("written");
    let (kill, killed) = std::sync::mpsc::channel::<UnixStream>();
    let path = folder.path().to_owned();
    let start = move |socket: UnixStream| -> std::io::Result<Ending> {
        kill.send(socket.try_clone()?).expect("the test waits");
        let path = path.clone();
        let thread = std::thread::spawn(move || serve(socket, &path, DirectIo::Off));
        Ok(Box::new(move || drop(thread.join().expect("no panic"))))
    };
    let mut device = Helper::new(72, start).expect("a socket and a thread");
    for op in [open(0).1, open(1).1, IoOp::Close { file: FileId(1) }] {
        device.submit(IoId(0), op, Instant::ZERO);
        assert!(reap_all(&mut device)[0].result.is_ok());
    }
    for round in 1..=3 {
        let now = Instant::ZERO + Duration::from_secs(100 * round);
        let socket = killed.recv().expect("it was started");
        socket.shutdown(Shutdown::Both).expect("open");
        while !device.running.is_dead() {
            std::thread::yield_now();
        }
        let mut read = |file| {
            let buffer = IoBuffer::zeroed(3);
            device.submit(IoId(5), IoOp::Read { file: FileId(file), offset: 0, buffer }, now);
            reap_all(&mut device).remove(0).result
        };
        assert_eq!(read(0), Ok(IoOutput::Moved { count: 3 }), "round {round}");
        assert_eq!(read(1), Err(IoError::NotOpen), "round {round}");
        assert_eq!(device.restarts(), round);
    }
    // Drop the test's copy of the last helper's socket, because the copy would keep the connection
    // open.
    drop(killed);
}

#[test]
fn submitting_blocks_at_the_limit_of_unanswered_operations() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_owned();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let mut gate = Some(gate);
    let start = move |socket: UnixStream| -> std::io::Result<Ending> {
        let (gate, path) = (gate.take().expect("it is started once"), path.clone());
        let thread = std::thread::spawn(move || {
            gate.recv().expect("the test lets it go");
            serve(socket, &path, DirectIo::Off).expect("served to the end");
        });
        Ok(Box::new(move || thread.join().expect("it ends well")))
    };
    let mut device = Helper::new(2, start).expect("a socket and a thread");
    for number in 0..2 {
        let (id, op) = open(number);
        device.submit(id, op, Instant::ZERO);
    }
    assert_eq!(device.running.shared.lock().outstanding, 2, "nothing blocks below the limit");
    go.send(()).expect("it waits");
    let (id, op) = open(2);
    device.submit(id, op, Instant::ZERO);
    assert!(
        !device.running.shared.lock().finished.is_empty(),
        "the third waited for an answer to another"
    );
    assert_eq!(reap_all(&mut device).len(), 3);
}

#[test]
fn invalid_messages_are_refused() {
    let (id, op) = open(1);
    let sound = wire::operation(id, &op);
    assert!(wire::read_operation(&mut &sound[..]).is_ok());
    for length in 0..sound.len() {
        assert!(wire::read_operation(&mut &sound[..length]).is_err(), "{length} bytes");
    }
    let check = |change: fn(&mut Vec<u8>)| {
        let mut message = sound.clone();
        change(&mut message);
        assert!(wire::read_operation(&mut &message[..]).is_err());
        assert!(wire::read_answer(&mut &message[..]).is_err());
    };
    check(|message| message[12] = 77);
    check(|message| message[3] = 0xFF);
    let mut outside = wire::operation(id, &IoOp::Remove { path: StorePath::new("aa") });
    let end = outside.len();
    outside[end - 2..].copy_from_slice(b"..");
    assert!(wire::read_operation(&mut &outside[..]).is_err());
}
