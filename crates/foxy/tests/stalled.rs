//! Tests foxy's memory while clients send requests but do not read the responses. The resident
//! memory must stay within the bound in docs/operation.md.

mod support;

use foxy_testkit::http::ok;
use foxy_testkit::http2::{END_HEADERS, END_STREAM, PREFACE, frame, get_block, kind};
use foxy_testkit::origin::TestOrigin;
use foxy_testkit::wait::PATIENCE;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use support::Foxy;

/// Length of each object in bytes. foxy stores such an object as one record.
const LENGTH: usize = 1 << 20;

const OBJECTS: usize = 200;

/// Number of HTTP/2 connections.
const CONNECTIONS: usize = 10;
/// Number of requests on each connection.
const STREAMS: u32 = 100;

/// Value of `--memory` in the test support, in bytes.
const MEMORY: u64 = 8 << 20;

/// Returns the number of bytes by which foxy's memory may grow after its start, according to
/// docs/operation.md.
fn bound() -> u64 {
    let budget = (MEMORY / 2).max(8 << 20);
    let requests = budget / (16 << 10) + CONNECTIONS as u64;
    MEMORY + 5 * budget + MEMORY / 4 + requests * (64 << 10) + (256 << 10) * CONNECTIONS as u64
}

/// Starts an origin whose objects have [`LENGTH`] bytes.
fn large_origin() -> SocketAddr {
    let answer = ok("Cache-Control: max-age=3600\r\n", &vec![b'x'; LENGTH]);
    TestOrigin::start(move |_, _| answer.clone()).address
}

/// Builds the HEADERS frame of a GET request for an object.
fn ask(stream: u32, origin: SocketAddr, object: usize) -> Vec<u8> {
    let block = get_block(&origin.to_string(), &format!("/{object}"));
    frame(kind::HEADERS, END_STREAM | END_HEADERS, stream, &block)
}

/// Opens an HTTP/2 connection and sends many requests. No body can arrive, because the flow-control
/// window is 0 bytes.
fn stall(foxy: &Foxy, origin: SocketAddr, first: usize) -> TcpStream {
    let mut client = TcpStream::connect(foxy.proxy).expect("connected");
    client.set_read_timeout(Some(PATIENCE)).expect("set");
    let mut bytes = PREFACE.to_vec();
    bytes.extend(frame(kind::SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]));
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
        // A HEADERS frame starts a response. RST_STREAM means that foxy has no memory for the
        // request.
        answered += u32::from(header[3] == kind::HEADERS || header[3] == kind::RST_STREAM);
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
