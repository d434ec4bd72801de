//! Tests of the Multiplier (LEAP's request copier) with real clients. Clients and servers run in
//! this process and use sockets.

use super::*;
use crate::leap::collector::{Collector, CollectorOptions, Listen};
use crate::leap::tests::{honest, run_of, server, whole};
use crate::leap::{Manner, Numbers, Unjudged, Verdict};
use foxy_testkit::client::exchange;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::AtomicU64;
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

struct Running {
    address: SocketAddr,
    run: LeapRun,
    thread: JoinHandle<(LeapReport, Vec<Line>)>,
}

fn front() -> Front {
    Front {
        authority: Some("o.test".into()),
        any_host: true,
        most_connections: 16,
        ..Front::here().expect("a port")
    }
}

fn start(run: LeapRun, front: Front) -> Running {
    let (address, own) = (front.listener.local_addr().expect("an address"), run.clone());
    let thread = std::thread::spawn(move || {
        let mut lines = Vec::new();
        let report = serve(&own, None, front, &mut |line| lines.push(line.clone()), &mut |_| {});
        (report.expect("served"), lines)
    });
    Running { address, run, thread }
}

impl Running {
    /// Sends the text on a new connection. Returns all bytes that arrive until the connection ends.
    fn ask(&self, text: &str) -> String {
        let stream = TcpStream::connect(self.address).expect("connected");
        String::from_utf8(exchange(stream, text)).expect("text")
    }

    fn stop(self) -> (LeapReport, Vec<Line>) {
        self.run.interrupted.store(true, Relaxed);
        self.thread.join().expect("ended")
    }
}

fn two(origin: SocketAddr, proxy: SocketAddr) -> LeapRun {
    run_of(&[("direct", origin, Manner::Direct), ("proxy", proxy, Manner::Reverse)])
}

const LAST: &str = "Host: o.test\r\nConnection: close\r\n\r\n";

#[test]
fn a_client_keeps_its_connection_and_gets_the_origins_copy_while_a_liar_is_named() {
    let liar = server(|_| Some(whole("Vary: Accept-Language\r\nETag: \"1\"\r\n", "lies")));
    let running = start(two(honest(), liar), front());
    let answers = running.ask(&format!(
        "GET /a HTTP/1.1\r\nHost: o.test\r\n\r\nGET http://o.test/b HTTP/1.1\r\n{LAST}"
    ));
    assert!(answers.contains("the body of /aHTTP/1.1 200 OK\r\n"), "{answers}");
    assert!(
        answers.ends_with("the body of /b") && answers.contains("\r\nConnection: close\r\n"),
        "{answers}"
    );
    let (report, lines) = running.stop();
    assert_eq!((report.requests, report.paths[0].count(Verdict::Ok)), (2, 2));
    assert_eq!(report.paths[1].count(Verdict::BodyMismatch), 2);
    assert_eq!(report.clients.map(|clients| (clients.connections, clients.gone)), Some((1, 0)));
    // The verdicts of the two requests may come in either order.
    let of_the_second = lines.iter().filter(|line| line.url == "http://o.test/b").count();
    assert_eq!((lines.len(), of_the_second), (4, 2));
}

