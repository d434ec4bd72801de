//! Tests that LEAP names the right reason for each exchange that fails.

use super::{honest, run_of, server, whole};
use crate::leap::*;
use foxy_http::Method;
use foxy_testkit::origin::listen_in_order;
use std::io::{Read, Write};

/// Sends one request to a correct server and to `other`. Returns the report.
fn beside(other: SocketAddr, method: &Method) -> LeapReport {
    let honest = server(|request| {
        let answer = whole("", "one");
        Some(if request.starts_with("HEAD") { answer[..answer.len() - 3].to_vec() } else { answer })
    });
    let run = run_of(&[("direct", honest, Manner::Direct), ("other", other, Manner::Reverse)]);
    let message = Arc::new(Message { method: method.clone(), ..Message::default() });
    let asked = Asked { message, ..Asked::get("o.test".into(), "/a".into(), Duration::ZERO) };
    let mut one = std::iter::once(asked.clone());
    let report = crate::leap::run(&run, &asked, &mut one, &mut |_| {}, &mut |_| {}).expect("run");
    assert_eq!((report.paths[0].count(Verdict::Ok), report.paths[0].failed()), (1, 0));
    report
}

/// Starts a server that sends `says` and closes the connection without reading the request. So the
/// kernel resets the connection.
fn resets(says: &'static [u8]) -> SocketAddr {
    listen_in_order(move |mut client| {
        client.read_exact(&mut [0]).expect("a request");
        client.write_all(says).expect("sent");
    })
}

#[test]
fn a_reset_is_no_close() {
    for says in [&b""[..], b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"] {
        let report = beside(resets(says), &Method::Get);
        assert_eq!(
            report.paths[1].failures[PathFailure::ConnectionReset as usize],
            1,
            "{:?}",
            report.paths[1]
        );
    }
}

#[test]
fn answers_that_are_not_http_are_reported_as_such() {
    for (says, why) in [
        (&b"what?\r\n\r\n"[..], "not_http: the status line is not `HTTP/1.1 status reason`"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
            "not_http: Content-Length is not a plain decimal number",
        ),
        (b"220 smtp.test ESMTP\r\n", "not_http: the status line is not `HTTP/1.1 status reason`"),
        (b"\x15\x03\x03", "not_http: the status line is not `HTTP/1.1 status reason`"),
    ] {
        let report = beside(server(move |_| Some(says.to_vec())), &Method::Get);
        assert_eq!(report.paths[1].failures[PathFailure::NotHttp as usize], 1);
        assert_eq!(report.paths[1].examples[0].why, why);
    }
}

#[test]
fn an_answer_that_ends_within_its_status_line_is_closed_early() {
    for says in [&b"H"[..], b"HTTP/1.1 20", b"HTTP/1.1 200 OK\r\nContent-"] {
        let report = beside(server(move |_| Some(says.to_vec())), &Method::Get);
        assert_eq!(
            report.paths[1].failures[PathFailure::Closed as usize],
            1,
            "{:?}",
            report.paths[1].examples
        );
    }
}

#[test]
fn an_answer_that_says_in_two_ways_where_it_ends_is_named() {
    let both =
        b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n\
          0\r\n\r\n";
    let report = beside(server(|_| Some(both.to_vec())), &Method::Get);
    let [example] = &report.paths[1].examples[..] else { panic!("{:?}", report.paths[1].examples) };
    let said = (example.verdict, example.why.as_str());
    assert_eq!(said, (Verdict::HeaderMismatch, "Content-Length beside Transfer-Encoding"));
}

#[test]
fn a_body_behind_the_answer_to_head_is_named() {
    let report = beside(server(|_| Some(whole("", "one"))), &Method::Head);
    assert_eq!(report.paths[1].failures[PathFailure::BodyToHead as usize], 1);
    assert_eq!(report.paths[1].examples[0].why, "body_to_head");
}

#[test]
fn a_proxy_that_answers_twice_or_sends_more_than_its_answer_is_named() {
    for more in [whole("", "another"), b"x".to_vec()] {
        let liar = server(move |_| Some([whole("", "one"), more.clone()].concat()));
        let run = run_of(&[("direct", honest(), Manner::Direct), ("liar", liar, Manner::Reverse)]);
        let asked = || Asked::get("o.test".into(), "/a".into(), Duration::ZERO);
        let mut one = std::iter::once(asked());
        let report =
            crate::leap::run(&run, &asked(), &mut one, &mut |_| {}, &mut |_| {}).expect("run");
        let [direct, liar] = &report.paths[..] else { panic!("two paths") };
        assert_eq!((direct.answers, liar.failures[PathFailure::Surplus as usize]), (1, 1));
        assert_eq!(liar.count(Verdict::Incomplete), 1);
    }
}
