//! Tests of the load generator on loopback. The servers are foxy's own origin, and test servers
//! that send wrong answers or stall.

use foxy_base::clock;
use foxy_lab::load::options::{LoadOptions, Mode, Pace, Stop};
use foxy_lab::load::origin::Sent;
use foxy_lab::load::{newest_again, run};
use foxy_lab::{ErrorCause, LoadReport, Origin, OriginOptions, Protocol};
use foxy_testkit::client::exchange;
use foxy_testkit::http::ok;
use foxy_testkit::origin::listen_in_order;
use foxy_workload::{BodyStream, Get, Model, Popularity, Trace, Workload};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

fn options(target: SocketAddr, requests: u64) -> LoadOptions {
    let mode = Mode::Reverse { host: "origin.test".into() };
    let workload = Workload::find("zipf").expect("known");
    let (stop, time_limit) = (Stop::Requests(requests), Duration::from_secs(10));
    LoadOptions { clients: 4, stop, time_limit, ..LoadOptions::new(target, mode, workload) }
}

/// Starts a server for one connection at a time. It answers each request with the bytes that
/// `reply` returns for the number of the request.
fn scripted(mut reply: impl FnMut(u32) -> Vec<u8> + Send + 'static) -> SocketAddr {
    let mut number = 0;
    listen_in_order(move |mut stream| {
        let mut buffer = [0u8; 4096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
            if stream.write_all(&reply(number)).is_err() {
                break;
            }
            number += 1;
        }
    })
}

fn body_of_first_object() -> Vec<u8> {
    let mut body = vec![0; 1024];
    BodyStream::new(0, 1).fill(0, &mut body);
    body
}

#[test]
fn an_interrupted_run_begins_nothing_more_and_keeps_what_it_counted() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    for pace in [Pace::Closed, Pace::Open { rate: 1000.0 }, Pace::Random { rate: 1000.0 }] {
        let stop = Stop::After(Duration::from_secs(3600));
        let options = LoadOptions { pace, stop, ..options(origin.address(), 0) };
        let interrupted = Arc::clone(&options.interrupted);
        let report =
            run(&options, &mut |begun| interrupted.store(begun > 0, Relaxed)).expect("load runs");
        assert!(report.answers > 0 && report.failed() == 0, "{pace:?}: {report:?}");
    }
}

#[test]
fn every_byte_from_the_origin_is_right() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let report = run(&options(origin.address(), 500), &mut |_| {}).expect("load runs");
    assert_eq!((report.answers, report.failed(), report.wrong_bytes), (500, 0, 0));
    assert_eq!((report.hits, report.bytes), (0, 500 * 8192));
    assert_eq!((origin.requests(), origin.body_bytes()), (500, 500 * 8192));
    assert_eq!(report.latencies.count(), 500);
}

#[test]
fn the_newest_objects_of_a_run_are_requested_again() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let workload = Workload::find("fill").expect("known");
    let options = LoadOptions {
        workload,
        pace: Pace::Open { rate: 1000.0 },
        ..options(origin.address(), 40)
    };
    let report = run(&options, &mut |_| {}).expect("load runs");
    for (newest, first, count) in [(10, 30, 10), (50, 0, 40)] {
        let again = newest_again(&options, &report, newest);
        let objects = again.workload.objects().expect("a workload of objects");
        assert_eq!((&objects.popularity, objects.objects), (&Popularity::Window { first }, count));
        assert_eq!(run(&again, &mut |_| {}).expect("load runs").answers, count);
    }
    let of_nothing = newest_again(&options, &LoadReport::default(), 10);
    assert_eq!(run(&of_nothing, &mut |_| {}).expect("load runs").asked(), 0);
}

#[test]
fn a_single_flipped_bit_is_a_wrong_byte() {
    let address = scripted(|number| {
        let mut body = body_of_first_object();
        body[700] ^= u8::from(number == 1);
        ok("", &body)
    });
    let workload = Workload::find("memory-hit").expect("known");
    let report = run(&LoadOptions { workload, clients: 1, ..options(address, 3) }, &mut |_| {})
        .expect("load runs");
    assert_eq!((report.answers, report.wrong_bytes), (2, 1));
    assert_eq!(report.errors[ErrorCause::BodyMismatch as usize], 1);
}

