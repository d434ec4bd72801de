//! Tests of chunked answers with trailers. LEAP does not compare trailers.

use super::{run_of, server, whole};
use crate::leap::*;
use std::io::{Read, Write};
use std::net::TcpStream;

const BODY: &str = "first second";
/// A chunked body up to its last chunk, without trailers.
const CHUNKS: &str = "6\r\nfirst \r\n6\r\nsecond\r\n0\r\n";

fn chunked(fields: &str, trailers: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{fields}\r\n{CHUNKS}{trailers}")
        .into_bytes()
}

fn with_trailers() -> SocketAddr {
    server(|_| Some(chunked("Trailer: X-Sum, X-More\r\n", "X-Sum: 1\r\nX-More: 2\r\n\r\n")))
}

#[test]
fn whole_changed_or_dropped_trailers_are_no_difference_and_half_are_incomplete() {
    let run = run_of(&[
        ("direct", with_trailers(), Manner::Direct),
        ("passes", with_trailers(), Manner::Reverse),
        ("changes", server(|_| Some(chunked("", "X-Other: 9\r\n\r\n"))), Manner::Reverse),
        ("drops", server(|_| Some(whole("", BODY))), Manner::Reverse),
        ("breaks off", server(|_| Some(chunked("", "X-Sum: 1\r\nX-M"))), Manner::Reverse),
    ]);
    let asked = || Asked::get("o.test".into(), "/a".into(), Duration::ZERO);
    let mut requests = std::iter::repeat_with(asked).take(3);
    let report =
        crate::leap::run(&run, &asked(), &mut requests, &mut |_| {}, &mut |_| {}).expect("run");
    for path in &report.paths[..4] {
        assert_eq!(
            (path.count(Verdict::Ok), path.bytes),
            (3, 36),
            "{}: {:?}",
            path.name,
            path.examples
        );
    }
    let broken = &report.paths[4];
    assert_eq!(
        (broken.count(Verdict::Incomplete), broken.failed()),
        (3, 3),
        "{:?}",
        broken.examples
    );
}

#[test]
fn a_client_gets_the_whole_body_before_trailers_and_its_connection_goes_on() {
    let run = run_of(&[("direct", with_trailers(), Manner::Direct)]);
    let front = Front {
        authority: Some("o.test".into()),
        any_host: true,
        ..Front::here().expect("a port")
    };
    let multiplier = Multiplier::start(run, front).expect("started");
    let mut client = TcpStream::connect(multiplier.address()).expect("connected");
    let text = "GET /a HTTP/1.1\r\nHost: o.test\r\n\r\nGET /b HTTP/1.1\r\nHost: o.test\r\n\
                Connection: close\r\n\r\n";
    client.write_all(text.as_bytes()).expect("sent");
    let mut answers = String::new();
    client.read_to_string(&mut answers).expect("answered");
    let bodies: Vec<String> = answers
        .split("HTTP/1.1 200 OK\r\n")
        .skip(1)
        .map(|answer| {
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
            assert!(!head.to_ascii_lowercase().contains("trailer"), "{head}");
            assert!(body.ends_with("\r\n0\r\n\r\n") && !body.contains("X-"), "{body:?}");
            body.split("\r\n").skip(1).step_by(2).collect()
        })
        .collect();
    assert_eq!(bodies, [BODY, BODY]);
    let report = multiplier.stop().expect("served");
    assert_eq!((report.paths[0].answers, report.paths[0].failed()), (2, 0));
}