#[test]
fn every_path_gets_method_version_fields_and_body_without_connection_fields() {
    let (say, said) = channel();
    let origin = server(move |text| {
        let _nobody_listens = say.send(text.to_owned());
        Some(whole("", "ok"))
    });
    let running = start(two(origin, honest()), front());
    let answer = running.ask(
        "POST /form HTTP/1.1\r\nHost: o.test\r\nConnection: close, X-Mine\r\nX-Mine: 1\r\n\
         Cookie: a=b\r\nContent-Length: 3\r\n\r\nx=1",
    );
    assert!(answer.ends_with("\r\n\r\nok"), "{answer}");
    let asked = said.recv().expect("asked");
    assert!(
        asked.starts_with(
            "POST /form HTTP/1.1\r\nHost: o.test\r\nConnection: close\r\nCookie: a=b\r\n\
             Via: 1.1 foxy-leap-"
        ),
        "{asked}"
    );
    assert!(asked.contains("\r\nContent-Length: 3\r\n") && !asked.contains("X-Mine"), "{asked}");
    let answer = running.ask("GET /old HTTP/1.0\r\nHost: o.test\r\n\r\n");
    assert!(answer.contains("\r\nConnection: close\r\n") && answer.ends_with("ok"), "{answer}");
    assert!(said.recv().expect("asked").starts_with("GET /old HTTP/1.0\r\n"));
    let (report, lines) = running.stop();
    // The Multiplier (LEAP's request copier) does not repeat an unsafe request, although the
    // proxy's answer looks wrong.
    assert_eq!((report.asked_again, report.paths[1].count(Verdict::HeaderMismatch)), (1, 0));
    assert_eq!(lines[0].method, "POST");
}

#[test]
fn an_origin_that_answers_each_post_anew_accuses_nobody_and_a_stable_one_does() {
    let post = format!("POST /form HTTP/1.1\r\nContent-Length: 0\r\n{LAST}");
    let count = AtomicU64::new(0);
    let origin =
        server(move |_| Some(whole("", &format!("got a #{}", count.fetch_add(1, Relaxed)))));
    let running = start(two(origin, origin), front());
    running.ask(&post);
    let (report, _) = running.stop();
    assert_eq!(report.paths[1].examples, []);
    assert_eq!(report.paths[1].unjudged_by_reason[Unjudged::NotRepeated as usize], 1);
    // LEAP recognises foxy's own origin by the repeated request number, and a Collector (common
    // parent proxy) by a `Via` field.
    let known = server(|_| Some(whole("X-Foxy-Request: 1\r\n", "kept")));
    let liar = server(|_| Some(whole("X-Foxy-Request: 1\r\n", "lost")));
    let collector = server(|_| Some(whole("Via: 1.1 foxy-collector-1-3180\r\n", "kept")));
    for known in [known, collector] {
        let running =
            start(LeapRun { numbers: Some(Numbers::new(2)), ..two(known, liar) }, front());
        running.ask(&post);
        assert_eq!(running.stop().0.paths[1].count(Verdict::BodyMismatch), 1);
    }
}

#[test]
fn every_path_gets_one_less_of_max_forwards_where_it_means_something() {
    let (say, said) = channel();
    let origin = server(move |text| {
        let _nobody_listens = say.send(text.to_owned());
        Some(whole("", "ok"))
    });
    let running = start(two(origin, origin), front());
    for (method, left) in [("OPTIONS", "6"), ("TRACE", "6"), ("GET", "7")] {
        running.ask(&format!("{method} /a HTTP/1.1\r\nMax-Forwards: 7\r\n{LAST}"));
        for asked in [said.recv(), said.recv()] {
            let asked = asked.expect("both are asked");
            assert!(asked.starts_with(method), "{asked}");
            assert!(asked.contains(&format!("\r\nMax-Forwards: {left}\r\n")), "{asked}");
        }
    }
    drop(running.stop());
}

#[test]
fn a_proxy_that_hangs_costs_the_client_nothing_and_a_dead_origin_is_said() {
    let running = start(two(honest(), server(|_| None)), front());
    assert!(running.ask(&format!("GET /a HTTP/1.1\r\n{LAST}")).ends_with("the body of /a"));
    let (report, _) = running.stop();
    assert_eq!(report.paths[1].count(Verdict::Timeout), 1);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .expect("bound")
        .local_addr()
        .expect("an address");
    let running = start(two(closed, honest()), front());
    let answer = running.ask(&format!("GET /a HTTP/1.1\r\n{LAST}"));
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("error=connection_refused"),
        "{answer}"
    );
    drop(running.stop());
}