#[test]
fn short_answers_and_other_statuses_are_errors_with_their_cause() {
    let address = scripted(|number| match number {
        0 => ok("", b"short"),
        1 => b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_vec(),
        _ => b"this is not HTTP\r\n\r\n".to_vec(),
    });
    let workload = Workload::find("memory-hit").expect("known");
    let report = run(&LoadOptions { workload, clients: 1, ..options(address, 3) }, &mut |_| {})
        .expect("load runs");
    for cause in [ErrorCause::Length, ErrorCause::Status, ErrorCause::Protocol] {
        assert_eq!(report.errors[cause as usize], 1, "{}", cause.name());
    }
}

/// Starts a server that answers the first request on each connection with `with`. Then the server
/// resets or closes the connection.
fn ending(with: &'static [u8], reset: bool) -> SocketAddr {
    listen_in_order(move |mut stream| {
        // If some bytes stay unread, the kernel resets the connection.
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer[..if reset { 1 } else { 4096 }]);
        read.and_then(|_| stream.write_all(with)).expect("a request, and an answer");
    })
}

#[test]
fn a_lost_connection_is_named_by_how_it_was_lost() {
    let workload = Workload::find("memory-hit").expect("known");
    let check = |with, reset, expected: ErrorCause| {
        let options = LoadOptions {
            workload: workload.clone(),
            clients: 1,
            ..options(ending(with, reset), 2)
        };
        let report = run(&options, &mut |_| {}).expect("load runs");
        assert_eq!(
            (report.errors[expected as usize], report.failed()),
            (2, 2),
            "{}",
            expected.name()
        );
    };
    check(b"", false, ErrorCause::Closed);
    check(b"", true, ErrorCause::Reset);
    check(b"HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n", false, ErrorCause::Incomplete);
    check(b"HTTP/1.1 200 OK\r\nContent-Le", false, ErrorCause::Incomplete);
}

#[test]
fn invalid_http_2_is_a_protocol_error() {
    // An HTTP/2 SETTINGS frame, then an invalid answer on stream 2.
    let broken = b"\0\0\0\x04\0\0\0\0\0\0\0\0\x01\x04\0\0\0\x02";
    for with in [&b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..], broken] {
        let target = scripted(|_| with.to_vec());
        let options = LoadOptions { protocol: Protocol::Http2, clients: 1, ..options(target, 2) };
        let report = run(&options, &mut |_| {}).expect("load runs");
        assert_eq!(
            (report.errors[ErrorCause::Protocol as usize], report.failed()),
            (2, 2),
            "{report:?}"
        );
    }
}

#[test]
fn bytes_behind_an_answer_are_an_error() {
    let address = scripted(|_| [ok("", &body_of_first_object()), b"more!".to_vec()].concat());
    let workload = Workload::find("memory-hit").expect("known");
    let report = run(&LoadOptions { workload, clients: 1, ..options(address, 2) }, &mut |_| {})
        .expect("load runs");
    assert_eq!((report.errors[ErrorCause::Surplus as usize], report.answers), (2, 0));
}

#[test]
fn open_loop_latency_counts_from_the_intended_start() {
    let address = scripted(|number| {
        if number == 0 {
            std::thread::sleep(Duration::from_millis(300));
        }
        ok("", &body_of_first_object())
    });
    let workload = Workload::find("memory-hit").expect("known");
    let pace = Pace::Open { rate: 100.0 };
    let report =
        run(&LoadOptions { workload, clients: 1, pace, ..options(address, 20) }, &mut |_| {})
            .expect("load runs");
    // The stall delays all requests that should start during it. So at least half of the 20
    // requests started late.
    assert_eq!(report.answers, 20);
    assert!(report.latencies.at(0.5) >= 100_000, "median {} us", report.latencies.at(0.5));
}

#[test]
fn an_open_loop_for_a_time_starts_as_many_requests_as_the_rate_says() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let (pace, stop) = (Pace::Open { rate: 250.0 }, Stop::After(Duration::from_millis(200)));
    for threads in [1, 2] {
        let options = LoadOptions { pace, stop, threads, ..options(origin.address(), 0) };
        let report = run(&options, &mut |_| {}).expect("load runs");
        assert_eq!(
            (report.answers, report.failed(), report.wrong_bytes),
            (50, 0, 0),
            "{threads} threads"
        );
    }
}

