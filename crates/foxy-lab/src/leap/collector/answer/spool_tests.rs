//! Tests that bodies in memory and in the spool file (for bodies beyond the memory limit) stay
//! intact and within their limits, also on a full disk.

use super::spool::{BLOCK, BlockFile, Body, Spool};
use crate::leap::collector::failure::Failure;
use bytes::Bytes;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(work)
}

fn spool(memory: usize, blocks: u64) -> Rc<Spool> {
    let file = Arc::new(tempfile::tempfile().expect("a file"));
    Rc::new(Spool::new(memory, Some((file, blocks * BLOCK as u64))))
}

fn bytes(count: usize) -> Bytes {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

async fn all(body: &Body) -> Vec<u8> {
    let (mut found, mut at) = (Vec::new(), 0);
    while at < body.length() {
        let piece = body.read(at, body.length()).await.expect("readable");
        at += piece.len() as u64;
        found.extend_from_slice(&piece);
    }
    found
}

#[test]
fn a_body_is_read_as_it_was_added_in_memory_in_the_file_and_at_its_end() {
    run(async {
        let spool = spool(2 * BLOCK, 3);
        let (body, data) = (Body::new(&spool), bytes(4 * BLOCK + 100));
        for piece in data.chunks(1448) {
            body.add(Bytes::copy_from_slice(piece), &|| false).await.expect("room");
        }
        assert!(all(&body).await == data && !body.is_in_memory());
        body.finish(&|| false).await.expect("room");
        assert!(all(&body).await == data);
        drop(body);
        assert_eq!(spool.left(), (2 * BLOCK, 3), "all is free again");
    });
}

#[test]
fn without_room_a_body_is_refused_unless_something_goes() {
    run(async {
        let spool = spool(0, 1);
        let old = RefCell::new(Some(Body::new(&spool)));
        let first = old.borrow_mut().take().expect("a body");
        first.add(bytes(BLOCK), &|| false).await.expect("room");
        *old.borrow_mut() = Some(first);
        let new = Body::new(&spool);
        assert_eq!(new.add(bytes(BLOCK), &|| false).await, Err(Failure::NoRoom));
        let new = Body::new(&spool);
        assert_eq!(new.add(bytes(BLOCK), &|| old.borrow_mut().take().is_some()).await, Ok(()));
        assert_eq!(all(&new).await, bytes(BLOCK));
    });
}

/// A disk without free space.
struct Full;

impl BlockFile for Full {
    fn read(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    fn write(&self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }
}

#[test]
fn a_full_disk_fails_bodies_that_do_not_fit_into_memory_and_no_others() {
    run(async {
        let spool = Rc::new(Spool::new(10, Some((Arc::new(Full), 1 << 30))));
        let (small, large) = (Body::new(&spool), Body::new(&spool));
        assert_eq!(small.add(bytes(10), &|| false).await, Ok(()));
        assert_eq!(small.finish(&|| false).await, Ok(()));
        assert_eq!(large.add(bytes(BLOCK), &|| false).await, Err(Failure::SpoolFailed));
        assert_eq!(all(&small).await, bytes(10));
    });
}