#[test]
fn an_answer_that_breaks_off_breaks_off_for_the_client() {
    let short = server(|_| Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf".to_vec()));
    let running = start(two(short, honest()), front());
    let answer = running.ask("GET /a HTTP/1.1\r\nHost: o.test\r\n\r\n");
    assert!(answer.contains("Content-Length: 9\r\n") && answer.ends_with("half"), "{answer}");
    assert_eq!(running.stop().0.clients.map(|clients| clients.broken), Some(1));
}

#[test]
fn inadmissible_client_requests_are_refused_by_name_and_counted() {
    let live = Reach::Live { any_method: false, rate: 1000.0 };
    let check = |front: Front, most: usize, text: &str, reason: FrontRefusal| {
        let running = start(LeapRun { most_in_flight: most, ..two(honest(), honest()) }, front);
        let answer = running.ask(text);
        assert!(answer.starts_with(&format!("HTTP/1.1 {} ", reason.status())), "{answer}");
        assert!(answer.ends_with(&format!("foxy leap: {}\n", reason.description())), "{answer}");
        let (report, _) = running.stop();
        assert_eq!(
            (report.requests, report.clients.map(|clients| clients.refused(reason))),
            (0, Some(1)),
            "{text}"
        );
    };
    check(front(), 8, "what?\r\n\r\n", FrontRefusal::NotHttp);
    check(
        front(),
        8,
        "CONNECT o.test:443 HTTP/1.1\r\nHost: o.test:443\r\n\r\n",
        FrontRefusal::NoAuthority,
    );
    check(front(), 8, &format!("GET ftp://o.test/ HTTP/1.1\r\n{LAST}"), FrontRefusal::OtherScheme);
    for (method, target, reason) in [
        ("OPTIONS", "*", FrontRefusal::OptionsHere),
        ("OPTIONS", "/a", FrontRefusal::OptionsHere),
        ("TRACE", "/a", FrontRefusal::TraceHere),
    ] {
        check(
            front(),
            8,
            &format!("{method} {target} HTTP/1.1\r\nMax-Forwards: 0\r\n{LAST}"),
            reason,
        );
    }
    check(front(), 0, &format!("GET /a HTTP/1.1\r\n{LAST}"), FrontRefusal::TooManyRequests);
    check(Front { most_connections: 0, ..front() }, 8, "", FrontRefusal::TooManyConnections);
    check(
        Front { any_host: false, ..front() },
        8,
        &format!("GET / HTTP/1.1\r\n{LAST}"),
        FrontRefusal::FarHost,
    );
    check(
        Front { reach: live, ..front() },
        8,
        &format!("HEAD / HTTP/1.1\r\n{LAST}"),
        FrontRefusal::MethodNotAllowed,
    );
    check(Front { authority: None, ..front() }, 8, "GET / HTTP/1.0\r\n\r\n", FrontRefusal::NoHost);
    let long = (1 << 20) + 1;
    let chunk = format!("{long:x}\r\n{}", "x".repeat(long));
    let chunked = format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n{LAST}{chunk}");
    check(front(), 8, &chunked, FrontRefusal::BodyTooLarge);
    // The request declares a body above the limit. The Multiplier (LEAP's request copier) refuses
    // it before the body arrives.
    let said =
        format!("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: {long}\r\n{LAST}");
    check(front(), 8, &said, FrontRefusal::BodyTooLarge);
}

#[test]
fn where_the_direct_path_leads_to_one_server_no_other_is_asked_for() {
    let (origin, other) = (honest(), honest());
    let ask = |run: LeapRun, url: &str| {
        let here = Front { authority: Some(origin.to_string()), any_host: false, ..front() };
        let running = start(run, here);
        let answer = running.ask(&format!("GET {url} HTTP/1.1\r\n{LAST}"));
        let clients = running.stop().0.clients.expect("clients");
        (answer[..12].to_owned(), clients.refused(FrontRefusal::NotTheOrigin))
    };
    let port = origin.port();
    for url in [format!("http://{origin}/a"), format!("http://localhost:{port}/a")] {
        assert_eq!(ask(two(origin, origin), &url), ("HTTP/1.1 200".to_owned(), 0), "{url}");
    }
    let url = format!("http://{other}/a");
    assert_eq!(ask(two(origin, origin), &url), ("HTTP/1.1 421".to_owned(), 1));
    // A Collector (common parent proxy) forwards to any server. So every path leads to the server
    // in the URL.
    let listen = Listen { name: None, address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)) };
    let collector = Collector::start(CollectorOptions::new(vec![listen])).expect("started");
    let place = collector.addresses()[0];
    assert_eq!(ask(two(place, place), &url), ("HTTP/1.1 200".to_owned(), 0));
    drop(collector.stop());
    let undirected = run_of(&[("proxy", origin, Manner::Reverse)]);
    assert_eq!(ask(undirected, &url), ("HTTP/1.1 200".to_owned(), 0));
}

