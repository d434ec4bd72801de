//! Tests of the Wisconsin Proxy Benchmark with servers and small proxies in this process.

use super::*;
use crate::{Origin, OriginOptions};
use foxy_report::Record;
use foxy_testkit::client::exchange;
use foxy_testkit::http::{head_length, read_head};
use foxy_testkit::origin::listen_in_order;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

fn origin() -> Origin {
    let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    Origin::start(OriginOptions { listen, threads: 1 }).expect("started")
}

/// Returns the options of a small run: four clients, ten requests per phase, and a server delay of
/// 5 ms. The clients send requests directly to `target`, in the form for a reverse proxy.
fn small(target: SocketAddr) -> WpbRun {
    WpbRun {
        target,
        route: Route::Reverse { host: "origin.test".into() },
        clients: 4,
        knobs: Wpb { requests: 10, ..Wpb::new(1) },
        latency: Duration::from_millis(5),
        slow: None,
        time_limit: Duration::from_secs(20),
        interrupted: Arc::default(),
    }
}

fn request(client: &mut TcpStream) -> String {
    read_head(client).expect("a request")
}

/// Returns the complete answer of an origin to a request.
fn fetched(origin: SocketAddr, request: &str) -> Vec<u8> {
    exchange(TcpStream::connect(origin).expect("connected"), request)
}

fn only(report: &PartReport, expected: &[(Cause, u64)]) {
    assert_eq!(report.causes().collect::<Vec<_>>(), expected);
}

#[test]
fn without_a_cache_there_are_no_hits_and_every_answer_takes_the_servers_latency() {
    let origin = origin();
    let report = run(&small(origin.address()), &mut |_| {}, &mut |_| {}).expect("run");
    for part in Part::ALL {
        let part = report.part(part);
        assert_eq!((part.answers, part.failed(), part.hits), (40, 0, 0));
        assert!(part.latencies.at(0.0) >= 5_000, "{} us", part.latencies.at(0.0));
    }
    assert!(report.offered() > Some(0.0) && report.hit_ratio() == Some(0.0));
    assert_eq!(origin.requests(), 120);
}

#[test]
fn a_cache_that_keeps_everything_hits_what_is_offered_and_nothing_in_the_control() {
    let origin = origin();
    let (server, stored) =
        (origin.address(), std::sync::Mutex::new(std::collections::HashMap::new()));
    let address = listen_in_order(move |mut client| {
        let text = request(&mut client);
        let url = text.lines().next().expect("a line").to_owned();
        let mut stored = stored.lock().expect("not poisoned");
        let answer = stored.get(&url).cloned().unwrap_or_else(|| fetched(server, &text));
        if !url.contains("no-store") {
            stored.insert(url, answer.clone());
        }
        client.write_all(&answer).expect("sent");
    });
    let report = run(&small(address), &mut |_| {}, &mut |_| {}).expect("run");
    assert_eq!((report.part(Part::Control).hits, report.part(Part::First).hits), (0, 0));
    assert!(report.hit_ratio() > Some(0.0) && report.hit_ratio() == report.offered());
    assert!(report.byte_hit_ratio() > Some(0.0) && report.fetched() > 0);
}

#[test]
fn errors_are_counted_by_cause() {
    let origin = origin();
    let server = origin.address();
    let free =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
    let check = |address: SocketAddr, cause: Cause| {
        let whole = small(address);
        let short = Duration::from_millis(300);
        let time_limit = if cause == Cause::Timeout { short } else { whole.time_limit };
        let run = WpbRun { time_limit, ..whole };
        let knobs = Wpb { requests: 1, ..run.knobs };
        let report = super::run(&WpbRun { knobs, clients: 2, ..run }, &mut |_| {}, &mut |_| {})
            .expect("run");
        for part in Part::ALL {
            only(report.part(part), &[(cause, 2)]);
        }
        assert_eq!(report.silent(), Some(Part::Control));
    };
    let answering = |text: &'static [u8]| {
        listen_in_order(move |mut client| {
            request(&mut client);
            client.write_all(text).expect("sent");
        })
    };
    check(free.expect("an address"), Cause::Refused);
    check(listen_in_order(drop_after_request), Cause::Unanswered);
    check(listen_in_order(std::mem::forget), Cause::Timeout);
    check(answering(b"HTTP/1.0 503 Busy\r\n\r\n"), Cause::Status);
    check(answering(b"HTTP/1.0 200 OK\r\nContent-Length: 9\r\n\r\nabc"), Cause::Incomplete);
    check(answering(b"HTTP/1.0 200 OK\r\n\r\nabc"), Cause::ForeignReply);
    check(answering(b"what?\r\n\r\n"), Cause::Protocol);
    check(
        listen_in_order(move |client| answer_changed(client, server, |body| body[0] ^= 1)),
        Cause::BodyMismatch,
    );
    check(listen_in_order(move |client| answer_changed(client, server, Vec::clear)), Cause::Length);
}

