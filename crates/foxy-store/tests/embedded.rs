//! Tests the store as other programs use it: with and without an async runtime, after `kill -9`,
//! and in directories where it cannot be opened.

use foxy_store::{Key, OpenError, Record, Store};
use std::future::IntoFuture;
use std::io::{BufRead, BufReader};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::task::{Context, Poll, Wake};
use std::thread::{self, Thread};

const SIZE: u64 = 64 << 20;

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

fn record(body: &'static str) -> Record {
    Record { head: "head".into(), body: body.into() }
}

/// Wakes the thread that waits for a future.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (mut future, waker) = (pin!(future), Arc::new(Unpark(thread::current())).into());
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn records_are_there_after_the_store_was_closed() {
    let folder = folder();
    let key = Key::of(b"name");
    let store = Store::open(folder.path(), SIZE).expect("opens");
    store.put(key, record("body")).wait().expect("stored");
    drop(store);
    let store = Store::open(folder.path(), SIZE).expect("opens again");
    assert_eq!(store.get(key).wait(), Some(record("body")));
}

#[test]
fn requests_can_be_awaited() {
    let folder = folder();
    let store = Store::open(folder.path(), SIZE).expect("opens");
    let key = Key::of(b"name");
    block_on(store.put(key, record("body")).into_future()).expect("stored");
    assert_eq!(block_on(store.get(key).into_future()), Some(record("body")));
    block_on(store.remove(key).into_future()).expect("removed");
    assert_eq!(block_on(store.get(key).into_future()), None);
}

#[test]
fn records_are_there_after_a_kill() {
    let folder = folder();
    let tests = std::env::current_exe().expect("this program");
    let example =
        tests.parent().and_then(|deps| deps.parent()).expect("a folder").join("examples/embed");
    for start in 1..=2 {
        let mut command = Command::new(&example);
        let mut child =
            command.arg(folder.path()).stdout(Stdio::piped()).spawn().expect("cargo built it");
        let mut line = String::new();
        let output = child.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        child.kill().expect("runs");
        child.wait().expect("ends");
        assert_eq!(line.trim(), format!("start {start}"));
    }
}

#[test]
fn a_folder_that_is_in_use_or_foreign_is_refused() {
    let used = folder();
    let _store = Store::open(used.path(), SIZE).expect("opens");
    assert!(matches!(Store::open(used.path(), SIZE), Err(OpenError::Folder(_))));
    let foreign = folder();
    let file = foreign.path().join("webcosm.foxy");
    std::fs::write(&file, "not a store, but long enough to be read as one. ".repeat(1000))
        .expect("written");
    let opened = Store::open(foreign.path(), SIZE);
    assert!(matches!(opened, Err(OpenError::Unusable(_))), "{:?}", opened.err());
    assert!(std::fs::read_to_string(&file).expect("readable").starts_with("not a store"));
}
