//! Tests the admin server: against hostile clients, and with estimates switched off.

use crate::support::{Foxy, request};
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

/// Returns whether the server still waits for the rest of a request.
fn is_open(mut stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    stream.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn clients_that_send_nothing_keep_nobody_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = Foxy::start(folder.path(), &[]);
    let half_open = |number: usize| {
        let mut stream = TcpStream::connect(foxy.admin).expect("connected");
        let begin: &[u8] =
            if number.is_multiple_of(2) { b"" } else { b"GET /metrics HTTP/1.1\r\n" };
        stream.write_all(begin).expect("sent");
        stream
    };
    let silent: Vec<_> = (0..200).map(half_open).collect();
    for page in ["/healthz", "/metrics", "/data/live"] {
        assert_eq!(foxy.admin(page).status, 200, "{page}");
    }
    let open = silent.iter().filter(|stream| is_open(stream)).count();
    assert!((32..64).contains(&open), "{open} of the silent clients waited as long as the others");
}

#[test]
fn one_bad_field_among_good_ones_refuses_a_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let foxy = Foxy::start(folder.path(), &[]);
    let status = |fields: &str| {
        let text = format!("GET /data/live HTTP/1.1\r\nHost: localhost\r\n{fields}\r\n");
        request(foxy.admin, &text).status
    };
    let own = "Sec-Fetch-Site: same-origin\r\n";
    assert_eq!(status(own), 200);
    assert_eq!(status(&format!("{own}Sec-Fetch-Site: cross-site\r\n")), 403);
    assert_eq!(status(&format!("{own}Origin: http://localhost\r\nOrigin: null\r\n")), 403);
}

#[test]
fn estimates_of_other_caches_can_be_switched_off() {
    let folder = tempfile::tempdir().expect("a folder");
    for (value, has_curves) in [("on", true), ("off", false)] {
        let foxy = Foxy::start(&folder.path().join(value), &["--what-if", value]);
        let report = foxy.admin("/data/whatif").body;
        assert_eq!(!report.contains("\"tiers\":[]"), has_curves, "{value}: {report}");
    }
}