fn drop_after_request(mut client: TcpStream) {
    request(&mut client);
}

/// Forwards a request to `server`, and passes the answer back after `change` has changed it.
fn answer_changed(mut client: TcpStream, server: SocketAddr, change: fn(&mut Vec<u8>)) {
    let text = request(&mut client);
    let answer = fetched(server, &text);
    let end = head_length(&answer).expect("a head");
    let mut body = answer[end..].to_vec();
    change(&mut body);
    let number = text
        .split("X-Foxy-Request: ")
        .nth(1)
        .and_then(|rest| rest.lines().next())
        .expect("a number");
    let head = format!(
        "HTTP/1.0 200 OK\r\nX-Foxy-Request: {number}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    client.write_all(head.as_bytes()).and_then(|()| client.write_all(&body)).expect("sent");
}

#[test]
fn a_cached_answer_in_the_control_is_an_error() {
    let origin = origin();
    let server = origin.address();
    let address = listen_in_order(move |mut client| {
        let text = request(&mut client);
        let number = text.split("X-Foxy-Request: ").nth(1).and_then(|rest| rest.split('\r').next());
        let text = text.replace(number.expect("a number"), "7");
        client.write_all(&fetched(server, &text)).expect("sent");
    });
    let report = run(&small(address), &mut |_| {}, &mut |_| {}).expect("run");
    only(report.part(Part::Control), &[(Cause::HitOnNoStore, 40)]);
    assert_eq!(report.part(Part::First).hits, 40);
}

#[test]
fn a_slow_client_reads_no_faster_than_it_is_told() {
    let origin = origin();
    let mut run = small(origin.address());
    run.knobs = Wpb { requests: 1, ..run.knobs };
    let mut ask = WpbClient::new(&run.knobs, 0);
    let size = ask.next_request().expect("one").object.size;
    assert!(size > 1000, "{size}");
    run.slow = Some(size * 4);
    let report = super::run(&WpbRun { clients: 1, ..run }, &mut |_| {}, &mut |_| {}).expect("run");
    assert!(report.part(Part::First).elapsed >= Duration::from_millis(200));
    assert_eq!(report.part(Part::First).answers, 1);
}

#[test]
fn a_run_that_is_stopped_asks_for_nothing_more() {
    let origin = origin();
    let run = small(origin.address());
    run.interrupted.store(true, Ordering::Relaxed);
    let report = super::run(&run, &mut |_| {}, &mut |_| {}).expect("run");
    assert_eq!((origin.requests(), report.silent()), (0, Some(Part::Control)));
}

#[test]
fn requests_name_their_server_their_number_and_whether_they_may_be_stored() {
    let servers =
        vec!["127.0.0.1:81".parse().expect("an address"), "127.0.0.1:82".parse().expect("one")];
    let run =
        WpbRun { route: Route::Forward { servers }, ..small("127.0.0.1:80".parse().expect("one")) };
    let mut asked = WpbClient::new(&run.knobs, 0).next_request().expect("one");
    asked.server = 1;
    let text = exchange::text(&run, &asked, 7, false);
    let url = format!("http://127.0.0.1:82{}?delay=5&no-store", asked.object);
    assert_eq!(
        text,
        format!("GET {url} HTTP/1.0\r\nHost: 127.0.0.1:82\r\nX-Foxy-Request: 7\r\n\r\n")
    );
    assert!(!exchange::text(&run, &asked, 7, true).contains("no-store"));
}

#[test]
fn records_name_the_point_and_the_part() {
    let origin = origin();
    let report = run(&small(origin.address()), &mut |_| {}, &mut |_| {}).expect("run");
    let names: Vec<String> = report
        .records("squid")
        .into_iter()
        .filter_map(|record| match record {
            Record::Measure(measure) => {
                Some(format!("{} {} {}", measure.subject, measure.workload?, measure.name))
            }
            _ => None,
        })
        .collect();
    for name in [
        "squid wpb-4 hit_ratio",
        "squid wpb-4 latency_mean_us",
        "squid wpb-4-no-cache latency_mean_us",
        "squid wpb-4-phase-2 errors",
    ] {
        assert!(names.iter().any(|found| found == name), "{name} in {names:?}");
    }
}