#[test]
fn a_request_that_comes_round_again_is_a_loop() {
    let own = front();
    let address = own.listener.local_addr().expect("an address");
    let running = start(two(address, address), own);
    let answer = running.ask(&format!("GET /a HTTP/1.1\r\n{LAST}"));
    assert!(answer.starts_with("HTTP/1.1 508 "), "{answer}");
    assert_eq!(
        running.stop().0.clients.map(|clients| clients.refused(FrontRefusal::Loop)),
        Some(2)
    );
}

#[test]
fn a_long_answer_comes_whole_to_a_client_that_reads_late_and_its_times_are_left_out() {
    const LONG: usize = 32 << 20;
    let long = || server(|_| Some(whole("", &"y".repeat(LONG))));
    let running = start(two(long(), long()), front());
    let mut stream = TcpStream::connect(running.address).expect("connected");
    stream.write_all(format!("GET /a HTTP/1.1\r\n{LAST}").as_bytes()).expect("sent");
    let mut first = [0; 1];
    stream.read_exact(&mut first).expect("begun");
    // The proxy's path finishes during this pause. So the slow client does not delay the proxy's
    // answer.
    std::thread::sleep(Duration::from_millis(300));
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("answered");
    assert!(answer.len() > LONG && answer.ends_with(b"yyy"), "{}", answer.len());
    let (report, _) = running.stop();
    assert_eq!((report.requests, report.held, report.paths[1].count(Verdict::Ok)), (1, 1, 1));
    assert_eq!((report.paths[0].answers, report.paths[0].latencies.count()), (1, 0));
}

#[test]
fn after_so_many_requests_it_is_over() {
    let running = start(two(honest(), honest()), Front { requests: Some(1), ..front() });
    running.ask(&format!("GET /a HTTP/1.1\r\n{LAST}"));
    let (report, _) = running.thread.join().expect("ended by itself");
    assert_eq!(report.requests, 1);
}

#[test]
fn a_clients_own_number_comes_back_to_it() {
    let echo = server(|request| {
        let number = request.lines().find_map(|line| line.strip_prefix("X-Foxy-Request: "));
        Some(whole(&format!("X-Foxy-Request: {}\r\n", number.expect("numbered")), ""))
    });
    let running = start(LeapRun { numbers: Some(Numbers::new(2)), ..two(echo, echo) }, front());
    let answer = running.ask(&format!("GET /a HTTP/1.1\r\nX-Foxy-Request: 5\r\n{LAST}"));
    assert!(answer.contains("\r\nX-Foxy-Request: 5\r\n"), "{answer}");
    let answer = running.ask(&format!("GET /a HTTP/1.1\r\n{LAST}"));
    assert!(!answer.contains("X-Foxy-Request"), "{answer}");
    assert_eq!(running.stop().0.paths[1].known.0, 2);
}
