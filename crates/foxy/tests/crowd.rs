//! Tests a crowd: many clients that request the same object, which is not cached. Half of the
//! clients come at the start, and half when much of the object has arrived. foxy must fetch the
//! object once, use bounded memory, and send the right bytes to every client.
//!
//! `FOXY_CROWD=1000x1G` uses 1000 clients and an object of 1 GB, and prints the results. Use
//! `--release` and `--nocapture`. The limit on open files must allow two sockets for each client.

mod support;

use foxy_testkit::http::{head_length, read_head};
use foxy_testkit::origin::listen_in_order;
use foxy_testkit::wait::PATIENCE;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, Builder, JoinHandle};
use std::time::{Duration, Instant};
use support::Foxy;

/// The body consists of repetitions of a pattern with this number of bytes. The number is prime, so
/// bytes at the wrong offset of a buffer are noticed.
const PERIOD: usize = 65_521;

/// Largest number of bytes that a read or a write transfers.
const PIECE: usize = 64 << 10;

/// Limit in bytes for foxy's peak memory. `--memory` is 8 MiB. Parts of bodies need about 8 MiB
/// more, and fetches in progress too. The store's buffers and a few kilobytes for each client come
/// on top.
const PEAK: u64 = 64 << 20;

/// Returns the pattern, followed by its own beginning. So a piece of up to [`PIECE`] bytes can
/// start at any offset of the pattern.
fn pattern() -> Arc<Vec<u8>> {
    let byte = |at: usize| ((at % PERIOD).wrapping_mul(0x9e37_79b9) >> 13) as u8;
    Arc::new((0..PERIOD + PIECE).map(byte).collect())
}

fn piece(pattern: &[u8], at: u64, most: u64) -> &[u8] {
    let start = usize::try_from(at % PERIOD as u64).expect("small");
    let length = usize::try_from(most.min(PIECE as u64)).expect("small");
    &pattern[start..start + length]
}

/// Number of bytes of the body after which the second half of the clients comes. If the body is
/// smaller, they come after a third of it.
const LATE: u64 = 64 << 20;

/// Starts an origin with one object. Waits for a message from `go` before it sends a response, and
/// again after `pause` bytes of it. Returns the origin's address and the number of requests it has
/// received.
fn origin(
    (length, pause): (u64, u64),
    pattern: Arc<Vec<u8>>,
    go: Receiver<()>,
) -> (SocketAddr, Arc<AtomicU64>) {
    let asked = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&asked);
    let address = listen_in_order(move |mut stream| {
        read_head(&mut stream).expect("a request");
        counter.fetch_add(1, Ordering::SeqCst);
        go.recv().expect("the test goes on");
        let head = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nETag: \"one\"\r\n\
             Content-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("foxy reads");
        let mut at = 0;
        while at < length {
            if at == pause {
                go.recv().expect("the test goes on");
            }
            let stop = if at < pause { pause } else { length };
            let piece = piece(&pattern, at, stop - at);
            stream.write_all(piece).expect("foxy reads");
            at += piece.len() as u64;
        }
    });
    (address, asked)
}

/// Sends a request on its own thread. The thread checks every byte of the body, and returns the
/// length of the body.
fn client(proxy: SocketAddr, url: String, length: u64, pattern: Arc<Vec<u8>>) -> JoinHandle<u64> {
    let run = move || {
        let mut stream = TcpStream::connect(proxy).expect("connected");
        stream.set_read_timeout(Some(10 * PATIENCE)).expect("set");
        let request = format!("GET {url} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).expect("sent");
        let mut buffer = vec![0; PIECE];
        let mut head = Vec::new();
        let mut filled = loop {
            let count = stream.read(&mut buffer).expect("readable");
            assert!(count > 0, "closed within the head");
            let before = head.len();
            head.extend_from_slice(&buffer[..count]);
            if let Some(length) = head_length(&head) {
                let body = length - before;
                buffer.copy_within(body..count, 0);
                break count - body;
            }
        };
        assert!(head.starts_with(b"HTTP/1.1 200 OK\r\n"));
        let mut at = 0;
        loop {
            let right = piece(&pattern, at, filled as u64);
            assert!(
                buffer[..filled] == *right,
                "a wrong byte between {at} and {}",
                at + filled as u64
            );
            at += filled as u64;
            filled = stream.read(&mut buffer).expect("readable");
            if filled == 0 {
                assert_eq!(at, length, "not whole");
                return at;
            }
        }
    };
    Builder::new().stack_size(128 << 10).spawn(run).expect("a thread")
}

/// Waits until `clients` clients share a single fetch.
fn await_crowd(foxy: &Foxy, clients: u64) {
    while foxy.metric::<u64>("foxy_proxy_collapsed_total") + 1 < clients {
        assert!(
            foxy.metric::<u64>("foxy_proxy_forwarded_total") <= 1,
            "some have a fetch of their own"
        );
        thread::sleep(Duration::from_millis(20));
    }
}

/// Returns the number of clients, the length of the body in bytes, and whether to print results.
#[expect(
    clippy::disallowed_methods,
    reason = "says how large the crowd is; without it the usual one"
)]
fn crowd() -> (u64, u64, bool) {
    let Ok(text) = std::env::var("FOXY_CROWD") else { return (100, 24 << 20, false) };
    let (clients, size) = text.split_once('x').expect("CLIENTSxSIZE");
    let size: foxy_base::ByteSize = size.parse().expect("a size");
    (clients.parse().expect("a number of clients"), size.0, true)
}

#[test]
fn a_crowd_that_asks_for_one_cold_object_is_one_fetch_and_bounded_memory() {
    let (clients, length, tell) = crowd();
    let pattern = pattern();
    let folder = tempfile::tempdir().expect("a folder");
    let size = (2 * length).max(64 << 20).to_string();
    let limit = length.to_string();
    let foxy = Foxy::start_plain(folder.path(), &["--size", &size, "--object-limit", &limit]);
    let (go, wait) = channel();
    let pause = (length / 3).min(LATE);
    let (address, asked) = origin((length, pause), Arc::clone(&pattern), wait);
    let url = format!("http://{address}/large");
    #[expect(
        clippy::disallowed_methods,
        reason = "how long it took is told, nothing depends on it"
    )]
    let started = Instant::now();
    let come = |_| client(foxy.proxy, url.clone(), length, Arc::clone(&pattern));
    let mut readers: Vec<_> = (0..clients / 2).map(come).collect();
    await_crowd(&foxy, clients / 2);
    go.send(()).expect("the origin waits");
    while foxy.metric::<u64>("foxy_proxy_origin_received_bytes_total") < pause {
        thread::sleep(Duration::from_millis(20));
    }
    readers.extend((clients / 2..clients).map(come));
    await_crowd(&foxy, clients);
    go.send(()).expect("the origin waits");
    let total: u64 =
        readers.into_iter().map(|reader| reader.join().expect("every byte is right")).sum();
    assert_eq!(total, clients * length);
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    let peak = foxy.peak_memory();
    if tell {
        let seconds = started.elapsed().as_secs_f64();
        let fetched = foxy.metric::<u64>("foxy_proxy_origin_received_bytes_total");
        writeln!(
            std::io::stdout(),
            "{clients} clients, half of them after {pause} bytes, {length} bytes each: \
             {seconds:.1} s; 1 request to the origin, {fetched} bytes from it; \
             at most {peak} bytes held"
        )
        .expect("printed");
    }
    assert!(peak <= PEAK, "foxy held {peak} bytes");
}
