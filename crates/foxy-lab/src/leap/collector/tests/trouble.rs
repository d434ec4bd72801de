//! Tests with origins that hang, reset, send wrong data or close early. Also tests proxies that
//! stop reading, and the Collector's limits.

use super::*;
use std::sync::mpsc::channel;

/// Sends a request from three proxies to an origin that runs `act`. All three proxies must receive
/// the same answer from one fetch.
fn trouble(
    limit: Duration,
    act: impl Fn(&mut TcpStream) + Send + Sync + 'static,
) -> (Got, CollectorReport) {
    let origin = Origin::new(move |_, client| act(client));
    let collector = collector(3, |options| options.time_limit = limit);
    let mut got = all_at_once(&collector, |to| get(to, &origin.url("/x"), ""));
    got.push(get(collector.addresses()[0], &origin.url("/x"), ""));
    for other in &got[1..] {
        assert_eq!(
            (other.status, other.text(), other.reset),
            (got[0].status, got[0].text(), got[0].reset)
        );
    }
    assert_eq!(origin.count(), 1);
    let report = collector.report();
    (got.swap_remove(0), report)
}

const LONG: Duration = Duration::from_secs(5);
const SHORT: Duration = Duration::from_millis(100);

fn wait() {
    std::thread::sleep(Duration::from_millis(600));
}

fn check(found: (Got, CollectorReport), failure: Failure, status: u16) {
    let (got, report) = found;
    assert_eq!((got.status, got.reset), (status, false), "{failure:?}: {got:?}");
    assert_eq!(report.failed(failure), 1, "{failure:?}: {report:?}");
    assert_eq!(report.failures.iter().sum::<u64>(), 1, "{report:?}");
    assert!(got.text().contains(failure.description()), "{}", got.text());
    let said = got.field("Proxy-Status").unwrap_or_default();
    assert!(said.contains(failure.proxy_status()), "{}", got.head);
    assert_eq!(got.field("Content-Length"), Some(got.text().len().to_string()), "{}", got.head);
}

#[test]
fn an_origin_without_an_answer_is_an_error_that_says_why() {
    check(trouble(SHORT, |_| wait()), Failure::AnswerTimeout, 504);
    check(trouble(LONG, |_| {}), Failure::Unanswered, 502);
    check(trouble(LONG, |client| give(client, b"what?\r\n\r\n")), Failure::NotHttp, 502);
    check(
        trouble(LONG, |client| give(client, b"HTTP/1.1 200 OK\r\nContent-Le")),
        Failure::Unanswered,
        502,
    );
    let lengths = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc";
    check(trouble(LONG, |client| give(client, lengths)), Failure::NotHttp, 502);
}

#[test]
fn a_body_that_breaks_off_breaks_off_for_everybody_at_the_same_byte() {
    let begun = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc";
    let bad_chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n";
    let until_close = b"HTTP/1.1 200 OK\r\n\r\nabc";
    let stop = |bytes: &'static [u8]| {
        move |client: &mut TcpStream| {
            give(client, bytes);
            wait();
        }
    };
    for (found, failure, reset) in [
        (trouble(LONG, move |client| give(client, begun)), Failure::ClosedEarly, false),
        (trouble(SHORT, stop(begun)), Failure::Hung, false),
        (trouble(LONG, move |client| give(client, bad_chunk)), Failure::BrokenBody, false),
        (trouble(SHORT, stop(until_close)), Failure::Hung, true),
    ] {
        let (got, report) = found;
        assert!(got.text().contains("abc") && got.text().len() < 20, "{got:?}");
        assert_eq!(
            (got.status, got.reset, report.failed(failure), report.aborted),
            (200, reset, 1, 4),
            "{failure:?}"
        );
    }
}

#[test]
fn an_origin_that_answers_twice_or_longer_than_it_said_is_believed_once_and_counted() {
    for surplus in ["HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo", "more"] {
        let (got, report) = trouble(LONG, move |client| {
            give(
                client,
                format!("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none{surplus}").as_bytes(),
            );
        });
        assert_eq!((got.text().as_str(), report.surplus), ("one", 1));
    }
}

