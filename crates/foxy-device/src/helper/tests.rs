//! Tests of the helper device: what a dying helper costs, where submitting blocks, and messages that are none. What
//! every device promises is tested elsewhere.

use super::*;
use crate::io::{FileId, StorePath};
use crate::threads::DirectIo;
use std::io::Read;

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

/// A helper that reads this many bytes and dies.
fn dying(bytes: usize) -> Helper {
    let start = move |mut socket: UnixStream| -> std::io::Result<Ending> {
        let thread = std::thread::spawn(move || {
            let mut message = vec![0; bytes];
            socket.read_exact(&mut message).expect("that much is sent");
        });
        Ok(Box::new(move || thread.join().expect("it only reads")))
    };
    Helper::new(72, start).expect("a socket and a thread")
}

#[test]
fn a_helper_that_dies_fails_what_was_submitted_and_what_is_submitted_later() {
    let mut device = dying(5);
    for number in 0..3 {
        let (id, op) = open(number);
        device.submit(id, op, Instant::ZERO);
    }
    let buffer = IoBuffer::copy_of(b"fox");
    device.submit(IoId(3), IoOp::Write { file: FileId(0), offset: 0, buffer }, Instant::ZERO);
    let done = reap_all(&mut device);
    assert_eq!(done.len(), 4);
    assert!(done.iter().all(|done| matches!(done.result, Err(IoError::Device))));
    let returned = done.iter().find_map(|done| done.buffer.as_ref()).expect("the buffer comes back");
    assert_eq!(returned.as_ref(), b"fox");
    let (id, op) = open(9);
    device.submit(id, op, Instant::ZERO);
    assert!(matches!(reap_all(&mut device)[0].result, Err(IoError::Device)));
}

#[test]
fn submitting_blocks_while_too_much_is_unanswered() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().to_owned();
    let (go, gate) = std::sync::mpsc::channel::<()>();
    let start = move |socket: UnixStream| -> std::io::Result<Ending> {
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
    assert_eq!(device.shared.lock().outstanding, 2, "nothing blocks below the limit");
    go.send(()).expect("it waits");
    let (id, op) = open(2);
    device.submit(id, op, Instant::ZERO);
    assert!(!device.shared.lock().finished.is_empty(), "the third waited for an answer to another");
    assert_eq!(reap_all(&mut device).len(), 3);
}

#[test]
fn what_is_no_message_is_refused() {
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
