//! Memory that clients make foxy hold which ask and take nothing, against the bound in
//! docs/operation.md, as the system counts it.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use support::{Foxy, PATIENCE};

/// Bytes of each object: it is stored as one record.
const LENGTH: usize = 1 << 20;

const OBJECTS: usize = 200;

/// HTTP/2 connections, and requests on each.
const CONNECTIONS: usize = 10;
const STREAMS: u32 = 100;

/// The `--memory` that `support` gives.
const MEMORY: u64 = 8 << 20;

/// What docs/operation.md says that foxy takes at most beyond what it takes when it begins.
fn bound() -> u64 {
    let budget = (MEMORY / 2).max(8 << 20);
    let requests = budget / (16 << 10) + CONNECTIONS as u64;
    MEMORY + 5 * budget + MEMORY / 4 + requests * (64 << 10) + (256 << 10) * CONNECTIONS as u64
}

/// Starts an origin whose objects have [`LENGTH`] bytes.
fn large_origin() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || serve(stream));
        }
    });
    address
}

/// Answers requests until the client leaves.
fn serve(mut stream: TcpStream) {
    let mut lines = BufReader::new(stream.try_clone().expect("cloned")).lines();
    let head = format!(
        "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {LENGTH}\r\n\r\n"
    );
    let answer = [head.as_bytes(), &[b'x'; LENGTH]].concat();
    while let Some(Ok(line)) = lines.next() {
        if line.is_empty() && stream.write_all(&answer).is_err() {
            return;
        }
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Asks for an object as HTTP/2, with fields that are not compressed.
fn ask(stream: u32, origin: SocketAddr, object: usize) -> Vec<u8> {
    let (authority, path) = (origin.to_string(), format!("/{object}"));
    let fields = [
        (":method", "GET"),
        (":scheme", "http"),
        (":authority", &authority[..]),
        (":path", &path[..]),
    ];
    let text =
        |text: &str| [&[u8::try_from(text.len()).expect("short")][..], text.as_bytes()].concat();
    let block = fields.iter().flat_map(|(name, value)| [vec![0], text(name), text(value)].concat());
    frame(1, 5, stream, &block.collect::<Vec<u8>>())
}

/// A connection on which many requests wait for their bodies, as its window is nothing.
fn stall(foxy: &Foxy, origin: SocketAddr, first: usize) -> TcpStream {
    let mut client = TcpStream::connect(foxy.proxy).expect("connected");
    client.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for number in 0..STREAMS {
        bytes.extend(ask(2 * number + 1, origin, (first + number as usize) % OBJECTS));
    }
    client.write_all(&bytes).expect("sent");
    let mut answered = 0;
    while answered < STREAMS {
        let mut header = [0; 9];
        client.read_exact(&mut header).expect("a frame");
        let length = u32::from_be_bytes([0, header[0], header[1], header[2]]);
        std::io::copy(&mut (&client).take(length.into()), &mut std::io::sink())
            .expect("its payload");
        // A head, or the word that there is no room for the request.
        answered += u32::from(header[3] == 1 || header[3] == 3);
    }
    client
}

#[test]
fn clients_that_take_nothing_keep_foxy_within_its_stated_memory() {
    let (origin, folder) = (large_origin(), tempfile::tempdir().expect("a folder"));
    let more = ["--size", "512M", "--access-log", "off"];
    let foxy = Foxy::start_plain(folder.path(), &more);
    let begun = foxy.peak_memory();
    for object in 0..OBJECTS {
        assert_eq!(foxy.get(&format!("http://{origin}/{object}")).body.len(), LENGTH);
    }
    let stalled: Vec<_> =
        (0..CONNECTIONS).map(|number| stall(&foxy, origin, number * STREAMS as usize)).collect();
    let peak = foxy.peak_memory();
    assert!(
        peak <= begun + bound(),
        "{} MB at most, {} MB stated",
        peak >> 20,
        (begun + bound()) >> 20
    );
    let answer = foxy.get(&format!("http://{origin}/0"));
    assert_eq!((answer.status, answer.body.len()), (200, LENGTH), "others are served");
    drop(stalled);
}