#[test]
fn an_origin_that_is_not_there_or_not_to_be_asked_is_an_error_for_each() {
    let closed = TcpListener::bind(HERE).expect("bound").local_addr().expect("an address");
    let collector = collector(2, |_| {});
    for (url, failure) in [
        (format!("http://{closed}/"), Failure::NoConnection),
        ("http://a.test/".into(), Failure::NotAllowed),
        ("http://192.0.2.1/".into(), Failure::NotAllowed),
    ] {
        for &to in collector.addresses() {
            let got = get(to, &url, "");
            assert_eq!(got.status, failure.status(), "{url}");
            assert!(got.text().contains(failure.description()), "{}", got.text());
        }
    }
    let report = collector.report();
    assert_eq!(
        (report.failed(Failure::NoConnection), report.failed(Failure::NotAllowed), report.fetches),
        (1, 4, 1)
    );
}

#[test]
fn a_live_collector_sends_get_only_unless_told_otherwise() {
    let origin = Origin::numbering("");
    for (any_method, status) in [(false, 403), (true, 200)] {
        let collector =
            collector(1, |options| options.reach = Reach::Live { any_method, rate: 100.0 });
        let post = format!(
            "POST {} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            origin.url("/")
        );
        let got = send(collector.addresses()[0], &post);
        assert_eq!(got.status, status);
        assert_eq!(collector.report().refused(Refusal::MethodNotAllowed), u64::from(!any_method));
    }
    assert_eq!(origin.count(), 1);
}

#[test]
fn inadmissible_requests_are_refused_with_a_reason_and_counted() {
    let collector = collector(1, |_| {});
    let to = collector.addresses()[0];
    let via = get(to, "http://127.0.0.1:1/", "").field("Via").expect("said");
    for (text, reason) in [
        (
            "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n".to_owned(),
            Refusal::NoAuthority,
        ),
        ("GET ftp://a.test/ HTTP/1.1\r\nHost: a.test\r\n\r\n".into(), Refusal::OtherScheme),
        ("nonsense\r\n\r\n".into(), Refusal::NotHttp),
        (
            "OPTIONS http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n".into(),
            Refusal::OptionsHere,
        ),
        (
            "TRACE http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nMax-Forwards: 0\r\n\r\n".into(),
            Refusal::TraceHere,
        ),
        (
            format!("GET http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nVia: 1.1 a, {via}\r\n\r\n"),
            Refusal::Loop,
        ),
        (format!("GET / HTTP/1.1\r\nHost: {to}\r\n\r\n"), Refusal::Loop),
        (
            format!(
                "POST http://127.0.0.1/ HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000\r\n\r\n{}",
                "x".repeat(2_000_000)
            ),
            Refusal::BodyTooLarge,
        ),
    ] {
        let before = collector.report().refused(reason);
        let got = send_patiently(to, &text);
        assert!(
            got.status == reason.status() || (got.reset && reason == Refusal::BodyTooLarge),
            "{reason:?}: {got:?}"
        );
        assert!(collector.report().refused(reason) > before, "{reason:?}");
    }
}