#[test]
fn an_open_loop_begins_nothing_more_when_its_time_is_over() {
    // No server accepts the connections, so no request gets an answer.
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let (pace, stop) = (Pace::Open { rate: 100.0 }, Stop::After(Duration::from_secs(1)));
    let target = listener.local_addr().expect("bound");
    let options =
        LoadOptions { pace, stop, time_limit: Duration::from_secs(2), ..options(target, 0) };
    let began = clock::monotonic();
    let report = run(&options, &mut |_| {}).expect("load runs");
    let took = clock::monotonic().since(began);
    assert_eq!((report.errors[ErrorCause::Timeout as usize], report.not_sent()), (4, 96));
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn waiting_for_an_answer_that_never_comes_does_not_lengthen_the_time_of_a_rate() {
    let address = scripted(|number| {
        if number == 5 {
            std::thread::sleep(Duration::from_secs(4));
        }
        ok("", &body_of_first_object())
    });
    let workload = Workload::find("memory-hit").expect("known");
    let (stop, time_limit) = (Stop::After(Duration::from_secs(1)), Duration::from_secs(2));
    let options = LoadOptions { workload, clients: 1, stop, time_limit, ..options(address, 0) };
    let report = run(&options, &mut |_| {}).expect("load runs");
    assert_eq!((report.answers, report.errors[ErrorCause::Timeout as usize]), (5, 1));
    assert!((report.rate() - 5.0).abs() < 1e-6, "{}", report.rate());
}

#[test]
fn requests_to_a_forward_proxy_name_the_origin() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let mode = Mode::Forward { origin: origin.address().to_string() };
    let report = run(&LoadOptions { mode, ..options(origin.address(), 50) }, &mut |_| {})
        .expect("load runs");
    assert_eq!((report.answers, report.failed(), report.wrong_bytes), (50, 0, 0));
}

/// Returns a workload that replays `gets` requests for one URL of 100 bytes. One request follows
/// the other after `apart` milliseconds.
fn replay(gets: u64, apart: u64) -> Workload {
    let get = |number| Get { time: number * apart * 1000, client: 0, url: 0, size: 100 };
    let trace = Trace { gets: (0..gets).map(get).collect(), ..Trace::default() };
    Workload { name: "log".into(), about: String::new(), model: Model::Trace(trace.into()) }
}

#[test]
fn a_trace_begins_its_requests_when_they_were_recorded_and_ends_with_the_last() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let (pace, stop) = (Pace::Recorded { times: 10.0 }, Stop::After(Duration::from_secs(3600)));
    let options =
        LoadOptions { pace, stop, workload: replay(5, 500), ..options(origin.address(), 0) };
    let report = run(&options, &mut |_| {}).expect("load runs");
    assert_eq!((report.answers, report.failed(), report.bytes), (5, 0, 500));
    assert_eq!((report.offered.requests, report.offered.bytes), (4, 400));
    assert!(report.elapsed >= Duration::from_millis(200), "{:?}", report.elapsed);
}

#[test]
fn a_signal_is_noticed_while_the_next_recorded_request_is_far_away() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    let pace = Pace::Recorded { times: 1.0 };
    let options =
        LoadOptions { pace, workload: replay(2, 3_600_000), ..options(origin.address(), 2) };
    let interrupted = Arc::clone(&options.interrupted);
    let report =
        run(&options, &mut |begun| interrupted.store(begun > 0, Relaxed)).expect("load runs");
    assert_eq!((report.answers, report.failed()), (1, 0));
}

#[test]
fn an_origin_counts_sent_answers_by_request_number() {
    let origin =
        Origin::start(OriginOptions { listen: (Ipv4Addr::LOCALHOST, 0).into(), threads: 1 })
            .expect("origin");
    assert_eq!(origin.tallied(), []);
    origin.tally(2, |number| number.map_or(Some(1), |number| (number < 10).then_some(0)));
    for number in ["X-Foxy-Request: 7\r\n", "X-Foxy-Request: 8\r\n", "X-Foxy-Request: 10\r\n", ""] {
        let stream = TcpStream::connect(origin.address()).expect("connected");
        let request =
            format!("GET /o/1/100/1 HTTP/1.1\r\nHost: a\r\n{number}Connection: close\r\n\r\n");
        assert!(exchange(stream, &request).len() > 100);
    }
    assert_eq!(
        origin.tallied(),
        [Sent { answers: 2, bytes: 200 }, Sent { answers: 1, bytes: 100 }]
    );
    assert_eq!((origin.requests(), origin.body_bytes()), (4, 400));
}
