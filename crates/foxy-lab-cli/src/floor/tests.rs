//! Tests the floor (the smallest caching proxy) with requests over sockets and an origin of the
//! test's own.

use super::*;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::spawn;

/// Starts an origin whose answers consist of `size` bytes `x`. Returns its address and the number
/// of its requests.
fn origin(size: usize) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("an address");
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    spawn(move || {
        for client in listener.incoming() {
            let (mut client, counted) = (client.expect("accepted"), Arc::clone(&counted));
            spawn(move || {
                let mut buffer = [0; 4096];
                while client.read(&mut buffer).is_ok_and(|read| read > 0) {
                    counted.fetch_add(1, Ordering::Relaxed);
                    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n");
                    let answer = [head.as_bytes(), &vec![b'x'; size]].concat();
                    client.write_all(&answer).expect("sent");
                }
            });
        }
    });
    (address, requests)
}

fn connected(origin: SocketAddr, store: FloorStore) -> TcpStream {
    let free = TcpListener::bind("127.0.0.1:0").expect("bound").local_addr().expect("an address");
    start(Floor { origin, store }, free, 1).expect("started");
    TcpStream::connect(free).expect("connected")
}

fn body_length(client: &mut TcpStream, size: usize) -> usize {
    client.write_all(b"GET /a HTTP/1.1\r\nHost: a\r\n\r\n").expect("sent");
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n\r\n").len();
    let mut answer = vec![0; head + size];
    client.read_exact(&mut answer).expect("answered");
    answer[head..].iter().filter(|&&byte| byte == b'x').count()
}

#[test]
fn the_origin_gets_only_the_first_request_for_a_path() {
    for size in [10, 100_000, 3_000_000] {
        for small in [SmallAnswers::InMemory, SmallAnswers::InFile] {
            let folder = tempfile::tempdir().expect("a folder");
            let store = FloorStore::create(folder.path(), 16 << 20, small).expect("a store");
            let (address, requests) = origin(size);
            let mut client = connected(address, store);
            for _ in 0..3 {
                assert_eq!(body_length(&mut client, size), size);
            }
            assert_eq!(requests.load(Ordering::Relaxed), 1, "{size} bytes");
        }
    }
}