#[test]
fn an_origin_gets_one_less_of_max_forwards_where_it_means_something() {
    let origin = Origin::numbering("");
    let collector = collector(1, |_| {});
    for (method, left) in [("OPTIONS", "6"), ("TRACE", "6"), ("GET", "7")] {
        let url = origin.url(&format!("/{method}"));
        let text = format!(
            "{method} {url} HTTP/1.1\r\nHost: x\r\nMax-Forwards: 7\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(send(collector.addresses()[0], &text).status, 200);
        let asked = origin.requests.lock().expect("not poisoned").pop().expect("asked");
        assert!(asked.contains(&format!("\r\nMax-Forwards: {left}\r\n")), "{asked}");
    }
}

/// Sends a request like `send`. The server may close the connection before it has read the whole
/// request.
fn send_patiently(to: SocketAddr, text: &str) -> Got {
    if text.len() < 100_000 {
        return send(to, text);
    }
    let mut stream = TcpStream::connect(to).expect("connected");
    give(&mut stream, text.as_bytes());
    let mut answer = String::new();
    let reset = stream.read_to_string(&mut answer).is_err();
    let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Got { status, reset, ..Got::default() }
}

#[test]
fn connections_and_exchanges_are_bounded_and_the_refused_are_counted() {
    let (open, gate) = channel::<()>();
    let gate = Mutex::new(gate);
    let origin = Origin::new(move |_, client| {
        // The channel closes at the end of the test, so the thread stops waiting then at the
        // latest.
        let _opened = gate.lock().expect("not poisoned").recv();
        give(client, &whole(200, "", "x"));
    });
    let collector =
        collector(1, |options| (options.most_connections, options.most_fetches) = (2, 1));
    let to = collector.addresses()[0];
    let (first, second) = (origin.url("/1"), origin.url("/2"));
    std::thread::scope(|scope| {
        let held = scope.spawn(|| get(to, &first, ""));
        while origin.count() == 0 {
            std::thread::yield_now();
        }
        assert_eq!(get(to, &second, "").status, 503);
        assert_eq!(collector.report().refused(Refusal::TooManyFetches), 1);
        let idle = TcpStream::connect(to).expect("connected");
        let mut refused = 0;
        while refused == 0 {
            refused = usize::from(
                get(to, &second, "").text().contains(Refusal::TooManyConnections.description()),
            );
        }
        drop(idle);
        open.send(()).expect("the origin waits");
        assert_eq!(held.join().expect("asked").status, 200);
    });
    assert!(collector.report().refused(Refusal::TooManyConnections) >= 1);
}

#[test]
fn an_initiator_that_goes_or_takes_nothing_costs_only_its_own_row() {
    let body: &'static str = "x".repeat(8 << 20).leak();
    let origin = Origin::new(move |_, client| give(client, &whole(200, "", body)));
    for goes in [true, false] {
        let collector = collector(2, |_| {});
        let url = origin.url(if goes { "/a" } else { "/b" });
        let mut first = TcpStream::connect(collector.addresses()[0]).expect("connected");
        first.write_all(format!("GET {url} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).expect("sent");
        let mut byte = [0];
        first.read_exact(&mut byte).expect("it has begun");
        let first = (!goes).then_some(first);
        let got = get(collector.addresses()[1], &url, "");
        assert!(got.status == 200 && got.body.len() == body.len(), "{}", got.body.len());
        assert_eq!(collector.report().stalled, u64::from(!goes));
        drop(first);
    }
    assert_eq!(origin.count(), 2);
}

#[test]
fn large_bodies_go_to_the_file_and_come_back_as_they_were() {
    let body: &'static str =
        (0..400_000).map(|number| format!("{number:>10}")).collect::<String>().leak();
    let origin = Origin::new(move |_, client| give(client, &whole(200, "", body)));
    let collector = collector(3, |options| {
        options.memory = 256 << 10;
        options.file = Some((Arc::new(tempfile::tempfile().expect("a file")), 16 << 20));
    });
    let mut got = all_at_once(&collector, |to| get(to, &origin.url("/x"), ""));
    got.push(get(collector.addresses()[0], &origin.url("/x"), ""));
    assert!(
        got.iter().all(|got| got.text() == body),
        "{:?}",
        got.iter().map(|got| got.body.len()).collect::<Vec<_>>()
    );
    assert_eq!((origin.count(), collector.report().sources[Source::File as usize]), (1, 1));
    // The spool file, which holds bodies beyond the memory limit, has space for four bodies of 4
    // MB. So the Collector (common parent proxy) must remove older bodies.
    for number in 0..10 {
        assert!(
            get(collector.addresses()[0], &origin.url(&format!("/{number}")), "").text() == body
        );
    }
    assert_eq!((origin.count(), collector.report().failures.iter().sum::<u64>()), (11, 0));
}

#[test]
fn a_body_for_which_there_is_no_room_fails_with_that_reason_and_others_do_not() {
    let body: &'static str = "x".repeat(1 << 20).leak();
    let origin = Origin::new(move |request, client| {
        give(client, &whole(200, "", if request.contains("/small") { "small" } else { body }));
    });
    let collector = collector(2, |options| options.memory = 512 << 10);
    for path in ["/large", "/small"] {
        for &to in collector.addresses() {
            let got = get(to, &origin.url(path), "");
            let is_right =
                if path == "/small" { got.text() == "small" } else { got.body.len() < body.len() };
            assert!(got.status == 200 && is_right, "{path}: {} bytes", got.body.len());
        }
    }
    let report = collector.report();
    assert_eq!((report.failed(Failure::NoRoom), report.fetches), (1, 2));
    assert_eq!(
        report.evicted, 1,
        "the small body took the room of what there was of the large one"
    );
}
